// Convolution over the plane, channels last: out[b,i,j,o] = Σ w[o,c,u,v] in[b, i·s+u−p, j·s+v−p, c].
//
// S has the extents (B, H, W, I, OH, OW, O, G groups, KH, KW, SH, SW, PH, PW), and functions that return offsets:
// in(b,i,j,c), out(b,i,j,o), weight(o,c,u,v).

// ---- any shape: one thread per result ----

template <class S>
__device__ void convolve_plain(const float* in, const float* weight, float* out) {
  const long long t = (long long)blockIdx.x * 256 + threadIdx.x;
  if (t >= (long long)S::B * S::OH * S::OW * S::O) return;
  const int o = t % S::O, j = t / S::O % S::OW, i = t / S::O / S::OW % S::OH, b = t / S::O / S::OW / S::OH;
  constexpr int IG = S::I / S::G, OG = S::O / S::G;
  float sum = 0.0f;
  for (int u = 0; u < S::KH; u++)
    for (int v = 0; v < S::KW; v++) {
      const int y = i * S::SH + u - S::PH, x = j * S::SW + v - S::PW;
      if (y < 0 || y >= S::H || x < 0 || x >= S::W) continue;
      for (int c = 0; c < IG; c++) sum += weight[S::weight(o, c, u, v)] * in[S::in(b, y, x, o / OG * IG + c)];
    }
  out[S::out(b, i, j, o)] = sum;
}

template <class S>
__device__ void input_gradient_plain(const float* out, const float* weight, float* in) {
  const long long t = (long long)blockIdx.x * 256 + threadIdx.x;
  if (t >= (long long)S::B * S::H * S::W * S::I) return;
  const int c = t % S::I, x = t / S::I % S::W, y = t / S::I / S::W % S::H, b = t / S::I / S::W / S::H;
  constexpr int IG = S::I / S::G, OG = S::O / S::G;
  float sum = 0.0f;
  for (int u = 0; u < S::KH; u++)
    for (int v = 0; v < S::KW; v++) {
      const int i = y + S::PH - u, j = x + S::PW - v;
      if (i < 0 || j < 0 || i % S::SH || j % S::SW || i / S::SH >= S::OH || j / S::SW >= S::OW) continue;
      for (int o = c / IG * OG; o < (c / IG + 1) * OG; o++)
        sum += weight[S::weight(o, c % IG, u, v)] * out[S::out(b, i / S::SH, j / S::SW, o)];
    }
  in[S::in(b, y, x, c)] = sum;
}

// One block per weight.
template <class S>
__device__ void weight_gradient_plain(const float* in, const float* out, float* weight) {
  constexpr int IG = S::I / S::G, OG = S::O / S::G;
  int t = blockIdx.x;
  const int v = t % S::KW, u = t / S::KW % S::KH, c = t / S::KW / S::KH % IG, o = t / S::KW / S::KH / IG;
  float sum = 0.0f;
  for (int p = threadIdx.x; p < S::B * S::OH * S::OW; p += 256) {
    const int j = p % S::OW, i = p / S::OW % S::OH, b = p / S::OW / S::OH;
    const int y = i * S::SH + u - S::PH, x = j * S::SW + v - S::PW;
    if (y < 0 || y >= S::H || x < 0 || x >= S::W) continue;
    sum += out[S::out(b, i, j, o)] * in[S::in(b, y, x, o / OG * IG + c)];
  }
  __shared__ float pile[256];
  pile[threadIdx.x] = sum;
  __syncthreads();
  for (int s = 128; s; s >>= 1) {
    if (threadIdx.x < s) pile[threadIdx.x] += pile[threadIdx.x + s];
    __syncthreads();
  }
  if (threadIdx.x == 0) weight[S::weight(o, c, u, v)] = pile[0];
}

// ---- one group per channel: neighbouring threads take neighbouring channels ----

template <class S>
__device__ void convolve_depthwise(const float* in, const float* weight, float* out) {
  const long long t = (long long)blockIdx.x * 256 + threadIdx.x;
  if (t >= (long long)S::B * S::OH * S::OW * S::O) return;
  const int o = t % S::O, j = t / S::O % S::OW, i = t / S::O / S::OW % S::OH, b = t / S::O / S::OW / S::OH;
  float sum = 0.0f;
#pragma unroll
  for (int u = 0; u < S::KH; u++)
#pragma unroll
    for (int v = 0; v < S::KW; v++) {
      const int y = i + u - S::PH, x = j + v - S::PW;
      if (y >= 0 && y < S::H && x >= 0 && x < S::W) sum += weight[S::weight(o, 0, u, v)] * in[S::in(b, y, x, o)];
    }
  out[S::out(b, i, j, o)] = sum;
}

