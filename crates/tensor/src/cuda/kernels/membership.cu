// Soft membership of points in slices: w_nm = softmax_m(x_n·k_m + b_m), made again wherever it is needed.
//
// A warp takes 16 points of one head at a time; weights live in the registers that tensor cores leave them in. The sum
// over an index may run in any order that both operands share, so four channels that lie side by side are loaded by one
// lane and used as its elements of two steps, and results of one product become operands of the next where they are.
//
// S: BATCH, POINTS, HEADS, SLICES, CHANNELS, WIDTH, MASS, CHUNKS, PRECISION; QUERIES_4 … say whether four elements lie
// side by side; offsets queries(b,n,h,c), keys(h,m,c), offsets(h,m), values(b,n,h,p), tokens(b,h,m,p) and those of the
// results.

template <class S> struct Extents {
  static constexpr int WARPS = 4;
  static constexpr int MP = (S::SLICES + 15) / 16 * 16, CP = (S::CHANNELS + 15) / 16 * 16, WP = (S::WIDTH + 15) / 16 * 16;
  static constexpr int MT = MP / 16, KC = CP / 16, KW = WP / 16;
  static constexpr int COLUMNS = MP + 8;  // pitch of what is read by columns: neighbours in 8 different banks
};

// c += a·b over two steps of eight: element j of lane pair p is number 4p + j of the sum, for both operands, which are
// rounded already.
template <int PRECISION>
__device__ __forceinline__ void multiply_16(float (&c)[4], const float (&a)[2][4], const float (&b)[2][2]) {
  if constexpr (PRECISION == 2) {
    const uint32 left[4] = {as_bf16x2(a[0][0], a[0][2]), as_bf16x2(a[0][1], a[0][3]), as_bf16x2(a[1][0], a[1][2]), as_bf16x2(a[1][1], a[1][3])};
    const uint32 right[2] = {as_bf16x2(b[0][0], b[0][1]), as_bf16x2(b[1][0], b[1][1])};
    mma_bf16(c, left, right);
  } else {
#pragma unroll
    for (int s = 0; s < 2; s++) {
      uint32 left[4], right[2];
#pragma unroll
      for (int i = 0; i < 4; i++) left[i] = PRECISION == 0 ? as_tf32(a[s][i]) : __float_as_uint(a[s][i]);
#pragma unroll
      for (int i = 0; i < 2; i++) right[i] = PRECISION == 0 ? as_tf32(b[s][i]) : __float_as_uint(b[s][i]);
      if constexpr (PRECISION == 0) {
        // What tf32 drops, as operands of its own. Tensor cores cut their sums off, so what is to be kept is added here.
        uint32 left_rest[4], right_rest[2];
#pragma unroll
        for (int i = 0; i < 4; i++) left_rest[i] = as_tf32(a[s][i] - __uint_as_float(left[i]));
#pragma unroll
        for (int i = 0; i < 2; i++) right_rest[i] = as_tf32(b[s][i] - __uint_as_float(right[i]));
        float whole[4] = {}, rest[4] = {};
        mma_tf32(rest, left_rest, right_rest);
        mma_tf32(rest, left_rest, right);
        mma_tf32(rest, left, right_rest);
        mma_tf32(whole, left, right);
#pragma unroll
        for (int i = 0; i < 4; i++) c[i] += whole[i] + rest[i];
      } else {
        mma_tf32(c, left, right);
      }
    }
  }
}

// Four elements that lie side by side, zero from COUNT on.
template <int COUNT, bool VECTOR, class At>
__device__ __forceinline__ float4 load_4(const float* from, int first, bool in, At at) {
  float4 value = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
  if (!in) return value;
  if constexpr (VECTOR && COUNT % 4 == 0) {
    if (first < COUNT) value = *(const float4*)(from + at(first));
  } else {
    if (first < COUNT) value.x = from[at(first)];
    if (first + 1 < COUNT) value.y = from[at(first + 1)];
    if (first + 2 < COUNT) value.z = from[at(first + 2)];
    if (first + 3 < COUNT) value.w = from[at(first + 3)];
  }
  return value;
}

template <class S>
__device__ __forceinline__ float4 rounded_4(float4 a) {
  constexpr int R = S::PRECISION;
  return make_float4(rounded<R>(a.x), rounded<R>(a.y), rounded<R>(a.z), rounded<R>(a.w));
}

// Rows of 16 points as left operand: a[k] holds the channels 16k + 4·pair … of the points row and row + 8.
__device__ __forceinline__ void as_left(float (&a)[2][4], const float4& upper, const float4& lower) {
  a[0][0] = upper.x; a[0][2] = upper.y; a[1][0] = upper.z; a[1][2] = upper.w;
  a[0][1] = lower.x; a[0][3] = lower.y; a[1][1] = lower.z; a[1][3] = lower.w;
}

