// Prints what one thread multiplies and adds in registers, in GFLOP/s of
// processor time: the median and the best of many runs of a few milliseconds.
// As many chains as hide their latency.

#include <algorithm>
#include <cstdio>
#include <time.h>
#include <vector>

namespace {

#if defined(__AVX512F__)
constexpr int kWidth = 16;
#elif defined(__AVX__)
constexpr int kWidth = 8;
#else
constexpr int kWidth = 4;
#endif
// Two units, a latency of four or five.
constexpr int kChains = 12, kRepeats = 4;
typedef float V __attribute__((vector_size(kWidth * 4)));

double now() {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return double(t.tv_sec) + 1e-9 * double(t.tv_nsec);
}

} // namespace

int main() {
  constexpr long count = 200000;
  std::vector<double> rates;
  for (int run = 0; run < 200; ++run) {
    V sums[kChains] = {}, x = V{} + 0.999f, y = V{} + 1e-3f;
    for (V &sum : sums) // Different ones, as far as the compiler knows.
      asm volatile("" : "+x"(sum));
    const double start = now();
    for (long i = 0; i < count; ++i) {
#pragma GCC unroll 4
      for (int repeat = 0; repeat < kRepeats; ++repeat)
#pragma GCC unroll 12
        for (V &sum : sums)
          sum = sum * x + y; // contracted: this program wants speed alone
      asm volatile("" : "+x"(x), "+x"(y));
    }
    const double seconds = now() - start;
    for (V &sum : sums)
      asm volatile("" ::"x"(sum));
    rates.push_back(2.0 * kWidth * kChains * kRepeats * count / seconds / 1e9);
  }
  std::sort(rates.begin(), rates.end());
  std::printf("%.1f %.1f\n", rates[rates.size() / 2], rates.back());
}