template <class S>
__device__ void input_gradient_depthwise(const float* out, const float* weight, float* in) {
  const long long t = (long long)blockIdx.x * 256 + threadIdx.x;
  if (t >= (long long)S::B * S::H * S::W * S::I) return;
  const int c = t % S::I, x = t / S::I % S::W, y = t / S::I / S::W % S::H, b = t / S::I / S::W / S::H;
  float sum = 0.0f;
#pragma unroll
  for (int u = 0; u < S::KH; u++)
#pragma unroll
    for (int v = 0; v < S::KW; v++) {
      const int i = y + S::PH - u, j = x + S::PW - v;
      if (i >= 0 && i < S::OH && j >= 0 && j < S::OW) sum += weight[S::weight(c, 0, u, v)] * out[S::out(b, i, j, c)];
    }
  in[S::in(b, y, x, c)] = sum;
}

// A thread computes four channels of four neighbouring columns, which share their loads; TURNED is the input gradient.
template <class S, bool TURNED>
__device__ void depthwise_4(const float* from, const float* weight, float* to) {
  constexpr int TH = TURNED ? S::H : S::OH, TW = TURNED ? S::W : S::OW, FH = TURNED ? S::OH : S::H, FW = TURNED ? S::OW : S::W;
  constexpr int P = TURNED ? S::KH - 1 - S::PH : S::PH, Q = TURNED ? S::KW - 1 - S::PW : S::PW;
  constexpr int QUADS = S::O / 4, BLOCKS = (TW + 3) / 4;
  const long long t = (long long)blockIdx.x * 256 + threadIdx.x;
  if (t >= (long long)S::B * TH * BLOCKS * QUADS) return;
  const int c = t % QUADS * 4, j0 = t / QUADS % BLOCKS * 4, i = t / QUADS / BLOCKS % TH, b = t / QUADS / BLOCKS / TH;
  float4 sum[4] = {};
#pragma unroll
  for (int u = 0; u < S::KH; u++) {
    const int y = i + u - P;
    if (y < 0 || y >= FH) continue;
    float4 row[S::KW + 3];
#pragma unroll
    for (int k = 0; k < S::KW + 3; k++) {
      const int x = j0 + k - Q;
      const bool in = x >= 0 && x < FW;
      row[k] = in ? *(const float4*)(from + (TURNED ? S::out(b, y, x, c) : S::in(b, y, x, c))) : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    }
#pragma unroll
    for (int v = 0; v < S::KW; v++) {
      const int wu = TURNED ? S::KH - 1 - u : u, wv = TURNED ? S::KW - 1 - v : v;
      const float4 w = make_float4(weight[S::weight(c, 0, wu, wv)], weight[S::weight(c + 1, 0, wu, wv)],
                                   weight[S::weight(c + 2, 0, wu, wv)], weight[S::weight(c + 3, 0, wu, wv)]);
#pragma unroll
      for (int k = 0; k < 4; k++) {
        sum[k].x += w.x * row[k + v].x;
        sum[k].y += w.y * row[k + v].y;
        sum[k].z += w.z * row[k + v].z;
        sum[k].w += w.w * row[k + v].w;
      }
    }
  }
#pragma unroll
  for (int k = 0; k < 4; k++)
    if (j0 + k < TW) *(float4*)(to + (TURNED ? S::in(b, i, j0 + k, c) : S::out(b, i, j0 + k, c))) = sum[k];
}

