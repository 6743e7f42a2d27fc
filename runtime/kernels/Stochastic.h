//===- Stochastic.h - stochastic rounding -----------------------*- C++ -*-===//
//
// A float between two neighbouring bf16 values is rounded up with a probability
// equal to its distance from the lower one, as a fraction of their difference:
// 16 random bits are added to the 16 bits that bf16 drops. So the mean of many
// roundings is the float, and an exact bf16 value doesn't change. Infinities
// and NaNs stay infinities and NaNs.
//
// The bits come from Philox, from the number of an update, the step and the
// element: they are the same for every backend, order, number of threads, plan
// and seed of a run.
//
//   key      = (kRoundingKey, 0)
//   counter  = (low32(quad), high32(quad), stream, low32(step))
//   quad     = 3 * (element / 8) + which    which: 0 param, 1 and 2 moments
//   bits     = half (element % 8) of the quad's words, lower halves first
//
// Source of the rounding: Gupta, Agrawal, Gopalakrishnan, Narayanan, "Deep
// Learning with Limited Numerical Precision", ICML 2015.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_KERNELS_STOCHASTIC_H
#define TMC_RUNTIME_KERNELS_STOCHASTIC_H

#include "runtime/kernels/Optimizer.h"
#include "runtime/kernels/Philox.h"
#include "runtime/kernels/Storage.h"

namespace tmc {

constexpr uint32_t kRoundingKey = 0x726f756e;
/// Values of an update that may be rounded, and elements that take their bits
/// from one quad.
constexpr int kRoundedValues = 3, kRoundedElements = 8;

/// The draws of one update in one step.
TMC_HD inline Philox roundingDraws(int64_t stream, int64_t step) {
  const int64_t words[2] = {int64_t(kRoundingKey), step};
  return Philox(words, uint32_t(stream));
}

/// 16 random bits for value `which` of `element`.
TMC_HD inline uint32_t roundingBits(const Philox &draws, int64_t element,
                                    int which) {
  const PhiloxWords words = draws.quad(
      uint64_t(kRoundedValues * (element / kRoundedElements) + which));
  const int half = int(element % kRoundedElements);
  return words.w[half / 2] >> (half % 2 * 16) & 0xffffu;
}

/// The bits of `x` rounded to bf16 by `chance`, less than 2^16, in each lane.
template <typename F, typename U>
TMC_HD TMC_INLINE U stochasticBits(F x, U chance) {
  constexpr int N = lanesOf<F>;
  const U bits = bitsAs<U>(x);
  const auto isNan = asMask(bitsAs<Ints<N>>(bits & 0x7fffffffu) > 0x7f800000);
  return select(isNan, (bits >> 16u) | 0x40u, (bits + chance) >> 16u);
}

//===----------------------------------------------------------------------===//
// Updates of all types
//===----------------------------------------------------------------------===//

/// Calls f with a value of the storage type of `type`, for types of
/// `isUpdated`.
template <typename F> void withUpdated(DType type, F &&f) {
  if (type == DType::BF16)
    f(bf16{});
  else
    f(float{});
}
/// The same for types of `isGradient`.
template <typename F> void withGradient(DType type, F &&f) {
  if (type == DType::F16)
    f(f16{});
  else
    withUpdated(type, f);
}
/// The same for the types of a parameter, a gradient and a moment.
template <typename F>
void withUpdated(DType param, DType grad, DType moment, F &&f) {
  withUpdated(param, [&](auto p) {
    withGradient(grad, [&](auto g) {
      withUpdated(moment, [&](auto m) { f(p, g, m); });
    });
  });
}
/// The place of the copy of an f32 parameter, rounded to nearest; null if there
/// is no copy.
struct RoundedCopy {
  bf16 *brains;
  f16 *halves;

  TMC_HD RoundedCopy(DType type, void *to)
      : brains(type == DType::BF16 ? static_cast<bf16 *>(to) : nullptr),
        halves(type == DType::F16 ? static_cast<f16 *>(to) : nullptr) {}
  template <int N, bool Aligned = false>
  TMC_HD TMC_INLINE void store(int64_t i, Floats<N> param) const {
    if (brains)
      storeLanes<N, Aligned>(brains + i, param);
    else if (halves)
      storeLanes<N, Aligned>(halves + i, param);
  }
  TMC_HD const void *address() const {
    return brains ? static_cast<const void *>(brains) : halves;
  }
};

/// The number of values of an update that need random bits.
template <typename Param, typename Moment, int Moments>
constexpr int kDrawnValues = isNarrow<Moment>  ? 1 + Moments
                             : isNarrow<Param> ? 1
                                               : 0;

} // namespace tmc

#endif // TMC_RUNTIME_KERNELS_STOCHASTIC_H
