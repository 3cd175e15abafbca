// The scan hₗ = exp(ℓₜ) hₗ₋₁ + gₜ xₜ ⊗ Bₜ, yₜ = hₗ Cₜ, t = order(l), in chunks of T tokens (Mamba-2's duality),
// 64 or, where shared memory is small, 32.
//
// With s the running sum of ℓ inside a chunk and h its first state,
//   y_l = Σ_{j≤l} e^{s_l−s_j} g_j (C_l·B_j) x_j + e^{s_l} h C_l,     h' = e^{s_T} h + Σ_j e^{s_T−s_j} g_j x_j ⊗ B_j.
// A sequence of one chunk (SINGLE) needs only `output` or `gradients`. Otherwise `states` computes the sum of h' for all chunks
// in parallel, `pass` runs through the chunks in order, and `output` computes y. Backwards, `states` also computes
// Σ_l e^{s_l} ∂y_l ⊗ C_l, `pass` runs the adjoint λ of h' from the end, and `gradients` does the rest.
//
// A block has a chunk of one unit: heads with the same direction and group, and therefore the same B, C and C·Bᵀ.
// S: T, BATCH, L tokens, HEADS, P channels, GROUPS, N states, DIRS; UNIT heads per unit, UNITS; and the offsets
// signal(b,t,h,p), decay(b,t,q), gain(b,t,q), write(b,t,g,n), read(b,t,g,n), initial(b,q,p,n) and those of the results.

template <class S>
__device__ __forceinline__ float decay_of(float s) {
  return S::PRECISION == 0 ? expf(s) : __expf(s);
}

// Running sums of ℓ may be large negative numbers of which only differences matter. In f32 they are summed in f64 to keep the
// digits of the differences.
template <bool EXACT> struct Summing { typedef float type; };
template <> struct Summing<true> { typedef double type; };
template <class S> using Sum = typename Summing<S::PRECISION == 0>::type;

template <class S> struct Sizes {
  static constexpr int T = S::T, NP = (S::N + 15) / 16 * 16, PP = (S::P + 15) / 16 * 16;
  static constexpr int CHUNKS = (S::L + T - 1) / T, HEADS = S::DIRS * S::HEADS, STATE = S::P * S::N;
  static constexpr int BN = NP + 8, BP = PP + 8, BT = T + 8;
};

// Rows × columns by all eight warps: pieces of MT·16 rows and NT·8 columns each.
template <int ROWS, int COLUMNS> struct Pieces {
  static constexpr int STRIPS = ROWS / 16, WM = STRIPS % 8 == 0 ? 8 : STRIPS % 4 == 0 ? 4 : STRIPS % 2 == 0 ? 2 : 1;
  static constexpr int WN = 8 / WM, MT = STRIPS / WM, NT = (COLUMNS / 8 + WN - 1) / WN;
  static constexpr bool SPARE = NT * WN * 8 > COLUMNS;
  __device__ static int row() { return threadIdx.x / 32 % WM * (MT * 16); }
  __device__ static int column() { return threadIdx.x / 32 / WM * (NT * 8); }
  __device__ static bool idle() { return SPARE && column() >= COLUMNS; }
};

// The chunk and the unit of a block.
template <class S> struct Site {
  int chunk, unit, batch, direction, group, head0;
  __device__ Site() {
    chunk = blockIdx.x % Sizes<S>::CHUNKS;
    unit = blockIdx.x / Sizes<S>::CHUNKS % S::UNITS;
    batch = blockIdx.x / Sizes<S>::CHUNKS / S::UNITS;
    head0 = unit * S::UNIT;  // first scan head
    direction = head0 / S::HEADS;
    group = head0 / (Sizes<S>::HEADS / S::GROUPS);
  }
  __device__ int state(int q, int c) const { return (batch * Sizes<S>::HEADS + q) * (Sizes<S>::CHUNKS + 1) + c; }
};

// Tokens of the chunk; −1 past the end.
template <class S>
__device__ void load_tokens(int* tokens, const uint32* order, const Site<S>& site) {
  constexpr int T = S::T;
  if (threadIdx.x < T) {
    const int l = site.chunk * T + threadIdx.x;
    tokens[threadIdx.x] = l < S::L ? (int)order[site.direction * S::L + l] : -1;
  }
}

