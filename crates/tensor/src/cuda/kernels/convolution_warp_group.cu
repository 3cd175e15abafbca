// Dense convolutions of stride 1 in tf32 as products of warp groups.

constexpr int BEYOND = -(1 << 30);  // an offset that stays negative after any channel is added

// weight[o,c,u,v] → packed[tile of TN n][part of 32 k][tap][n][k], rows swizzled as warp groups read them; forwards
// k = c, n = o; for the input gradient k = o, n = c, taps reversed. Elements beyond K and N are zero.
template <class S, bool TURNED, int TN>
__device__ void pack_weight_rows(const float* weight, float* packed) {
  constexpr int K = TURNED ? S::O : S::I, N = TURNED ? S::I : S::O, TAPS = S::KH * S::KW, PARTS = (K + 31) / 32;
  const int t = blockIdx.x * 256 + threadIdx.x, k = t % (PARTS * 32), n = t / (PARTS * 32);
  if (n >= (N + TN - 1) / TN * TN) return;
  float* to = packed + (size_t)(n / TN * PARTS + k / 32) * (TAPS * TN * 32) + exchanged(n % TN, k % 32);
#pragma unroll
  for (int u = 0; u < S::KH; u++)
#pragma unroll
    for (int v = 0; v < S::KW; v++) {
      float value = 0.0f;
      if (n < N && k < K)
        value = TURNED ? weight[S::weight(k, n, S::KH - 1 - u, S::KW - 1 - v)] : weight[S::weight(n, k, u, v)];
      to[(u * S::KW + v) * (TN * 32)] = rounded<1>(value);
    }
}

