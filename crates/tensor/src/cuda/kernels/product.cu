// C = A·B for any strides: `[batch…, m, k] × [batch…, k, n]`. Operands are staged through shared memory in tiles of
// TM × TK and TK × TN. If C has few tiles, the inner axis is divided into SPLIT pieces, and their sums are added in order.

template <class S>  // the shape: extents, strides and tile sizes as constants
__device__ void product(const float* left, const float* right, float* to, float* scratch,
                        uint32* counters) {
  constexpr int TM = S::TM, TN = S::TN, TK = 32, WARPS = 8;
  constexpr int WM = TM >= 64 ? 4 : TM / 16, WN = WARPS / WM;  // warps along rows and columns
  constexpr int MT = TM / WM / 16, NT = (TN / WN + 7) / 8;
  __shared__ float a[2][TM][TK + 4];
  __shared__ float b[2][TK][TN + 8];
  const int tiles_m = (S::M + TM - 1) / TM, tiles_n = (S::N + TN - 1) / TN;
  int rest = blockIdx.x;
  const int split = rest % S::SPLIT; rest /= S::SPLIT;
  const int n0 = rest % tiles_n * TN; rest /= tiles_n;
  const int m0 = rest % tiles_m * TM;
  const int batch = rest / tiles_m;
  long long la, lb, lc;
  S::batch(batch, la, lb, lc);
  left += la; right += lb; to += lc;
  constexpr int STEPS = (S::K + TK - 1) / TK, PER = (STEPS + S::SPLIT - 1) / S::SPLIT;
  const int from = split * PER * TK, until = min(S::K, (split + 1) * PER * TK);
  const int warp = threadIdx.x / 32;
  const int wm = warp % WM * (MT * 16), wn = warp / WM * (NT * 8);
  float c[MT][NT][4] = {};
  float ra[TM * TK / 256], rb[TK * TN / 256 + 1];
  // The axis that is contiguous in memory runs along the threads.
  auto fetch = [&](int k0) {
#pragma unroll
    for (int i = 0; i < TM * TK / 256; i++) {
      const int t = i * 256 + threadIdx.x;
      const int m = S::LEFT_K1 ? t / TK : t % TM, k = S::LEFT_K1 ? t % TK : t / TM;
      const bool in = m0 + m < S::M && k0 + k < until;
      ra[i] = in ? left[(m0 + m) * (long long)S::LEFT_M + (k0 + k) * (long long)S::LEFT_K] : 0.0f;
    }
#pragma unroll
    for (int i = 0; i < (TK * TN + 255) / 256; i++) {
      const int t = i * 256 + threadIdx.x;
      const int n = S::RIGHT_N1 ? t % TN : t / TK, k = S::RIGHT_N1 ? t / TN : t % TK;
      const bool in = n < TN && k < TK && n0 + n < S::N && k0 + k < until;
      rb[i] = in ? right[(k0 + k) * (long long)S::RIGHT_K + (n0 + n) * (long long)S::RIGHT_N] : 0.0f;
    }
  };
  auto stage = [&](int buffer) {
#pragma unroll
    for (int i = 0; i < TM * TK / 256; i++) {
      const int t = i * 256 + threadIdx.x;
      const int m = S::LEFT_K1 ? t / TK : t % TM, k = S::LEFT_K1 ? t % TK : t / TM;
      a[buffer][m][k] = rounded<S::PRECISION>(ra[i]);
    }
#pragma unroll
    for (int i = 0; i < (TK * TN + 255) / 256; i++) {
      const int t = i * 256 + threadIdx.x;
      const int n = S::RIGHT_N1 ? t % TN : t / TK, k = S::RIGHT_N1 ? t / TN : t % TK;
      if (n < TN && k < TK) b[buffer][k][n] = rounded<S::PRECISION>(rb[i]);
    }
  };
  int buffer = 0;
  if (from < until) {
    fetch(from);
    stage(0);
  }
  __syncthreads();
  for (int k0 = from; k0 < until; k0 += TK) {
    if (k0 + TK < until) fetch(k0 + TK);
    multiply<S::PRECISION, MT, NT, TK>(
        c, [&](int i, int k) { return a[buffer][wm + i][k]; },
        [&](int k, int j) { return NT * 8 * WN <= TN || wn + j < TN ? b[buffer][k][wn + j] : 0.0f; });
    if (k0 + TK < until) stage(buffer ^ 1);
    __syncthreads();
    buffer ^= 1;
  }
  auto store = [&](int i, int j, float value) {
    if (m0 + i < S::M && n0 + j < S::N) to[(m0 + i) * (long long)S::TO_M + (n0 + j) * (long long)S::TO_N] = value;
  };
  if constexpr (S::SPLIT == 1) {
    for_each(c, [&](int i, int j, float value) { if (wn + j < TN) store(wm + i, wn + j, value); });
  } else {
    float* mine = scratch + (size_t)blockIdx.x * (TM * TN);
    for_each(c, [&](int i, int j, float value) { if (wn + j < TN) mine[(wm + i) * TN + wn + j] = value; });
    const int group = blockIdx.x / S::SPLIT;
    if (!is_last(counters + group, S::SPLIT)) return;
    const float* all = scratch + (size_t)group * S::SPLIT * (TM * TN);
    for (int t = threadIdx.x; t < TM * TN; t += 256) {
      float sum = 0.0f;
#pragma unroll 8
      for (int s = 0; s < S::SPLIT; s++) sum += all[(size_t)s * (TM * TN) + t];
      store(t / TN, t % TN, sum);
    }
  }
}