// One column of many taps: a thread computes eight neighbouring rows of a channel, which share their loads; a block has 32
// channels × 8 slots. TURNED is the input gradient.
template <class S, bool TURNED>
__device__ void depthwise_column(const float* from, const float* weight, float* to) {
  constexpr int TH = TURNED ? S::H : S::OH, FH = TURNED ? S::OH : S::H, P = TURNED ? S::KH - 1 - S::PH : S::PH;
  constexpr int R = 8, STRIPS = (TH + R - 1) / R, GROUPS = (S::O + 31) / 32;
  __shared__ float taps[S::KH][32];
  const int lane = threadIdx.x % 32, slot = threadIdx.x / 32, group = blockIdx.x % GROUPS, c = group * 32 + lane;
  for (int u = slot; u < S::KH; u += 8) taps[u][lane] = c < S::O ? weight[S::weight(c, 0, TURNED ? S::KH - 1 - u : u, 0)] : 0.0f;
  __syncthreads();
  const long long strip = (long long)(blockIdx.x / GROUPS) * 8 + slot;
  if (strip >= (long long)S::B * S::W * STRIPS || c >= S::O) return;
  const int i0 = strip % STRIPS * R, j = strip / STRIPS % S::W, b = strip / STRIPS / S::W;
  float sum[R] = {};
#pragma unroll
  for (int k = 0; k < S::KH + R - 1; k++) {
    const int y = i0 + k - P;
    const float value = y >= 0 && y < FH ? from[TURNED ? S::out(b, y, j, c) : S::in(b, y, j, c)] : 0.0f;
#pragma unroll
    for (int r = 0; r < R; r++)
      if (k - r >= 0 && k - r < S::KH) sum[r] += taps[k - r][lane] * value;
  }
#pragma unroll
  for (int r = 0; r < R; r++)
    if (i0 + r < TH) to[TURNED ? S::in(b, i0 + r, j, c) : S::out(b, i0 + r, j, c)] = sum[r];
}

// Blocks of 32 channels × 8 slots; each block sums a chunk of the outputs, and the last block adds the chunks in order.
template <class S>
__device__ void weight_gradient_depthwise(const float* in, const float* out, float* weight,
                                          float* scratch, uint32* counters) {
  constexpr int TAPS = S::KH * S::KW, PIXELS = S::B * S::OH * S::OW;
  __shared__ float pile[8][TAPS][32];
  const int chunk = blockIdx.x % S::CHUNKS, group = blockIdx.x / S::CHUNKS;
  const int lane = threadIdx.x % 32, slot = threadIdx.x / 32, c = group * 32 + lane;
  float sum[TAPS] = {};
  if (c < S::O)
    for (int p = chunk * 8 + slot; p < PIXELS; p += S::CHUNKS * 8) {
      const int j = p % S::OW, i = p / S::OW % S::OH, b = p / S::OW / S::OH;
      const float d = out[S::out(b, i, j, c)];
#pragma unroll
      for (int u = 0; u < S::KH; u++)
#pragma unroll
        for (int v = 0; v < S::KW; v++) {
          const int y = i + u - S::PH, x = j + v - S::PW;
          if (y >= 0 && y < S::H && x >= 0 && x < S::W) sum[u * S::KW + v] += d * in[S::in(b, y, x, c)];
        }
    }
#pragma unroll
  for (int tap = 0; tap < TAPS; tap++) pile[slot][tap][lane] = sum[tap];
  __syncthreads();
  for (int t = threadIdx.x; t < TAPS * 32; t += 256) {
    float total = 0.0f;
    for (int s = 0; s < 8; s++) total += pile[s][t / 32][t % 32];
    scratch[(size_t)blockIdx.x * (TAPS * 32) + t] = total;
  }
  if (!is_last(counters + group, S::CHUNKS)) return;
  for (int t = threadIdx.x; t < TAPS * 32; t += 256) {
    float total = 0.0f;
#pragma unroll 8
    for (int k = 0; k < S::CHUNKS; k++) total += scratch[((size_t)group * S::CHUNKS + k) * (TAPS * 32) + t];
    const int channel = group * 32 + t % 32;
    if (channel < S::O) weight[S::weight(channel, 0, t / 32 / S::KW, t / 32 % S::KW)] = total;
  }
}

// ---- all channels to all channels: products of shifted images on tensor cores ----

// weight[o,c,u,v] → packed[tap][k][n]; forwards k = c, n = o; for the input gradient k = o, n = c, taps reversed.
template <class S, bool TURNED>
__device__ void pack_weight(const float* weight, float* packed) {
  const int t = blockIdx.x * 256 + threadIdx.x;
  constexpr int K = TURNED ? S::O : S::I, N = TURNED ? S::I : S::O;
  if (t >= S::KH * S::KW * K * N) return;
  const int n = t % N, k = t / N % K, tap = t / N / K;
  const int u = tap / S::KW, v = tap % S::KW;
  packed[t] = rounded<S::PRECISION>(TURNED ? weight[S::weight(k, n, S::KH - 1 - u, S::KW - 1 - v)] : weight[S::weight(n, k, u, v)]);
}

