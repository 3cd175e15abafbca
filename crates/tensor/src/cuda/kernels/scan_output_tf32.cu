// The output of the scan: y_l = Σ_{j≤l} e^{s_l−s_j} g_j (C_l·B_j) x_j + e^{s_l} h C_l, with h from `scan_chain_tf32.cu`.

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

