// The scan of `scan.cu` in tf32, for 32 channels and 32, 48 or 64 states.
//
// A warp owns 16 rows of every product, so that what one product makes, the next takes from registers. Three facts:
//   ∂B and ∂C sum over heads while C and B do not depend on the head: e^{s_l−s_j} g_j (∂y_l·x_j) is summed over heads first.
//   E_lj = e^{s_l−s_j} (C_l·B_j) (∂y_l·x_j) serves ∂g_j = Σ_l E_lj + … and ∂ℓ_i = Σ_{l≥i>j} E_lj g_j + … alike.
//   A state is small beside what makes it: `chain` runs through the chunks in order and writes h before each.
//
// Shared memory: rows are 4 mod 32 floats apart. Then eight rows of four floats (`load_pieces`) lie in different banks, and
// so do eight columns of the rows 0, 2, 4, 6: sums over k take k = 2·pair and 2·pair + 1 where their operand is stored by k.
// States [N, P] are stored so that those rows are 0…3 and 4…7 (`folded`).

constexpr int T = 64;

// Four pieces of eight rows of four floats; lane i points to row i%8 of piece i/8, and gets word i%4 of row i/4 of each.
__device__ __forceinline__ void load_pieces(uint32 (&to)[4], const float* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"((uint32)__cvta_generic_to_shared(row)));
}

// What the tensor cores should get, which drop the last 13 bits: 0.35 to 0.7 of a step of tf32 more, half a step on average. What
// is tf32 stays as it is, what is no number stays none (a half added to the bits would carry that into the sign).
__device__ __forceinline__ uint32 unbiased(float a) { return __float_as_uint(a * 1.00034f); }

__device__ __forceinline__ float power_of_two(float a) {
  float b;
  asm volatile("ex2.approx.ftz.f32 %0, %1;" : "=f"(b) : "f"(a));
  return b;
}

__device__ __forceinline__ int folded(int row) { return (row & ~7) | (row & 3) << 1 | (row >> 2 & 1); }

__device__ __forceinline__ void load_unbiased(uint32 (&to)[4], const float* row) {
  load_pieces(to, row);
#pragma unroll
  for (int i = 0; i < 4; i++) to[i] = unbiased(__uint_as_float(to[i]));
}

__device__ __forceinline__ float sum_of_four(float a) {
  a += __shfl_xor_sync(~0u, a, 1);
  return a + __shfl_xor_sync(~0u, a, 2);
}