// to[row·PITCH + i] for i < WIDTH (zero beyond COUNT), a row per token; four at a time if VECTOR says that rows are aligned.
template <class S, int WIDTH, int COUNT, int PITCH, bool VECTOR, class At>
__device__ __forceinline__ void load_rows(float* to, const float* from, const int* tokens, At at, const float* scale = nullptr) {
  constexpr int T = S::T;
  constexpr int R = S::PRECISION;
  if constexpr (VECTOR && WIDTH == COUNT) {
    constexpr int QUARTERS = WIDTH / 4;
    spread<T * QUARTERS>([&](int i) {
      const int row = i / QUARTERS, column = i % QUARTERS * 4, token = tokens[row];
      float4 value = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
      if (token >= 0) value = *(const float4*)(from + at(token, column));
      const float factor = scale ? scale[row] : 1.0f;
      *(float4*)(to + row * PITCH + column) = make_float4(rounded<R>(value.x * factor), rounded<R>(value.y * factor),
                                                          rounded<R>(value.z * factor), rounded<R>(value.w * factor));
    });
  } else {
    spread<T * WIDTH>([&](int i) {
      const int row = i / WIDTH, column = i % WIDTH, token = tokens[row];
      const float value = token >= 0 && column < COUNT ? from[at(token, column)] : 0.0f;
      to[row * PITCH + column] = rounded<R>(scale ? value * scale[row] : value);
    });
  }
}

template <class S, int PITCH>
__device__ __forceinline__ void load_state(float* to, const float* from) {
  using Z = Sizes<S>;
  if constexpr (Z::NP == S::N && Z::PP == S::P) {
    spread<S::P * S::N / 4>([&](int i) {
      const float4 value = ((const float4*)from)[i];
      constexpr int R = S::PRECISION;
      *(float4*)(to + i / (S::N / 4) * PITCH + i % (S::N / 4) * 4) =
          make_float4(rounded<R>(value.x), rounded<R>(value.y), rounded<R>(value.z), rounded<R>(value.w));
    });
  } else {
#pragma unroll 4
    for (int i = threadIdx.x; i < Z::PP * Z::NP; i += 256) {
      const int p = i / Z::NP, n = i % Z::NP;
      to[p * PITCH + n] = rounded<S::PRECISION>(p < S::P && n < S::N ? from[p * S::N + n] : 0.0f);
    }
  }
}

// The state before the only chunk of a short sequence.
template <class S, int PITCH>
__device__ __forceinline__ void load_initial(float* to, const float* initial, int batch, int q) {
  using Z = Sizes<S>;
  spread<Z::PP * Z::NP>([&](int i) {
    const int p = i / Z::NP, n = i % Z::NP;
    to[p * PITCH + n] = rounded<S::PRECISION>(S::INITIAL && p < S::P && n < S::N ? initial[S::initial(batch, q, p, n)] : 0.0f);
  });
}

// Running sums of ℓ and the gains of one head, by the first warp: lane i has EACH neighbouring tokens.
template <class S>
__device__ void load_decay(Sum<S>* sums, float* gains, const float* decay, const float* gain, const int* tokens, int batch, int q) {
  if (threadIdx.x >= 32) return;
  constexpr int EACH = S::T / 32;
  const int lane = threadIdx.x;
  float own[EACH];
  Sum<S> sum = 0;
#pragma unroll
  for (int i = 0; i < EACH; i++) {
    const int t = tokens[EACH * lane + i];
    own[i] = t >= 0 ? decay[S::decay(batch, t, q)] : 0.0f;
    gains[EACH * lane + i] = t >= 0 ? gain[S::gain(batch, t, q)] : 0.0f;
    sum += own[i];
  }
#pragma unroll
  for (int o = 1; o < 32; o <<= 1) {
    const Sum<S> other = __shfl_up_sync(~0u, sum, o);
    if (lane >= o) sum += other;
  }
  Sum<S> before = __shfl_up_sync(~0u, sum, 1);
  if (lane == 0) before = 0;
#pragma unroll
  for (int i = 0; i < EACH - 1; i++) sums[EACH * lane + i] = before += own[i];
  sums[EACH * lane + EACH - 1] = sum;
}

