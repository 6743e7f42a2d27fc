//===- ScaleOf.h - the scale of codes of 8 bits -----------------*- C++ -*-===//
//
// From the largest magnitude of what shares it, which is an exact maximum: no
// order of the values matters. Magnitudes are compared as the bits of floats.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_KERNELS_SCALEOF_H
#define TMC_RUNTIME_KERNELS_SCALEOF_H

#include "runtime/kernels/DType.h"
#include "runtime/kernels/Storage.h"

namespace tmc {

/// The bits of |x| order floats as their magnitudes, a NaN above all.
template <typename F> TMC_HD TMC_INLINE auto magnitudeBits(F x) {
  return bitsAs<Ints<lanesOf<F>>>(x) & 0x7fffffff;
}
/// 2^-126, the least scale: its reciprocal is a float, too.
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

/// What a history keeps of an amax: one that isn't finite leaves no trace.
TMC_HD inline float recordedAmax(int32_t amaxBits) {
  return amaxBits >= 0x7f800000 ? 0 : bitsAs<float>(amaxBits);
}

/// What becomes of x where it is `scaled`: what isn't finite would saturate,
/// and nobody would see that it was no number, where its scale is of steps
/// before.
template <typename F> TMC_HD TMC_INLINE F unlessInfinite(F x, F scaled) {
  return select(asMask(magnitudeBits(x) >= 0x7f800000),
                bitsAs<F>(splat<lanesOf<F>>(0x7fc00000)), scaled);
}

/// Lanes whose number x, finite, is beyond the codes' largest one once it is
/// scaled: a mask, of one lane anything but zero.
template <typename F>
TMC_HD TMC_INLINE auto isSaturated(F x, F scaled, DType codes) {
  const int32_t mostBits =
      bitsAs<int32_t>(codes == DType::F8E4M3 ? 448.0f : 57344.0f);
  const auto bits = magnitudeBits(scaled);
  return asMask(bits > mostBits) & asMask(bits <= 0x7f800000) &
         asMask(magnitudeBits(x) < 0x7f800000);
}

/// The scale of a block: a power of two. Both types' largest number is 1.75
/// times one.
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
