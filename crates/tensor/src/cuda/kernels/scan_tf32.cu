// The scan of `scan.cu` in tf32, for 32 channels and 32, 48 or 64 states.
//
// A warp has 16 rows of every product, so that the result of one product is the operand of the next in registers. Three facts:
//   ∂B and ∂C sum over heads while C and B do not depend on the head: e^{s_l−s_j} g_j (∂y_l·x_j) is summed over heads first.
//   E_lj = e^{s_l−s_j} (C_l·B_j) (∂y_l·x_j) is used for both ∂g_j = Σ_l E_lj + … and ∂ℓ_i = Σ_{l≥i>j} E_lj g_j + ….
//   A state is small compared with its operands: `scan_chain` runs through the chunks in order and writes h before each.
//
// Shared memory: the distance of rows is 4 mod 32 floats. Then eight rows of four floats (`load_pieces`) are in different banks,
// and so are eight columns of the rows 0, 2, 4, 6: if an operand is stored by k, a lane uses k = 2·pair and 2·pair + 1.
// States [N, P] are stored with these rows at 0…3 and 4…7 (`folded`).

constexpr int T = 64;

// Four pieces of eight rows of four floats; lane i points to row i%8 of piece i/8, and gets word i%4 of row i/4 of each.
__device__ __forceinline__ void load_pieces(uint32 (&to)[4], const float* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"((uint32)__cvta_generic_to_shared(row)));
}

// Compensates for the tensor cores, which truncate the last 13 bits: adds 0.35 to 0.7 of a step of tf32, half a step on average.
// A number that tf32 holds exactly does not change after truncation, and NaN stays NaN (adding half a step to the bits could
// carry into the sign).
__device__ __forceinline__ uint32 unbiased(float a) { return __float_as_uint(a * 1.00034f); }

__device__ __forceinline__ float power_of_two(float a) {
  float b;
  asm volatile("ex2.approx.ftz.f32 %0, %1;" : "=f"(b) : "f"(a));
  return b;
}

__device__ __forceinline__ int folded(int row) { return (row & ~7) | (row & 3) << 1 | (row >> 2 & 1); }

__device__ __forceinline__ void load_unbiased(uint32 (&to)[4], const float* row) {
  load_pieces(to, row);
#pragma unroll
  for (int i = 0; i < 4; i++) to[i] = unbiased(__uint_as_float(to[i]));
}

__device__ __forceinline__ float sum_of_four(float a) {
  a += __shfl_xor_sync(~0u, a, 1);
  return a + __shfl_xor_sync(~0u, a, 2);
}

