// Collect: t_m = Σ_n w_nm v_n and the mass Σ_n w_nm, from the points to the slices. Each block sums a chunk of points,
// `sum_collected` adds the chunks in order.

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

// Here the weights have a row per slice, so that they are the left operand of the sum over points.
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
        const Power<S> power = {largest};
        float sum = 0.0f;
#pragma unroll
        for (int m = 0; m < E::MT; m++)
#pragma unroll
          for (int half = 0; half < 2; half++) sum += w[m][t][half * 2 + e] = power(w[m][t][half * 2 + e]);
#pragma unroll
        for (int o = 4; o < 32; o <<= 1) sum += __shfl_xor_sync(~0u, sum, o);
        const float scale = n + t * 8 + pair * 2 + e < at.end ? inverse<S>(sum) : 0.0f;  // weight 0 past the last point
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

