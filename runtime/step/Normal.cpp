//===- Normal.cpp - random numbers, identical on all machines -------------===//
//
// Plain loops of multiplications and additions over short arrays, which the
// compiler turns into vectors; products are never contracted (see the flags in
// CMakeLists.txt).
//
//===----------------------------------------------------------------------===//

#include "runtime/step/Normal.h"

#include <cmath>
#include <cstring>

namespace tmc {

namespace {

constexpr int kBlock = 256;

/// log x for normal positive x, by the series of atanh; error below 1e-7.
inline float logarithm(float x) {
  int32_t bits;
  std::memcpy(&bits, &x, 4);
  // The mantissa in [sqrt(1/2), sqrt(2)), with the matching exponent.
  const int32_t shifted = bits - 0x3f3504f3;
  const int32_t exponent = shifted >> 23;
  const int32_t reduced = (shifted & 0x007fffff) + 0x3f3504f3;
  float m;
  std::memcpy(&m, &reduced, 4);
  const float s = (m - 1.0f) / (m + 1.0f), z = s * s;
  const float series =
      2.0f + z * (2.0f / 3 + z * (2.0f / 5 + z * (2.0f / 7 + z * (2.0f / 9))));
  return float(exponent) * 0.69314718f + s * series;
}

/// sqrt(2) erfinv(2 u - 1) for u = (k + 1/2) / 2^24.
inline float quantile(uint32_t word) {
  const uint32_t k = word >> 8;
  // 2 u - 1, and 4 u (1 - u), without cancellation.
  const float x = (float(int32_t(k)) + 0.5f) * (1.0f / 8388608) - 1.0f;
  const float low = float(int32_t(2 * k + 1)) * (1.0f / 33554432);
  const float high =
      float(int32_t((1 << 25) - int32_t(2 * k + 1))) * (1.0f / 33554432);
  const float w = -logarithm(4.0f * low * high);

  const float a = w - 2.5f;
  float p = 2.81022636e-08f;
  p = 3.43273939e-07f + p * a;
  p = -3.5233877e-06f + p * a;
  p = -4.39150654e-06f + p * a;
  p = 0.00021858087f + p * a;
  p = -0.00125372503f + p * a;
  p = -0.00417768164f + p * a;
  p = 0.246640727f + p * a;
  p = 1.50140941f + p * a;

  const float b = std::sqrt(w > 0.0f ? w : 0.0f) - 3.0f;
  float q = -0.000200214257f;
  q = 0.000100950558f + q * b;
  q = 0.00134934322f + q * b;
  q = -0.00367342844f + q * b;
  q = 0.00573950773f + q * b;
  q = -0.0076224613f + q * b;
  q = 0.00943887047f + q * b;
  q = 1.00167406f + q * b;
  q = 2.83297682f + q * b;
  return (w < 5.0f ? p : q) * x * 1.41421356f;
}

/// (2 u - 1) size for u = k / 2^24: one rounding.
inline float spread(uint32_t word, float size) {
  const int32_t k = int32_t(word >> 8);
  return float(k - (1 << 23)) * (1.0f / 8388608) * size;
}

/// out[i] = f(word first + i) for a function of a word.
template <typename F>
void fromWords(const Philox &philox, uint64_t first, int64_t count, float *out,
               F &&f) {
  for (int64_t at = 0; at < count; at += kBlock) {
    uint32_t words[kBlock];
    float numbers[kBlock];
    for (int i = 0; i < kBlock; i += 4) {
      const PhiloxWords four = philox.quad((first + uint64_t(at + i)) / 4);
      std::memcpy(words + i, four.w, sizeof four.w);
    }
    for (int i = 0; i < kBlock; ++i)
      numbers[i] = f(words[i]);
    const int64_t some = count - at < kBlock ? count - at : kBlock;
    std::memcpy(out + at, numbers, size_t(some) * 4);
  }
}

} // namespace

void normalNumbers(const Philox &philox, uint64_t first, int64_t count,
                   float std, float *out) {
  fromWords(philox, first, count, out,
            [=](uint32_t word) { return quantile(word) * std; });
}

void uniformNumbers(const Philox &philox, uint64_t first, int64_t count,
                    float size, float *out) {
  fromWords(philox, first, count, out,
            [=](uint32_t word) { return spread(word, size); });
}

} // namespace tmc