// The same for short sums in f32: 64 threads compute a tile of 16 × 16, each a row of four, and a block has four tiles.
template <class S>
__device__ void product_small(const float* left, const float* right, float* to) {
  constexpr int T = 16, K = S::K, PITCH = (K + 3) / 4 * 4 + 4;
  constexpr int TILES_M = (S::M + T - 1) / T, TILES_N = (S::N + T - 1) / T;
  __shared__ float a[4][T][PITCH];
  __shared__ float4 b[4][K][T / 4 + 1];
  const int part = threadIdx.x / 64, thread = threadIdx.x % 64, tile = blockIdx.x * 4 + part;
  const bool live = tile < TILES_M * TILES_N * S::BATCH;
  const int n0 = tile % TILES_N * T, m0 = tile / TILES_N % TILES_M * T;
  long long la = 0, lb = 0, lc = 0;
  if (live) {
    S::batch(tile / TILES_N / TILES_M, la, lb, lc);
#pragma unroll 4
    for (int t = thread; t < T * K; t += 64) {
      const int m = S::LEFT_K1 ? t / K : t % T, k = S::LEFT_K1 ? t % K : t / T;
      a[part][m][k] = m0 + m < S::M ? left[la + (m0 + m) * (long long)S::LEFT_M + k * (long long)S::LEFT_K] : 0.0f;
    }
#pragma unroll 4
    for (int t = thread; t < T * K; t += 64) {
      const int n = S::RIGHT_N1 ? t % T : t / K, k = S::RIGHT_N1 ? t / T : t % K;
      ((float*)b[part][k])[n] = n0 + n < S::N ? right[lb + k * (long long)S::RIGHT_K + (n0 + n) * (long long)S::RIGHT_N] : 0.0f;
    }
  }
  __syncthreads();
  if (!live) return;
  const int m = thread / 4, n = thread % 4 * 4;
  float sum[4] = {};
#pragma unroll 16
  for (int k = 0; k < K; k++) {
    const float l = a[part][m][k];
    const float4 r = b[part][k][n / 4];
    sum[0] += l * r.x; sum[1] += l * r.y; sum[2] += l * r.z; sum[3] += l * r.w;
  }
#pragma unroll
  for (int j = 0; j < 4; j++)
    if (m0 + m < S::M && n0 + n + j < S::N) to[lc + (m0 + m) * (long long)S::TO_M + (n0 + n + j) * (long long)S::TO_N] = sum[j];
}

