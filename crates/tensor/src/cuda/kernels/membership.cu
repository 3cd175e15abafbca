// Soft membership of points in slices: w_nm = softmax_m(x_n·k_m + b_m), recomputed wherever it is needed.
//
// A warp computes 16 points of one head at a time; the weights stay in the registers in which tensor cores leave them. A sum
// over an index may run in any order, if it is the same for both operands. So one lane loads four neighbouring channels and uses
// them as its elements of two steps, and the results of one product are the operands of the next without a move.
//
// S: BATCH, POINTS, HEADS, SLICES, CHANNELS, WIDTH, CHUNKS, PRECISION; QUERIES_4 … say whether four elements are contiguous and
// aligned; offsets queries(b,n,h,c), keys(h,m,c), offsets(h,m), values(b,n,h,p), tokens(b,h,m,p) and those of the results. For
// gradients: PAIRS of values and tokens, the second ones more_values and more_tokens; MASS and SPREADS (`membership_gradient.cu`).

template <class S> struct Extents {
  static constexpr int WARPS = 4;
  static constexpr int MP = (S::SLICES + 15) / 16 * 16, CP = (S::CHANNELS + 15) / 16 * 16, WP = (S::WIDTH + 15) / 16 * 16;
  static constexpr int MT = MP / 16, KC = CP / 16, KW = WP / 16;
  static constexpr int COLUMNS = MP + 8;  // pitch of arrays that are read by columns: neighbours in 8 different banks
};

// c += a·b over two steps of eight: element j of lane pair p is term 4p + j of the sum, for both operands, which are already
// rounded.
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
        // The bits that tf32 drops are operands of their own. Tensor cores truncate their sums, so the sum over steps is done here.
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

// Four neighbouring elements, zero from COUNT on.
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

// Rows of 16 points as left operand: channels 16k + 4·pair … of the points row and row + 8.
__device__ __forceinline__ void as_left(float (&a)[2][4], const float4& upper, const float4& lower) {
  a[0][0] = upper.x; a[0][2] = upper.y; a[1][0] = upper.z; a[1][2] = upper.w;
  a[0][1] = lower.x; a[0][3] = lower.y; a[1][1] = lower.z; a[1][3] = lower.w;
}

__device__ __forceinline__ void as_right(float (&b)[2][2], const float4& value) {
  b[0][0] = value.x; b[0][1] = value.y; b[1][0] = value.z; b[1][1] = value.w;
}

// exp(a − largest). As a power of two, the product with log₂ e and the difference are one instruction; its rounding is the same
// for all slices of a point, so that the softmax does not see it. Powers below 2⁻¹²⁶ are zero.
template <class S> struct Power {
  float largest;
  __device__ __forceinline__ float operator()(float a) const {
    if constexpr (S::PRECISION == 0) return expf(a - largest);
    constexpr float LOG2_E = 1.44269504f;
    float power;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(fmaf(a, LOG2_E, -LOG2_E * largest)));
    return power;
  }
};

// 1 / a for 1 ≤ a
template <class S>
__device__ __forceinline__ float inverse(float a) {
  if constexpr (S::PRECISION == 0) return 1.0f / a;
  float inverse;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(inverse) : "f"(a));
  return inverse;
}

// The work of a block: a chunk of the points of one head. Neighbouring blocks have the heads of the same chunk.
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

// Keys as rows [slice, CP], and offsets (−∞ past the last slice, so that these slices have weight 0).
template <class S>
__device__ __forceinline__ void load_keys(float* keys, float* offsets, const float* from, const float* from_offsets, int head) {
  using E = Extents<S>;
  for (int i = threadIdx.x; i < E::MP * E::CP; i += E::WARPS * 32) {
    const int m = i / E::CP, c = i % E::CP;
    keys[i] = rounded<S::PRECISION>(m < S::SLICES && c < S::CHANNELS ? from[S::keys(head, m, c)] : 0.0f);
  }
  for (int m = threadIdx.x; m < E::MP; m += E::WARPS * 32) offsets[m] = m < S::SLICES ? from_offsets[S::offsets(head, m)] : -1e30f;
}

// Products of 16 points with every slice, a row per point: to[n][…] holds the slices 8n + 2·pair and 8n + 2·pair + 1 of the points
// row and row + 8. They begin at first_m …
template <class S>
__device__ __forceinline__ void begin_slices(float (&to)[2 * Extents<S>::MT][4], const float* first) {
  const int pair = threadIdx.x % 4;
#pragma unroll
  for (int n = 0; n < 2 * Extents<S>::MT; n++) {
    const float2 start = *(const float2*)(first + n * 8 + pair * 2);
    to[n][0] = to[n][2] = start.x;
    to[n][1] = to[n][3] = start.y;
  }
}

