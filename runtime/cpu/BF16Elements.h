//===- BF16Elements.h - elements that are read as bf16 ----------*- C++ -*-===//
//
// Loads of elements for packing factors for the instructions that multiply
// pairs of bf16 numbers (GemmPairs.h, GemmTiles.h): bf16, 8-bit codes, and
// floats that are rounded when they are read. A number is either the upper half
// of a float, or one of a pair of neighbours in four bytes, with the first one
// in the low half:
//
//     bits 31..16  element 2 q + 1        bits 15..0  element 2 q
//
// Only for processors with AVX512-BF16.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_CPU_BF16ELEMENTS_H
#define TMC_RUNTIME_CPU_BF16ELEMENTS_H

#include "runtime/cpu/Gemm.h"
#include "runtime/cpu/NarrowRows.h"

namespace tmc::gemm {

using simd::kWidth;
using simd::V;
using simd::VU;

constexpr uint32_t kUpperHalf = 0xffff0000;

/// Packs numbers in upper halves into pairs.
inline VU pairsOf(V first, V second) {
  return ((VU)first >> 16) | ((VU)second & kUpperHalf);
}

using Halves = uint16_t __attribute__((vector_size(kWidth * 2)));
inline V inUpperHalves(Halves bits) {
  return (V)(__builtin_convertvector(bits, VU) << 16);
}

inline __mmask16 lanes(int64_t count) { return __mmask16((1u << count) - 1); }

/// tmc::loadSome with the bf16 instructions.
inline V loadSome(const bf16 *from, int64_t count) {
  return inUpperHalves((Halves)_mm256_maskz_loadu_epi16(lanes(count), from));
}
inline V loadSome(const ReadAs<bf16> *from, int64_t count) {
  const __m512 floats = _mm512_maskz_loadu_ps(lanes(count), from);
  return inUpperHalves((Halves)_mm512_cvtneps_pbh(floats));
}

/// 2 * kWidth contiguous elements, as pairs of neighbours.
template <typename T> VU loadPairs(const T *from) {
  const V low = (V)loadLanes<kWidth>(from);
  const V high = (V)loadLanes<kWidth>(from + kWidth);
  return pairsOf(__builtin_shufflevector(low, high, 0, 2, 4, 6, 8, 10, 12, 14,
                                         16, 18, 20, 22, 24, 26, 28, 30),
                 __builtin_shufflevector(low, high, 1, 3, 5, 7, 9, 11, 13, 15,
                                         17, 19, 21, 23, 25, 27, 29, 31));
}
inline VU loadPairs(const bf16 *from) { return (VU)_mm512_loadu_si512(from); }
inline VU loadPairs(const ReadAs<bf16> *from) {
  const __m512 low = _mm512_loadu_ps(from);
  const __m512 high = _mm512_loadu_ps(from + kWidth);
  return (VU)_mm512_cvtne2ps_pbh(high, low);
}

/// The first `count` of them; zeros for the others.
inline VU loadPairs(const bf16 *from, int64_t count) {
  const auto some = __mmask32((uint64_t(1) << count) - 1);
  return (VU)_mm512_maskz_loadu_epi16(some, from);
}
inline VU loadPairs(const ReadAs<bf16> *from, int64_t count) {
  const uint64_t some = (uint64_t(1) << count) - 1;
  const __m512 low = _mm512_maskz_loadu_ps(__mmask16(some), from);
  const __m512 high =
      _mm512_maskz_loadu_ps(__mmask16(some >> kWidth), from + kWidth);
  return (VU)_mm512_cvtne2ps_pbh(high, low);
}

/// Calls f with a pointer to the elements in the type in which they are read.
template <typename F> void withBF16Elements(const Matrix &matrix, F &&f) {
  if (matrix.type == DType::F32)
    return f(static_cast<const ReadAs<bf16> *>(matrix.data));
  withStorage(matrix.type, [&](auto like) {
    f(static_cast<const decltype(like) *>(matrix.data));
  });
}

} // namespace tmc::gemm

#endif // TMC_RUNTIME_CPU_BF16ELEMENTS_H