__device__ __forceinline__ void as_right(float (&b)[2][2], const float4& value) {
  b[0][0] = value.x; b[0][1] = value.y; b[1][0] = value.z; b[1][1] = value.w;
}

template <class S>
__device__ __forceinline__ float power(float a) { return S::PRECISION == 0 ? expf(a) : __expf(a); }

// Where a block works: a chunk of the points of one head, heads of a chunk side by side.
template <class S> struct Stretch {
  int head, batch, chunk, first, end;
  __device__ Stretch() {
    head = blockIdx.x % S::HEADS;
    chunk = blockIdx.x / S::HEADS % S::CHUNKS;
    batch = blockIdx.x / S::HEADS / S::CHUNKS;
    constexpr int STEPS = (S::POINTS + 15) / 16, PER = (STEPS + S::CHUNKS - 1) / S::CHUNKS * 16;
    first = chunk * PER;
    end = min(S::POINTS, first + PER);
  }
};

// Keys as rows [slice, CP], offsets (−∞ past the last slice, so that those slices weigh nothing).
template <class S>
__device__ __forceinline__ void load_keys(float* keys, float* offsets, const float* from, const float* from_offsets, int head) {
  using E = Extents<S>;
  for (int i = threadIdx.x; i < E::MP * E::CP; i += E::WARPS * 32) {
    const int m = i / E::CP, c = i % E::CP;
    keys[i] = rounded<S::PRECISION>(m < S::SLICES && c < S::CHANNELS ? from[S::keys(head, m, c)] : 0.0f);
  }
  for (int m = threadIdx.x; m < E::MP; m += E::WARPS * 32) offsets[m] = m < S::SLICES ? from_offsets[S::offsets(head, m)] : -1e30f;
}

// Products of 16 points with every slice, x·row_m + first_m, a row per point: to[n][…] holds the slices 8n + 2·pair, + 1 of
// the points row and row + 8. `rows` is [slice, 16·K].
template <class S, int K>
__device__ __forceinline__ void against_slices(float (&to)[2 * Extents<S>::MT][4], const float4 (&upper)[K], const float4 (&lower)[K],
                                               const float* rows, const float* first) {
  const int lane = threadIdx.x % 32, row = lane / 4, pair = lane % 4;
#pragma unroll
  for (int n = 0; n < 2 * Extents<S>::MT; n++) {
    const float2 start = *(const float2*)(first + n * 8 + pair * 2);
    to[n][0] = to[n][2] = start.x;
    to[n][1] = to[n][3] = start.y;
  }
#pragma unroll
  for (int k = 0; k < K; k++) {
    float a[2][4];
    as_left(a, upper[k], lower[k]);
#pragma unroll
    for (int n = 0; n < 2 * Extents<S>::MT; n++) {
      float b[2][2];
      as_right(b, *(const float4*)(rows + (n * 8 + row) * (16 * K) + k * 16 + pair * 4));
      multiply_16<S::PRECISION>(to[n], a, b);
    }
  }
}

// The weights of 16 points as `against_slices` leaves its products.
template <class S>
__device__ __forceinline__ void weigh(float (&w)[2 * Extents<S>::MT][4], const float4 (&upper)[Extents<S>::KC],
                                      const float4 (&lower)[Extents<S>::KC], const float* keys, const float* offsets) {
  using E = Extents<S>;
  against_slices<S>(w, upper, lower, keys, offsets);
#pragma unroll
  for (int half = 0; half < 2; half++) {
    float largest = w[0][half * 2];
#pragma unroll
    for (int n = 0; n < 2 * E::MT; n++) largest = fmaxf(largest, fmaxf(w[n][half * 2], w[n][half * 2 + 1]));
    largest = fmaxf(largest, __shfl_xor_sync(~0u, largest, 1));
    largest = fmaxf(largest, __shfl_xor_sync(~0u, largest, 2));
    float sum = 0.0f;
#pragma unroll
    for (int n = 0; n < 2 * E::MT; n++)
#pragma unroll
      for (int e = 0; e < 2; e++) sum += w[n][half * 2 + e] = power<S>(w[n][half * 2 + e] - largest);
    sum += __shfl_xor_sync(~0u, sum, 1);
    sum += __shfl_xor_sync(~0u, sum, 2);
    const float scale = 1.0f / sum;
#pragma unroll
    for (int n = 0; n < 2 * E::MT; n++)
#pragma unroll
      for (int e = 0; e < 2; e++) w[n][half * 2 + e] *= scale;
  }
}