// Σ_j row_j[p] · column_j[n] of a chunk.
template <class S, class Store>
__device__ void outer_sum(const float* rows, const float* columns, Store store) {
  constexpr int T = S::T;
  using Z = Sizes<S>;
  using W = Pieces<Z::PP, Z::NP>;
  if (W::idle()) return;
  const int r = W::row(), k0 = W::column();
  float c[W::MT][W::NT][4] = {};
  multiply<S::PRECISION, W::MT, W::NT, T>(
      c, [&](int p, int j) { return rows[j * Z::BP + r + p]; },
      [&](int j, int n) { return columns[j * Z::BN + k0 + n]; });
  for_each(c, [&](int p, int n, float value) { if (r + p < S::P && k0 + n < S::N) store(r + p, k0 + n, value); });
}

template <class S, bool ADJOINT>
__device__ void scan_states(const uint32* __restrict__ order, const float* signal, const float* decay,
                            const float* gain, const float* write, const float* read,
                            const float* cotangent, float* states, float* adjoints, float* decays) {
  constexpr int T = S::T;
  using Z = Sizes<S>;
  extern __shared__ float4 shared4[];
  float* columns = (float*)shared4;        // B [T, N]
  float* reads = columns + T * Z::BN;      // C [T, N], backwards
  float* rows = reads + (ADJOINT ? T * Z::BN : 0);  // x [T, P]
  float* cotangents = rows + T * Z::BP;    // ∂y [T, P], backwards
  __shared__ int tokens[T];
  __shared__ Sum<S> sums[T];
  __shared__ float gains[T], weights[T], growth[T];
  const Site<S> site;
  load_tokens<S>(tokens, order, site);
  __syncthreads();
  load_rows<S, Z::NP, S::N, Z::BN, S::WRITE_4>(columns, write, tokens, [&](int t, int i) { return S::write(site.batch, t, site.group, i); });
  if (ADJOINT) load_rows<S, Z::NP, S::N, Z::BN, S::READ_4>(reads, read, tokens, [&](int t, int i) { return S::read(site.batch, t, site.group, i); });
  for (int head = 0; head < S::UNIT; head++) {
    const int q = site.head0 + head;
    load_decay<S>(sums, gains, decay, gain, tokens, site.batch, q);
    __syncthreads();
    if (threadIdx.x < T) {
      weights[threadIdx.x] = decay_of<S>(sums[T - 1] - sums[threadIdx.x]) * gains[threadIdx.x];
      growth[threadIdx.x] = decay_of<S>(sums[threadIdx.x]);
    }
    if (threadIdx.x == 0) decays[(site.batch * Z::HEADS + q) * Z::CHUNKS + site.chunk] = decay_of<S>(sums[T - 1]);
    __syncthreads();
    load_rows<S, Z::PP, S::P, Z::BP, S::SIGNAL_4>(
        rows, signal, tokens, [&](int t, int i) { return S::signal(site.batch, t, q % S::HEADS, i); }, weights);
    if (ADJOINT)
      load_rows<S, Z::PP, S::P, Z::BP, S::COTANGENT_4>(
          cotangents, cotangent, tokens, [&](int t, int i) { return S::cotangent(site.batch, t, q % S::HEADS, i); }, growth);
    __syncthreads();
    float* state = states + (size_t)site.state(q, site.chunk) * Z::STATE;
    outer_sum<S>(rows, columns, [&](int p, int n, float value) { state[p * S::N + n] = value; });
    if (ADJOINT) {
      float* adjoint = adjoints + (size_t)site.state(q, site.chunk) * Z::STATE;
      outer_sum<S>(cotangents, reads, [&](int p, int n, float value) { adjoint[p * S::N + n] = value; });
    }
    __syncthreads();
  }
}