// Waits until this thread's copies are there but for the last N groups: it may read them itself before the others do.
template <int N> __device__ __forceinline__ void settle() { asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory"); }

// Barrier NUMBER of some warps, THREADS in all: those that wait there, and those that only let them go on.
template <int NUMBER, int THREADS> __device__ __forceinline__ void meet() {
  asm volatile("barrier.sync %0, %1;" ::"n"(NUMBER), "n"(THREADS) : "memory");
}
template <int NUMBER, int THREADS> __device__ __forceinline__ void come() {
  asm volatile("barrier.arrive %0, %1;" ::"n"(NUMBER), "n"(THREADS) : "memory");
}

// The same number, but what follows from it is computed anew rather than kept in registers.
__device__ __forceinline__ int anew(int number) {
  asm volatile("" : "+r"(number));
  return number;
}

// The number of this warp, known to be the same for all its lanes.
__device__ __forceinline__ int warp_number() { return __shfl_sync(~0u, threadIdx.x / 32, 0); }

// What a lane has to know. Its rows of a strip are `row` and row + 8, in an order that spreads float2 over the banks.
struct Lane {
  int lane, pair, column, row;
  __device__ Lane() {
    lane = threadIdx.x % 32;
    pair = lane % 4;
    column = lane / 4;
    row = folded(column);
  }
  // Column minus row, up to its sign, of a part of tile i of 16 × 16 on the diagonal.
  __device__ int past(int i, int part) const { return i == part / 2 ? pair * 2 + part % 2 - row : i - part / 2; }
  // Offsets for load_pieces: 16 rows × 8; 8 rows × 16; the same of a folded matrix. Then of k = 2·pair, column `column`.
  template <int PITCH> __device__ int left() const { return (lane / 8 % 2 * 8 + folded(lane % 8)) * PITCH + lane / 16 * 4; }
  template <int PITCH> __device__ int right() const { return lane % 8 * PITCH + lane / 8 * 4; }
  template <int PITCH> __device__ int right_folded() const { return folded(lane % 8) * PITCH + lane / 8 * 4; }
  template <int PITCH> __device__ int down() const { return 2 * pair * PITCH + column; }
};

// Some threads of a block, and this one's number among them.
template <int COUNT> struct Team {
  int thread;
  // Calls `f(row, column)` for every fourth column of ROWS × WIDTH.
  template <int ROWS, int WIDTH, class F> __device__ __forceinline__ void share(F f) const {
    constexpr int QUARTERS = WIDTH / 4, WORK = ROWS * QUARTERS;
#pragma unroll
    for (int r = 0; r < (WORK + COUNT - 1) / COUNT; r++) {
      const int i = r * COUNT + thread;
      if (WORK % COUNT && i >= WORK) return;
      if (COUNT % QUARTERS == 0) f(thread / QUARTERS + r * (COUNT / QUARTERS), thread % QUARTERS * 4);
      else f(i / QUARTERS, i % QUARTERS * 4);
    }
  }
  // Rows of the tokens of a chunk, on their way to shared memory; zero past the end.
  template <int WIDTH, int PITCH, class At>
  __device__ __forceinline__ void fetch_rows(float* to, const float* from, const int* tokens, At at) const {
    share<T, WIDTH>([&](int row, int column) {
      const int token = tokens[row];
      copy_async(to + row * PITCH + column, from + at(max(token, 0), column), token >= 0);
    });
  }
  // A state, its rows folded.
  template <class S, int PITCH> __device__ __forceinline__ void fetch_state(float* to, const float* from) const {
    share<S::N, S::P>([&](int row, int column) {
      copy_async(to + folded(row) * PITCH + column, from + row * S::P + column, true);
    });
  }
  // Rounds the rows this thread fetched, once they are there.
  template <int WIDTH, int PITCH> __device__ __forceinline__ void round_rows(float* rows) const {
    share<T, WIDTH>([&](int row, int column) {
      float4* at = (float4*)(rows + row * PITCH + column);
      const float4 value = *at;
      *at = make_float4(rounded<1>(value.x), rounded<1>(value.y), rounded<1>(value.z), rounded<1>(value.w));
    });
  }
};

// Gives a lane's row, two tiles at a time, to `put(column, float4)`: neighbours swap halves so that each has four in a row.
template <int TILES, class Put>
__device__ __forceinline__ void by_fours(const float (&c)[TILES][4], int half, const Lane& at, Put put) {
  const bool odd = at.pair & 1;
#pragma unroll
  for (int t = 0; t < TILES; t += 2) {
    const float a = c[t][half * 2], b = c[t][half * 2 + 1], d = c[t + 1][half * 2], e = c[t + 1][half * 2 + 1];
    const float f = __shfl_xor_sync(~0u, odd ? a : d, 1), g = __shfl_xor_sync(~0u, odd ? b : e, 1);
    put((t + odd) * 8 + at.pair / 2 * 4, make_float4(odd ? f : a, odd ? g : b, odd ? d : f, odd ? e : g));
  }
}

// ℓ and g of the tokens 2·lane and 2·lane + 1.
template <class S> struct Pair {
  float decay[2], gain[2];
  __device__ void load(const float* decays, const float* gains, const int* tokens, int batch, int q) {
#pragma unroll
    for (int i = 0; i < 2; i++) {
      const int token = tokens[threadIdx.x % 32 * 2 + i];
      decay[i] = token >= 0 ? decays[S::decay(batch, token, q)] : 0.0f;
      gain[i] = token >= 0 ? gains[S::gain(batch, token, q)] : 0.0f;
    }
  }
  // Running sums of ℓ in units of log 2, by a whole warp.
  __device__ void sums(float (&s)[2]) const {
    const int lane = threadIdx.x % 32;
    float sum = decay[0] + decay[1];
#pragma unroll
    for (int o = 1; o < 32; o <<= 1) {
      const float other = __shfl_up_sync(~0u, sum, o);
      if (lane >= o) sum += other;
    }
    const float before = __shfl_up_sync(~0u, sum, 1);
    s[0] = ((lane ? before : 0.0f) + decay[0]) * 1.44269504f;
    s[1] = sum * 1.44269504f;
  }
  __device__ void store(float* s, float* g) const {
    float sum[2];
    sums(sum);
    ((float2*)s)[threadIdx.x % 32] = make_float2(sum[0], sum[1]);
    ((float2*)g)[threadIdx.x % 32] = make_float2(gain[0], gain[1]);
  }
};

// Sums over chunks, [N, P]: of e^{s_T−s_j} g_j x_j ⊗ B_j, or for ADJOINT of e^{s_l} ∂y_l ⊗ C_l. A block
// takes CHAIN heads that share B and, of SPAN chunks, either one, for `pass` to go on from, or all: then it goes through them
// itself, λ from the end, and stores h before and λ after each.
template <class S, bool ADJOINT>
__device__ void scan_chain(const uint32* __restrict__ order, const float* signal, const float* decay,
                           const float* gain, const float* write, const float* read,
                           const float* cotangent, const float* initial,
                           const float* final_cotangent, float* states, float* adjoints, float* decays,
                           float* final_state, float* initial_gradient) {
  using Z = Sizes<S>;
  constexpr bool WHOLE = S::SPAN == Z::CHUNKS;
  constexpr int G = S::CHAIN, BN = S::N + 4, BR = G * S::P + 4, STAGE = T * (BN + BR), STAGES = S::STAGES;
  constexpr int AHEAD = STAGES > 1 ? STAGES - 1 : 1;  // chunks under way
  constexpr int TILES = G * S::P / 16, LENGTH = S::SPAN * T;
  extern __shared__ float4 shared4[];
  int* tokens = (int*)shared4 + STAGES * STAGE;
  float* weights = (float*)tokens + LENGTH;  // [G, LENGTH], first ℓ
  float* gains = weights + G * LENGTH;       // [G, LENGTH]
  float* factors = gains + G * LENGTH;       // [G, SPAN]
  constexpr bool backwards = ADJOINT;
  const int c0 = blockIdx.x % (Z::CHUNKS / S::SPAN) * S::SPAN, chain = blockIdx.x / (Z::CHUNKS / S::SPAN);
  const int batch = chain / (Z::HEADS / G), q0 = chain % (Z::HEADS / G) * G;
  const int direction = q0 / S::HEADS, group = q0 / (Z::HEADS / S::GROUPS);
  const int warp = warp_number(), n0 = warp % 4 * 16, k0 = warp / 4 * (TILES * 8), head = k0 / S::P, p0 = k0 % S::P;
  const Lane at;
  const Team<256> all{(int)threadIdx.x};
  for (int l = threadIdx.x; l < LENGTH; l += 256) tokens[l] = c0 * T + l < S::L ? (int)order[direction * S::L + c0 * T + l] : -1;
  __syncthreads();
  const auto chunk_of = [&](int i) { return backwards ? S::SPAN - 1 - i : i; };
  const auto fetch = [&](int i) {
    const int* here = tokens + chunk_of(i) * T;
    float* stage = (float*)shared4 + i % STAGES * STAGE;
    all.fetch_rows<S::N, BN>(stage, backwards ? read : write, here, [&](int t, int n) {
      return backwards ? S::read(batch, t, group, n) : S::write(batch, t, group, n);
    });
#pragma unroll
    for (int g = 0; g < G; g++)
      all.fetch_rows<S::P, BR>(stage + T * BN + g * S::P, backwards ? cotangent : signal, here, [&](int t, int p) {
        const int h = (q0 + g) % S::HEADS;
        return backwards ? S::cotangent(batch, t, h, p) : S::signal(batch, t, h, p);
      });
  };
#pragma unroll
  for (int i = 0; i < AHEAD; i++) {
    if (i < S::SPAN) fetch(i);
    commit();
  }
#pragma unroll 4
  for (int i = threadIdx.x; i < LENGTH * G; i += 256) {
    const int l = i / G, g = i % G, token = tokens[l];
    weights[g * LENGTH + l] = token >= 0 ? decay[S::decay(batch, token, q0 + g)] : 0.0f;
    gains[g * LENGTH + l] = token >= 0 ? gain[S::gain(batch, token, q0 + g)] : 0.0f;
  }
  __syncthreads();
  for (int i = warp; i < S::SPAN * G; i += 8) {
    const int g = i % G, c = i / G;
    float2* here = (float2*)(weights + g * LENGTH + c * T) + at.lane;
    const float2 ell = *here, first = ((const float2*)(gains + g * LENGTH + c * T))[at.lane];
    const Pair<S> pair{{ell.x, ell.y}, {first.x, first.y}};
    float s[2], w[2];
    pair.sums(s);
    const float end = __shfl_sync(~0u, s[1], 31);
#pragma unroll
    for (int k = 0; k < 2; k++) w[k] = backwards ? power_of_two(s[k]) : power_of_two(end - s[k]) * pair.gain[k];
    *here = make_float2(w[0], w[1]);
    if (at.lane == 0) {
      factors[g * S::SPAN + c] = power_of_two(end);
      if (!WHOLE && !backwards) decays[(batch * Z::HEADS + q0 + g) * Z::CHUNKS + c0 + c] = power_of_two(end);
    }
  }

  float h[TILES][4] = {};  // rows n, columns p
  const auto each = [&](auto f) {
#pragma unroll
    for (int t = 0; t < TILES; t++)
#pragma unroll
      for (int part = 0; part < 4; part++) f(p0 + t * 8 + at.pair * 2 + part % 2, n0 + at.column + part / 2 * 8, h[t][part]);
  };
  const int q = q0 + head;
  if (WHOLE && n0 < S::N) {
    if (S::INITIAL && !backwards) each([&](int p, int n, float& value) { value = initial[S::initial(batch, q, p, n)]; });
    if (S::FINAL && backwards) each([&](int p, int n, float& value) { value = final_cotangent[S::final_state(batch, q, p, n)]; });
  }
  for (int i = 0; i < S::SPAN; i++) {
    settle<AHEAD - 1>();
    __syncthreads();
    if (i + AHEAD < S::SPAN) fetch(i + AHEAD);
    commit();
    if (n0 >= S::N) continue;
    const int c = chunk_of(i);
    const float* b = (float*)shared4 + i % STAGES * STAGE + at.down<BN>() + n0;
    const float* x = (float*)shared4 + i % STAGES * STAGE + T * BN + at.down<BR>() + k0;
    const float2* w = (const float2*)(weights + head * LENGTH + c * T) + at.pair;
    float* to = (backwards ? adjoints : states) + (size_t)((batch * Z::HEADS + q) * (Z::CHUNKS + 1) + c0 + c) * Z::STATE +
                (n0 + at.column) * S::P + p0;
    const auto store = [&](auto stored) {
#pragma unroll
      for (int half = 0; half < 2; half++) {
        float* row = to + half * 8 * S::P;
        if constexpr (TILES > 2)
          by_fours(h, half, at, [&](int p, float4 value) {
            *(float4*)(row + p) = make_float4(stored(value.x), stored(value.y), stored(value.z), stored(value.w));
          });
        else
#pragma unroll
          for (int t = 0; t < TILES; t++)
            *(float2*)(row + t * 8 + at.pair * 2) = make_float2(stored(h[t][half * 2]), stored(h[t][half * 2 + 1]));
      }
    };
    if (WHOLE) store([](float a) { return rounded<1>(a); });
    float sum[2][TILES][4] = {};
#pragma unroll
    for (int k = 0; k < T; k += 8) {
      const float2 factor = w[k / 2];
      const uint32 left[4] = {unbiased(b[k * BN] * factor.x), unbiased(b[k * BN + 8] * factor.x),
                              unbiased(b[(k + 1) * BN] * factor.y), unbiased(b[(k + 1) * BN + 8] * factor.y)};
#pragma unroll
      for (int t = 0; t < TILES; t++)
        mma_tf32(sum[k / 8 % 2][t], left, {unbiased(x[k * BR + t * 8]), unbiased(x[(k + 1) * BR + t * 8])});
    }
    const float factor = factors[head * S::SPAN + c];
#pragma unroll
    for (int t = 0; t < TILES; t++)
#pragma unroll
      for (int part = 0; part < 4; part++) h[t][part] = factor * h[t][part] + (sum[0][t][part] + sum[1][t][part]);
    if (!WHOLE) store([](float a) { return a; });
  }
  if (!WHOLE || n0 >= S::N) return;
  if (S::FINAL && !ADJOINT && !S::GRADIENT) each([&](int p, int n, float value) { final_state[S::final_state(batch, q, p, n)] = value; });
  if (S::INITIAL && backwards) each([&](int p, int n, float value) { initial_gradient[S::initial_gradient(batch, q, p, n)] = value; });
}

// Two heads at a time, four warps each.
template <class S>
__device__ void scan_output_tf32(const uint32* __restrict__ order, const float* signal,
                                 const float* decay, const float* gain,
                                 const float* write, const float* read,
                                 const float* states, float* output) {
  using Z = Sizes<S>;
  constexpr int BN = S::N + 4, BP = S::P + 4, NT = S::N / 8, PT = S::P / 8, HEAD = (T + S::N) * BP;
  extern __shared__ float4 shared4[];
  float* b = (float*)shared4;   // B [T, N]
  float* c = b + T * BN;        // C [T, N]
  float* heads = c + T * BN;    // x [T, P] and h [N, P], of two heads, twice
  __shared__ int tokens[T];
  __shared__ float s[2][2][T], gains[2][2][T];
  const Site<S> site;
  const int warp = warp_number(), strip = warp % 4, side = warp / 4;
  const Lane at;
  const Team<256> all{(int)threadIdx.x};
  const int row0 = strip * 16 + at.row, row1 = row0 + 8;
  load_tokens<S>(tokens, order, site);
  __syncthreads();
  all.fetch_rows<S::N, BN>(b, write, tokens, [&](int t, int n) { return S::write(site.batch, t, site.group, n); });
  all.fetch_rows<S::N, BN>(c, read, tokens, [&](int t, int n) { return S::read(site.batch, t, site.group, n); });
  Pair<S> pair;
  const auto fetch = [&](int head0) {
#pragma unroll
    for (int g = 0; g < 2; g++) {
      const int q = site.head0 + head0 + g;
      if (head0 + g >= S::UNIT) break;
      float* to = heads + (head0 & 2 ? 2 * HEAD : 0) + g * HEAD;
      all.fetch_rows<S::P, BP>(to, signal, tokens, [&](int t, int p) { return S::signal(site.batch, t, q % S::HEADS, p); });
      all.fetch_state<S, BP>(to + T * BP, states + (size_t)site.state(q, site.chunk) * Z::STATE);
    }
    commit();
    if (strip == 0 && head0 + side < S::UNIT) pair.load(decay, gain, tokens, site.batch, site.head0 + head0 + side);
  };
  fetch(0);
  if (strip == 0) pair.store(s[0][side], gains[0][side]);
  float similar[8][4] = {};  // C·Bᵀ
  uint32 reads[NT][4];       // C
  for (int head = side; head < S::UNIT + side; head += 2) {
    settle<0>();
    __syncthreads();
    const int parity = head / 2 & 1;
    if (head - side + 2 < S::UNIT) fetch(head - side + 2);
    if (head < 2) {
#pragma unroll
      for (int k = 0; k < NT; k++) {
        load_unbiased(reads[k], c + strip * 16 * BN + at.left<BN>() + k * 8);
      }
#pragma unroll
      for (int t = 0; t < 8; t++)
        if (t / 2 <= strip)
#pragma unroll
          for (int k = 0; k < NT; k += 2) {
            uint32 right[4];
            load_unbiased(right, b + t * 8 * BN + at.right<BN>() + k * 8);
            mma_tf32(similar[t], reads[k], {right[0], right[1]});
            mma_tf32(similar[t], reads[k + 1], {right[2], right[3]});
          }
    }
    if (head < S::UNIT) {
      const int q = site.head0 + head;
      const float* x = heads + (parity * 2 + side) * HEAD + at.down<BP>();
      const float* h = x + T * BP;
      const float* sums = s[parity][side];
      float y[PT][4] = {};
#pragma unroll
      for (int k = 0; k < NT; k++)
#pragma unroll
        for (int p = 0; p < PT; p++)
          mma_tf32(y[p], reads[k], {__float_as_uint(h[k * 8 * BP + p * 8]), __float_as_uint(h[(k * 8 + 1) * BP + p * 8])});
      const float s0 = sums[row0], s1 = sums[row1], growth0 = power_of_two(s0), growth1 = power_of_two(s1);
#pragma unroll
      for (int p = 0; p < PT; p++) {
        y[p][0] *= growth0;
        y[p][1] *= growth0;
        y[p][2] *= growth1;
        y[p][3] *= growth1;
      }
#pragma unroll
      for (int t = 0; t < 8; t++)
        if (t / 2 <= strip) {
          const int j = t * 8 + at.pair * 2;
          const float2 sj = *(const float2*)(sums + j), gj = *(const float2*)(gains[parity][side] + j);
          float mix[4] = {power_of_two(s0 - sj.x) * gj.x, power_of_two(s0 - sj.y) * gj.y, power_of_two(s1 - sj.x) * gj.x,
                          power_of_two(s1 - sj.y) * gj.y};
          if (t / 2 == strip)
#pragma unroll
            for (int part = 0; part < 4; part++)
              if (at.past(t % 2, part) > 0) mix[part] = 0.0f;
#pragma unroll
          for (int part = 0; part < 4; part++) mix[part] *= similar[t][part];
          const uint32 left[4] = {unbiased(mix[0]), unbiased(mix[2]), unbiased(mix[1]), unbiased(mix[3])};
#pragma unroll
          for (int p = 0; p < PT; p++)
            mma_tf32(y[p], left, {unbiased(x[t * 8 * BP + p * 8]), unbiased(x[(t * 8 + 1) * BP + p * 8])});
        }
#pragma unroll
      for (int half = 0; half < 2; half++) {
        const int token = tokens[half ? row1 : row0];
        by_fours(y, half, at, [&](int p, float4 value) {
          if (token >= 0) *(float4*)(output + S::output(site.direction, site.batch, token, q % S::HEADS, p)) = value;
        });
      }
    }
    if (strip == 0 && head + 2 < S::UNIT) pair.store(s[parity ^ 1][side], gains[parity ^ 1][side]);
  }
}

// Warps 0–3 have strips of 16 rows j of E and ∂x. What the states give comes from warps 4 and 5, 32 rows j each, for ∂x and ∂B,
// and from warps 6 and 7 for ∂C, 32 rows l each.
template <class S>
__device__ void scan_gradients_tf32(const uint32* __restrict__ order, const float* signal,
                                    const float* decay, const float* gain,
                                    const float* write, const float* read,
                                    const float* cotangent, const float* states,
                                    const float* adjoints, float* signal_gradient, float* decay_gradient,
                                    float* gain_gradient, float* write_gradient, float* read_gradient) {
  using Z = Sizes<S>;
  constexpr int BN = S::N + 4, BP = S::P + 4, BT = T + 4, NT = S::N / 8, PT = S::P / 8, HEAD = 2 * (T + S::N) * BP;
  extern __shared__ float4 shared4[];
  float* b = (float*)shared4;   // B [T, N]
  float* c = b + T * BN;        // C [T, N]
  float* heads = c + T * BN;    // x [T, P], ∂y [T, P], h [N, P], λ [N, P], twice
  __shared__ int tokens[T];
  // Of the head in hand and the one before: s, g; Σ_j E_lj g_j for l by strips of j, Σ_{l>j} E_lj and E_jj for j; of the states
  // e^{s_l} ∂y_l·h C_l, e^{s_T−s_j} x_j·λ B_j and e^{s_T} ⟨h, λ⟩, in two parts.
  __shared__ float s[2][T], gains[2][T], received[2][4][T], given[2][T], own[2][T], recalled[2][T], kept[2][T], through[2][2];
  const Site<S> site;
  const int warp = warp_number(), strip = warp % 4;
  const Lane at;
  const Team<256> all{(int)threadIdx.x};
  const int row0 = strip * 16 + at.row, row1 = row0 + 8;
  load_tokens<S>(tokens, order, site);
  __syncthreads();
  all.fetch_rows<S::N, BN>(b, write, tokens, [&](int t, int n) { return S::write(site.batch, t, site.group, n); });
  all.fetch_rows<S::N, BN>(c, read, tokens, [&](int t, int n) { return S::read(site.batch, t, site.group, n); });
  commit();
  // By warps 4–7.
  const auto fetch = [&](int head) {
    const int q = site.head0 + head;
    const size_t here = (size_t)site.state(q, site.chunk) * Z::STATE;
    float* to = heads + (head & 1) * HEAD;
    const Team<128> team{anew(threadIdx.x) - 128};
    team.fetch_rows<S::P, BP>(to, signal, tokens, [&](int t, int p) { return S::signal(site.batch, t, q % S::HEADS, p); });
    team.fetch_rows<S::P, BP>(to + T * BP, cotangent, tokens, [&](int t, int p) { return S::cotangent(site.batch, t, q % S::HEADS, p); });
    team.fetch_state<S, BP>(to + 2 * T * BP, states + here);
    team.fetch_state<S, BP>(to + (2 * T + S::N) * BP, adjoints + here);
    commit();
  };
  // ∂g_j and ∂ℓ_i = e^{s_T} ⟨h, λ⟩ + Σ_{j<i} g_j kept_j + Σ_{l≥i} (recalled_l + Σ_j E_lj g_j − g_l Σ_j E_jl), by one warp.
  const auto finish = [&](int head) {
    const int parity = head & 1, q = site.head0 + head;
    float late[2], early[2];
#pragma unroll
    for (int i = 0; i < 2; i++) {
      const int l = at.lane * 2 + i, token = tokens[l];
      const float g = gains[parity][l], sum = given[parity][l], states = kept[parity][l];
      late[i] = recalled[parity][l] - g * sum;
#pragma unroll
      for (int k = 0; k < 4; k++) late[i] += k <= l / 16 ? received[parity][k][l] : 0.0f;
      early[i] = g * states;
      if (token >= 0) gain_gradient[S::gain_gradient(site.batch, token, q)] = sum + own[parity][l] + states;
    }
    float after = late[0] + late[1], before = early[0] + early[1];
#pragma unroll
    for (int o = 1; o < 32; o <<= 1) {
      const float next = __shfl_down_sync(~0u, after, o), last = __shfl_up_sync(~0u, before, o);
      if (at.lane + o < 32) after += next;
      if (at.lane >= o) before += last;
    }
    before -= early[0] + early[1];
    const int t0 = tokens[at.lane * 2], t1 = tokens[at.lane * 2 + 1];
    const float all = through[parity][0] + through[parity][1] + before + after;
    if (t0 >= 0) decay_gradient[S::decay_gradient(site.batch, t0, q)] = all;
    if (t1 >= 0) decay_gradient[S::decay_gradient(site.batch, t1, q)] = all + early[0] - late[0];
  };
  Pair<S> pair;
  if (warp == 3) {
    pair.load(decay, gain, tokens, site.batch, site.head0);
    pair.store(s[0], gains[0]);
  }
  if (warp >= 4) fetch(0);
  settle<0>();
  all.round_rows<S::N, BN>(b);
  all.round_rows<S::N, BN>(c);
  __syncthreads();

  if (warp < 4) {
    float similar[8][4] = {}, summed[8][4] = {};  // rows j, columns l: C_l·B_j; Σ over heads of e^{s_l−s_j} g_j (∂y_l·x_j)
#pragma unroll
    for (int k = 0; k < NT; k += 2) {
      uint32 left[2][4];
#pragma unroll
      for (int i = 0; i < 2; i++) load_pieces(left[i], b + strip * 16 * BN + at.left<BN>() + (k + i) * 8);
#pragma unroll
      for (int t = 0; t < 8; t++)
        if (t / 2 >= strip) {
          uint32 right[4];
          load_pieces(right, c + t * 8 * BN + at.right<BN>() + k * 8);
          mma_tf32(similar[t], left[0], {right[0], right[1]});
          mma_tf32(similar[t], left[1], {right[2], right[3]});
        }
    }
    for (int head = 0; head < S::UNIT; head++) {
      const int parity = head & 1, q = site.head0 + head;
      const float* x = heads + parity * HEAD;
      const float* dy = x + T * BP;
      if (warp == 3) {
        if (head + 1 < S::UNIT) pair.load(decay, gain, tokens, site.batch, q + 1);
        if (head > 0) finish(head - 1);
      }
      const float s0 = s[parity][row0], s1 = s[parity][row1], g0 = gains[parity][row0], g1 = gains[parity][row1];
      float given0 = 0.0f, given1 = 0.0f, own0 = 0.0f, own1 = 0.0f;  // Σ_{l>j} E_lj, E_jj
      {
        uint32 left[PT][4];  // x
#pragma unroll
        for (int k = 0; k < PT; k++) load_unbiased(left[k], x + strip * 16 * BP + at.left<BP>() + k * 8);
#pragma unroll
        for (int t2 = 0; t2 < 4; t2++)
          if (t2 >= strip) {
            float near[2][2][4] = {};  // ∂y_l·x_j, in two sums
#pragma unroll
            for (int k = 0; k < PT; k += 2)
#pragma unroll
              for (int i = 0; i < 2; i++) {
                uint32 right[4];
                load_unbiased(right, dy + (t2 * 2 + i) * 8 * BP + at.right<BP>() + k * 8);
                mma_tf32(near[i][0], left[k], {right[0], right[1]});
                mma_tf32(near[i][1], left[k + 1], {right[2], right[3]});
              }
            float columns[2][2];
#pragma unroll
            for (int i = 0; i < 2; i++) {
              const int t = t2 * 2 + i, l = t * 8 + at.pair * 2;
              const float2 sl = *(const float2*)(s[parity] + l);
              float window[4] = {power_of_two(sl.x - s0), power_of_two(sl.y - s0), power_of_two(sl.x - s1), power_of_two(sl.y - s1)};
              if (t2 == strip)
#pragma unroll
                for (int part = 0; part < 4; part++)
                  if (at.past(i, part) < 0) window[part] = 0.0f;
              float e[4];
#pragma unroll
              for (int part = 0; part < 4; part++) {
                const float product = window[part] * (near[i][0][part] + near[i][1][part]);
                summed[t][part] += product * (part / 2 ? g1 : g0);
                e[part] = product * similar[t][part];
              }
              if (t2 == strip)
#pragma unroll
                for (int part = 0; part < 4; part++)
                  if (at.past(i, part) == 0) {
                    (part / 2 ? own1 : own0) += e[part];
                    e[part] = 0.0f;
                  }
              given0 += e[0] + e[1];
              given1 += e[2] + e[3];
              columns[i][0] = e[0] * g0 + e[2] * g1;
              columns[i][1] = e[1] * g0 + e[3] * g1;
            }
            // Sums over the rows of the strip: lanes part with halves of the columns until each has one.
            const bool high = at.lane & 16, odd = at.lane & 8;
            float one = (high ? columns[1][0] : columns[0][0]) + __shfl_xor_sync(~0u, high ? columns[0][0] : columns[1][0], 16);
            float two = (high ? columns[1][1] : columns[0][1]) + __shfl_xor_sync(~0u, high ? columns[0][1] : columns[1][1], 16);
            one = (odd ? two : one) + __shfl_xor_sync(~0u, odd ? one : two, 8);
            one += __shfl_xor_sync(~0u, one, 4);
            if (!(at.lane & 4)) received[parity][strip][t2 * 16 + high * 8 + at.pair * 2 + odd] = one;
          }
      }
      given0 = sum_of_four(given0);
      given1 = sum_of_four(given1);
      own0 = sum_of_four(own0);
      own1 = sum_of_four(own1);
      if (at.pair == 0) {
        given[parity][row0] = given0;
        given[parity][row1] = given1;
        own[parity][row0] = own0;
        own[parity][row1] = own1;
      }
      // u_j = Σ_{l≥j} e^{s_l−s_j} (C_l·B_j) ∂y_l + e^{s_T−s_j} λ B_j;  ∂x = g u
      float u[PT][4] = {};
#pragma unroll
      for (int t = 0; t < 8; t++)
        if (t / 2 >= strip) {
          const int l = t * 8 + at.pair * 2;
          const float2 sl = *(const float2*)(s[parity] + l);
          float mix[4] = {power_of_two(sl.x - s0), power_of_two(sl.y - s0), power_of_two(sl.x - s1), power_of_two(sl.y - s1)};
          if (t / 2 == strip)
#pragma unroll
            for (int part = 0; part < 4; part++)
              if (at.past(t % 2, part) < 0) mix[part] = 0.0f;
#pragma unroll
          for (int part = 0; part < 4; part++) mix[part] *= similar[t][part];
          const uint32 left[4] = {unbiased(mix[0]), unbiased(mix[2]), unbiased(mix[1]), unbiased(mix[3])};
          const float* right = dy + t * 8 * BP + at.down<BP>();
#pragma unroll
          for (int p = 0; p < PT; p++) mma_tf32(u[p], left, {unbiased(right[p * 8]), unbiased(right[BP + p * 8])});
        }
      meet<2, 192>();
      const float* rest = x + 2 * T * BP;
#pragma unroll
      for (int half = 0; half < 2; half++) {
        const int row = half ? row1 : row0, token = tokens[row];
        const float g = half ? g1 : g0;
#pragma unroll
        for (int p = 0; p < PT; p++) {
          const float2 more = *(const float2*)(rest + row * BP + p * 8 + at.pair * 2);
          u[p][half * 2] = g * (u[p][half * 2] + more.x);
          u[p][half * 2 + 1] = g * (u[p][half * 2 + 1] + more.y);
        }
        by_fours(u, half, at, [&](int p, float4 value) {
          if (token >= 0)
            *(float4*)(signal_gradient + S::signal_piece(site.direction, site.batch, token, q % S::HEADS, p)) = value;
        });
      }
      if (warp == 3 && head + 1 < S::UNIT) pair.store(s[parity ^ 1], gains[parity ^ 1]);
      __syncthreads();
    }
    if (warp == 3) finish(S::UNIT - 1);
    // ∂B += `summed` C
    float* turned = heads + T * BN;
#pragma unroll
    for (int t = 0; t < 8; t++)
      if (t / 2 >= strip)
#pragma unroll
        for (int part = 0; part < 4; part++) {
          summed[t][part] = __uint_as_float(unbiased(summed[t][part]));
          turned[(part / 2 ? row1 : row0) * BT + t * 8 + at.pair * 2 + part % 2] = summed[t][part];
        }
    __syncthreads();
    const int t0 = tokens[row0], t1 = tokens[row1];
#pragma unroll
    for (int n = 0; n < NT; n++) {
      const float2 sum0 = *(const float2*)(heads + row0 * BN + n * 8 + at.pair * 2);
      const float2 sum1 = *(const float2*)(heads + row1 * BN + n * 8 + at.pair * 2);
      float sum[4] = {sum0.x, sum0.y, sum1.x, sum1.y};
#pragma unroll
      for (int t = 0; t < 8; t++)
        if (t / 2 >= strip) {
          const uint32 left[4] = {__float_as_uint(summed[t][0]), __float_as_uint(summed[t][2]), __float_as_uint(summed[t][1]),
                                  __float_as_uint(summed[t][3])};
          const float* right = c + t * 8 * BN + at.down<BN>() + n * 8;
          mma_tf32(sum, left, {__float_as_uint(right[0]), __float_as_uint(right[BN])});
        }
      if (t0 >= 0) *(float2*)(write_gradient + S::write_gradient(site.unit, site.batch, t0, n * 8 + at.pair * 2)) = make_float2(sum[0], sum[1]);
      if (t1 >= 0) *(float2*)(write_gradient + S::write_gradient(site.unit, site.batch, t1, n * 8 + at.pair * 2)) = make_float2(sum[2], sum[3]);
    }
  } else {
    const int rows = warp % 2 * 32;  // and the 31 after
    const bool writes = warp < 6;
    float sums[2][NT][4] = {};  // ∂B of warps 4 and 5, ∂C of warps 6 and 7
    for (int head = 0; head < S::UNIT; head++) {
      const int parity = head & 1;
      float* x = heads + parity * HEAD;
      const float* h = x + 2 * T * BP;
      const float* lambda = h + S::N * BP;
      if (head + 1 < S::UNIT) fetch(head + 1);
      const float end = s[parity][T - 1];
      if (writes) {
        // u_j = e^{s_T−s_j} λ B_j, for warps 0–3 in the place of the states
        float u[2][PT][4] = {}, rest[2][2];
#pragma unroll
        for (int k = 0; k < NT; k++) {
          const float* right = lambda + k * 8 * BP + at.down<BP>();
          uint32 writes[2][4];
#pragma unroll
          for (int m = 0; m < 2; m++) load_pieces(writes[m], b + (rows + m * 16) * BN + at.left<BN>() + k * 8);
#pragma unroll
          for (int p = 0; p < PT; p++) {
            const uint32 pieces[2] = {__float_as_uint(right[p * 8]), __float_as_uint(right[BP + p * 8])};
#pragma unroll
            for (int m = 0; m < 2; m++) mma_tf32(u[m][p], writes[m], pieces);
          }
        }
#pragma unroll
        for (int m = 0; m < 2; m++)
#pragma unroll
          for (int i = 0; i < 2; i++) {
            const int row = rows + m * 16 + at.row + i * 8;
            rest[m][i] = power_of_two(end - s[parity][row]);
            float sum = 0.0f;
#pragma unroll
            for (int p = 0; p < PT; p++) {
              const float2 value = *(const float2*)(x + row * BP + p * 8 + at.pair * 2);
              u[m][p][i * 2] *= rest[m][i];
              u[m][p][i * 2 + 1] *= rest[m][i];
              sum += u[m][p][i * 2] * value.x + u[m][p][i * 2 + 1] * value.y;
            }
            sum = sum_of_four(sum);
            if (at.pair == 0) kept[parity][row] = sum;
          }
        // ∂B_j += g_j e^{s_T−s_j} xᵀ_j λ
#pragma unroll
        for (int k = 0; k < PT; k += 2) {
          uint32 left[2][2][4];
#pragma unroll
          for (int m = 0; m < 2; m++)
#pragma unroll
            for (int j = 0; j < 2; j++) {
              load_pieces(left[m][j], x + (rows + m * 16) * BP + at.left<BP>() + (k + j) * 8);
#pragma unroll
              for (int part = 0; part < 4; part++) {
                const int i = part % 2;
                left[m][j][part] = unbiased(__uint_as_float(left[m][j][part]) * (rest[m][i] * gains[parity][rows + m * 16 + at.row + i * 8]));
              }
            }
#pragma unroll
          for (int n = 0; n < NT; n++) {
            uint32 right[4];
            load_pieces(right, lambda + n * 8 * BP + at.right_folded<BP>() + k * 8);
#pragma unroll
            for (int m = 0; m < 2; m++) {
              mma_tf32(sums[m][n], left[m][0], {right[0], right[1]});
              mma_tf32(sums[m][n], left[m][1], {right[2], right[3]});
            }
          }
        }
        meet<1, 128>();
#pragma unroll
        for (int m = 0; m < 2; m++)
#pragma unroll
          for (int i = 0; i < 2; i++)
#pragma unroll
            for (int p = 0; p < PT; p++)
              *(float2*)(x + (2 * T + rows + m * 16 + at.row + i * 8) * BP + p * 8 + at.pair * 2) =
                  make_float2(u[m][p][i * 2], u[m][p][i * 2 + 1]);
        come<2, 192>();
      } else {
        // ∂C_l += e^{s_l} ∂yᵀ_l h
        uint32 left[2][PT][4];
        float growth[2][2], recall[2][2] = {};
#pragma unroll
        for (int m = 0; m < 2; m++) {
#pragma unroll
          for (int k = 0; k < PT; k++) load_unbiased(left[m][k], x + (T + rows + m * 16) * BP + at.left<BP>() + k * 8);
#pragma unroll
          for (int i = 0; i < 2; i++) growth[m][i] = power_of_two(s[parity][rows + m * 16 + at.row + i * 8]);
        }
#pragma unroll
        for (int n = 0; n < NT; n++) {
          float mine[2][4] = {};
#pragma unroll
          for (int k = 0; k < PT; k += 2) {
            uint32 right[4];
            load_pieces(right, h + n * 8 * BP + at.right_folded<BP>() + k * 8);
#pragma unroll
            for (int m = 0; m < 2; m++) {
              mma_tf32(mine[m], left[m][k], {right[0], right[1]});
              mma_tf32(mine[m], left[m][k + 1], {right[2], right[3]});
            }
          }
#pragma unroll
          for (int m = 0; m < 2; m++)
#pragma unroll
            for (int i = 0; i < 2; i++) {
              const float2 read = *(const float2*)(c + (rows + m * 16 + at.row + i * 8) * BN + n * 8 + at.pair * 2);
              recall[m][i] += mine[m][i * 2] * read.x + mine[m][i * 2 + 1] * read.y;
              sums[m][n][i * 2] += growth[m][i] * mine[m][i * 2];
              sums[m][n][i * 2 + 1] += growth[m][i] * mine[m][i * 2 + 1];
            }
        }
#pragma unroll
        for (int m = 0; m < 2; m++)
#pragma unroll
          for (int i = 0; i < 2; i++) {
            const float sum = growth[m][i] * sum_of_four(recall[m][i]);
            if (at.pair == 0) recalled[parity][rows + m * 16 + at.row + i * 8] = sum;
          }
        float sum = 0.0f;
        Team<64>{anew(threadIdx.x) - 192}.share<S::N, S::P>([&](int row, int column) {
          const float4 left = *(const float4*)(h + row * BP + column), right = *(const float4*)(lambda + row * BP + column);
          sum += left.x * right.x + left.y * right.y + left.z * right.z + left.w * right.w;
        });
#pragma unroll
        for (int o = 16; o; o >>= 1) sum += __shfl_xor_sync(~0u, sum, o);
        if (at.lane == 0) through[parity][warp % 2] = power_of_two(end) * sum;
        come<1, 128>();
      }
      settle<0>();
      __syncthreads();
    }
    if (writes)
#pragma unroll
      for (int m = 0; m < 2; m++)
#pragma unroll
        for (int n = 0; n < NT; n++)
#pragma unroll
          for (int i = 0; i < 2; i++)
            *(float2*)(heads + (rows + m * 16 + at.row + i * 8) * BN + n * 8 + at.pair * 2) =
                make_float2(sums[m][n][i * 2], sums[m][n][i * 2 + 1]);
    __syncthreads();
    if (writes) return;
    // ∂C_l += Σ_j `summed`_jl B_j
#pragma unroll
    for (int t = 0; t < 8; t++) {
      const uint32* from = (uint32*)heads + T * BN + (t * 8 + 2 * at.pair) * BT + rows + at.row;
      const float* right = b + t * 8 * BN + at.down<BN>();
#pragma unroll
      for (int m = 0; m < 2; m++)
        if (t * 8 <= rows + m * 16 + 15) {
          const uint32 left[4] = {from[m * 16], from[m * 16 + 8], from[BT + m * 16], from[BT + m * 16 + 8]};
#pragma unroll
          for (int n = 0; n < NT; n++) mma_tf32(sums[m][n], left, {__float_as_uint(right[n * 8]), __float_as_uint(right[BN + n * 8])});
        }
    }
#pragma unroll
    for (int m = 0; m < 2; m++)
#pragma unroll
      for (int i = 0; i < 2; i++) {
        const int token = tokens[rows + m * 16 + at.row + i * 8];
        by_fours(sums[m], i, at, [&](int n, float4 value) {
          if (token >= 0) *(float4*)(read_gradient + S::read_gradient(site.unit, site.batch, token, n)) = value;
        });
      }
  }
}
