// States before and adjoints after every chunk: h_c = e^{s_T} h_{c−1} + Σ_j e^{s_T−s_j} g_j x_j ⊗ B_j, and its adjoint.
//
// In: ℓ, g, x and B of the tokens, or ∂y and C. Out: h before each chunk, λ after each chunk, [N, P].

// Sums over the tokens of a chunk, [N, P]: of e^{s_T−s_j} g_j x_j ⊗ B_j, or for ADJOINT of e^{s_l} ∂y_l ⊗ C_l. A block has CHAIN
// heads with the same B, and SPAN chunks: either one chunk, and then `scan_pass` combines the chunks, or all of them. In that case
// the block runs through the chunks itself, for λ from the end, and stores h before and λ after each.
template <class S, bool ADJOINT>
__device__ void scan_chain(const uint32* __restrict__ order, const float* signal, const float* decay,
                           const float* gain, const float* write, const float* read,
                           const float* cotangent, const float* initial,
                           const float* final_cotangent, float* states, float* adjoints, float* decays,
                           float* final_state, float* initial_gradient) {
  using Z = Sizes<S>;
  constexpr bool WHOLE = S::SPAN == Z::CHUNKS;
  constexpr int G = S::CHAIN, BN = S::N + 4, BR = G * S::P + 4, STAGE = T * (BN + BR), STAGES = S::STAGES;
  constexpr int AHEAD = STAGES > 1 ? STAGES - 1 : 1;  // chunks that are loaded ahead
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

