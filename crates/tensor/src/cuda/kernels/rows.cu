// Gather, and its transpose scatter-add, which adds rows in the order of the index.

// to[o, i, n] = from[o, index[i], n]
template <class S>
__device__ void gather(const float* from, const uint32* __restrict__ index, float* to) {
  const long long t = (long long)blockIdx.x * 256 + threadIdx.x;
  if (t >= (long long)S::OUTER * S::COUNT * S::INNER) return;
  const int n = t % S::INNER;
  const long long i = t / S::INNER % S::COUNT, o = t / S::INNER / S::COUNT;
  const long long row = min(index[i], (uint32)S::ROWS - 1);
  to[S::named(o, i, n)] = from[S::wide(o, row, n)];
}

// to[o, r, n] = Σ over index[i] = r of from[o, i, n]
template <class S>
__device__ void scatter_add(const float* from, const uint32* __restrict__ index, float* to) {
  const long long t = (long long)blockIdx.x * 256 + threadIdx.x;
  if (t >= (long long)S::OUTER * S::ROWS * S::INNER) return;
  const int n = t % S::INNER;
  const long long r = t / S::INNER % S::ROWS, o = t / S::INNER / S::ROWS;
  float sum = 0.0f;
  for (int i = 0; i < S::COUNT; i++)
    if (index[i] == r) sum += from[S::named(o, i, n)];
  to[S::wide(o, r, n)] = sum;
}
