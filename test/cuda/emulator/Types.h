//===- Types.h - bf16, fp16 and fp8, rounded as a card does -----*- C++ -*-===//
//
// The storage types of mixed precision, by their bits, and conversions from and
// to f32. A conversion rounds to the nearest value, ties to the even one, which
// is what cvt.rn does; subnormal numbers are kept.
//
//     type   exponent  fraction  bias  largest   infinity  NaN
//     bf16   8         7         127   3.39e38   yes       yes
//     f16    5         10        15    65504     yes       yes
//     tf32   8         10        127   3.40e38   yes       yes
//     e4m3   4         3         7     448       no        0x7f, 0xff
//     e5m2   5         2         15    57344     yes       yes
//
// To fp8, `saturate` (cvt's .satfinite) makes the largest finite value of what
// is larger, infinity included; without it e4m3 gives NaN and e5m2 infinity.
//
// Sources: the PTX ISA, cvt, and the OCP 8-bit floating point specification.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_TEST_CUDA_EMULATOR_TYPES_H
#define TMC_TEST_CUDA_EMULATOR_TYPES_H

#include <cmath>
#include <cstdint>

namespace tmc::emulator {

struct Format {
  int exponentBits, fractionBits;
  bool infinity; // else the highest exponent holds numbers, and one NaN

  constexpr int bias() const { return (1 << (exponentBits - 1)) - 1; }
  constexpr uint32_t sign() const {
    return 1u << (exponentBits + fractionBits);
  }
  constexpr uint32_t infinityBits() const {
    return ((1u << exponentBits) - 1) << fractionBits;
  }
  constexpr uint32_t nan() const {
    return infinity ? infinityBits() | 1u << (fractionBits - 1) : sign() - 1;
  }
  /// The largest finite magnitude.
  constexpr uint32_t largest() const {
    return infinity ? infinityBits() - 1 : sign() - 2;
  }
};
constexpr Format kBf16{8, 7, true}, kF16{5, 10, true}, kTf32{8, 10, true},
    kE4M3{4, 3, false}, kE5M2{5, 2, true};

/// The value of a number's bits.
inline float decode(Format f, uint32_t bits) {
  const uint32_t magnitude = bits & (f.sign() - 1);
  const float sign = bits & f.sign() ? -1.0f : 1.0f;
  if (f.infinity && magnitude == f.infinityBits())
    return sign * INFINITY;
  if (magnitude > f.largest())
    return NAN;
  const int exponent = int(magnitude >> f.fractionBits);
  const int fraction = int(magnitude & ((1u << f.fractionBits) - 1));
  const int power = (exponent ? exponent : 1) - f.bias() - f.fractionBits;
  const int digits = exponent ? fraction + (1 << f.fractionBits) : fraction;
  return sign * float(std::ldexp(double(digits), power));
}

/// The bits of the nearest number.
inline uint32_t encode(Format f, float x, bool saturate = false) {
  const uint32_t sign = std::signbit(x) ? f.sign() : 0;
  if (std::isnan(x))
    return f.nan();
  const double magnitude = std::fabs(double(x));
  if (magnitude == 0)
    return sign;
  // The exponent of the last digit kept: of this number, or of subnormals.
  int exponent = 0;
  (void)std::frexp(magnitude, &exponent);
  const int least = 1 - f.bias() - f.fractionBits;
  int power = std::isinf(x) ? least : exponent - 1 - f.fractionBits;
  power = power < least ? least : power;
  // Within a binade the bits count up by one per digit, and so they do from one
  // binade to the next.
  uint32_t bits = sign;
  bool tooLarge = std::isinf(x);
  if (!tooLarge) {
    const double digits = std::nearbyint(std::ldexp(magnitude, -power));
    const uint64_t rank =
        uint64_t(digits) + (uint64_t(power - least) << f.fractionBits);
    tooLarge = rank > f.largest();
    bits |= uint32_t(tooLarge ? 0 : rank);
  }
  if (!tooLarge)
    return bits;
  if (saturate)
    return sign | f.largest();
  return f.infinity ? sign | f.infinityBits() : sign | f.nan();
}

} // namespace tmc::emulator

//===----------------------------------------------------------------------===//
// CUDA's names
//===----------------------------------------------------------------------===//

struct __nv_bfloat16 {
  uint16_t bits;
};
struct __half {
  uint16_t bits;
};
struct alignas(4) __nv_bfloat162 {
  __nv_bfloat16 x, y;
};
struct alignas(4) __half2 {
  __half x, y;
};
typedef uint8_t __nv_fp8_storage_t;
enum __nv_fp8_interpretation_t { __NV_E4M3, __NV_E5M2 };
enum __nv_saturation_t { __NV_NOSAT, __NV_SATFINITE };

inline __nv_bfloat16 __float2bfloat16_rn(float x) {
  return {uint16_t(tmc::emulator::encode(tmc::emulator::kBf16, x))};
}
inline __nv_bfloat16 __float2bfloat16(float x) {
  return __float2bfloat16_rn(x);
}
inline float __bfloat162float(__nv_bfloat16 x) {
  return tmc::emulator::decode(tmc::emulator::kBf16, x.bits);
}
inline __half __float2half_rn(float x) {
  return {uint16_t(tmc::emulator::encode(tmc::emulator::kF16, x))};
}
inline __half __float2half(float x) { return __float2half_rn(x); }
inline float __half2float(__half x) {
  return tmc::emulator::decode(tmc::emulator::kF16, x.bits);
}
inline __nv_bfloat162 __floats2bfloat162_rn(float x, float y) {
  return {__float2bfloat16_rn(x), __float2bfloat16_rn(y)};
}
inline __half2 __floats2half2_rn(float x, float y) {
  return {__float2half_rn(x), __float2half_rn(y)};
}
inline __nv_fp8_storage_t
__nv_cvt_float_to_fp8(float x, __nv_saturation_t saturation,
                      __nv_fp8_interpretation_t type) {
  return __nv_fp8_storage_t(tmc::emulator::encode(
      type == __NV_E4M3 ? tmc::emulator::kE4M3 : tmc::emulator::kE5M2, x,
      saturation == __NV_SATFINITE));
}

#endif // TMC_TEST_CUDA_EMULATOR_TYPES_H
