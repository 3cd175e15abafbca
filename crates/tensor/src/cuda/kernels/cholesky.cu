// W = Λ⁻¹ of Σ = Λ Λᵀ with the guard of `ops::cholesky`; one block per matrix, in double precision in shared memory.

// Λ of Σ + shift · 1 into `factor`; false if the matrix is not positive definite.
template <class S>
__device__ bool cholesky_factor(const float* from, double shift, double* factor, int matrix) {
  constexpr int N = S::SIDE;
  for (int i = threadIdx.x; i < N * N; i += 256) {
    const int row = i / N, column = i % N;
    const double value = (double)from[S::matrix(matrix, row, column)];
    factor[i] = row == column ? value + shift : (row > column ? value : 0.0);
  }
  __syncthreads();
  for (int k = 0; k < N; k++) {
    const double pivot = factor[k * N + k];
    __syncthreads();  // every thread has read the pivot before it is overwritten
    if (!(pivot > 0.0 && pivot - pivot == 0.0)) return false;  // also if it is infinite; the same for all threads
    const double root = sqrt(pivot);
    for (int row = k + threadIdx.x; row < N; row += 256) factor[row * N + k] = row == k ? root : factor[row * N + k] / root;
    __syncthreads();
    for (int i = threadIdx.x; i < N * N; i += 256) {
      const int row = i / N, column = i % N;
      if (column > k && row >= column) factor[i] -= factor[row * N + k] * factor[column * N + k];
    }
    __syncthreads();
  }
  return true;
}

template <class S>
__device__ void inverse_cholesky(const float* from, float* to) {
  constexpr int N = S::SIDE;
  extern __shared__ double cholesky_shared[];
  double* factor = cholesky_shared;
  double* inverse = cholesky_shared + N * N;
  const int matrix = blockIdx.x;
  bool found = cholesky_factor<S>(from, 0.0, factor, matrix);
  double shift = S::jitter();
  for (int attempt = 0; attempt < S::TRIES && !found; attempt++, shift *= 10.0) {
    __syncthreads();
    found = cholesky_factor<S>(from, shift, factor, matrix);
  }
  // A thread for each column of W, from the diagonal down.
  for (int column = threadIdx.x; column < N; column += 256) {
    for (int row = 0; row < N; row++) {
      double sum = row == column ? 1.0 : 0.0;
      for (int k = column; k < row; k++) sum -= factor[row * N + k] * inverse[k * N + column];
      inverse[row * N + column] = row < column ? 0.0 : sum / factor[row * N + row];
    }
  }
  __syncthreads();
  for (int i = threadIdx.x; i < N * N; i += 256)
    to[S::result(matrix, i / N, i % N)] = found ? (float)inverse[i] : __int_as_float(0x7fc00000);
}
