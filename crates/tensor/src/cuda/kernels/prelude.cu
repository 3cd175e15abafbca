// Functions that every kernel uses: `await_turn`, and the maps under the names of `ops::Map`.

typedef unsigned int uint32;

// Every kernel calls this first: it lets the GPU load the next kernel, and waits until all earlier kernels are done. No input
// may be `const __restrict__`: the compiler could then move its loads before the wait.
__device__ __forceinline__ void await_turn() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;");
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

__device__ __forceinline__ float map_Copy(float a) { return a; }
__device__ __forceinline__ float map_Negate(float a) { return -a; }
__device__ __forceinline__ float map_Absolute(float a) { return fabsf(a); }
__device__ __forceinline__ float map_Sign(float a) { return (float)(a > 0.0f) - (float)(a < 0.0f); }
__device__ __forceinline__ float map_Exp(float a) { return expf(a); }
__device__ __forceinline__ float map_Log(float a) { return logf(a); }
__device__ __forceinline__ float map_Sqrt(float a) { return sqrtf(a); }
__device__ __forceinline__ float map_Reciprocal(float a) { return 1.0f / a; }
__device__ __forceinline__ float map_Tanh(float a) { return tanhf(a); }
__device__ __forceinline__ float map_Erf(float a) { return erff(a); }
__device__ __forceinline__ float map_Sin(float a) { return sinf(a); }
__device__ __forceinline__ float map_Cos(float a) { return cosf(a); }
__device__ __forceinline__ float map_Sigmoid(float a) { return 1.0f / (1.0f + expf(-a)); }
__device__ __forceinline__ float map_Softplus(float a) { return a > 20.0f ? a : log1pf(expf(a)); }
__device__ __forceinline__ float map_SoftplusDerivative(float a) { return a > 20.0f ? 1.0f : map_Sigmoid(a); }
// Below -4 the sum 1 + erf cancels, while erfc keeps its digits.
__device__ __forceinline__ float normal_distribution(float a) {
  return a > -4.0f ? 0.5f + 0.5f * erff(a * 0.70710678f) : 0.5f * erfcf(-a * 0.70710678f);
}
__device__ __forceinline__ float map_Gelu(float a) { return a * normal_distribution(a); }
__device__ __forceinline__ float map_GeluDerivative(float a) {
  return normal_distribution(a) + a * 0.39894228f * expf(-0.5f * a * a);
}
__device__ __forceinline__ float map_Silu(float a) { return a * map_Sigmoid(a); }
__device__ __forceinline__ float map_SiluDerivative(float a) {
  float s = map_Sigmoid(a);
  return s * (1.0f + a * (1.0f - s));
}
__device__ __forceinline__ float map_Add(float a, float b) { return a + b; }
__device__ __forceinline__ float map_Subtract(float a, float b) { return a - b; }
__device__ __forceinline__ float map_Multiply(float a, float b) { return a * b; }
__device__ __forceinline__ float map_Divide(float a, float b) { return a / b; }
__device__ __forceinline__ float map_Maximum(float a, float b) { return a != a ? a : (b != b ? b : fmaxf(a, b)); }
__device__ __forceinline__ float map_Minimum(float a, float b) { return a != a ? a : (b != b ? b : fminf(a, b)); }
__device__ __forceinline__ float map_Arctangent(float a, float b) { return atan2f(a, b); }
__device__ __forceinline__ float map_Less(float a, float b) { return a < b ? 1.0f : 0.0f; }
__device__ __forceinline__ float map_Equal(float a, float b) { return a == b ? 1.0f : 0.0f; }
// Philox 2x32 with ten rounds; ops/random.rs is its definition.
__device__ __forceinline__ float map_Philox(float index, float word, float key) {
  unsigned a = (unsigned)index, b = (unsigned)word, k = (unsigned)key;
#pragma unroll
  for (int round = 0; round < 10; round++) {
    const unsigned high = __umulhi(a, 0xD256D193u), low = a * 0xD256D193u;
    a = high ^ k ^ b; b = low; k += 0x9E3779B9u;
  }
  return (float)(a >> 8);
}
__device__ __forceinline__ float map_Select(float a, float b, float c) { return a != 0.0f ? b : c; }