// to[b,i,j,n] = Σ_{u,v,k} from[b, i+u−p, j+v−q, k] packed[u,v][n][k]: each of GROUPS warp groups multiplies 64 pixels and TN
// channels n of a tile; one more warp group copies their operands to shared memory. A block computes several tiles.
//
// The kernel treats the images as one sequence of VH·VW pixels each, with zeros between rows and images. Then a tap is a fixed
// distance in the sequence. The pixels of a tile, and those around it, are copied once for all taps, 32 channels at a time, to
// one of two slabs.
//
// D has the members of `convolve_dense`, the number of GROUPS that multiply, of STAGES of weights, of SLAB rows of pixels, and
// the registers TAKEN and GIVEN.
template <class D>
__device__ void convolve_warp_group(const float* from, const float* packed, float* to) {
  constexpr int TM = 64 * D::GROUPS, TN = D::TN, STAGES = D::STAGES, PIXELS = D::B * D::TH * D::TW;
  constexpr int TAPS = D::KH * D::KW, PARTS = (D::K + 31) / 32, TILES = (PIXELS + TM - 1) / TM * D::TILES_N;
  extern __shared__ __align__(1024) float slabs[];
  float* stages = slabs + 2 * D::SLAB * 32;
  uint64* full = (uint64*)(stages + STAGES * TN * 32);
  uint64* empty = full + STAGES;
  uint64* slab_full = empty + STAGES;
  uint64* slab_empty = slab_full + 2;
  const int thread = threadIdx.x, lane = thread % 32;
  const auto place = [](int p) { return (p / (D::TW * D::TH) * D::VH + p / D::TW % D::TH) * D::VW + p % D::TW; };
  if (thread == 0) {
    for (int stage = 0; stage < STAGES; stage++) barrier_make(full + stage, 1), barrier_make(empty + stage, D::GROUPS * 4);
    for (int slab = 0; slab < 2; slab++) barrier_make(slab_full + slab, 96), barrier_make(slab_empty + slab, D::GROUPS * 4);
    publish();
  }
  __syncthreads();

  if (thread >= 128 * D::GROUPS) {
    give_registers<D::GIVEN>();
    const int warp = thread / 32 % 4;
    if (warp == 3) {  // weights
      int stage = 0, parity = 1;
      for (int tile = blockIdx.x; tile < TILES && lane == 0; tile += gridDim.x) {
        const float* weight = packed + (size_t)(tile % D::TILES_N) * (PARTS * TAPS * TN * 32);
        for (int step = 0; step < PARTS * TAPS; step++) {
          barrier_wait(empty + stage, parity);
          copy_bulk(stages + stage * (TN * 32), weight + step * (TN * 32), TN * 128, full + stage);
          if (++stage == STAGES) stage = 0, parity ^= 1;
        }
      }
    } else {  // pixels: each lane finds the offset of one row, eight lanes copy a row
      int slab = 0, parity = 1;
      for (int tile = blockIdx.x; tile < TILES; tile += gridDim.x) {
        const int m0 = tile / D::TILES_N * TM, first = place(m0);
        const int rows = place(min(m0 + TM, PIXELS) - 1) - first + (D::KH - 1) * D::VW + D::KW;
        for (int part = 0; part < PARTS; part++) {
          barrier_wait(slab_empty + slab, parity);
          const uint32 row = shared_address(slabs) + slab * (D::SLAB * 128);
#pragma unroll 1
          for (int begin = warp * 32; begin < rows; begin += 96) {
            const int at = first + begin + lane;
            const int x = at % D::VW - D::Q, y = at / D::VW % D::VH - D::P, b = at / (D::VW * D::VH);
            const bool in = x >= 0 && x < D::FW && y >= 0 && y < D::FH && b < D::B;
            const auto found = in ? D::from(b, y, x) : BEYOND;
            const uint32 to = row + (begin + lane / 8) * 128 + (lane % 8 ^ lane / 8) * 16;
            const int k = part * 32 + lane % 8 * 4;
#pragma unroll 4
            for (int r = 0; r < 32; r += 4) {  // row begin + r + lane / 8
              auto offset = __shfl_sync(~0u, found, r + lane / 8) + k;
              if (D::K % 32 != 0 && k >= D::K) offset = -1;
              if (begin + r + lane / 8 < rows) copy_async((to ^ r % 8 * 16) + r * 128, from, offset);
            }
          }
          barrier_arrive_copied(slab_full + slab);
          if (++slab == 2) slab = 0, parity ^= 1;
        }
      }
    }
  } else {
    take_registers<D::TAKEN>();
    int stage = 0, parity = 0, slab = 0, slab_parity = 0;
    for (int tile = blockIdx.x; tile < TILES; tile += gridDim.x) {
      const int n0 = tile % D::TILES_N * TN, m0 = tile / D::TILES_N * TM;
      // The row of the slab whose address this lane gives: the pixel of row lane % 16, channels from 4·(lane / 16).
      const int pixel = m0 + thread / 32 * 16 + lane % 16;
      const int own = pixel < PIXELS ? place(pixel) - place(m0) : 0;
      float c[TN / 2];
#pragma unroll
      for (int i = 0; i < TN / 2; i++) c[i] = 0.0f;
      uint32 a[2][2][4];
      uint64* before = empty;
#pragma unroll 1
      for (int part = 0; part < PARTS; part++) {
        barrier_wait(slab_full + slab, slab_parity);
        const uint32 pixels = shared_address(slabs) + slab * (D::SLAB * 128);
#pragma unroll 1
        for (int u = 0; u < D::KH; u++)
#pragma unroll
          for (int v = 0; v < D::KW; v++) {
            const int row = own + u * D::VW + v;
            const uint32 at = pixels + row * 128 + ((lane / 16) ^ (row % 8)) * 16;
            const uint64 right = columns(shared_address(stages) + stage * (TN * 128));
#pragma unroll
            for (int half = 0; half < 2; half++) {  // while one half is multiplied, the pixels of the other are loaded
#pragma unroll
              for (int k = 0; k < 2; k++) {
                load_pieces(a[half][k], at ^ ((half * 2 + k) * 32));
#pragma unroll
                for (int i = 0; i < 4; i++) a[half][k][i] = as_tf32(__uint_as_float(a[half][k][i]));
              }
              if (half == 0) barrier_wait(full + stage, parity);
              group_begin();
#pragma unroll
              for (int k = 0; k < 2; k++) group_multiply(c, a[half][k], right + (half * 2 + k) * 2);
              group_commit();
              group_wait<1>();
              if (half == 0 && lane == 0 && part + u + v > 0) barrier_arrive(before);
            }
            before = empty + stage;
            if (++stage == STAGES) stage = 0, parity ^= 1;
          }
        if (lane == 0) barrier_arrive(slab_empty + slab);
        if (++slab == 2) slab = 0, slab_parity ^= 1;
      }
      group_wait<0>();
      settle(c);
      if (lane == 0) barrier_arrive(before);
      for_each(c, [&](int row, int column, float4 values) {
        const int p = m0 + thread / 128 * 64 + row, n = n0 + column;
        if (p < PIXELS && n < D::N) *(float4*)(to + D::to(p / (D::TH * D::TW), p / D::TW % D::TH, p % D::TW) + n) = values;
      });
    }
  }
}

