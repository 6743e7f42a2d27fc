//===- ScaleOf.h - the scale of 8-bit codes ---------------------*- C++ -*-===//
//
// A scale follows from the largest magnitude of the values that share it. That
// maximum is exact, so the order of the values has no influence. Magnitudes are
// compared as the bits of floats.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_KERNELS_SCALEOF_H
#define TMC_RUNTIME_KERNELS_SCALEOF_H

#include "runtime/kernels/DType.h"
#include "runtime/kernels/Storage.h"

namespace tmc {

/// The bits of |x| order floats by magnitude, with NaN above all.
template <typename F> TMC_HD TMC_INLINE auto magnitudeBits(F x) {
  return bitsAs<Ints<lanesOf<F>>>(x) & 0x7fffffff;
}
/// 2^-126, the smallest scale: its reciprocal is a finite float too.
constexpr int32_t kLeastScaleBits = 1 << 23;

/// The scale of a tensor whose largest magnitude has these bits.
TMC_HD inline float scaleOfWhole(int32_t amaxBits, DType codes) {
  if (amaxBits >= 0x7f800000)
    return bitsAs<float>(0x7fc00000);
  if (amaxBits == 0)
    return 1;
  const float most = codes == DType::F8E4M3 ? 448.0f : 57344.0f;
  const float scale = bitsAs<float>(amaxBits) / most,
              least = bitsAs<float>(kLeastScaleBits);
  return scale < least ? least : scale;
}

/// The entry of an amax in a history: 0 if the amax isn't finite.
TMC_HD inline float recordedAmax(int32_t amaxBits) {
  return amaxBits >= 0x7f800000 ? 0 : bitsAs<float>(amaxBits);
}

/// `scaled`, or NaN if x isn't finite. Without this, an infinite x would
/// saturate unnoticed when its scale comes from earlier steps.
template <typename F> TMC_HD TMC_INLINE F unlessInfinite(F x, F scaled) {
  return select(asMask(magnitudeBits(x) >= 0x7f800000),
                bitsAs<F>(splat<lanesOf<F>>(0x7fc00000)), scaled);
}

/// Marks lanes where x is finite but `scaled` is beyond the codes' largest
/// number: a mask; for one lane, nonzero means true.
template <typename F>
TMC_HD TMC_INLINE auto isSaturated(F x, F scaled, DType codes) {
  const int32_t mostBits =
      bitsAs<int32_t>(codes == DType::F8E4M3 ? 448.0f : 57344.0f);
  const auto bits = magnitudeBits(scaled);
  return asMask(bits > mostBits) & asMask(bits <= 0x7f800000) &
         asMask(magnitudeBits(x) < 0x7f800000);
}

/// The scale of a block: a power of two. The largest number of both types is
/// 1.75 times a power of two.
TMC_HD inline float scaleOfBlock(int32_t amaxBits, DType codes) {
  if (amaxBits >= 0x7f800000)
    return bitsAs<float>(0x7fc00000);
  if (amaxBits == 0)
    return 1;
  const int32_t exponent =
      ((amaxBits + 0x1fffff) >> 23) - (codes == DType::F8E4M3 ? 8 : 15);
  return bitsAs<float>((exponent < 1 ? 1 : exponent) << 23);
}

} // namespace tmc

#endif // TMC_RUNTIME_KERNELS_SCALEOF_H
