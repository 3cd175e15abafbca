// Gradient of a spread or a collection: ∂w_nm = v_n·t_m (+ the cotangent of the mass), ∂ℓ_nm = w_nm (∂w_nm − Σ_m w_nm ∂w_nm),
// then ∂x_n = Σ_m ∂ℓ_nm k_m, ∂k_m = Σ_n ∂ℓ_nm x_n, ∂b_m = Σ_n ∂ℓ_nm. `sum_warps` is in `membership_collect.cu`.

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
    // ∂kᵀ += xᵀ ∂ℓ: both operands are transposed through shared memory of this warp.
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

