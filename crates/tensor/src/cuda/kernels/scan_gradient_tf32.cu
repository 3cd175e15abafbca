// Gradients of the scan with respect to x, ℓ, g, B and C, from h and λ of `scan_chain_tf32.cu`. E is defined in `scan_tf32.cu`.

// Warps 0–3 have strips of 16 rows j of E and ∂x. The contributions of the states come from the other warps: for ∂x and ∂B from
// warps 4 and 5, 32 rows j each, and for ∂C from warps 6 and 7, 32 rows l each.
template <class S>
__device__ void scan_gradients_tf32(const uint32* __restrict__ order, const float* signal,
                                    const float* decay, const float* gain,
                                    const float* write, const float* read,
                                    const float* cotangent, const float* states,
                                    const float* adjoints, float* signal_gradient, float* decay_gradient,
                                    float* gain_gradient, float* write_gradient, float* read_gradient) {
  using Z = Sizes<S>;
  constexpr int BN = S::N + 4, BP = S::P + 4, BT = T + 4, NT = S::N / 8, PT = S::P / 8, HEAD = 2 * (T + S::N) * BP;
  extern __shared__ float4 shared4[];
  float* b = (float*)shared4;   // B [T, N]
  float* c = b + T * BN;        // C [T, N]
  float* heads = c + T * BN;    // x [T, P], ∂y [T, P], h [N, P], λ [N, P], twice
  __shared__ int tokens[T];
  // For the current and the previous head: s, g; Σ_j E_lj g_j for l by strips of j, Σ_{l>j} E_lj and E_jj for j; from the states
  // e^{s_l} ∂y_l·h C_l, e^{s_T−s_j} x_j·λ B_j and e^{s_T} ⟨h, λ⟩, in two parts.
  __shared__ float s[2][T], gains[2][T], received[2][4][T], given[2][T], own[2][T], recalled[2][T], kept[2][T], through[2][2];
  const Site<S> site;
  const int warp = warp_number(), strip = warp % 4;
  const Lane at;
  const Team<256> all{(int)threadIdx.x};
  const int row0 = strip * 16 + at.row, row1 = row0 + 8;
  load_tokens<S>(tokens, order, site);
  __syncthreads();
  all.fetch_rows<S::N, BN>(b, write, tokens, [&](int t, int n) { return S::write(site.batch, t, site.group, n); });
  all.fetch_rows<S::N, BN>(c, read, tokens, [&](int t, int n) { return S::read(site.batch, t, site.group, n); });
  commit();
  // By warps 4–7.
  const auto fetch = [&](int head) {
    const int q = site.head0 + head;
    const size_t here = (size_t)site.state(q, site.chunk) * Z::STATE;
    float* to = heads + (head & 1) * HEAD;
    const Team<128> team{recomputed(threadIdx.x) - 128};
    team.fetch_rows<S::P, BP>(to, signal, tokens, [&](int t, int p) { return S::signal(site.batch, t, q % S::HEADS, p); });
    team.fetch_rows<S::P, BP>(to + T * BP, cotangent, tokens, [&](int t, int p) { return S::cotangent(site.batch, t, q % S::HEADS, p); });
    team.fetch_state<S, BP>(to + 2 * T * BP, states + here);
    team.fetch_state<S, BP>(to + (2 * T + S::N) * BP, adjoints + here);
    commit();
  };
  // ∂g_j and ∂ℓ_i = e^{s_T} ⟨h, λ⟩ + Σ_{j<i} g_j kept_j + Σ_{l≥i} (recalled_l + Σ_j E_lj g_j − g_l Σ_j E_jl), by one warp.
  const auto finish = [&](int head) {
    const int parity = head & 1, q = site.head0 + head;
    float late[2], early[2];
#pragma unroll
    for (int i = 0; i < 2; i++) {
      const int l = at.lane * 2 + i, token = tokens[l];
      const float g = gains[parity][l], sum = given[parity][l], states = kept[parity][l];
      late[i] = recalled[parity][l] - g * sum;
#pragma unroll
      for (int k = 0; k < 4; k++) late[i] += k <= l / 16 ? received[parity][k][l] : 0.0f;
      early[i] = g * states;
      if (token >= 0) gain_gradient[S::gain_gradient(site.batch, token, q)] = sum + own[parity][l] + states;
    }
    float after = late[0] + late[1], before = early[0] + early[1];
#pragma unroll
    for (int o = 1; o < 32; o <<= 1) {
      const float next = __shfl_down_sync(~0u, after, o), last = __shfl_up_sync(~0u, before, o);
      if (at.lane + o < 32) after += next;
      if (at.lane >= o) before += last;
    }
    before -= early[0] + early[1];
    const int t0 = tokens[at.lane * 2], t1 = tokens[at.lane * 2 + 1];
    const float all = through[parity][0] + through[parity][1] + before + after;
    if (t0 >= 0) decay_gradient[S::decay_gradient(site.batch, t0, q)] = all;
    if (t1 >= 0) decay_gradient[S::decay_gradient(site.batch, t1, q)] = all + early[0] - late[0];
  };
  Pair<S> pair;
  if (warp == 3) {
    pair.load(decay, gain, tokens, site.batch, site.head0);
    pair.store(s[0], gains[0]);
  }
  if (warp >= 4) fetch(0);
  settle<0>();
  all.round_rows<S::N, BN>(b);
  all.round_rows<S::N, BN>(c);
  __syncthreads();

  if (warp < 4) {
    float similar[8][4] = {}, summed[8][4] = {};  // rows j, columns l: C_l·B_j; Σ over heads of e^{s_l−s_j} g_j (∂y_l·x_j)
#pragma unroll
    for (int k = 0; k < NT; k += 2) {
      uint32 left[2][4];
#pragma unroll
      for (int i = 0; i < 2; i++) load_pieces(left[i], b + strip * 16 * BN + at.left<BN>() + (k + i) * 8);
#pragma unroll
      for (int t = 0; t < 8; t++)
        if (t / 2 >= strip) {
          uint32 right[4];
          load_pieces(right, c + t * 8 * BN + at.right<BN>() + k * 8);
          mma_tf32(similar[t], left[0], {right[0], right[1]});
          mma_tf32(similar[t], left[1], {right[2], right[3]});
        }
    }
    for (int head = 0; head < S::UNIT; head++) {
      const int parity = head & 1, q = site.head0 + head;
      const float* x = heads + parity * HEAD;
      const float* dy = x + T * BP;
      if (warp == 3) {
        if (head + 1 < S::UNIT) pair.load(decay, gain, tokens, site.batch, q + 1);
        if (head > 0) finish(head - 1);
      }
      const float s0 = s[parity][row0], s1 = s[parity][row1], g0 = gains[parity][row0], g1 = gains[parity][row1];
      float given0 = 0.0f, given1 = 0.0f, own0 = 0.0f, own1 = 0.0f;  // Σ_{l>j} E_lj, E_jj
      {
        uint32 left[PT][4];  // x
#pragma unroll
        for (int k = 0; k < PT; k++) load_unbiased(left[k], x + strip * 16 * BP + at.left<BP>() + k * 8);
#pragma unroll
        for (int t2 = 0; t2 < 4; t2++)
          if (t2 >= strip) {
            float near[2][2][4] = {};  // ∂y_l·x_j, in two sums
#pragma unroll
            for (int k = 0; k < PT; k += 2)
#pragma unroll
              for (int i = 0; i < 2; i++) {
                uint32 right[4];
                load_unbiased(right, dy + (t2 * 2 + i) * 8 * BP + at.right<BP>() + k * 8);
                mma_tf32(near[i][0], left[k], {right[0], right[1]});
                mma_tf32(near[i][1], left[k + 1], {right[2], right[3]});
              }
            float columns[2][2];
#pragma unroll
            for (int i = 0; i < 2; i++) {
              const int t = t2 * 2 + i, l = t * 8 + at.pair * 2;
              const float2 sl = *(const float2*)(s[parity] + l);
              float window[4] = {power_of_two(sl.x - s0), power_of_two(sl.y - s0), power_of_two(sl.x - s1), power_of_two(sl.y - s1)};
              if (t2 == strip)
#pragma unroll
                for (int part = 0; part < 4; part++)
                  if (at.past(i, part) < 0) window[part] = 0.0f;
              float e[4];
#pragma unroll
              for (int part = 0; part < 4; part++) {
                const float product = window[part] * (near[i][0][part] + near[i][1][part]);
                summed[t][part] += product * (part / 2 ? g1 : g0);
                e[part] = product * similar[t][part];
              }
              if (t2 == strip)
#pragma unroll
                for (int part = 0; part < 4; part++)
                  if (at.past(i, part) == 0) {
                    (part / 2 ? own1 : own0) += e[part];
                    e[part] = 0.0f;
                  }
              given0 += e[0] + e[1];
              given1 += e[2] + e[3];
              columns[i][0] = e[0] * g0 + e[2] * g1;
              columns[i][1] = e[1] * g0 + e[3] * g1;
            }
            // Sums over the rows of the strip: in each round a lane passes half of its columns on, until it has one column.
            const bool high = at.lane & 16, odd = at.lane & 8;
            float one = (high ? columns[1][0] : columns[0][0]) + __shfl_xor_sync(~0u, high ? columns[0][0] : columns[1][0], 16);
            float two = (high ? columns[1][1] : columns[0][1]) + __shfl_xor_sync(~0u, high ? columns[0][1] : columns[1][1], 16);
            one = (odd ? two : one) + __shfl_xor_sync(~0u, odd ? one : two, 8);
            one += __shfl_xor_sync(~0u, one, 4);
            if (!(at.lane & 4)) received[parity][strip][t2 * 16 + high * 8 + at.pair * 2 + odd] = one;
          }
      }
      given0 = sum_of_four(given0);
      given1 = sum_of_four(given1);
      own0 = sum_of_four(own0);
      own1 = sum_of_four(own1);
      if (at.pair == 0) {
        given[parity][row0] = given0;
        given[parity][row1] = given1;
        own[parity][row0] = own0;
        own[parity][row1] = own1;
      }
      // u_j = Σ_{l≥j} e^{s_l−s_j} (C_l·B_j) ∂y_l + e^{s_T−s_j} λ B_j;  ∂x = g u
      float u[PT][4] = {};
#pragma unroll
      for (int t = 0; t < 8; t++)
        if (t / 2 >= strip) {
          const int l = t * 8 + at.pair * 2;
          const float2 sl = *(const float2*)(s[parity] + l);
          float mix[4] = {power_of_two(sl.x - s0), power_of_two(sl.y - s0), power_of_two(sl.x - s1), power_of_two(sl.y - s1)};
          if (t / 2 == strip)
#pragma unroll
            for (int part = 0; part < 4; part++)
              if (at.past(t % 2, part) < 0) mix[part] = 0.0f;
#pragma unroll
          for (int part = 0; part < 4; part++) mix[part] *= similar[t][part];
          const uint32 left[4] = {unbiased(mix[0]), unbiased(mix[2]), unbiased(mix[1]), unbiased(mix[3])};
          const float* right = dy + t * 8 * BP + at.down<BP>();
#pragma unroll
          for (int p = 0; p < PT; p++) mma_tf32(u[p], left, {unbiased(right[p * 8]), unbiased(right[BP + p * 8])});
        }
      arrive_and_wait<2, 192>();
      const float* rest = x + 2 * T * BP;
#pragma unroll
      for (int half = 0; half < 2; half++) {
        const int row = half ? row1 : row0, token = tokens[row];
        const float g = half ? g1 : g0;
#pragma unroll
        for (int p = 0; p < PT; p++) {
          const float2 more = *(const float2*)(rest + row * BP + p * 8 + at.pair * 2);
          u[p][half * 2] = g * (u[p][half * 2] + more.x);
          u[p][half * 2 + 1] = g * (u[p][half * 2 + 1] + more.y);
        }
        by_fours(u, half, at, [&](int p, float4 value) {
          if (token >= 0)
            *(float4*)(signal_gradient + S::signal_piece(site.direction, site.batch, token, q % S::HEADS, p)) = value;
        });
      }
      if (warp == 3 && head + 1 < S::UNIT) pair.store(s[parity ^ 1], gains[parity ^ 1]);
      __syncthreads();
    }
    if (warp == 3) finish(S::UNIT - 1);
    // ∂B += `summed` C
    float* turned = heads + T * BN;
#pragma unroll
    for (int t = 0; t < 8; t++)
      if (t / 2 >= strip)
#pragma unroll
        for (int part = 0; part < 4; part++) {
          summed[t][part] = __uint_as_float(unbiased(summed[t][part]));
          turned[(part / 2 ? row1 : row0) * BT + t * 8 + at.pair * 2 + part % 2] = summed[t][part];
        }
    __syncthreads();
    const int t0 = tokens[row0], t1 = tokens[row1];
#pragma unroll
    for (int n = 0; n < NT; n++) {
      const float2 sum0 = *(const float2*)(heads + row0 * BN + n * 8 + at.pair * 2);
      const float2 sum1 = *(const float2*)(heads + row1 * BN + n * 8 + at.pair * 2);
      float sum[4] = {sum0.x, sum0.y, sum1.x, sum1.y};
#pragma unroll
      for (int t = 0; t < 8; t++)
        if (t / 2 >= strip) {
          const uint32 left[4] = {__float_as_uint(summed[t][0]), __float_as_uint(summed[t][2]), __float_as_uint(summed[t][1]),
                                  __float_as_uint(summed[t][3])};
          const float* right = c + t * 8 * BN + at.down<BN>() + n * 8;
          mma_tf32(sum, left, {__float_as_uint(right[0]), __float_as_uint(right[BN])});
        }
      if (t0 >= 0) *(float2*)(write_gradient + S::write_gradient(site.unit, site.batch, t0, n * 8 + at.pair * 2)) = make_float2(sum[0], sum[1]);
      if (t1 >= 0) *(float2*)(write_gradient + S::write_gradient(site.unit, site.batch, t1, n * 8 + at.pair * 2)) = make_float2(sum[2], sum[3]);
    }
  } else {
    const int rows = warp % 2 * 32;  // and the 31 after
    const bool writes = warp < 6;
    float sums[2][NT][4] = {};  // ∂B of warps 4 and 5, ∂C of warps 6 and 7
    for (int head = 0; head < S::UNIT; head++) {
      const int parity = head & 1;
      float* x = heads + parity * HEAD;
      const float* h = x + 2 * T * BP;
      const float* lambda = h + S::N * BP;
      if (head + 1 < S::UNIT) fetch(head + 1);
      const float end = s[parity][T - 1];
      if (writes) {
        // u_j = e^{s_T−s_j} λ B_j, stored over the states for warps 0–3
        float u[2][PT][4] = {}, rest[2][2];
#pragma unroll
        for (int k = 0; k < NT; k++) {
          const float* right = lambda + k * 8 * BP + at.down<BP>();
          uint32 writes[2][4];
#pragma unroll
          for (int m = 0; m < 2; m++) load_pieces(writes[m], b + (rows + m * 16) * BN + at.left<BN>() + k * 8);
#pragma unroll
          for (int p = 0; p < PT; p++) {
            const uint32 pieces[2] = {__float_as_uint(right[p * 8]), __float_as_uint(right[BP + p * 8])};
#pragma unroll
            for (int m = 0; m < 2; m++) mma_tf32(u[m][p], writes[m], pieces);
          }
        }
#pragma unroll
        for (int m = 0; m < 2; m++)
#pragma unroll
          for (int i = 0; i < 2; i++) {
            const int row = rows + m * 16 + at.row + i * 8;
            rest[m][i] = power_of_two(end - s[parity][row]);
            float sum = 0.0f;
#pragma unroll
            for (int p = 0; p < PT; p++) {
              const float2 value = *(const float2*)(x + row * BP + p * 8 + at.pair * 2);
              u[m][p][i * 2] *= rest[m][i];
              u[m][p][i * 2 + 1] *= rest[m][i];
              sum += u[m][p][i * 2] * value.x + u[m][p][i * 2 + 1] * value.y;
            }
            sum = sum_of_four(sum);
            if (at.pair == 0) kept[parity][row] = sum;
          }
        // ∂B_j += g_j e^{s_T−s_j} xᵀ_j λ
#pragma unroll
        for (int k = 0; k < PT; k += 2) {
          uint32 left[2][2][4];
#pragma unroll
          for (int m = 0; m < 2; m++)
#pragma unroll
            for (int j = 0; j < 2; j++) {
              load_pieces(left[m][j], x + (rows + m * 16) * BP + at.left<BP>() + (k + j) * 8);
#pragma unroll
              for (int part = 0; part < 4; part++) {
                const int i = part % 2;
                left[m][j][part] = unbiased(__uint_as_float(left[m][j][part]) * (rest[m][i] * gains[parity][rows + m * 16 + at.row + i * 8]));
              }
            }
#pragma unroll
          for (int n = 0; n < NT; n++) {
            uint32 right[4];
            load_pieces(right, lambda + n * 8 * BP + at.right_folded<BP>() + k * 8);
#pragma unroll
            for (int m = 0; m < 2; m++) {
              mma_tf32(sums[m][n], left[m][0], {right[0], right[1]});
              mma_tf32(sums[m][n], left[m][1], {right[2], right[3]});
            }
          }
        }
        arrive_and_wait<1, 128>();
#pragma unroll
        for (int m = 0; m < 2; m++)
#pragma unroll
          for (int i = 0; i < 2; i++)
#pragma unroll
            for (int p = 0; p < PT; p++)
              *(float2*)(x + (2 * T + rows + m * 16 + at.row + i * 8) * BP + p * 8 + at.pair * 2) =
                  make_float2(u[m][p][i * 2], u[m][p][i * 2 + 1]);
        arrive<2, 192>();
      } else {
        // ∂C_l += e^{s_l} ∂yᵀ_l h
        uint32 left[2][PT][4];
        float growth[2][2], recall[2][2] = {};
#pragma unroll
        for (int m = 0; m < 2; m++) {
#pragma unroll
          for (int k = 0; k < PT; k++) load_unbiased(left[m][k], x + (T + rows + m * 16) * BP + at.left<BP>() + k * 8);
#pragma unroll
          for (int i = 0; i < 2; i++) growth[m][i] = power_of_two(s[parity][rows + m * 16 + at.row + i * 8]);
        }
#pragma unroll
        for (int n = 0; n < NT; n++) {
          float mine[2][4] = {};
#pragma unroll
          for (int k = 0; k < PT; k += 2) {
            uint32 right[4];
            load_pieces(right, h + n * 8 * BP + at.right_folded<BP>() + k * 8);
#pragma unroll
            for (int m = 0; m < 2; m++) {
              mma_tf32(mine[m], left[m][k], {right[0], right[1]});
              mma_tf32(mine[m], left[m][k + 1], {right[2], right[3]});
            }
          }
#pragma unroll
          for (int m = 0; m < 2; m++)
#pragma unroll
            for (int i = 0; i < 2; i++) {
              const float2 read = *(const float2*)(c + (rows + m * 16 + at.row + i * 8) * BN + n * 8 + at.pair * 2);
              recall[m][i] += mine[m][i * 2] * read.x + mine[m][i * 2 + 1] * read.y;
              sums[m][n][i * 2] += growth[m][i] * mine[m][i * 2];
              sums[m][n][i * 2 + 1] += growth[m][i] * mine[m][i * 2 + 1];
            }
        }
#pragma unroll
        for (int m = 0; m < 2; m++)
#pragma unroll
          for (int i = 0; i < 2; i++) {
            const float sum = growth[m][i] * sum_of_four(recall[m][i]);
            if (at.pair == 0) recalled[parity][rows + m * 16 + at.row + i * 8] = sum;
          }
        float sum = 0.0f;
        Team<64>{recomputed(threadIdx.x) - 192}.share<S::N, S::P>([&](int row, int column) {
          const float4 left = *(const float4*)(h + row * BP + column), right = *(const float4*)(lambda + row * BP + column);
          sum += left.x * right.x + left.y * right.y + left.z * right.z + left.w * right.w;
        });
#pragma unroll
        for (int o = 16; o; o >>= 1) sum += __shfl_xor_sync(~0u, sum, o);
        if (at.lane == 0) through[parity][warp % 2] = power_of_two(end) * sum;
        arrive<1, 128>();
      }
      settle<0>();
      __syncthreads();
    }
    if (writes)
#pragma unroll
      for (int m = 0; m < 2; m++)
#pragma unroll
        for (int n = 0; n < NT; n++)
#pragma unroll
          for (int i = 0; i < 2; i++)
            *(float2*)(heads + (rows + m * 16 + at.row + i * 8) * BN + n * 8 + at.pair * 2) =
                make_float2(sums[m][n][i * 2], sums[m][n][i * 2 + 1]);
    __syncthreads();
    if (writes) return;
    // ∂C_l += Σ_j `summed`_jl B_j
#pragma unroll
    for (int t = 0; t < 8; t++) {
      const uint32* from = (uint32*)heads + T * BN + (t * 8 + 2 * at.pair) * BT + rows + at.row;
      const float* right = b + t * 8 * BN + at.down<BN>();
#pragma unroll
      for (int m = 0; m < 2; m++)
        if (t * 8 <= rows + m * 16 + 15) {
          const uint32 left[4] = {from[m * 16], from[m * 16 + 8], from[BT + m * 16], from[BT + m * 16 + 8]};
#pragma unroll
          for (int n = 0; n < NT; n++) mma_tf32(sums[m][n], left, {__float_as_uint(right[n * 8]), __float_as_uint(right[BN + n * 8])});
        }
    }
#pragma unroll
    for (int m = 0; m < 2; m++)
#pragma unroll
      for (int i = 0; i < 2; i++) {
        const int token = tokens[rows + m * 16 + at.row + i * 8];
        by_fours(sums[m], i, at, [&](int n, float4 value) {
          if (token >= 0) *(float4*)(read_gradient + S::read_gradient(site.unit, site.batch, token, n)) = value;
        });
      }
  }
}
