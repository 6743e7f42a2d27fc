//===- Simd.h - vectors of native width -------------------------*- C++ -*-===//
//
// A GCC vector of floats as wide as the machine's registers, with the
// operations that the cpu kernels need. Contraction is off: only an explicit
// `fma` fuses a multiplication and an addition.
//
// Reductions use kLanes logical lanes on every machine (a Wide is that many
// floats in several registers), so that a sum has the same bits for any
// register width.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_CPU_SIMD_H
#define TMC_RUNTIME_CPU_SIMD_H

#include <cmath>
#include <cstdint>
#include <cstring>

#if defined(__AVX__) || defined(__SSE2__)
#include <immintrin.h>
#endif

namespace tmc::simd {

#if defined(__AVX512F__)
constexpr int kWidth = 16;
#elif defined(__AVX__)
constexpr int kWidth = 8;
#else
constexpr int kWidth = 4;
#endif

using V = float __attribute__((vector_size(kWidth * 4)));
using VI = int32_t __attribute__((vector_size(kWidth * 4)));
using VU = uint32_t __attribute__((vector_size(kWidth * 4)));

inline V splat(float x) {
  // An intrinsic, because `V{} + x` would cost an addition.
#if defined(__AVX512F__)
  return _mm512_set1_ps(x);
#elif defined(__AVX__)
  return _mm256_set1_ps(x);
#else
  return V{x, x, x, x};
#endif
}

inline V load(const float *p) {
  V v;
  std::memcpy(&v, p, sizeof v);
  return v;
}
inline void store(float *p, V v) { std::memcpy(p, &v, sizeof v); }

#if defined(__AVX512F__)
/// The first `count` < kWidth lanes.
inline __mmask16 firstLanes(int64_t count) {
  return __mmask16((1u << count) - 1);
}
#elif defined(__AVX__)
inline __m256i firstLanes(int64_t count) {
  const VI number = {0, 1, 2, 3, 4, 5, 6, 7};
  return __m256i(number < int32_t(count));
}
#endif

/// The first `count` < kWidth floats; the other lanes are `rest`.
inline V loadPart(const float *p, int64_t count, float rest = 0) {
#if defined(__AVX512F__)
  return _mm512_mask_loadu_ps(splat(rest), firstLanes(count), p);
#elif defined(__AVX__)
  const __m256i lanes = firstLanes(count);
  return _mm256_blendv_ps(splat(rest), _mm256_maskload_ps(p, lanes),
                          __m256(lanes));
#else
  V v = splat(rest);
  std::memcpy(&v, p, size_t(count) * 4);
  return v;
#endif
}
inline void storePart(float *p, V v, int64_t count) {
#if defined(__AVX512F__)
  _mm512_mask_storeu_ps(p, firstLanes(count), v);
#elif defined(__AVX__)
  _mm256_maskstore_ps(p, firstLanes(count), v);
#else
  std::memcpy(p, &v, size_t(count) * 4);
#endif
}

inline V fma(V a, V b, V c) {
#if defined(__AVX512F__)
  return _mm512_fmadd_ps(a, b, c);
#elif defined(__FMA__)
  return _mm256_fmadd_ps(a, b, c);
#else
  V r;
  for (int i = 0; i < kWidth; ++i)
    r[i] = __builtin_fmaf(a[i], b[i], c[i]);
  return r;
#endif
}

/// During its lifetime, if `flush`, this thread treats denormals as zeros.
class DenormalMode {
public:
  explicit DenormalMode(bool flush) : before_(_mm_getcsr()) {
    constexpr unsigned kFlushResults = 0x8000, kOperandsAreZero = 0x40;
    if (flush)
      _mm_setcsr(before_ | kFlushResults | kOperandsAreZero);
  }
  ~DenormalMode() { _mm_setcsr(before_); }
  DenormalMode(const DenormalMode &) = delete;
  DenormalMode &operator=(const DenormalMode &) = delete;

private:
  unsigned before_;
};

/// The larger and the smaller of two values; b where they have no order.
inline V max(V a, V b) {
#if defined(__AVX512F__)
  return _mm512_maskz_max_ps(__mmask16(-1), a, b);
#else
  return a > b ? a : b;
#endif
}
inline V min(V a, V b) {
#if defined(__AVX512F__)
  return _mm512_maskz_min_ps(__mmask16(-1), a, b);
#else
  return a < b ? a : b;
#endif
}

inline V sqrt(V a) {
#if defined(__AVX512F__)
  return _mm512_maskz_sqrt_ps(__mmask16(-1), a);
#elif defined(__AVX__)
  return _mm256_sqrt_ps(a);
#else
  V r;
  for (int i = 0; i < kWidth; ++i)
    r[i] = __builtin_sqrtf(a[i]);
  return r;
#endif
}

/// e^x to within 1 ulp for x in [-87, 88]; 0 below, and below -87 flushed to 0;
/// infinity above 88.72; NaN stays NaN.
inline V exp(V x) {
  // x = n ln 2 + r, |r| <= ln 2 / 2; e^r by a polynomial of degree 6.
  const V magic = splat(12582912.0f); // 1.5 * 2^23: rounds to an integer
  V xs = min(max(x, splat(-88.0f)), splat(89.0f));
  V t = fma(xs, splat(1.44269504088896341f), magic);
  V n = t - magic;
  V r = fma(n, splat(-0.693145751953125f), xs);
  r = fma(n, splat(-1.42860682030941723e-6f), r);
  V p = splat(1.0f / 5040);
  p = fma(p, r, splat(1.0f / 720));
  p = fma(p, r, splat(1.0f / 120));
  p = fma(p, r, splat(1.0f / 24));
  p = fma(p, r, splat(1.0f / 6));
  p = fma(p, r, splat(0.5f));
  p = fma(p, r, splat(1.0f));
  p = fma(p, r, splat(1.0f));
#if defined(__AVX512F__)
  V y = _mm512_maskz_scalef_ps(__mmask16(-1), p, n);
#else
  // 2^n as two factors, so that n = 128 doesn't overflow early.
  VI ni = (VI)t - (VI)magic;
  VI half = ni >> 1;
  V s0 = (V)((half + 127) << 23);
  V s1 = (V)((ni - half + 127) << 23);
  V y = p * s0 * s1;
#endif
  y = x < splat(-87.0f) ? V{} : y;
  return x == x ? y : x;
}

/// Logical lanes of a reduction.
constexpr int kLanes = 64;
constexpr int kParts = kLanes / kWidth;

/// 64 floats in registers of native width.
struct Wide {
  V part[kParts];
};
inline Wide splatWide(float x) {
  Wide w;
  for (V &p : w.part)
    p = splat(x);
  return w;
}

/// The sum of the lanes by a fixed tree: lane i + lane i + 32, then + 16, ...
inline float sum(const Wide &w) {
  float lanes[kLanes];
  std::memcpy(lanes, &w, sizeof lanes);
  for (int step = kLanes / 2; step; step /= 2)
    for (int i = 0; i < step; ++i)
      lanes[i] += lanes[i + step];
  return lanes[0];
}
inline float max(const Wide &w) {
  float lanes[kLanes];
  std::memcpy(lanes, &w, sizeof lanes);
  for (int step = kLanes / 2; step; step /= 2)
    for (int i = 0; i < step; ++i)
      lanes[i] = lanes[i] > lanes[i + step] ? lanes[i] : lanes[i + step];
  return lanes[0];
}

} // namespace tmc::simd

#endif // TMC_RUNTIME_CPU_SIMD_H