// One thread per element of h: the state before each chunk; ADJOINT: the adjoint after each, from the end.
// States are [P, N], or [N, P] and rounded (TURNED).
template <class S, bool ADJOINT>
__device__ void scan_pass(const float* initial, const float* final_cotangent,
                          const float* decays, float* states, float* adjoints, float* final_state,
                          float* initial_gradient) {
  using Z = Sizes<S>;
  constexpr int ELEMENTS = S::BATCH * Z::HEADS * Z::STATE, STORED = S::FINAL && !S::GRADIENT;
  constexpr bool backwards = ADJOINT;
  const int t = blockIdx.x * 256 + threadIdx.x;
  if (t >= ELEMENTS) return;
  const int at = t % Z::STATE, bq = t / Z::STATE, batch = bq / Z::HEADS, q = bq % Z::HEADS;
  const int p = S::TURNED ? at % S::P : at / S::N, n = S::TURNED ? at / S::P : at % S::N;
  float h = 0.0f;
  if (S::INITIAL && !backwards) h = initial[S::initial(batch, q, p, n)];
  if (S::FINAL && backwards) h = final_cotangent[S::final_state(batch, q, p, n)];
  const float* decay = decays + bq * Z::CHUNKS;
  float* mine = (backwards ? adjoints : states) + (size_t)bq * (Z::CHUNKS + 1) * Z::STATE + at;
  const auto chunk = [&](int i) { return backwards ? Z::CHUNKS - 1 - i : i; };
  // Several chunks are loaded before the first is used.
  constexpr int AHEAD = 8;
  for (int i0 = 0; i0 < Z::CHUNKS; i0 += AHEAD) {
    float sums[AHEAD], factors[AHEAD];
#pragma unroll
    for (int i = 0; i < AHEAD; i++) {
      const int c = chunk(min(i0 + i, Z::CHUNKS - 1));
      sums[i] = mine[(size_t)c * Z::STATE];
      factors[i] = decay[c];
    }
#pragma unroll
    for (int i = 0; i < AHEAD; i++)
      if (i0 + i < Z::CHUNKS) {
        mine[(size_t)chunk(i0 + i) * Z::STATE] = S::TURNED ? rounded<S::PRECISION>(h) : h;
        h = factors[i] * h + sums[i];
      }
  }
  if (backwards) {
    if (S::INITIAL) initial_gradient[S::initial_gradient(batch, q, p, n)] = h;
  } else {
    mine[(size_t)Z::CHUNKS * Z::STATE] = h;
    if (STORED) final_state[S::final_state(batch, q, p, n)] = h;
  }
}

template <class S>
__device__ void scan_output(const uint32* __restrict__ order, const float* signal, const float* decay,
                            const float* gain, const float* write, const float* read,
                            const float* states, float* output) {
  constexpr int T = S::T;
  using Z = Sizes<S>;
  using W = Pieces<T, T>;
  using V = Pieces<T, Z::PP>;
  extern __shared__ float4 shared4[];
  float* b = (float*)shared4;          // B [T, N]
  float* c = b + T * (Z::NP + 4);      // C [T, N]
  float* mix = c + T * (Z::NP + 4);    // [l, j]
  float* x = mix + T * (T + 4);        // [T, P]
  float* h = x + T * Z::BP;            // [P, N]
  __shared__ int tokens[T];
  __shared__ Sum<S> sums[T];
  __shared__ float gains[T], growth[T];
  const Site<S> site;
  load_tokens<S>(tokens, order, site);
  __syncthreads();
  load_rows<S, Z::NP, S::N, Z::NP + 4, S::WRITE_4>(b, write, tokens, [&](int t, int i) { return S::write(site.batch, t, site.group, i); });
  load_rows<S, Z::NP, S::N, Z::NP + 4, S::READ_4>(c, read, tokens, [&](int t, int i) { return S::read(site.batch, t, site.group, i); });
  __syncthreads();
  const int r = W::row(), k0 = W::column(), vr = V::row(), vk = V::column();
  float similar[W::MT][W::NT][4] = {};  // C·Bᵀ
  multiply<S::PRECISION, W::MT, W::NT, Z::NP>(
      similar, [&](int l, int n) { return c[(r + l) * (Z::NP + 4) + n]; },
      [&](int n, int j) { return b[(k0 + j) * (Z::NP + 4) + n]; });
  for (int head = 0; head < S::UNIT; head++) {
    const int q = site.head0 + head;
    load_decay<S>(sums, gains, decay, gain, tokens, site.batch, q);
    load_rows<S, Z::PP, S::P, Z::BP, S::SIGNAL_4>(x, signal, tokens, [&](int t, int i) { return S::signal(site.batch, t, q % S::HEADS, i); });
    if constexpr (S::SINGLE) load_initial<S, Z::NP + 4>(h, states, site.batch, q);
    else load_state<S, Z::NP + 4>(h, states + (size_t)site.state(q, site.chunk) * Z::STATE);
    __syncthreads();
    if (threadIdx.x < T) growth[threadIdx.x] = decay_of<S>(sums[threadIdx.x]);
    for_each(similar, [&](int l, int j, float value) {
      l += r; j += k0;
      mix[l * (T + 4) + j] = rounded<S::PRECISION>(j <= l ? value * decay_of<S>(sums[l] - sums[j]) * gains[j] : 0.0f);
    });
    __syncthreads();
    if (!V::idle()) {
      float y[V::MT][V::NT][4] = {};
      if constexpr (!S::SINGLE || S::INITIAL) multiply<S::PRECISION, V::MT, V::NT, Z::NP>(
          y, [&](int l, int n) { return c[(vr + l) * (Z::NP + 4) + n]; },
          [&](int n, int p) { return h[(vk + p) * (Z::NP + 4) + n]; });
      for_each(y, [&](int l, int, float& value) { value *= growth[vr + l]; });
      multiply<S::PRECISION, V::MT, V::NT, T>(
          y, [&](int l, int j) { return mix[(vr + l) * (T + 4) + j]; }, [&](int j, int p) { return x[j * Z::BP + vk + p]; });
      for_each(y, [&](int l, int p, float value) {
        const int token = tokens[vr + l];
        if (token >= 0 && vk + p < S::P) output[S::output(site.direction, site.batch, token, q % S::HEADS, vk + p)] = value;
      });
    }
    __syncthreads();
  }
}

