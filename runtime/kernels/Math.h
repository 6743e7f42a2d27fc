//===- Math.h - exp, tanh, erf and similar functions ------------*- C++ -*-===//
//
// Elementary functions of fused kernels: templates over the value types of
// Vec.h, so that the vector loop and its tail compute the same bits. Errors, in
// units in the last place, against the correctly rounded value over the whole
// range: exp 1, log 1, tanh 3, erf 3 (the unit tests measure them). Infinities,
// NaNs and denormals follow C's functions.
//
// On cuda exp, tanh, erf and rsqrt use the card's units for 2^x and 1/x, which
// give no correctly rounded values: exp 4, tanh 4, erf 4, rsqrt 2. Off a card
// the same code runs with rounded values in their place.
//
// The coefficients are least-squares fits in relative error, reweighted until
// the error is level; each polynomial states its own error.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_KERNELS_MATH_H
#define TMC_RUNTIME_KERNELS_MATH_H

#include "runtime/kernels/Vec.h"

namespace tmc::math {

/// A constant in every lane of V.
template <typename V> TMC_HD TMC_INLINE V all(float x) {
  return splat<lanesOf<V>>(x);
}

/// c[0] + c[1] x + ... by Horner's rule.
template <typename V, int N>
TMC_HD TMC_INLINE V polynomial(V x, const float (&c)[N]) {
  V y = all<V>(c[N - 1]);
  for (int i = N - 2; i >= 0; --i)
    y = fma(y, x, all<V>(c[i]));
  return y;
}

template <typename V> TMC_HD TMC_INLINE V abs(V x) {
  using I = Lanes<int32_t, lanesOf<V>>;
  return bitsAs<V>(bitsAs<I>(x) & 0x7fffffff);
}
/// The magnitude of x with the sign of s.
template <typename V> TMC_HD TMC_INLINE V copysign(V x, V s) {
  using I = Lanes<int32_t, lanesOf<V>>;
  return bitsAs<V>((bitsAs<I>(x) & 0x7fffffff) |
                   (bitsAs<I>(s) & int32_t(0x80000000u)));
}
template <typename V> TMC_HD TMC_INLINE V rsqrt(V x) {
#ifdef __CUDA_ARCH__
  return lanewise(x, [](float v) { return ::rsqrtf(v); });
#else
  return all<V>(1.0f) / sqrt(x);
#endif
}
template <typename V> TMC_HD TMC_INLINE V floor(V x) {
  return lanewise(x, [](float v) { return __builtin_floorf(v); });
}

namespace detail {
constexpr float kLog2E = 1.4426950408889634f;
// log(2) in two parts; the first has few enough bits that n times it is exact.
constexpr float kLn2High = 0.693145751953125f;
constexpr float kLn2Low = 1.4286068203094172e-6f;
// Adding it rounds to an integer, which is then in the low bits.
constexpr float kRound = 12582912.0f; // 1.5 * 2^23

/// 2^n for n in [-126, 127].
template <typename I> TMC_HD TMC_INLINE auto powerOfTwo(I n) {
  return bitsAs<Lanes<float, lanesOf<I>>>((n + 127) << 23);
}

/// expm1(r) for |r| <= log(2) / 2: r + r^2 q(r), error 2^-31.9.
template <typename V> TMC_HD TMC_INLINE V expm1Reduced(V r) {
  constexpr float q[] = {5.000000047e-01f, 1.666666635e-01f, 4.166634871e-02f,
                         8.333391638e-03f, 1.394165260e-03f, 1.984595800e-04f};
  return fma(r * r, polynomial(r, q), r);
}

/// y 2^n for an integer n in [-150, 128] and y near 1, rounded once.
template <typename V> TMC_HD TMC_INLINE V scaledByPower(V y, V n) {
#if !defined(TMC_PACKED_LANES) && defined(__AVX512F__)
  if constexpr (lanesOf<V> == kLanes)
    return _mm512_maskz_scalef_ps(__mmask16(-1), y, n);
#endif
  // In two steps: 2^n alone may be outside the normal range.
  const auto i =
      bitsAs<Lanes<int32_t, lanesOf<V>>>(n + kRound) - bitsAs<int32_t>(kRound);
  const auto half = i >> 1;
  return y * powerOfTwo(half) * powerOfTwo(i - half);
}

/// y 2^n for an integer n in [-126, 127].
template <typename V> TMC_HD TMC_INLINE V scaledByNormalPower(V y, V n) {
#if !defined(TMC_PACKED_LANES) && defined(__AVX512F__)
  if constexpr (lanesOf<V> == kLanes)
    return _mm512_maskz_scalef_ps(__mmask16(-1), y, n);
#endif
  return y * powerOfTwo(bitsAs<Lanes<int32_t, lanesOf<V>>>(n + kRound) -
                        bitsAs<int32_t>(kRound));
}

/// x = n log(2) + r.
template <typename V> struct Reduced { V n, r; };
template <typename V> TMC_HD TMC_INLINE Reduced<V> reduceByLog2(V x) {
  const V n = fma(x, all<V>(kLog2E), all<V>(kRound)) - kRound;
  return {n, fma(n, all<V>(-kLn2Low), fma(n, all<V>(-kLn2High), x))};
}
} // namespace detail

#ifdef TMC_CUDA
namespace card {
/// 2^x, on a card within 2 units in the last place; 0 for subnormal results.
TMC_HD TMC_INLINE float powerOfTwo(float x) {
#ifdef __CUDA_ARCH__
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
#else
  const float y = ::exp2f(x);
  return y < 1.17549435e-38f ? 0.0f : y;
#endif
}
/// 1 / x, on a card within 1 unit in the last place; 0 for subnormal results.
TMC_HD TMC_INLINE float reciprocal(float x) {
#ifdef __CUDA_ARCH__
  float y;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
#else
  const float y = 1.0f / x;
  return __builtin_fabsf(y) < 1.17549435e-38f ? 0.0f : y;
#endif
}

TMC_HD TMC_INLINE float exp(float x) {
  // Beyond these bounds the result is inf or 0. A NaN passes.
  x = x > 89.0f ? 89.0f : x;
  x = x < -104.0f ? -104.0f : x;
  // x log2(e) = t + rest, and 2^rest is nearly 1 + rest log(2). Below 2^-126
  // the result is made in two steps.
  const float shift = x < -86.0f ? 24.0f : 0.0f;
  const float t = x * detail::kLog2E;
  const float rest =
      fma(x, 1.925963033e-8f, fma(x, detail::kLog2E, -t)) * 0.693147181f;
  const float y = powerOfTwo(t + shift) * (1.0f + rest);
  return x < -86.0f ? y * 5.9604644775390625e-8f : y;
}

TMC_HD TMC_INLINE float tanh(float x) {
  // x + x^3 p(x^2) for |x| < 0.55, error 2^-29.5; else 1 - 2 / (e^2|x| + 1).
  constexpr float p[] = {-3.333331467e-01f, 1.333248045e-01f, -5.384050691e-02f,
                         2.102050340e-02f, -6.198649224e-03f};
  const float a = abs(x), square = x * x;
  const float small = fma(x * square, polynomial(square, p), x);
  const float e = powerOfTwo(a * (2 * detail::kLog2E));
  const float large = fma(-2.0f, reciprocal(e + 1.0f), 1.0f);
  return a < 0.55f ? small : copysign(large, x);
}

/// e^-x for x >= 0, of a value that is taken from 1: what it lacks beside its
/// own size is lost there.
TMC_HD TMC_INLINE float expOfLess(float x) {
  return powerOfTwo(x * -detail::kLog2E);
}
} // namespace card
#endif

template <typename V> TMC_HD TMC_INLINE V exp(V x) {
#ifdef TMC_CUDA
  return lanewise(x, [](float v) { return card::exp(v); });
#else
  // Beyond these bounds the result is inf or 0. A NaN passes.
  x = atLeast(atMost(x, 89.0f), -104.0f);
  const auto [n, r] = detail::reduceByLog2(x);
  return detail::scaledByPower(detail::expm1Reduced(r) + 1.0f, n);
#endif
}

template <typename V> TMC_HD TMC_INLINE V tanh(V x) {
#ifdef TMC_CUDA
  return lanewise(x, [](float v) { return card::tanh(v); });
#else
  // tanh |x| = e / (e + 2) with e = expm1(2 |x|): no cancellation anywhere.
  const V a = atMost(abs(x) * 2.0f, 20.0f); // 1 from there on
  const auto [n, r] = detail::reduceByLog2(a);
  const auto i = bitsAs<Lanes<int32_t, lanesOf<V>>>(n + detail::kRound) -
                 bitsAs<int32_t>(detail::kRound);
  const V scale = detail::powerOfTwo(i);
  const V e = fma(detail::expm1Reduced(r), scale, scale - 1.0f);
  return copysign(e / (e + 2.0f), x);
#endif
}

template <typename V> TMC_HD TMC_INLINE V erf(V x) {
  // |x| <= 1: x p(x^2), error 2^-34.8.
  constexpr float p[] = {
      1.128379167e+00f, -3.761263848e-01f, 1.128378275e-01f, -2.686544582e-02f,
      5.221074879e-03f, -8.484711472e-04f, 1.127054471e-04f, -9.680137145e-06f};
  // 1 < |x| < 4: 1 - exp(-g(|x|)), error 2^-35.5 of erfc; 1 from 4 on.
  constexpr float g[] = {-1.880370444e-04f, 1.129578410e+00f,  6.332199193e-01f,
                         1.084185507e-01f,  -2.520824078e-02f, 4.204556254e-03f,
                         -4.413352991e-04f, 2.168676310e-05f};
  V a = abs(x);
  const V small = x * polynomial(x * x, p);
  const auto isSmall = asMask(a <= 1.0f);
  a = atMost(a, 4.0f);
#ifdef TMC_CUDA
  const V tail =
      lanewise(polynomial(a, g), [](float v) { return card::expOfLess(v); });
#else
  // exp in [-17, 1]: no bounds, and powers of two are normal. A NaN of x is
  // chosen below.
  const auto [n, r] = detail::reduceByLog2(-polynomial(a, g));
  const V tail = detail::scaledByNormalPower(detail::expm1Reduced(r) + 1.0f, n);
#endif
  const V large = copysign(1.0f - tail, x);
  return select(isSmall, small, select(asMask(x != x), x, large));
}

template <typename V> TMC_HD TMC_INLINE V log(V x) {
  // log1p(f) = f - f^2 / 2 + f^3 g(f) for 1 + f in [sqrt(1/2), sqrt(2)], error
  // 2^-27.4.
  constexpr float g[] = {
      3.333333171e-01f, -2.500082104e-01f, 2.000122687e-01f, -1.662335730e-01f,
      1.420175823e-01f, -1.316018306e-01f, 1.276157564e-01f, -7.634493023e-02f};
  using I = Lanes<int32_t, lanesOf<V>>;
  const auto tiny = asMask(x < 1.17549435e-38f);
  const V scaled = select(tiny, x * 8388608.0f, x); // denormals, by 2^23
  // 0x3f3504f3 is sqrt(1/2): the subtraction moves the mantissa to that range.
  const I bits = bitsAs<I>(scaled);
  const I e = (bits - 0x3f3504f3) >> 23;
  const V f = bitsAs<V>(bits - (e << 23)) - 1.0f;
  V n = convert<float>(e);
  n = select(tiny, n - 23.0f, n);
  const V square = f * f;
  const V tail = fma(square * f, polynomial(f, g), square * -0.5f);
  const V y = fma(n, all<V>(detail::kLn2High),
                  f + fma(n, all<V>(detail::kLn2Low), tail));
  const float inf = __builtin_inff();
  V special =
      select(asMask(x == 0.0f), all<V>(-inf), all<V>(__builtin_nanf("")));
  special = select(asMask(x == inf), x, special);
  return select(asMask((x > 0.0f) & (x < inf)), y, special);
}

/// log(1 + x), accurate near zero.
template <typename V> TMC_HD TMC_INLINE V log1p(V x) {
  // The rounding error of 1 + x is corrected by a first-order term.
  const V u = x + 1.0f;
  const V lost = (x - (u - 1.0f)) / u;
  const auto plain = asMask((u == 0.0f) | (u == __builtin_inff()));
  return select(plain, log(u), log(u) + lost);
}

// Rare in training steps: the platform's function, lane by lane.
template <typename V> TMC_HD TMC_INLINE V sin(V x) {
  return lanewise(x, [](float v) { return ::sinf(v); });
}
template <typename V> TMC_HD TMC_INLINE V cos(V x) {
  return lanewise(x, [](float v) { return ::cosf(v); });
}
template <typename V> TMC_HD TMC_INLINE V atan(V x) {
  return lanewise(x, [](float v) { return ::atanf(v); });
}
template <typename V> TMC_HD TMC_INLINE V pow(V x, V y) {
  return lanewise(x, y, [](float v, float w) { return ::powf(v, w); });
}

} // namespace tmc::math

#endif // TMC_RUNTIME_KERNELS_MATH_H