// to[b,i,j,n] = Σ_{u,v,k} from[b, i+u−p, j+v−q, k] packed[u,v][k][n], stride 1. D has the extents of the direction:
// FH, FW, K of `from`; TH, TW, N of `to`; P, Q padding; from(b,y,x), to(b,i,j) offsets of contiguous channels.
template <class D>
__device__ void convolve_dense(const float* from, const float* packed, float* to) {
  constexpr int TM = 128, TN = D::TN, TK = 32, STAGES = D::STAGES;
  constexpr int WM = 4, WN = 2, MT = TM / WM / 16, NT = TN / WN / 8;
  constexpr int PIXELS = D::B * D::TH * D::TW, TAPS = D::KH * D::KW, PARTS = (D::K + TK - 1) / TK;
  extern __shared__ float4 shared4[];
  float* shared = (float*)shared4;
  constexpr int PA = TK + 4, PB = TN + 8, STAGE = TM * PA + TK * PB;
  const int m0 = blockIdx.x / D::TILES_N * TM, n0 = blockIdx.x % D::TILES_N * TN;
  const int warp = threadIdx.x / 32, wm = warp % WM * (MT * 16), wn = warp / WM * (NT * 8);
  // Thread t copies the channels 4·(t%8) … of the pixels t/8, t/8+32, t/8+64, t/8+96.
  const int quarter = threadIdx.x % 8 * 4;
  int pb[4], py[4], px[4];
#pragma unroll
  for (int r = 0; r < 4; r++) {
    const int p = m0 + threadIdx.x / 8 + 32 * r;
    pb[r] = p < PIXELS ? p / (D::TH * D::TW) : -1;
    py[r] = p / D::TW % D::TH;
    px[r] = p % D::TW;
  }
  auto load = [&](int step) {
    const int tap = step / PARTS, k0 = step % PARTS * TK;
    float* a = shared + step % STAGES * STAGE;
    float* b = a + TM * PA;
    const int du = tap / D::KW - D::P, dv = tap % D::KW - D::Q;
#pragma unroll
    for (int r = 0; r < 4; r++) {
      const int y = py[r] + du, x = px[r] + dv;
      const bool in = pb[r] >= 0 && y >= 0 && y < D::FH && x >= 0 && x < D::FW && k0 + quarter < D::K;
      const long long at = in ? D::from(pb[r], y, x) + k0 + quarter : 0;
      copy_async(a + (threadIdx.x / 8 + 32 * r) * PA + quarter, from + at, in);
    }
#pragma unroll
    for (int r = 0; r < TK * TN / 4 / 256; r++) {
      const int t = r * 256 + threadIdx.x, k = t / (TN / 4), n = t % (TN / 4) * 4;
      const bool in = k0 + k < D::K && n0 + n < D::N;
      copy_async(b + k * PB + n, packed + (in ? ((size_t)tap * D::K + k0 + k) * D::N + n0 + n : 0), in);
    }
    commit();
  };
  constexpr int STEPS = TAPS * PARTS;
  float c[MT][NT][4] = {};
#pragma unroll
  for (int s = 0; s < STAGES - 1; s++) { if (s < STEPS) load(s); else commit(); }
  for (int step = 0; step < STEPS; step++) {
    wait<STAGES - 2>();
    __syncthreads();
    if (step + STAGES - 1 < STEPS) load(step + STAGES - 1); else commit();
    const float* a = shared + step % STAGES * STAGE;
    const float* b = a + TM * PA;
    multiply<D::PRECISION, MT, NT, TK>(
        c, [&](int i, int k) { return a[(wm + i) * PA + k]; }, [&](int k, int j) { return b[k * PB + wn + j]; });
  }
#pragma unroll
  for (int m = 0; m < MT; m++)
#pragma unroll
    for (int half = 0; half < 2; half++) {
      const int p = m0 + wm + m * 16 + threadIdx.x % 32 / 4 + half * 8;
      if (p >= PIXELS) continue;
      float* row = to + D::to(p / (D::TH * D::TW), p / D::TW % D::TH, p % D::TW);
#pragma unroll
      for (int n = 0; n < NT; n++) {
        const int column = n0 + wn + n * 8 + threadIdx.x % 4 * 2;
        if (column < D::N) *(float2*)(row + column) = make_float2(c[m][n][half * 2], c[m][n][half * 2 + 1]);
      }
    }
}