// Results of two neighbouring tiles as left operand of a sum over their columns: number 4p + j is column
// 16k + 8·(j / 2) + 2p + j % 2.
template <int PRECISION>
__device__ __forceinline__ void turn(float (&a)[2][4], const float (&low)[4], const float (&high)[4]) {
  constexpr int R = PRECISION;
  a[0][0] = rounded<R>(low[0]); a[0][2] = rounded<R>(low[1]); a[0][1] = rounded<R>(low[2]); a[0][3] = rounded<R>(low[3]);
  a[1][0] = rounded<R>(high[0]); a[1][2] = rounded<R>(high[1]); a[1][1] = rounded<R>(high[2]); a[1][3] = rounded<R>(high[3]);
}

// Where element p of a result is computed so that a lane ends with the four neighbours 4·pair …: column q of tile n of a
// pair of tiles is element 4·(q / 2) + 2n + q % 2 of its sixteen.
__device__ __forceinline__ int column_of(int p) { return p / 16 * 16 + p % 4 / 2 * 8 + p % 16 / 4 * 2 + p % 2; }

// to += w · columns, whose rows [slices] stand in the order of `column_of`.
template <class S, int NT>
__device__ __forceinline__ void spread_rows(float (&to)[NT][4], const float (&w)[2 * Extents<S>::MT][4], const float* columns) {
  using E = Extents<S>;
  const int lane = threadIdx.x % 32, row = lane / 4, pair = lane % 4;
#pragma unroll
  for (int k = 0; k < E::MT; k++) {
    float a[2][4];
    turn<S::PRECISION>(a, w[2 * k], w[2 * k + 1]);
#pragma unroll
    for (int n = 0; n < NT; n++) {
      const float* from = columns + (n * 8 + row) * E::COLUMNS + k * 16 + pair * 2;
      const float2 low = *(const float2*)from, high = *(const float2*)(from + 8);
      const float b[2][2] = {{low.x, low.y}, {high.x, high.y}};
      multiply_16<S::PRECISION>(to[n], a, b);
    }
  }
}

template <int COUNT, bool VECTOR, class At>
__device__ __forceinline__ void store_4(float* to, int first, float4 value, At at) {
  if constexpr (VECTOR && COUNT % 4 == 0) {
    if (first < COUNT) *(float4*)(to + at(first)) = value;
  } else {
    if (first < COUNT) to[at(first)] = value.x;
    if (first + 1 < COUNT) to[at(first + 1)] = value.y;
    if (first + 2 < COUNT) to[at(first + 2)] = value.z;
    if (first + 3 < COUNT) to[at(first + 3)] = value.w;
  }
}

// Rows of `from` of the points n + row and n + row + 8, channels 16k + 4·pair ….
template <class S, int COUNT, int K, bool VECTOR, class At>
__device__ __forceinline__ void load_points(float4 (&upper)[K], float4 (&lower)[K], const float* from, int n, int end, At at) {
  const int lane = threadIdx.x % 32, row = lane / 4, pair = lane % 4;
#pragma unroll
  for (int k = 0; k < K; k++) {
    upper[k] = load_4<COUNT, VECTOR>(from, k * 16 + pair * 4, n + row < end, [&](int c) { return at(n + row, c); });
    lower[k] = load_4<COUNT, VECTOR>(from, k * 16 + pair * 4, n + row + 8 < end, [&](int c) { return at(n + row + 8, c); });
  }
}

// Points as operands: x, and one step ahead of it the next.
template <class S, int COUNT, int K, bool VECTOR> struct Points {
  float4 upper[K], lower[K], upper_ahead[K], lower_ahead[K];
  template <class At> __device__ __forceinline__ void ahead(const float* from, int n, int end, At at) {
    load_points<S, COUNT, K, VECTOR>(upper_ahead, lower_ahead, from, n, end, at);
  }
  __device__ __forceinline__ void advance() {
#pragma unroll
    for (int k = 0; k < K; k++) {
      upper[k] = rounded_4<S>(upper_ahead[k]);
      lower[k] = rounded_4<S>(lower_ahead[k]);
    }
  }
};

