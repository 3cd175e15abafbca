// Memberships of any shape without tensor cores: a thread per result, or a block per sum over points. `stats` has the largest
// logit, the sum of powers and Σ w ∂w of every point and head.

struct Operands {
  const float *queries, *keys, *offsets, *values, *tokens, *more_values, *more_tokens;
};

template <class S>
__device__ __forceinline__ float logit(const Operands& of, int b, int n, int h, int m) {
  float sum = of.offsets[S::offsets(h, m)];
  for (int c = 0; c < S::CHANNELS; c++) sum += of.queries[S::queries(b, n, h, c)] * of.keys[S::keys(h, m, c)];
  return sum;
}

// ∂w
template <class S>
__device__ __forceinline__ float moved(const Operands& of, int b, int n, int h, int m) {
  float sum = S::MASS ? of.tokens[S::tokens(b, h, m, S::WIDTH)] : 0.0f;
  for (int p = 0; p < S::WIDTH; p++) {
    sum += of.values[S::values(b, n, h, p)] * of.tokens[S::tokens(b, h, m, p)];
    if (S::PAIRS == 2) sum += of.more_values[S::more_values(b, n, h, p)] * of.more_tokens[S::more_tokens(b, h, m, p)];
  }
  return sum;
}

template <class S, bool GRADIENT>
__device__ void membership_stats(const float* queries, const float* keys, const float* offsets, const float* values, const float* tokens,
                                 const float* more_values, const float* more_tokens, float* stats) {
  const Operands of = {queries, keys, offsets, values, tokens, more_values, more_tokens};
  const long long t = (long long)blockIdx.x * 256 + threadIdx.x;
  if (t >= (long long)S::BATCH * S::POINTS * S::HEADS) return;
  const int h = t % S::HEADS, n = t / S::HEADS % S::POINTS, b = t / S::HEADS / S::POINTS;
  float largest = logit<S>(of, b, n, h, 0), sum = 0.0f, mean = 0.0f;
  for (int m = 1; m < S::SLICES; m++) largest = fmaxf(largest, logit<S>(of, b, n, h, m));
  for (int m = 0; m < S::SLICES; m++) {
    const float power = expf(logit<S>(of, b, n, h, m) - largest);
    sum += power;
    if (GRADIENT) mean += power * moved<S>(of, b, n, h, m);
  }
  stats[3 * t] = largest;
  stats[3 * t + 1] = sum;
  stats[3 * t + 2] = mean / sum;
}

// w, or ∂ℓ if GRADIENT.
template <class S, bool GRADIENT>
__device__ __forceinline__ float weight(const Operands& of, const float* stats, int b, int n, int h, int m) {
  const float* stat = stats + 3 * (((long long)b * S::POINTS + n) * S::HEADS + h);
  const float w = expf(logit<S>(of, b, n, h, m) - stat[0]) / stat[1];
  return GRADIENT ? w * (moved<S>(of, b, n, h, m) - stat[2]) : w;
}

// Σ_m w t, or ∂x = Σ_m ∂ℓ k.
template <class S, bool GRADIENT>
__device__ void membership_plain_points(const float* queries, const float* keys, const float* offsets, const float* values, const float* tokens,
                                        const float* more_values, const float* more_tokens, const float* stats, float* to) {
  const Operands of = {queries, keys, offsets, values, tokens, more_values, more_tokens};
  constexpr int WIDTH = GRADIENT ? S::CHANNELS : S::WIDTH;
  const long long t = (long long)blockIdx.x * 256 + threadIdx.x;
  if (t >= (long long)S::BATCH * S::POINTS * S::HEADS * WIDTH) return;
  const int p = t % WIDTH, h = t / WIDTH % S::HEADS, n = t / WIDTH / S::HEADS % S::POINTS, b = t / WIDTH / S::HEADS / S::POINTS;
  float sum = 0.0f;
  for (int m = 0; m < S::SLICES; m++)
    sum += weight<S, GRADIENT>(of, stats, b, n, h, m) * (GRADIENT ? keys[S::keys(h, m, p)] : tokens[S::tokens(b, h, m, p)]);
  to[GRADIENT ? S::query_gradient(b, n, h, p) : S::result(b, n, h, p)] = sum;
}

// Σ_n w [v | 1] of one batch entry, or ∂k, ∂b = Σ ∂ℓ [x | 1] over all entries.
template <class S, bool GRADIENT>
__device__ void membership_plain_slices(const float* queries, const float* keys, const float* offsets, const float* values, const float* tokens,
                                        const float* more_values, const float* more_tokens, const float* stats,
                                        float* to, float* offset_gradient) {
  const Operands of = {queries, keys, offsets, values, tokens, more_values, more_tokens};
  constexpr int WIDTH = GRADIENT ? S::CHANNELS : S::WIDTH;
  const int p = blockIdx.x % (WIDTH + 1), m = blockIdx.x / (WIDTH + 1) % S::SLICES, bh = blockIdx.x / (WIDTH + 1) / S::SLICES;
  const int h = bh % S::HEADS, first = GRADIENT ? 0 : bh / S::HEADS, last = GRADIENT ? S::BATCH : first + 1;
  float sum = 0.0f;
  for (int b = first; b < last; b++)
    for (int n = threadIdx.x; n < S::POINTS; n += 256) {
      const float beside = p == WIDTH ? 1.0f : GRADIENT ? queries[S::queries(b, n, h, p)] : values[S::values(b, n, h, p)];
      sum += beside * weight<S, GRADIENT>(of, stats, b, n, h, m);
    }
  __shared__ float pile[256];
  pile[threadIdx.x] = sum;
  __syncthreads();
  for (int s = 128; s; s >>= 1) {
    if (threadIdx.x < s) pile[threadIdx.x] += pile[threadIdx.x + s];
    __syncthreads();
  }
  if (threadIdx.x) return;
  if (!GRADIENT) to[S::result(first, h, m, p)] = pile[0];
  else if (p < WIDTH) to[S::key_gradient(h, m, p)] = pile[0];
  else offset_gradient[S::offset_gradient(h, m)] = pile[0];
}
