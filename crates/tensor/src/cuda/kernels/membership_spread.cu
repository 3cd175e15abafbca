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
  load_columns<S, S::WIDTH, E::WP>(columns, tokens, [&](int m, int p) { return S::tokens(at.batch, at.head, m, p); });
  __syncthreads();
  const auto query = [&](int n, int c) { return S::queries(at.batch, n, at.head, c); };
  Points<S, S::CHANNELS, E::KC, S::QUERIES_4> x;
  const int start = at.first + threadIdx.x / 32 * 16;
  x.ahead(queries, start, at.end, query);
  for (int n = start; n < at.end; n += E::WARPS * 16) {
    x.advance();
    x.ahead(queries, n + E::WARPS * 16, at.end, query);
    float w[2 * E::MT][4];
    weigh<S>(w, x.upper, x.lower, keys, offsets, at.end - n);
    float y[2 * E::KW][4] = {};
    spread_rows<S>(y, w, columns);
    store_points<S::WIDTH, E::KW, S::RESULT_4>(to, y, n, at.end, [&](int point, int p) { return S::result(at.batch, point, at.head, p); });
  }
}