template <class S>
__device__ void membership_spread(const float* queries, const float* keys_from, const float* offsets_from,
                                  const float* tokens, float* to) {
  using E = Extents<S>;
  extern __shared__ float4 shared4[];
  float* keys = (float*)shared4;             // [MP, CP]
  float* offsets = keys + E::MP * E::CP;     // [MP]
  float* columns = offsets + E::MP;          // tokens [WP, MP]
  const Stretch<S> at;
  load_keys<S>(keys, offsets, keys_from, offsets_from, at.head);
  for (int i = threadIdx.x; i < E::MP * E::WP; i += E::WARPS * 32) {
    const int m = i / E::WP, p = i % E::WP;
    columns[column_of(p) * E::COLUMNS + m] = rounded<S::PRECISION>(m < S::SLICES && p < S::WIDTH ? tokens[S::tokens(at.batch, at.head, m, p)] : 0.0f);
  }
  __syncthreads();
  const int lane = threadIdx.x % 32, row = lane / 4, pair = lane % 4;
  const auto query = [&](int n, int c) { return S::queries(at.batch, n, at.head, c); };
  Points<S, S::CHANNELS, E::KC, S::QUERIES_4> x;
  const int start = at.first + threadIdx.x / 32 * 16;
  x.ahead(queries, start, at.end, query);
  for (int n = start; n < at.end; n += E::WARPS * 16) {
    x.advance();
    x.ahead(queries, n + E::WARPS * 16, at.end, query);
    float w[2 * E::MT][4];
    weigh<S>(w, x.upper, x.lower, keys, offsets);
    float y[2 * E::KW][4] = {};
    spread_rows<S>(y, w, columns);
#pragma unroll
    for (int k = 0; k < E::KW; k++)
#pragma unroll
      for (int half = 0; half < 2; half++) {
        const int point = n + row + half * 8;
        const float4 value = make_float4(y[2 * k][half * 2], y[2 * k][half * 2 + 1], y[2 * k + 1][half * 2], y[2 * k + 1][half * 2 + 1]);
        if (point < at.end) store_4<S::WIDTH, S::RESULT_4>(to, k * 16 + pair * 4, value, [&](int p) { return S::result(at.batch, point, at.head, p); });
      }
  }
}

// Adds the warps' sums [COUNT] in order into to[0 … COUNT).
template <class S, int COUNT>
__device__ __forceinline__ void sum_warps(const float* sums, float* to) {
  __syncthreads();
  for (int i = threadIdx.x; i < COUNT; i += Extents<S>::WARPS * 32) {
    float sum = 0.0f;
#pragma unroll
    for (int w = 0; w < Extents<S>::WARPS; w++) sum += sums[w * COUNT + i];
    to[i] = sum;
  }
}

