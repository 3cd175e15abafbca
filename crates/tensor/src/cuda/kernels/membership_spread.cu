// Spread: y_n = Σ_m w_nm t_m, from the tokens t of the slices to the points.

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