// The same if all rows are aligned to 16 bytes: operands are copied asynchronously, up to three stages ahead. In shared
// memory A is [m, k] or [k, m] and B is [k, n] or [n, k], with the axis last that is contiguous in memory.
template <class S>
__device__ void product_aligned(const float* left, const float* right, float* to, float* scratch) {
  constexpr int TM = 128, TN = S::TN, TK = 32, STAGES = S::STAGES, WM = 4, WN = 2, MT = 2, NT = TN / WN / 8;
  constexpr int PA = S::LEFT_K1 ? TK + 4 : TM + 8, PB = S::RIGHT_N1 ? TN + 8 : TK + 4;
  constexpr int SIZE_A = (S::LEFT_K1 ? TM : TK) * PA, STAGE = SIZE_A + (S::RIGHT_N1 ? TK : TN) * PB;
  extern __shared__ float4 shared4[];
  float* shared = (float*)shared4;
  constexpr int TILES_M = (S::M + TM - 1) / TM, TILES_N = (S::N + TN - 1) / TN;
  int rest = blockIdx.x;
  const int split = rest % S::SPLIT; rest /= S::SPLIT;
  const int n0 = rest % TILES_N * TN; rest /= TILES_N;
  const int m0 = rest % TILES_M * TM;
  long long la, lb, lc;
  S::batch(rest / TILES_M, la, lb, lc);
  left += la; right += lb; to += lc;
  constexpr int ALL = (S::K + TK - 1) / TK, PER = (ALL + S::SPLIT - 1) / S::SPLIT;
  const int first = split * PER, steps = max(0, min(ALL, first + PER) - first);
  const int warp = threadIdx.x / 32, wm = warp % WM * (MT * 16), wn = warp / WM * (NT * 8);
  auto load = [&](int step) {
    float* a = shared + step % STAGES * STAGE;
    float* b = a + SIZE_A;
    const int k0 = (first + step) * TK;
#pragma unroll
    for (int r = 0; r < TM * TK / 4 / 256; r++) {
      const int t = r * 256 + threadIdx.x;
      const int m = S::LEFT_K1 ? t / (TK / 4) : t % (TM / 4) * 4, k = S::LEFT_K1 ? t % (TK / 4) * 4 : t / (TM / 4);
      const bool in = m0 + m < S::M && k0 + k < S::K;
      copy_async(a + (S::LEFT_K1 ? m * PA + k : k * PA + m),
                 left + (in ? (m0 + m) * (long long)S::LEFT_M + (k0 + k) * (long long)S::LEFT_K : 0), in);
    }
#pragma unroll
    for (int r = 0; r < TN * TK / 4 / 256; r++) {
      const int t = r * 256 + threadIdx.x;
      const int n = S::RIGHT_N1 ? t % (TN / 4) * 4 : t / (TK / 4), k = S::RIGHT_N1 ? t / (TN / 4) : t % (TK / 4) * 4;
      const bool in = n0 + n < S::N && k0 + k < S::K;
      copy_async(b + (S::RIGHT_N1 ? k * PB + n : n * PB + k),
                 right + (in ? (k0 + k) * (long long)S::RIGHT_K + (n0 + n) * (long long)S::RIGHT_N : 0), in);
    }
    commit();
  };
  float c[MT][NT][4] = {};
#pragma unroll
  for (int s = 0; s < STAGES - 1; s++) { if (s < steps) load(s); else commit(); }
  for (int step = 0; step < steps; step++) {
    if constexpr (STAGES == 1) {
      if (step) __syncthreads();
      load(step);
      wait<0>();
      __syncthreads();
    } else {
      wait<STAGES - 2>();
      __syncthreads();
      if (step + STAGES - 1 < steps) load(step + STAGES - 1); else commit();
    }
    const float* a = shared + step % STAGES * STAGE;
    const float* b = a + SIZE_A;
    multiply<S::PRECISION, MT, NT, TK>(
        c, [&](int i, int k) { return rounded<S::PRECISION>(S::LEFT_K1 ? a[(wm + i) * PA + k] : a[k * PA + wm + i]); },
        [&](int k, int j) { return rounded<S::PRECISION>(S::RIGHT_N1 ? b[k * PB + wn + j] : b[(wn + j) * PB + k]); });
  }
  float* rows = S::SPLIT == 1 ? to : scratch + (size_t)blockIdx.x * (TM * TN);
#pragma unroll
  for (int m = 0; m < MT; m++)
#pragma unroll
    for (int half = 0; half < 2; half++)
#pragma unroll
      for (int n = 0; n < NT; n++) {
        const int i = wm + m * 16 + threadIdx.x % 32 / 4 + half * 8, j = wn + n * 8 + threadIdx.x % 4 * 2;
        const float2 pair = make_float2(c[m][n][half * 2], c[m][n][half * 2 + 1]);
        if (S::SPLIT > 1) *(float2*)(rows + i * TN + j) = pair;
        else if (m0 + i < S::M && n0 + j < S::N) *(float2*)(rows + (m0 + i) * (long long)S::TO_M + n0 + j) = pair;
      }
}

// Adds the pieces of a split product in order.
template <class S>
__device__ void sum_splits(const float* scratch, float* to) {
  constexpr int TM = 128, TN = S::TN, TILES_M = (S::M + TM - 1) / TM, TILES_N = (S::N + TN - 1) / TN;
  const int t = blockIdx.x % (TM * TN / 256) * 256 + threadIdx.x;
  int rest = blockIdx.x / (TM * TN / 256);
  const float* all = scratch + (size_t)rest * S::SPLIT * (TM * TN) + t;
  const int j = rest % TILES_N * TN + t % TN; rest /= TILES_N;
  const int i = rest % TILES_M * TM + t / TN;
  if (i >= S::M || j >= S::N) return;
  long long la, lb, lc;
  S::batch(rest / TILES_M, la, lb, lc);
  float sum = 0.0f;
#pragma unroll 8
  for (int s = 0; s < S::SPLIT; s++) sum += all[(size_t)s * (TM * TN)];
  to[lc + i * (long long)S::TO_M + j] = sum;
}