// Here the weights stand upright, a row per slice, so that they are the left operand of the sum over points.
template <class S>
__device__ void membership_collect(const float* queries, const float* keys_from, const float* offsets_from,
                                   const float* values, float* scratch) {
  using E = Extents<S>;
  constexpr int PITCH = E::WP + 1, COUNT = E::MP * PITCH;
  extern __shared__ float4 shared4[];
  float* keys = (float*)shared4;          // [MP, CP]
  float* offsets = keys + E::MP * E::CP;  // [MP]
  float* sums = offsets + E::MP;          // [WARPS, MP, WP + 1]
  const Stretch<S> at;
  load_keys<S>(keys, offsets, keys_from, offsets_from, at.head);
  __syncthreads();
  const int lane = threadIdx.x % 32, row = lane / 4, pair = lane % 4;
  float total[E::MT][2 * E::KW][4] = {}, mass[E::MT][2] = {};
  const auto query = [&](int n, int c) { return S::queries(at.batch, n, at.head, c); };
  Points<S, S::CHANNELS, E::KC, S::QUERIES_4> x;
  const int start = at.first + threadIdx.x / 32 * 16;
  x.ahead(queries, start, at.end, query);
  for (int n = start; n < at.end; n += E::WARPS * 16) {
    x.advance();
    x.ahead(queries, n + E::WARPS * 16, at.end, query);
    // Values of the points 8t + 2·pair, + 1; columns 16k + 2·row, + 1.
    float2 value[2][2][E::KW];
#pragma unroll
    for (int t = 0; t < 2; t++)
#pragma unroll
      for (int e = 0; e < 2; e++)
#pragma unroll
        for (int k = 0; k < E::KW; k++) {
          const int point = n + t * 8 + pair * 2 + e, p = k * 16 + row * 2;
          float2 v = make_float2(0.0f, 0.0f);
          if (point < at.end) {
            if constexpr (S::VALUES_4 && S::WIDTH % 2 == 0) {
              if (p < S::WIDTH) v = *(const float2*)(values + S::values(at.batch, point, at.head, p));
            } else {
              if (p < S::WIDTH) v.x = values[S::values(at.batch, point, at.head, p)];
              if (p + 1 < S::WIDTH) v.y = values[S::values(at.batch, point, at.head, p + 1)];
            }
          }
          value[t][e][k] = make_float2(rounded<S::PRECISION>(v.x), rounded<S::PRECISION>(v.y));
        }
    float w[E::MT][2][4];
#pragma unroll
    for (int m = 0; m < E::MT; m++)
#pragma unroll
      for (int half = 0; half < 2; half++) {
        const float offset = offsets[m * 16 + row + half * 8];
#pragma unroll
        for (int t = 0; t < 2; t++) w[m][t][half * 2] = w[m][t][half * 2 + 1] = offset;
      }
#pragma unroll
    for (int k = 0; k < E::KC; k++) {
      float b[2][2][2];
#pragma unroll
      for (int t = 0; t < 2; t++) as_right(b[t], t ? x.lower[k] : x.upper[k]);
#pragma unroll
      for (int m = 0; m < E::MT; m++) {
        float a[2][4];
        const float* key = keys + (m * 16 + row) * E::CP + k * 16 + pair * 4;
        as_left(a, *(const float4*)key, *(const float4*)(key + 8 * E::CP));
#pragma unroll
        for (int t = 0; t < 2; t++) multiply_16<S::PRECISION>(w[m][t], a, b[t]);
      }
    }
#pragma unroll
    for (int t = 0; t < 2; t++)
#pragma unroll
      for (int e = 0; e < 2; e++) {
        float largest = w[0][t][e];
#pragma unroll
        for (int m = 0; m < E::MT; m++) largest = fmaxf(largest, fmaxf(w[m][t][e], w[m][t][2 + e]));
#pragma unroll
        for (int o = 4; o < 32; o <<= 1) largest = fmaxf(largest, __shfl_xor_sync(~0u, largest, o));
        float sum = 0.0f;
#pragma unroll
        for (int m = 0; m < E::MT; m++)
#pragma unroll
          for (int half = 0; half < 2; half++) sum += w[m][t][half * 2 + e] = power<S>(w[m][t][half * 2 + e] - largest);
#pragma unroll
        for (int o = 4; o < 32; o <<= 1) sum += __shfl_xor_sync(~0u, sum, o);
        const float scale = n + t * 8 + pair * 2 + e < at.end ? 1.0f / sum : 0.0f;  // no point, no weight
#pragma unroll
        for (int m = 0; m < E::MT; m++)
#pragma unroll
          for (int half = 0; half < 2; half++) mass[m][half] += w[m][t][half * 2 + e] *= scale;
      }
#pragma unroll
    for (int m = 0; m < E::MT; m++) {
      float a[2][4];
      turn<S::PRECISION>(a, w[m][0], w[m][1]);
#pragma unroll
      for (int k = 0; k < E::KW; k++) {
        const float first[2][2] = {{value[0][0][k].x, value[0][1][k].x}, {value[1][0][k].x, value[1][1][k].x}};
        const float second[2][2] = {{value[0][0][k].y, value[0][1][k].y}, {value[1][0][k].y, value[1][1][k].y}};
        multiply_16<S::PRECISION>(total[m][2 * k], a, first);
        multiply_16<S::PRECISION>(total[m][2 * k + 1], a, second);
      }
    }
  }
  float* mine = sums + threadIdx.x / 32 * COUNT;
#pragma unroll
  for (int m = 0; m < E::MT; m++)
#pragma unroll
    for (int half = 0; half < 2; half++) {
      const int slice = m * 16 + row + half * 8;
#pragma unroll
      for (int n = 0; n < 2 * E::KW; n++)
#pragma unroll
        for (int e = 0; e < 2; e++) mine[slice * PITCH + n / 2 * 16 + (pair * 2 + e) * 2 + n % 2] = total[m][n][half * 2 + e];
      float sum = mass[m][half];
      sum += __shfl_xor_sync(~0u, sum, 1);
      sum += __shfl_xor_sync(~0u, sum, 2);
      if (pair == 0) mine[slice * PITCH + E::WP] = sum;
    }
  sum_warps<S, COUNT>(sums, scratch + ((size_t)(at.batch * S::HEADS + at.head) * S::CHUNKS + at.chunk) * COUNT);
}

template <class S>
__device__ void sum_collected(const float* scratch, float* to) {
  using E = Extents<S>;
  constexpr int PITCH = E::WP + 1, COUNT = E::MP * PITCH;
  const int t = blockIdx.x * 256 + threadIdx.x;
  if (t >= S::BATCH * S::HEADS * S::SLICES * (S::WIDTH + 1)) return;
  const int p = t % (S::WIDTH + 1), m = t / (S::WIDTH + 1) % S::SLICES, bh = t / (S::WIDTH + 1) / S::SLICES;
  const float* from = scratch + (size_t)bh * S::CHUNKS * COUNT + m * PITCH + (p < S::WIDTH ? p : E::WP);
  float sum = 0.0f;
#pragma unroll 8
  for (int chunk = 0; chunk < S::CHUNKS; chunk++) sum += from[(size_t)chunk * COUNT];
  to[S::result(bh / S::HEADS, bh % S::HEADS, m, p)] = sum;
}