// out(b,t,h)+p = Σ over directions of the pieces.
template <class S, bool GRADIENT>
__device__ void sum_directions(const float* pieces, float* to) {
  const long long t = (long long)blockIdx.x * 256 + threadIdx.x;
  constexpr long long COUNT = (long long)S::BATCH * S::L * S::HEADS * S::P;
  if (t >= COUNT) return;
  float sum = 0.0f;
#pragma unroll
  for (int k = 0; k < S::DIRS; k++) sum += pieces[k * COUNT + t];
  const int p = t % S::P, h = t / S::P % S::HEADS, token = t / S::P / S::HEADS % S::L, batch = t / S::P / S::HEADS / S::L;
  to[GRADIENT ? S::signal_gradient(batch, token, h, p) : S::summed(batch, token, h, p)] = sum;
}

// Adds `value` of every row over its columns into to[row].
template <class W, int ROWS>
__device__ void row_sums(float (&c)[W::MT][W::NT][4], float* pile, float* to) {
  const int lane = threadIdx.x % 32;
#pragma unroll
  for (int m = 0; m < W::MT; m++)
#pragma unroll
    for (int half = 0; half < 2; half++) {
      float sum = 0.0f;
#pragma unroll
      for (int n = 0; n < W::NT; n++) sum += c[m][n][half * 2] + c[m][n][half * 2 + 1];
      sum += __shfl_xor_sync(~0u, sum, 1);
      sum += __shfl_xor_sync(~0u, sum, 2);
      if (lane % 4 == 0) pile[threadIdx.x / 32 / W::WM * ROWS + W::row() + m * 16 + lane / 4 + half * 8] = sum;
    }
  __syncthreads();
  if (threadIdx.x < ROWS) {
    float sum = 0.0f;
#pragma unroll
    for (int w = 0; w < W::WN; w++) sum += pile[w * ROWS + threadIdx.x];
    to[threadIdx.x] = sum;
  }
  __syncthreads();
}

