// Gradients of a collection and of a spread with one membership, or of one of the two (PAIRS): ∂w_nm is the sum of v_n·t_m over both
// (+ the cotangent of the mass), ∂ℓ_nm = w_nm (∂w_nm − Σ_m w_nm ∂w_nm), then ∂x_n = Σ_m ∂ℓ_nm k_m, ∂k_m = Σ_n ∂ℓ_nm x_n, ∂b_m = Σ_n ∂ℓ_nm.
// With SPREADS, the first tokens are also spread, ∂v_n = Σ_m w_nm t_m. `sum_warps` is in `membership_collect.cu`.

// Points as operands, in the same registers from one step to the next: loaded as soon as those of this step are used.
template <class S, int COUNT, int K, bool VECTOR> struct Stream {
  float4 upper[K], lower[K];
  template <class At> __device__ __forceinline__ void load(const float* from, int n, int end, At at) {
    load_points<S, COUNT, K, VECTOR>(upper, lower, from, n, end, at);
  }
  __device__ __forceinline__ void round() {
#pragma unroll
    for (int k = 0; k < K; k++) {
      upper[k] = rounded_4<S>(upper[k]);
      lower[k] = rounded_4<S>(lower[k]);
    }
  }
};

template <class S>
__device__ void membership_gradient(const float* queries, const float* keys_from, const float* offsets_from, const float* values,
                                    const float* tokens_from, const float* more_values, const float* more_tokens,
                                    float* query_gradient, float* value_gradient, float* scratch) {
  using E = Extents<S>;
  constexpr int PITCH = E::CP + 1, COUNT = E::MP * PITCH, POINT = E::CP + 8, STEP = E::WARPS * 16;
  extern __shared__ float4 shared4[];
  float* keys = (float*)shared4;                                // [MP, CP]
  float* offsets = keys + E::MP * E::CP;                        // [MP]
  float* tokens = offsets + E::MP;                              // [PAIRS, MP, WP]
  float* masses = tokens + S::PAIRS * E::MP * E::WP;            // [MP]
  float* columns = masses + E::MP;                              // keys [CP, MP]
  float* token_columns = columns + E::CP * E::COLUMNS;          // with SPREADS, the first tokens [WP, MP]
  float* all = token_columns + S::SPREADS * E::WP * E::COLUMNS;
  float* logits = all + threadIdx.x / 32 * (16 * (E::COLUMNS + POINT));  // ∂ℓ [16, MP], this warp's
  float* points = logits + 16 * E::COLUMNS;                              // x [16, CP], this warp's
  const Stretch<S> at;
  const auto token = [&](int m, int p) { return S::tokens(at.batch, at.head, m, p); };
  load_keys<S>(keys, offsets, keys_from, offsets_from, at.head);
  load_columns<S, S::CHANNELS, E::CP>(columns, keys_from, [&](int m, int c) { return S::keys(at.head, m, c); });
  if constexpr (S::SPREADS) load_columns<S, S::WIDTH, E::WP>(token_columns, tokens_from, token);
  for (int i = threadIdx.x; i < E::MP * E::WP; i += E::WARPS * 32) {
    const int m = i / E::WP, p = i % E::WP;
    const bool in = m < S::SLICES && p < S::WIDTH;
    tokens[i] = rounded<S::PRECISION>(in ? tokens_from[token(m, p)] : 0.0f);
    if constexpr (S::PAIRS == 2)
      tokens[E::MP * E::WP + i] = rounded<S::PRECISION>(in ? more_tokens[S::more_tokens(at.batch, at.head, m, p)] : 0.0f);
  }
  for (int m = threadIdx.x; m < E::MP; m += E::WARPS * 32) masses[m] = S::MASS && m < S::SLICES ? tokens_from[token(m, S::WIDTH)] : 0.0f;
  __syncthreads();
  const int lane = threadIdx.x % 32, row = lane / 4, pair = lane % 4;
  float total[E::KC][2 * E::MT][4] = {}, sums[2 * E::MT][2] = {};  // ∂kᵀ [CP, MP], ∂b
  const auto query = [&](int n, int c) { return S::queries(at.batch, n, at.head, c); };
  const auto beside = [&](int n, int p) { return S::values(at.batch, n, at.head, p); };
  const auto further = [&](int n, int p) { return S::more_values(at.batch, n, at.head, p); };
  Stream<S, S::CHANNELS, E::KC, S::QUERIES_4> x;
  Stream<S, S::WIDTH, E::KW, S::VALUES_4> v;
  Stream<S, S::WIDTH, E::KW, S::MORE_VALUES_4> u;
  const int start = at.first + threadIdx.x / 32 * 16;
  x.load(queries, start, at.end, query);
  v.load(values, start, at.end, beside);
  if constexpr (S::PAIRS == 2) u.load(more_values, start, at.end, further);
  for (int n = start; n < at.end; n += STEP) {
    x.round();
    __syncwarp();  // the rows of the step before are read
#pragma unroll
    for (int k = 0; k < E::KC; k++) {
      *(float4*)(points + row * POINT + k * 16 + pair * 4) = x.upper[k];
      *(float4*)(points + (row + 8) * POINT + k * 16 + pair * 4) = x.lower[k];
    }
    float w[2 * E::MT][4];
    weigh<S>(w, x.upper, x.lower, keys, offsets, at.end - n);
    x.load(queries, n + STEP, at.end, query);
    if constexpr (S::SPREADS) {
      float dv[2 * E::KW][4] = {};
      spread_rows<S>(dv, w, token_columns);
      store_points<S::WIDTH, E::KW, S::VALUE_GRADIENT_4>(value_gradient, dv, n, at.end,
                                                         [&](int point, int p) { return S::value_gradient(at.batch, point, at.head, p); });
    }
    float d[2 * E::MT][4];  // ∂w, then ∂ℓ
    begin_slices<S>(d, masses);
    v.round();
    against_slices<S>(d, v.upper, v.lower, tokens);
    v.load(values, n + STEP, at.end, beside);
    if constexpr (S::PAIRS == 2) {
      u.round();
      against_slices<S>(d, u.upper, u.lower, tokens + E::MP * E::WP);
      u.load(more_values, n + STEP, at.end, further);
    }
#pragma unroll
    for (int half = 0; half < 2; half++) {
      float mean = 0.0f;
#pragma unroll
      for (int i = 0; i < 2 * E::MT; i++) mean += w[i][half * 2] * d[i][half * 2] + w[i][half * 2 + 1] * d[i][half * 2 + 1];
      mean += __shfl_xor_sync(~0u, mean, 1);
      mean += __shfl_xor_sync(~0u, mean, 2);
#pragma unroll
      for (int i = 0; i < 2 * E::MT; i++)
#pragma unroll
        for (int e = 0; e < 2; e++) {
          float& value = d[i][half * 2 + e];
          value = w[i][half * 2 + e] * (value - mean);  // zero past the last point, as its weight is
          sums[i][e] += value;
        }
    }
    float dx[2 * E::KC][4] = {};
    spread_rows<S>(dx, d, columns);
    store_points<S::CHANNELS, E::KC, S::RESULT_4>(query_gradient, dx, n, at.end,
                                                  [&](int point, int c) { return S::query_gradient(at.batch, point, at.head, c); });
    // ∂kᵀ += xᵀ ∂ℓ: both operands are transposed through shared memory of this warp.
#pragma unroll
    for (int i = 0; i < 2 * E::MT; i++)
#pragma unroll
      for (int half = 0; half < 2; half++)
        *(float2*)(logits + (row + half * 8) * E::COLUMNS + i * 8 + pair * 2) = make_float2(rounded<S::PRECISION>(d[i][half * 2]), rounded<S::PRECISION>(d[i][half * 2 + 1]));
    __syncwarp();
#pragma unroll
    for (int k = 0; k < E::KC; k++) {
      float a[2][4];
#pragma unroll
      for (int s = 0; s < 2; s++)
#pragma unroll
        for (int e = 0; e < 4; e++) a[s][e] = points[(s * 8 + e / 2 * 4 + pair) * POINT + k * 16 + row + e % 2 * 8];
#pragma unroll
      for (int i = 0; i < 2 * E::MT; i++) {
        float b[2][2];
#pragma unroll
        for (int s = 0; s < 2; s++)
#pragma unroll
          for (int e = 0; e < 2; e++) b[s][e] = logits[(s * 8 + e * 4 + pair) * E::COLUMNS + i * 8 + row];
        multiply_16<S::PRECISION>(total[k][i], a, b);
      }
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