// Waits until all copies of this thread are done except the last N groups. The thread itself may read them before the next
// barrier of the block.
template <int N> __device__ __forceinline__ void settle() { asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory"); }

// Barrier NUMBER of THREADS threads: some arrive and wait for all, the others only arrive.
template <int NUMBER, int THREADS> __device__ __forceinline__ void arrive_and_wait() {
  asm volatile("barrier.sync %0, %1;" ::"n"(NUMBER), "n"(THREADS) : "memory");
}
template <int NUMBER, int THREADS> __device__ __forceinline__ void arrive() {
  asm volatile("barrier.arrive %0, %1;" ::"n"(NUMBER), "n"(THREADS) : "memory");
}

// The same number, hidden from the compiler: values derived from it are recomputed and do not occupy registers.
__device__ __forceinline__ int recomputed(int number) {
  asm volatile("" : "+r"(number));
  return number;
}

// The number of this warp, known to be the same for all its lanes.
__device__ __forceinline__ int warp_number() { return __shfl_sync(~0u, threadIdx.x / 32, 0); }

// The position of a lane. Its rows of a strip are `row` and row + 8, in an order that spreads float2 over the banks.
struct Lane {
  int lane, pair, column, row;
  __device__ Lane() {
    lane = threadIdx.x % 32;
    pair = lane % 4;
    column = lane / 4;
    row = folded(column);
  }
  // Column minus row, up to its sign, of a part of tile i of 16 × 16 on the diagonal.
  __device__ int past(int i, int part) const { return i == part / 2 ? pair * 2 + part % 2 - row : i - part / 2; }
  // Offsets for load_pieces: 16 rows × 8; 8 rows × 16; the same of a folded matrix. Then of k = 2·pair, column `column`.
  template <int PITCH> __device__ int left() const { return (lane / 8 % 2 * 8 + folded(lane % 8)) * PITCH + lane / 16 * 4; }
  template <int PITCH> __device__ int right() const { return lane % 8 * PITCH + lane / 8 * 4; }
  template <int PITCH> __device__ int right_folded() const { return folded(lane % 8) * PITCH + lane / 8 * 4; }
  template <int PITCH> __device__ int down() const { return 2 * pair * PITCH + column; }
};

// COUNT threads of a block, and the number of this thread among them.
template <int COUNT> struct Team {
  int thread;
  // Calls `f(row, column)` for every fourth column of ROWS × WIDTH.
  template <int ROWS, int WIDTH, class F> __device__ __forceinline__ void share(F f) const {
    constexpr int QUARTERS = WIDTH / 4, WORK = ROWS * QUARTERS;
#pragma unroll
    for (int r = 0; r < (WORK + COUNT - 1) / COUNT; r++) {
      const int i = r * COUNT + thread;
      if (WORK % COUNT && i >= WORK) return;
      if (COUNT % QUARTERS == 0) f(thread / QUARTERS + r * (COUNT / QUARTERS), thread % QUARTERS * 4);
      else f(i / QUARTERS, i % QUARTERS * 4);
    }
  }
  // Copies the rows of the tokens of a chunk to shared memory asynchronously; zero past the end.
  template <int WIDTH, int PITCH, class At>
  __device__ __forceinline__ void fetch_rows(float* to, const float* from, const int* tokens, At at) const {
    share<T, WIDTH>([&](int row, int column) {
      const int token = tokens[row];
      copy_async(to + row * PITCH + column, from + at(max(token, 0), column), token >= 0);
    });
  }
  // Copies a state, its rows folded.
  template <class S, int PITCH> __device__ __forceinline__ void fetch_state(float* to, const float* from) const {
    share<S::N, S::P>([&](int row, int column) {
      copy_async(to + folded(row) * PITCH + column, from + row * S::P + column, true);
    });
  }
  // Rounds the rows that this thread fetched, after they have arrived.
  template <int WIDTH, int PITCH> __device__ __forceinline__ void round_rows(float* rows) const {
    share<T, WIDTH>([&](int row, int column) {
      float4* at = (float4*)(rows + row * PITCH + column);
      const float4 value = *at;
      *at = make_float4(rounded<1>(value.x), rounded<1>(value.y), rounded<1>(value.z), rounded<1>(value.w));
    });
  }
};

// Calls `put(column, float4)` for the row of a lane, two tiles at a time: neighbouring lanes exchange halves, so that each has
// four neighbouring columns.
template <int TILES, class Put>
__device__ __forceinline__ void by_fours(const float (&c)[TILES][4], int half, const Lane& at, Put put) {
  const bool odd = at.pair & 1;
#pragma unroll
  for (int t = 0; t < TILES; t += 2) {
    const float a = c[t][half * 2], b = c[t][half * 2 + 1], d = c[t + 1][half * 2], e = c[t + 1][half * 2 + 1];
    const float f = __shfl_xor_sync(~0u, odd ? a : d, 1), g = __shfl_xor_sync(~0u, odd ? b : e, 1);
    put((t + odd) * 8 + at.pair / 2 * 4, make_float4(odd ? f : a, odd ? g : b, odd ? d : f, odd ? e : g));
  }
}

// ℓ and g of the tokens 2·lane and 2·lane + 1.
template <class S> struct Pair {
  float decay[2], gain[2];
  __device__ void load(const float* decays, const float* gains, const int* tokens, int batch, int q) {
#pragma unroll
    for (int i = 0; i < 2; i++) {
      const int token = tokens[threadIdx.x % 32 * 2 + i];
      decay[i] = token >= 0 ? decays[S::decay(batch, token, q)] : 0.0f;
      gain[i] = token >= 0 ? gains[S::gain(batch, token, q)] : 0.0f;
    }
  }
  // Running sums of ℓ in units of log 2, by a whole warp.
  __device__ void sums(float (&s)[2]) const {
    const int lane = threadIdx.x % 32;
    float sum = decay[0] + decay[1];
#pragma unroll
    for (int o = 1; o < 32; o <<= 1) {
      const float other = __shfl_up_sync(~0u, sum, o);
      if (lane >= o) sum += other;
    }
    const float before = __shfl_up_sync(~0u, sum, 1);
    s[0] = ((lane ? before : 0.0f) + decay[0]) * 1.44269504f;
    s[1] = sum * 1.44269504f;
  }
  __device__ void store(float* s, float* g) const {
    float sum[2];
    sums(sum);
    ((float2*)s)[threadIdx.x % 32] = make_float2(sum[0], sum[1]);
    ((float2*)g)[threadIdx.x % 32] = make_float2(gain[0], gain[1]);
  }
};