template <class S>
__device__ void membership_gradient(const float* queries, const float* keys_from, const float* offsets_from,
                                    const float* values, const float* tokens_from, float* query_gradient, float* scratch) {
  using E = Extents<S>;
  constexpr int PITCH = E::CP + 1, COUNT = E::MP * PITCH, POINT = E::CP + 8;
  extern __shared__ float4 shared4[];
  float* keys = (float*)shared4;                   // [MP, CP]
  float* offsets = keys + E::MP * E::CP;           // [MP]
  float* tokens = offsets + E::MP;                 // [MP, WP]
  float* masses = tokens + E::MP * E::WP;          // [MP]
  float* columns = masses + E::MP;                 // keys [CP, MP]
  float* all = columns + E::CP * E::COLUMNS;
  float* logits = all + threadIdx.x / 32 * (16 * (E::COLUMNS + POINT));  // ∂ℓ [16, MP], this warp's
  float* points = logits + 16 * E::COLUMNS;                              // x [16, CP], this warp's
  const Stretch<S> at;
  load_keys<S>(keys, offsets, keys_from, offsets_from, at.head);
  for (int i = threadIdx.x; i < E::MP * E::CP; i += E::WARPS * 32) {
    const int m = i / E::CP, c = i % E::CP;
    columns[column_of(c) * E::COLUMNS + m] = rounded<S::PRECISION>(m < S::SLICES && c < S::CHANNELS ? keys_from[S::keys(at.head, m, c)] : 0.0f);
  }
  for (int i = threadIdx.x; i < E::MP * E::WP; i += E::WARPS * 32) {
    const int m = i / E::WP, p = i % E::WP;
    tokens[i] = rounded<S::PRECISION>(m < S::SLICES && p < S::WIDTH ? tokens_from[S::tokens(at.batch, at.head, m, p)] : 0.0f);
  }
  for (int m = threadIdx.x; m < E::MP; m += E::WARPS * 32)
    masses[m] = S::MASS && m < S::SLICES ? tokens_from[S::tokens(at.batch, at.head, m, S::WIDTH)] : 0.0f;
  __syncthreads();
  const int lane = threadIdx.x % 32, row = lane / 4, pair = lane % 4;
  float total[E::KC][2 * E::MT][4] = {}, sums[2 * E::MT][2] = {};  // ∂kᵀ [CP, MP], ∂b
  const auto query = [&](int n, int c) { return S::queries(at.batch, n, at.head, c); };
  const auto beside = [&](int n, int p) { return S::values(at.batch, n, at.head, p); };
  Points<S, S::CHANNELS, E::KC, S::QUERIES_4> x;
  Points<S, S::WIDTH, E::KW, S::VALUES_4> v;
  const int start = at.first + threadIdx.x / 32 * 16;
  x.ahead(queries, start, at.end, query);
  v.ahead(values, start, at.end, beside);
  for (int n = start; n < at.end; n += E::WARPS * 16) {
    x.advance();
    v.advance();
    x.ahead(queries, n + E::WARPS * 16, at.end, query);
    v.ahead(values, n + E::WARPS * 16, at.end, beside);
    float d[2 * E::MT][4];  // ∂w, then ∂ℓ
    against_slices<S>(d, v.upper, v.lower, tokens, masses);
    {
      float w[2 * E::MT][4];
      weigh<S>(w, x.upper, x.lower, keys, offsets);
#pragma unroll
      for (int half = 0; half < 2; half++) {
        float mean = 0.0f;
#pragma unroll
        for (int i = 0; i < 2 * E::MT; i++) mean += w[i][half * 2] * d[i][half * 2] + w[i][half * 2 + 1] * d[i][half * 2 + 1];
        mean += __shfl_xor_sync(~0u, mean, 1);
        mean += __shfl_xor_sync(~0u, mean, 2);
        const bool in = n + row + half * 8 < at.end;
#pragma unroll
        for (int i = 0; i < 2 * E::MT; i++)
#pragma unroll
          for (int e = 0; e < 2; e++) {
            float& value = d[i][half * 2 + e];
            value = in ? w[i][half * 2 + e] * (value - mean) : 0.0f;
            sums[i][e] += value;
          }
      }
    }
    float dx[2 * E::KC][4] = {};
    spread_rows<S>(dx, d, columns);
#pragma unroll
    for (int k = 0; k < E::KC; k++)
#pragma unroll
      for (int half = 0; half < 2; half++) {
        const int point = n + row + half * 8;
        const float4 value = make_float4(dx[2 * k][half * 2], dx[2 * k][half * 2 + 1], dx[2 * k + 1][half * 2], dx[2 * k + 1][half * 2 + 1]);
        if (point < at.end)
          store_4<S::CHANNELS, S::RESULT_4>(query_gradient, k * 16 + pair * 4, value, [&](int c) { return S::query_gradient(at.batch, point, at.head, c); });
      }
    // ∂kᵀ += xᵀ ∂ℓ: both change the axis they are read along, through memory of the warp's own.
    __syncwarp();
#pragma unroll
    for (int i = 0; i < 2 * E::MT; i++)
#pragma unroll
      for (int half = 0; half < 2; half++)
        *(float2*)(logits + (row + half * 8) * E::COLUMNS + i * 8 + pair * 2) = make_float2(rounded<S::PRECISION>(d[i][half * 2]), rounded<S::PRECISION>(d[i][half * 2 + 1]));
#pragma unroll
    for (int k = 0; k < E::KC; k++) {
      *(float4*)(points + row * POINT + k * 16 + pair * 4) = x.upper[k];
      *(float4*)(points + (row + 8) * POINT + k * 16 + pair * 4) = x.lower[k];
    }
    __syncwarp();
    float b[2 * E::MT][2][2];
#pragma unroll
    for (int i = 0; i < 2 * E::MT; i++)
#pragma unroll
      for (int s = 0; s < 2; s++)
#pragma unroll
        for (int e = 0; e < 2; e++) b[i][s][e] = logits[(s * 8 + e * 4 + pair) * E::COLUMNS + i * 8 + row];
#pragma unroll
    for (int k = 0; k < E::KC; k++) {
      float a[2][4];
#pragma unroll
      for (int s = 0; s < 2; s++)
#pragma unroll
        for (int e = 0; e < 4; e++) a[s][e] = points[(s * 8 + e / 2 * 4 + pair) * POINT + k * 16 + row + e % 2 * 8];
#pragma unroll
      for (int i = 0; i < 2 * E::MT; i++) multiply_16<S::PRECISION>(total[k][i], a, b[i]);
    }
  }
  __syncthreads();
  float* mine = all + threadIdx.x / 32 * COUNT;
#pragma unroll
  for (int i = 0; i < 2 * E::MT; i++)
#pragma unroll
    for (int e = 0; e < 2; e++) {
      const int slice = i * 8 + pair * 2 + e;
#pragma unroll
      for (int k = 0; k < E::KC; k++)
#pragma unroll
        for (int half = 0; half < 2; half++) mine[slice * PITCH + k * 16 + row + half * 8] = total[k][i][half * 2 + e];
      float sum = sums[i][e];
#pragma unroll
      for (int o = 4; o < 32; o <<= 1) sum += __shfl_xor_sync(~0u, sum, o);
      if (row == 0) mine[slice * PITCH + E::CP] = sum;
    }
  sum_warps<S, COUNT>(all, scratch + ((size_t)at.head * (S::BATCH * S::CHUNKS) + at.batch * S::CHUNKS + at.chunk) * COUNT);
}

