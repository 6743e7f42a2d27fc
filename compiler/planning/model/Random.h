// Random.h - random numbers that are the same everywhere.
//
// The standard library's engines are specified bit by bit, but its
// distributions are not, and std::log may differ in the last bit between
// libraries. A plan must be the same everywhere, so this is splitmix64, and a
// logarithm made of operations that IEEE 754 defines.

#ifndef TMC_COMPILER_PLANNING_MODEL_RANDOM_H
#define TMC_COMPILER_PLANNING_MODEL_RANDOM_H

#include <cstdint>

namespace tmc::planning {

/// Number of exponent bits that `power` uses.
inline constexpr int kPowerBits = 24;

/// base^exponent, exponent in [0, 1], by square roots: the same everywhere.
inline double power(double base, double exponent) {
  double result = 1;
  for (int i = 0; i < kPowerBits; ++i) {
    base = __builtin_sqrt(base);
    exponent *= 2;
    if (exponent >= 1)
      result *= base, exponent -= 1;
  }
  return result;
}

class Random {
public:
  explicit Random(uint64_t seed) : state(seed) {
    state = next() ^ (seed << 32);
  }

  uint64_t next() {
    uint64_t z = state += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
  /// In [0, n), n < 2^32.
  uint32_t below(uint32_t n) { return uint32_t((next() >> 32) * n >> 32); }
  /// In [0, 1).
  double unit() { return double(next() >> 11) * 0x1p-53; }
  bool chance(double p) { return unit() < p; }

  /// Exponentially distributed with mean 1, to about six digits.
  double exponential() {
    // -ln(u) of u = m 2^-e with m in [1, 2): e ln 2 - 2 atanh((m-1)/(m+1)).
    uint64_t bits = next() | 1;
    int zeros = __builtin_clzll(bits);
    double m = double(bits << zeros >> 11) * 0x1p-52;
    double x = (m - 1) / (m + 1), x2 = x * x;
    double ln =
        2 * x * (1 + x2 * (1.0 / 3 + x2 * (1.0 / 5 + x2 * (1.0 / 7 + x2 / 9))));
    return (zeros + 1) * 0.6931471805599453 - ln;
  }

private:
  uint64_t state;
};

} // namespace tmc::planning

#endif // TMC_COMPILER_PLANNING_MODEL_RANDOM_H