// … and x·row_m is added. `rows` is [slice, 16·K].
template <class S, int K>
__device__ __forceinline__ void against_slices(float (&to)[2 * Extents<S>::MT][4], const float4 (&upper)[K], const float4 (&lower)[K], const float* rows) {
  const int lane = threadIdx.x % 32, row = lane / 4, pair = lane % 4;
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

// The weights of 16 points, in the order of the products of `against_slices`; zero from point `count` on.
template <class S>
__device__ __forceinline__ void weigh(float (&w)[2 * Extents<S>::MT][4], const float4 (&upper)[Extents<S>::KC],
                                      const float4 (&lower)[Extents<S>::KC], const float* keys, const float* offsets, int count) {
  using E = Extents<S>;
  begin_slices<S>(w, offsets);
  against_slices<S>(w, upper, lower, keys);
#pragma unroll
  for (int half = 0; half < 2; half++) {
    float largest = w[0][half * 2];
#pragma unroll
    for (int n = 0; n < 2 * E::MT; n++) largest = fmaxf(largest, fmaxf(w[n][half * 2], w[n][half * 2 + 1]));
    largest = fmaxf(largest, __shfl_xor_sync(~0u, largest, 1));
    largest = fmaxf(largest, __shfl_xor_sync(~0u, largest, 2));
    const Power<S> power = {largest};
    float sum = 0.0f;
#pragma unroll
    for (int n = 0; n < 2 * E::MT; n++)
#pragma unroll
      for (int e = 0; e < 2; e++) sum += w[n][half * 2 + e] = power(w[n][half * 2 + e]);
    sum += __shfl_xor_sync(~0u, sum, 1);
    sum += __shfl_xor_sync(~0u, sum, 2);
    const float scale = threadIdx.x % 32 / 4 + half * 8 < count ? inverse<S>(sum) : 0.0f;
#pragma unroll
    for (int n = 0; n < 2 * E::MT; n++)
#pragma unroll
      for (int e = 0; e < 2; e++) w[n][half * 2 + e] *= scale;
  }
}

// Results of two neighbouring tiles as left operand of a sum over their columns: term 4p + j is column
// 16k + 8·(j / 2) + 2p + j % 2.
template <int PRECISION>
__device__ __forceinline__ void turn(float (&a)[2][4], const float (&low)[4], const float (&high)[4]) {
  constexpr int R = PRECISION;
  a[0][0] = rounded<R>(low[0]); a[0][2] = rounded<R>(low[1]); a[0][1] = rounded<R>(low[2]); a[0][3] = rounded<R>(low[3]);
  a[1][0] = rounded<R>(high[0]); a[1][2] = rounded<R>(high[1]); a[1][1] = rounded<R>(high[2]); a[1][3] = rounded<R>(high[3]);
}

// The column in which element p of a result is computed, so that a lane ends up with the four neighbours 4·pair …: column q of
// tile n of a pair of tiles is element 4·(q / 2) + 2n + q % 2 of its sixteen.
__device__ __forceinline__ int column_of(int p) { return p / 16 * 16 + p % 4 / 2 * 8 + p % 16 / 4 * 2 + p % 2; }

// An array [slices, COUNT] of one head as columns [P, MP], in the order of `column_of`.
template <class S, int COUNT, int P, class At>
__device__ __forceinline__ void load_columns(float* columns, const float* from, At at) {
  using E = Extents<S>;
  for (int i = threadIdx.x; i < E::MP * P; i += E::WARPS * 32) {
    const int m = i / P, p = i % P;
    columns[column_of(p) * E::COLUMNS + m] = rounded<S::PRECISION>(m < S::SLICES && p < COUNT ? from[at(m, p)] : 0.0f);
  }
}

// to += w · columns, whose rows [slices] are in the order of `column_of`.
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

// Rows of results of the points n + row and n + row + 8, in the order of `column_of`.
template <int COUNT, int K, bool VECTOR, class At>
__device__ __forceinline__ void store_points(float* to, const float (&value)[2 * K][4], int n, int end, At at) {
  const int lane = threadIdx.x % 32, row = lane / 4, pair = lane % 4;
#pragma unroll
  for (int k = 0; k < K; k++)
#pragma unroll
    for (int half = 0; half < 2; half++) {
      const int point = n + row + half * 8;
      const float4 four = make_float4(value[2 * k][half * 2], value[2 * k][half * 2 + 1], value[2 * k + 1][half * 2], value[2 * k + 1][half * 2 + 1]);
      if (point < end) store_4<COUNT, VECTOR>(to, k * 16 + pair * 4, four, [&](int p) { return at(point, p); });
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

// Points as operands: those of this step, and those of the next step, which are loaded ahead.
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