// weight[o,c,u,v] = Σ over outputs of out[o] · in[shifted, c]; a block has a tap, a tile of [o, c] and a chunk.
template <class S>
__device__ void weight_gradient_dense(const float* in, const float* out, float* scratch) {
  constexpr int TM = 128, TN = 128, TK = 32, STAGES = S::STAGES;
  constexpr int WM = 4, WN = 2, MT = 2, NT = 8, PITCH = TM + 8, STAGE = 2 * TK * PITCH;
  constexpr int PIXELS = S::B * S::OH * S::OW, TAPS = S::KH * S::KW;
  constexpr int TILES_M = (S::O + TM - 1) / TM, TILES_N = (S::I + TN - 1) / TN;
  extern __shared__ float4 shared4[];
  float* shared = (float*)shared4;
  const int chunk = blockIdx.x % S::CHUNKS, group = blockIdx.x / S::CHUNKS;
  const int tap = group % TAPS, m0 = group / TAPS % TILES_M * TM, n0 = group / TAPS / TILES_M * TN;
  const int du = tap / S::KW - S::PH, dv = tap % S::KW - S::PW;
  constexpr int PER = ((PIXELS + S::CHUNKS - 1) / S::CHUNKS + TK - 1) / TK * TK;
  const int from = chunk * PER, until = min(PIXELS, from + PER);
  const int warp = threadIdx.x / 32, wm = warp % WM * (MT * 16), wn = warp / WM * (NT * 8);
  const int steps = until > from ? (until - from + TK - 1) / TK : 0;
  auto load = [&](int step) {
    float* a = shared + step % STAGES * STAGE;
    float* b = a + TK * PITCH;
    const int q = threadIdx.x % 32 * 4;
#pragma unroll
    for (int r = 0; r < 4; r++) {
      const int k = threadIdx.x / 32 + 8 * r, p = from + step * TK + k;
      const int j = p % S::OW, i = p / S::OW % S::OH, bb = p / (S::OW * S::OH);
      const int y = i + du, x = j + dv;
      const bool live = p < until;
      const bool ina = live && m0 + q < S::O;
      const bool inb = live && n0 + q < S::I && y >= 0 && y < S::H && x >= 0 && x < S::W;
      copy_async(a + k * PITCH + q, out + (ina ? S::out(bb, i, j, m0 + q) : 0), ina);
      copy_async(b + k * PITCH + q, in + (inb ? S::in(bb, y, x, n0 + q) : 0), inb);
    }
    commit();
  };
  float c[MT][NT][4] = {};
#pragma unroll
  for (int s = 0; s < STAGES - 1; s++) { if (s < steps) load(s); else commit(); }
  for (int step = 0; step < steps; step++) {
    wait<STAGES - 2>();
    __syncthreads();
    if (step + STAGES - 1 < steps) load(step + STAGES - 1); else commit();
    const float* a = shared + step % STAGES * STAGE;
    const float* b = a + TK * PITCH;
    multiply<S::PRECISION, MT, NT, TK>(
        c, [&](int i, int k) { return a[k * PITCH + wm + i]; }, [&](int k, int j) { return b[k * PITCH + wn + j]; });
  }
  float* mine = scratch + (size_t)blockIdx.x * (TM * TN);
  for_each(c, [&](int i, int j, float value) { mine[(wm + i) * TN + wn + j] = value; });
}

// Adds the chunks of every tap's tile in order.
template <class S>
__device__ void sum_weight_chunks(const float* scratch, float* weight) {
  constexpr int TM = 128, TN = 128, TAPS = S::KH * S::KW, TILES_M = (S::O + TM - 1) / TM;
  const int t = blockIdx.x % (TM * TN / 256) * 256 + threadIdx.x, group = blockIdx.x / (TM * TN / 256);
  const int tap = group % TAPS, m0 = group / TAPS % TILES_M * TM, n0 = group / TAPS / TILES_M * TN;
  const float* all = scratch + (size_t)group * S::CHUNKS * (TM * TN) + t;
  float sum = 0.0f;
#pragma unroll 8
  for (int k = 0; k < S::CHUNKS; k++) sum += all[(size_t)k * (TM * TN)];
  const int o = m0 + t / TN, i = n0 + t % TN;
  if (o < S::O && i < S::I) weight[S::weight(o, i, tap / S::KW, tap % S::KW)] = sum;
}