template <class S>
__device__ void sum_membership_gradient(const float* scratch, float* key_gradient, float* offset_gradient) {
  using E = Extents<S>;
  constexpr int PITCH = E::CP + 1, COUNT = E::MP * PITCH, CHUNKS = S::BATCH * S::CHUNKS;
  const int t = blockIdx.x * 256 + threadIdx.x;
  if (t >= S::HEADS * S::SLICES * (S::CHANNELS + 1)) return;
  const int c = t % (S::CHANNELS + 1), m = t / (S::CHANNELS + 1) % S::SLICES, head = t / (S::CHANNELS + 1) / S::SLICES;
  const float* from = scratch + (size_t)head * CHUNKS * COUNT + m * PITCH + (c < S::CHANNELS ? c : E::CP);
  float sum = 0.0f;
#pragma unroll 8
  for (int chunk = 0; chunk < CHUNKS; chunk++) sum += from[(size_t)chunk * COUNT];
  if (c < S::CHANNELS) key_gradient[S::key_gradient(head, m, c)] = sum;
  else offset_gradient[S::offset_gradient(head, m)] = sum;
}

// ---- any shape: a thread per result, or a block per sum over points; `stats` has the largest logit, the sum of powers
// and Σ w ∂w of every point and head ----

template <class S>
__device__ __forceinline__ float logit(const float* queries, const float* keys, const float* offsets, int b, int n, int h, int m) {
  float sum = offsets[S::offsets(h, m)];
  for (int c = 0; c < S::CHANNELS; c++) sum += queries[S::queries(b, n, h, c)] * keys[S::keys(h, m, c)];
  return sum;
}

template <class S>
__device__ __forceinline__ float moved(const float* values, const float* tokens, int b, int n, int h, int m) {
  float sum = S::MASS ? tokens[S::tokens(b, h, m, S::WIDTH)] : 0.0f;
  for (int p = 0; p < S::WIDTH; p++) sum += values[S::values(b, n, h, p)] * tokens[S::tokens(b, h, m, p)];
  return sum;
}