// weight[o,c,u,v] = Σ_t out[t + (p−u)·VW + q−v, o] · in[t, c] over all pixels t and the zeros between them. A block has a
// kernel row u of three taps, a tile of 128 × 128 of [o, c], half for each of two warp groups, and a chunk of pixels. A third
// warp group loads 32 pixels at a time: two of its warps copy, two transpose the input to [c][t].
template <class S>
__device__ void weight_gradient_warp_group(const float* in, const float* out, float* scratch) {
  constexpr int TM = 128, TN = 128, TK = 32, STAGES = 4, PITCH = TM + 8, ROWS = TK + 2;
  constexpr int STAGE = 2 * TN * TK + (ROWS * PITCH + 255) / 256 * 256;  // [c][t], [t][c] and [t][o]
  constexpr int TAPS = S::KH * 3, PLACES = S::B * S::VH * S::VW, TILES_M = (S::O + TM - 1) / TM;
  constexpr int PER = ((PLACES + S::CHUNKS - 1) / S::CHUNKS + TK - 1) / TK * TK;
  extern __shared__ __align__(1024) float stages[];
  uint64* full = (uint64*)(stages + STAGES * STAGE);
  uint64* empty = full + STAGES;
  uint64* copied = empty + STAGES;
  const int thread = threadIdx.x, lane = thread % 32, warp = __shfl_sync(~0u, thread / 32, 0);
  const int chunk = blockIdx.x % S::CHUNKS, group = blockIdx.x / S::CHUNKS;
  const int u = group % S::KH, m0 = group / S::KH % TILES_M * TM, n0 = group / S::KH / TILES_M * TN;
  const int start = chunk * PER, steps = (min(PLACES, start + PER) - start + TK - 1) / TK;
  if (thread == 0)
    for (int stage = 0; stage < STAGES; stage++)
      barrier_make(full + stage, 64), barrier_make(empty + stage, 8), barrier_make(copied + stage, 64);
  __syncthreads();

  int stage = 0, parity = 0;
  const auto next = [&] { if (++stage == STAGES) stage = 0, parity ^= 1; };
  if (thread >= 256) {
    give_registers<40>();
    const auto locate = [&](int at, int& b, int& i, int& j) { j = at % S::VW, i = at / S::VW % S::VH, b = at / (S::VW * S::VH); };
    if (warp == 8) {  // the input: each lane finds one row, all lanes copy it, 16-byte pieces swizzled for the transposing warps
      for (int step = 0; step < steps; step++, next()) {
        const int at = start + step * TK + lane;
        int b, i, j;
        locate(at, b, i, j);
        const auto found = b < S::B && j < S::W && i < S::H ? S::in(b, i, j, n0) : BEYOND;
        barrier_wait(empty + stage, parity ^ 1);
        const uint32 to = shared_address(stages + stage * STAGE + TN * TK) + lane * 16;
#pragma unroll
        for (int row = 0; row < TK; row++) {
          auto offset = __shfl_sync(~0u, found, row) + lane * 4;
          if (S::I % TN != 0 && n0 + lane * 4 >= S::I) offset = -1;
          copy_async((to ^ row / 4 % 4 * 32) + row * (TN * 4), in, offset);
        }
        barrier_arrive_copied(copied + stage);
      }
    } else if (warp == 9) {  // the cotangent in the same way
      const auto find = [&](int at) {
        int b, i, j;
        locate(at, b, i, j);
        return at >= 0 && b < S::B && j < S::OW && i < S::OH ? S::out(b, i, j, m0) : BEYOND;
      };
      for (int step = 0; step < steps; step++, next()) {
        const int at = start + step * TK + lane + (S::PH - u) * S::VW + S::PW - 2;
        const auto found = find(at), beyond = find(at + TK);
        barrier_wait(empty + stage, parity ^ 1);
        const uint32 to = shared_address(stages + stage * STAGE + 2 * TN * TK) + lane * 16;
#pragma unroll
        for (int row = 0; row < ROWS; row++) {
          auto offset = __shfl_sync(~0u, row < TK ? found : beyond, row % TK) + lane * 4;
          if (S::O % TM != 0 && m0 + lane * 4 >= S::O) offset = -1;
          copy_async(to + row * (PITCH * 4), out, offset);
        }
        barrier_arrive_copied(copied + stage);
      }
    } else {
      for (int step = 0; step < steps; step++, next()) {
        barrier_wait(copied + stage, parity);
#pragma unroll
        for (int half = 0; half < 2; half++) {  // four pixels from t and four channels, then the pixels 16 later
          const int channel = warp % 2 * 64 + half * 32 + lane / 4 * 4, t = lane % 4 * 4;
          const float* from = stages + stage * STAGE + TN * TK + t * TN + (channel ^ t * 2);
          const int to = stage * STAGE + exchanged(channel, t);
#pragma unroll
          for (int q = 0; q < TK; q += 16) {
            float4 r[4];
#pragma unroll
            for (int i = 0; i < 4; i++) r[i] = *(const float4*)(from + (q + i) * TN);
            const auto put = [&](int i, float x, float y, float z, float w) {  // at `exchanged(channel + i, t + q)`
              *(float4*)(stages + (to ^ q ^ i * 4) + i * TK) = make_float4(rounded<1>(x), rounded<1>(y), rounded<1>(z), rounded<1>(w));
            };
            put(0, r[0].x, r[1].x, r[2].x, r[3].x);
            put(1, r[0].y, r[1].y, r[2].y, r[3].y);
            put(2, r[0].z, r[1].z, r[2].z, r[3].z);
            put(3, r[0].w, r[1].w, r[2].w, r[3].w);
          }
        }
        publish();
        barrier_arrive(full + stage);
      }
    }
  } else {
    take_registers<232>();
    float c[3][TN / 2] = {};
    float a[3][4];
    const float* left = stages + 2 * TN * TK + lane % 4 * PITCH + warp * 16 + lane / 4;
    // The left operand of product `number` of a step: pixels k … k + 7, shifted for tap v.
    const auto bring = [&](int number) {
      const float* at = left + stage * STAGE + (number / 3 * 8 + 2 - number % 3) * PITCH;
#pragma unroll
      for (int i = 0; i < 4; i++) a[number % 3][i] = at[i / 2 * 4 * PITCH + i % 2 * 8];
    };
#pragma unroll 1
    for (int step = 0; step < steps; step++, next()) {
      barrier_wait(full + stage, parity);
      const uint64 right = columns(shared_address(stages) + stage * (STAGE * 4));
      bring(0);
      bring(1);
#pragma unroll
      for (int number = 0; number < 12; number++) {  // while one product runs, the operands of the next two are loaded
        uint32 operand[4];
#pragma unroll
        for (int i = 0; i < 4; i++) operand[i] = as_tf32(a[number % 3][i]);
        group_begin();
        group_multiply(c[number % 3], operand, right + number / 3 * 2);
        group_commit();
        group_wait<1>();
        if (number == 0 && step > 0 && lane == 0) barrier_arrive(empty + (stage + STAGES - 1) % STAGES);
        if (number + 2 < 12) bring(number + 2);
      }
    }
    group_wait<0>();
#pragma unroll
    for (int v = 0; v < 3; v++) {
      settle(c[v]);
      const int tile = (group / S::KH * TAPS + u * 3 + v) * S::CHUNKS + chunk;
      float* mine = scratch + (size_t)tile * (TM * TN) + thread / 128 * (64 * TN);
      for_each(c[v], [&](int row, int column, float4 values) { *(float4*)(mine + row * TN + column) = values; });
    }
  }
}