template <class S>
__device__ void scan_gradients(const uint32* __restrict__ order, const float* signal, const float* decay,
                               const float* gain, const float* write, const float* read,
                               const float* cotangent, const float* states,
                               const float* adjoints, float* signal_gradient, float* decay_gradient,
                               float* gain_gradient, float* write_gradient, float* read_gradient, float* initial_gradient) {
  constexpr int T = S::T;
  using Z = Sizes<S>;
  using W = Pieces<T, T>;
  using V = Pieces<T, Z::PP>;
  using N = Pieces<T, Z::NP>;
  extern __shared__ float4 shared4[];
  float* b = (float*)shared4;       // B [T, N]
  float* c = b + T * Z::BN;         // C [T, N]
  float* mix = c + T * Z::BN;       // [l, j]
  float* x = mix + T * Z::BT;       // [T, P]
  float* dy = x + T * Z::BP;        // ∂y [T, P]
  float* h = dy + T * Z::BP;        // first state [P, N]
  float* lambda = h + Z::PP * Z::BN;  // adjoint of the last state [P, N]
  __shared__ int tokens[T];
  __shared__ Sum<S> sums[T];
  __shared__ float gains[T], growth[T], rest[T], gained[T], lost[T], alike[T], close[T], pile[8 * T];
  const Site<S> site;
  load_tokens<S>(tokens, order, site);
  __syncthreads();
  load_rows<S, Z::NP, S::N, Z::BN, S::WRITE_4>(b, write, tokens, [&](int t, int i) { return S::write(site.batch, t, site.group, i); });
  load_rows<S, Z::NP, S::N, Z::BN, S::READ_4>(c, read, tokens, [&](int t, int i) { return S::read(site.batch, t, site.group, i); });
  __syncthreads();
  const int r = W::row(), k0 = W::column(), vr = V::row(), vk = V::column(), nr = N::row(), nk = N::column();
  float similar[W::MT][W::NT][4] = {};  // C·Bᵀ
  multiply<S::PRECISION, W::MT, W::NT, Z::NP>(
      similar, [&](int l, int n) { return c[(r + l) * Z::BN + n]; }, [&](int n, int j) { return b[(k0 + j) * Z::BN + n]; });
  float db[N::MT][N::NT][4] = {}, dc[N::MT][N::NT][4] = {};
  for (int head = 0; head < S::UNIT; head++) {
    const int q = site.head0 + head;
    load_decay<S>(sums, gains, decay, gain, tokens, site.batch, q);
    load_rows<S, Z::PP, S::P, Z::BP, S::SIGNAL_4>(x, signal, tokens, [&](int t, int i) { return S::signal(site.batch, t, q % S::HEADS, i); });
    load_rows<S, Z::PP, S::P, Z::BP, S::COTANGENT_4>(dy, cotangent, tokens, [&](int t, int i) { return S::cotangent(site.batch, t, q % S::HEADS, i); });
    const size_t here = (size_t)site.state(q, site.chunk) * Z::STATE;
    // ⟨h', λ⟩: how the loss depends on the decay of the whole chunk.
    float whole = 0.0f;
    if constexpr (S::SINGLE) {
      load_initial<S, Z::BN>(h, states, site.batch, q);
    } else {
      load_state<S, Z::BN>(h, states + here);
      load_state<S, Z::BN>(lambda, adjoints + here);
        if constexpr (Z::STATE % 4 == 0)
        spread<Z::STATE / 4>([&](int i) {
          const float4 a = ((const float4*)(states + here + Z::STATE))[i], b = ((const float4*)(adjoints + here))[i];
          whole += a.x * b.x + a.y * b.y + a.z * b.z + a.w * b.w;
        });
      else
        spread<Z::STATE>([&](int i) { whole += states[here + Z::STATE + i] * adjoints[here + i]; });
    }
#pragma unroll
    for (int o = 16; o; o >>= 1) whole += __shfl_xor_sync(~0u, whole, o);
    if (threadIdx.x % 32 == 0) pile[threadIdx.x / 32] = whole;
    __syncthreads();
    whole = 0.0f;
#pragma unroll
    for (int w = 0; w < 8; w++) whole += pile[w];
    if (threadIdx.x < T) {
      growth[threadIdx.x] = decay_of<S>(sums[threadIdx.x]);
      rest[threadIdx.x] = decay_of<S>(sums[T - 1] - sums[threadIdx.x]);
    }
    // mix = e^{s_l−s_j} (C_l·B_j), and e^{s_l−s_j} (∂y_l·x_j). The terms j = l do not depend on the decay: they are summed
    // separately, so that they do not enter the two large sums whose difference is ∂ℓ.
    float near[W::MT][W::NT][4] = {};
    multiply<S::PRECISION, W::MT, W::NT, Z::PP>(
        near, [&](int l, int p) { return dy[(r + l) * Z::BP + p]; }, [&](int p, int j) { return x[(k0 + j) * Z::BP + p]; });
#pragma unroll
    for (int m = 0; m < W::MT; m++)
#pragma unroll
      for (int n = 0; n < W::NT; n++)
#pragma unroll
        for (int part = 0; part < 4; part++) {
          const int l = r + m * 16 + threadIdx.x % 32 / 4 + part / 2 * 8, j = k0 + n * 8 + threadIdx.x % 4 * 2 + part % 2;
          if (l == j) {
            alike[l] = similar[m][n][part];
            close[l] = near[m][n][part];
          }
          const float window = j < l ? decay_of<S>(sums[l] - sums[j]) : 0.0f;
          mix[l * Z::BT + j] = rounded<S::PRECISION>(window * similar[m][n][part]);
          near[m][n][part] *= window * gains[j];
        }
    __syncthreads();
    {
      // u_j = Σ_{l>j} mix_lj ∂y_l + e^{s_T−s_j} λ B_j;  ∂x = g (u + (C·B) ∂y), ∂g = x·u + (C·B) (∂y·x)
      float u[V::MT][V::NT][4] = {};
      if (!V::idle()) {
        if constexpr (!S::SINGLE) multiply<S::PRECISION, V::MT, V::NT, Z::NP>(
            u, [&](int j, int n) { return b[(vr + j) * Z::BN + n]; }, [&](int n, int p) { return lambda[(vk + p) * Z::BN + n]; });
        for_each(u, [&](int j, int, float& value) { value *= rest[vr + j]; });
        multiply<S::PRECISION, V::MT, V::NT, T>(
            u, [&](int j, int l) { return mix[l * Z::BT + vr + j]; }, [&](int l, int p) { return dy[l * Z::BP + vk + p]; });
        for_each(u, [&](int j, int p, float& value) {
          const int token = tokens[vr + j];
          const float all = value + alike[vr + j] * dy[(vr + j) * Z::BP + vk + p];
          if (token >= 0 && vk + p < S::P)
            signal_gradient[S::signal_piece(site.direction, site.batch, token, q % S::HEADS, vk + p)] = all * gains[vr + j];
          value *= x[(vr + j) * Z::BP + vk + p];
        });
      }
      __syncthreads();
      row_sums<V, T>(u, pile, gained);
    }
    // mix = e^{s_l−s_j} g_j (∂y_l·x_j)
    for_each(near, [&](int l, int j, float value) { mix[(r + l) * Z::BT + k0 + j] = rounded<S::PRECISION>(value); });
    __syncthreads();
    {
      float mine[N::MT][N::NT][4] = {};
      if (!N::idle()) {
        // ∂B_j += Σ_{l>j} mix_lj C_l + g_j (e^{s_T−s_j} xᵀλ + (∂y·x) C)
        if constexpr (!S::SINGLE) multiply<S::PRECISION, N::MT, N::NT, Z::PP>(
            mine, [&](int j, int p) { return x[(nr + j) * Z::BP + p]; }, [&](int p, int n) { return lambda[p * Z::BN + nk + n]; });
#pragma unroll
        for (int m = 0; m < N::MT; m++)
#pragma unroll
          for (int n = 0; n < N::NT; n++)
#pragma unroll
            for (int part = 0; part < 4; part++) {
              const int j = nr + m * 16 + threadIdx.x % 32 / 4 + part / 2 * 8, k = nk + n * 8 + threadIdx.x % 4 * 2 + part % 2;
              db[m][n][part] += gains[j] * (rest[j] * mine[m][n][part] + close[j] * c[j * Z::BN + k]);
              mine[m][n][part] = 0.0f;
            }
        multiply<S::PRECISION, N::MT, N::NT, T>(
            db, [&](int j, int l) { return mix[l * Z::BT + nr + j]; }, [&](int l, int n) { return c[l * Z::BN + nk + n]; });
        // ∂C_l += Σ_{j<l} mix_lj B_j + e^{s_l} ∂yᵀh + g_l (∂y·x) B
        if constexpr (!S::SINGLE || S::INITIAL) multiply<S::PRECISION, N::MT, N::NT, Z::PP>(
            mine, [&](int l, int p) { return dy[(nr + l) * Z::BP + p]; }, [&](int p, int n) { return h[p * Z::BN + nk + n]; });
        for_each(mine, [&](int l, int, float& value) { value *= growth[nr + l]; });
        multiply<S::PRECISION, N::MT, N::NT, T>(
            mine, [&](int l, int j) { return mix[(nr + l) * Z::BT + j]; }, [&](int j, int n) { return b[j * Z::BN + nk + n]; });
#pragma unroll
        for (int m = 0; m < N::MT; m++)
#pragma unroll
          for (int n = 0; n < N::NT; n++)
#pragma unroll
            for (int part = 0; part < 4; part++) {
              const int l = nr + m * 16 + threadIdx.x % 32 / 4 + part / 2 * 8, k = nk + n * 8 + threadIdx.x % 4 * 2 + part % 2;
              dc[m][n][part] += mine[m][n][part] + gains[l] * close[l] * b[l * Z::BN + k];
              mine[m][n][part] *= c[l * Z::BN + k];
            }
      }
      __syncthreads();
      row_sums<N, T>(mine, pile, lost);  // C·∂C without j = l
    }
    if constexpr (S::SINGLE && S::INITIAL) {
      for (int i = threadIdx.x; i < T * Z::PP; i += 256)
        dy[i / Z::PP * Z::BP + i % Z::PP] = rounded<S::PRECISION>(dy[i / Z::PP * Z::BP + i % Z::PP] * growth[i / Z::PP]);
      __syncthreads();
      outer_sum<S>(dy, c, [&](int p, int n, float value) {
        initial_gradient[S::initial_gradient(site.batch, q, p, n)] = value;
      });
    }
    // ∂ℓ_i = Σ_{l≥i} (C_l·∂C_l − g_l ∂g_l), and ⟨h', λ⟩ at the end.
    if (threadIdx.x < 32) {
      constexpr int EACH = T / 32;
      const int lane = threadIdx.x;
      float own[EACH], sum = 0.0f;
#pragma unroll
      for (int i = 0; i < EACH; i++) {
        const int l = EACH * lane + i;
        sum += own[i] = lost[l] - gains[l] * gained[l];
      }
#pragma unroll
      for (int o = 1; o < 32; o <<= 1) {
        const float other = __shfl_down_sync(~0u, sum, o);
        if (lane + o < 32) sum += other;
      }
#pragma unroll
      for (int i = 0; i < EACH; i++) {
        const int l = EACH * lane + i, token = tokens[l];
        if (token >= 0) {
          decay_gradient[S::decay_gradient(site.batch, token, q)] = whole + sum;
          gain_gradient[S::gain_gradient(site.batch, token, q)] = gained[l] + alike[l] * close[l];
        }
        sum -= own[i];
      }
    }
    __syncthreads();
  }
  if (N::idle()) return;
  for_each(db, [&](int j, int n, float value) {
    const int token = tokens[nr + j];
    if (token >= 0 && nk + n < S::N) write_gradient[S::write_gradient(site.unit, site.batch, token, nk + n)] = value;
  });
  for_each(dc, [&](int l, int n, float value) {
    const int token = tokens[nr + l];
    if (token >= 0 && nk + n < S::N) read_gradient[S::read_gradient(site.unit, site.batch, token, nk + n)] = value;
  });
}

// A group with several units: the sum of the pieces of its units, [unit, batch, token, state].
template <class S, bool READ>
__device__ void sum_units(const float* pieces, float* to) {
  const long long t = (long long)blockIdx.x * 256 + threadIdx.x;
  constexpr long long ONE = (long long)S::BATCH * S::L * S::N;
  if (t >= ONE * S::GROUPS) return;
  constexpr int PER = S::UNITS / S::GROUPS;
  const int group = t / ONE, n = t % S::N, token = t / S::N % S::L, batch = t / S::N / S::L % S::BATCH;
  float sum = 0.0f;
  for (int u = group * PER; u < (group + 1) * PER; u++) sum += pieces[u * ONE + t % ONE];
  to[READ ? S::read_summed(batch, token, group, n) : S::write_summed(batch, token, group, n)] = sum;
}
