// Products of small matrices by the warps of a block, operands in shared memory, sums in registers.
//
// PRECISION 0 multiplies in f32; 1 uses operands as tf32, and 2 rounds them to bf16, both on tensor cores. Sums are always
// f32. Tensor cores truncate an f32 to tf32, so code that stores an operand rounds it first where that is cheap.

__device__ __forceinline__ uint32 as_tf32(float a) {
  uint32 bits;
#if __CUDA_ARCH__ >= 900
  asm("cvt.rn.tf32.f32 %0, %1;" : "=r"(bits) : "f"(a));  // one instruction instead of three
#else
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(a));
#endif
  return bits;
}

// The value to store in shared memory, so that a later product reads it rounded.
template <int PRECISION>
__device__ __forceinline__ float rounded(float a) {
  return PRECISION == 1 ? __uint_as_float(as_tf32(a)) : a;
}

__device__ __forceinline__ uint32 as_bf16x2(float low, float high) {
  uint32 bits;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(bits) : "f"(high), "f"(low));
  return bits;
}

__device__ __forceinline__ void mma_tf32(float (&c)[4], const uint32 (&a)[4], const uint32 (&b)[2]) {
  asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

__device__ __forceinline__ void mma_bf16(float (&c)[4], const uint32 (&a)[4], const uint32 (&b)[2]) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

// One warp's piece of C += A·B: MT×16 rows, NT×8 columns. `a(i, k)` and `b(k, j)` read shared memory; rows and columns
// count from the corner of the piece. The elements of tile (m, n) are in c[m][n] as the tensor cores leave them:
// row = lane/4 + 8·(part/2), column = 2·(lane%4) + part%2.
template <int PRECISION, int MT, int NT, int K, class A, class B>
__device__ __forceinline__ void multiply(float (&c)[MT][NT][4], A a, B b) {
  const int lane = threadIdx.x % 32, row = lane / 4, pair = lane % 4;
  if constexpr (PRECISION == 0) {
#pragma unroll 4
    for (int k = 0; k < K; k++) {
      float left[MT][2], right[NT][2];
#pragma unroll
      for (int m = 0; m < MT; m++) {
        left[m][0] = a(m * 16 + row, k);
        left[m][1] = a(m * 16 + row + 8, k);
      }
#pragma unroll
      for (int n = 0; n < NT; n++) {
        right[n][0] = b(k, n * 8 + pair * 2);
        right[n][1] = b(k, n * 8 + pair * 2 + 1);
      }
#pragma unroll
      for (int m = 0; m < MT; m++)
#pragma unroll
        for (int n = 0; n < NT; n++)
#pragma unroll
          for (int part = 0; part < 4; part++) c[m][n][part] += left[m][part / 2] * right[n][part % 2];
    }
  } else if constexpr (PRECISION == 1) {
#pragma unroll
    for (int k = 0; k < K; k += 8) {
      uint32 left[MT][4], right[NT][2];
#pragma unroll
      for (int m = 0; m < MT; m++) {
        left[m][0] = __float_as_uint(a(m * 16 + row, k + pair));
        left[m][1] = __float_as_uint(a(m * 16 + row + 8, k + pair));
        left[m][2] = __float_as_uint(a(m * 16 + row, k + pair + 4));
        left[m][3] = __float_as_uint(a(m * 16 + row + 8, k + pair + 4));
      }
#pragma unroll
      for (int n = 0; n < NT; n++) {
        right[n][0] = __float_as_uint(b(k + pair, n * 8 + row));
        right[n][1] = __float_as_uint(b(k + pair + 4, n * 8 + row));
      }
#pragma unroll
      for (int m = 0; m < MT; m++)
#pragma unroll
        for (int n = 0; n < NT; n++) mma_tf32(c[m][n], left[m], right[n]);
    }
  } else {
#pragma unroll
    for (int k = 0; k < K; k += 16) {
      uint32 left[MT][4], right[NT][2];
      const int q = k + pair * 2;
#pragma unroll
      for (int m = 0; m < MT; m++) {
        left[m][0] = as_bf16x2(a(m * 16 + row, q), a(m * 16 + row, q + 1));
        left[m][1] = as_bf16x2(a(m * 16 + row + 8, q), a(m * 16 + row + 8, q + 1));
        left[m][2] = as_bf16x2(a(m * 16 + row, q + 8), a(m * 16 + row, q + 9));
        left[m][3] = as_bf16x2(a(m * 16 + row + 8, q + 8), a(m * 16 + row + 8, q + 9));
      }
#pragma unroll
      for (int n = 0; n < NT; n++) {
        right[n][0] = as_bf16x2(b(q, n * 8 + row), b(q + 1, n * 8 + row));
        right[n][1] = as_bf16x2(b(q + 8, n * 8 + row), b(q + 9, n * 8 + row));
      }
#pragma unroll
      for (int m = 0; m < MT; m++)
#pragma unroll
        for (int n = 0; n < NT; n++) mma_bf16(c[m][n], left[m], right[n]);
    }
  }
}

// Calls `f(i)` for i = thread, thread + 256, … below COUNT, unrolled.
template <int COUNT, class F>
__device__ __forceinline__ void spread(F f) {
#pragma unroll
  for (int r = 0; r < (COUNT + 255) / 256; r++) {
    const int i = r * 256 + threadIdx.x;
    if (COUNT % 256 == 0 || i < COUNT) f(i);
  }
}

// Calls `f(row, column, value)` for every element of a warp's piece.
template <int MT, int NT, class F>
__device__ __forceinline__ void for_each(float (&c)[MT][NT][4], F f) {
  const int lane = threadIdx.x % 32;
#pragma unroll
  for (int m = 0; m < MT; m++)
#pragma unroll
    for (int n = 0; n < NT; n++)
#pragma unroll
      for (int part = 0; part < 4; part++)
        f(m * 16 + lane / 4 + part / 2 * 8, n * 8 + lane % 4 * 2 + part % 2, c[m][n][part]);
}

// Whether this block is the last of `blocks` to call this; the writes of the other blocks are then visible to it.
__device__ __forceinline__ bool is_last(uint32* counter, uint32 blocks) {
  __shared__ bool last;
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) {
    last = atomicAdd(counter, 1u) == blocks - 1;
    if (last) *counter = 0;
  }
  __syncthreads();
  __threadfence();
  return last;
}

// Copies sixteen bytes to shared memory asynchronously.
__device__ __forceinline__ void copy_async(float* to, const float* from, bool in) {
  const uint32 address = (uint32)__cvta_generic_to_shared(to);
  asm volatile("{.reg .pred outside; setp.eq.u32 outside, %2, 0; cp.async.cg.shared.global [%0], [%1], 16, outside;}" ::"r"(address),
               "l"(from), "r"((uint32)in));  // outside, zeros are written and nothing is read
}
__device__ __forceinline__ void commit() { asm volatile("cp.async.commit_group;"); }
template <int N> __device__ __forceinline__ void wait() { asm volatile("cp.async.wait_group %0;" ::"n"(N)); }