template <class S, bool GRADIENT>
__device__ void membership_stats(const float* queries, const float* keys, const float* offsets,
                                 const float* values, const float* tokens, float* stats) {
  const long long t = (long long)blockIdx.x * 256 + threadIdx.x;
  if (t >= (long long)S::BATCH * S::POINTS * S::HEADS) return;
  const int h = t % S::HEADS, n = t / S::HEADS % S::POINTS, b = t / S::HEADS / S::POINTS;
  float largest = logit<S>(queries, keys, offsets, b, n, h, 0), sum = 0.0f, mean = 0.0f;
  for (int m = 1; m < S::SLICES; m++) largest = fmaxf(largest, logit<S>(queries, keys, offsets, b, n, h, m));
  for (int m = 0; m < S::SLICES; m++) {
    const float power = expf(logit<S>(queries, keys, offsets, b, n, h, m) - largest);
    sum += power;
    if (GRADIENT) mean += power * moved<S>(values, tokens, b, n, h, m);
  }
  stats[3 * t] = largest;
  stats[3 * t + 1] = sum;
  stats[3 * t + 2] = mean / sum;
}

// w, or ∂ℓ where GRADIENT.
template <class S, bool GRADIENT>
__device__ __forceinline__ float weight(const float* queries, const float* keys, const float* offsets, const float* values,
                                        const float* tokens, const float* stats, int b, int n, int h, int m) {
  const float* stat = stats + 3 * (((long long)b * S::POINTS + n) * S::HEADS + h);
  const float w = expf(logit<S>(queries, keys, offsets, b, n, h, m) - stat[0]) / stat[1];
  return GRADIENT ? w * (moved<S>(values, tokens, b, n, h, m) - stat[2]) : w;
}

// Σ_m w t, or ∂x = Σ_m ∂ℓ k.
template <class S, bool GRADIENT>
__device__ void membership_plain_points(const float* queries, const float* keys, const float* offsets,
                                        const float* values, const float* tokens, const float* stats, float* to) {
  constexpr int WIDTH = GRADIENT ? S::CHANNELS : S::WIDTH;
  const long long t = (long long)blockIdx.x * 256 + threadIdx.x;
  if (t >= (long long)S::BATCH * S::POINTS * S::HEADS * WIDTH) return;
  const int p = t % WIDTH, h = t / WIDTH % S::HEADS, n = t / WIDTH / S::HEADS % S::POINTS, b = t / WIDTH / S::HEADS / S::POINTS;
  float sum = 0.0f;
  for (int m = 0; m < S::SLICES; m++)
    sum += weight<S, GRADIENT>(queries, keys, offsets, values, tokens, stats, b, n, h, m) * (GRADIENT ? keys[S::keys(h, m, p)] : tokens[S::tokens(b, h, m, p)]);
  to[GRADIENT ? S::query_gradient(b, n, h, p) : S::result(b, n, h, p)] = sum;
}

// Σ_n w [v | 1] of a batch, or ∂k, ∂b = Σ ∂ℓ [x | 1] over all.
template <class S, bool GRADIENT>
__device__ void membership_plain_slices(const float* queries, const float* keys, const float* offsets,
                                        const float* values, const float* tokens, const float* stats,
                                        float* to, float* offset_gradient) {
  constexpr int WIDTH = GRADIENT ? S::CHANNELS : S::WIDTH;
  const int p = blockIdx.x % (WIDTH + 1), m = blockIdx.x / (WIDTH + 1) % S::SLICES, bh = blockIdx.x / (WIDTH + 1) / S::SLICES;
  const int h = bh % S::HEADS, first = GRADIENT ? 0 : bh / S::HEADS, last = GRADIENT ? S::BATCH : first + 1;
  float sum = 0.0f;
  for (int b = first; b < last; b++)
    for (int n = threadIdx.x; n < S::POINTS; n += 256) {
      const float beside = p == WIDTH ? 1.0f : GRADIENT ? queries[S::queries(b, n, h, p)] : values[S::values(b, n, h, p)];
      sum += beside * weight<S, GRADIENT>(queries, keys, offsets, values, tokens, stats, b, n, h, m);
    }
  __shared__ float pile[256];
  pile[threadIdx.x] = sum;
  __syncthreads();
  for (int s = 128; s; s >>= 1) {
    if (threadIdx.x < s) pile[threadIdx.x] += pile[threadIdx.x + s];
    __syncthreads();
  }
  if (threadIdx.x) return;
  if (!GRADIENT) to[S::result(first, h, m, p)] = pile[0];
  else if (p < WIDTH) to[S::key_gradient(h, m, p)] = pile[0];
  else offset_gradient[S::offset_gradient(h, m)] = pile[0];
}
