//===- Stochastic.h - rounding by chance ------------------------*- C++ -*-===//
//
// A float between two bf16 becomes the upper one with the probability of its
// distance from the lower, in units of 2^-16 of theirs: 16 bits of chance are
// added to the 16 that bf16 drops. So the mean of many roundings is the float,
// and what bf16 holds stays as it is. Infinities and NaNs stay what they are.
//
// The bits are Philox's, of the number of an update, the step and the element:
// the same for every backend, order, number of threads and plan, and for every
// run's seed.
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
/// Values of an update that may be rounded, and elements whose bits come of one
/// quad.
constexpr int kRoundedValues = 3, kRoundedElements = 8;

/// The draws of one update in one step.
TMC_HD inline Philox roundingDraws(int64_t stream, int64_t step) {
  const int64_t words[2] = {int64_t(kRoundingKey), step};
  return Philox(words, uint32_t(stream));
}

/// 16 bits of chance for value `which` of `element`.
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

/// Calls f with a value of the type that holds `type`, as `isUpdated` has it.
template <typename F> void withUpdated(DType type, F &&f) {
  if (type == DType::BF16)
    f(bf16{});
  else
    f(float{});
}
/// The same of what `isGradient` has.
template <typename F> void withGradient(DType type, F &&f) {
  if (type == DType::F16)
    f(f16{});
  else
    withUpdated(type, f);
}
/// The same of a parameter's, a gradient's and a moment's type.
template <typename F>
void withUpdated(DType param, DType grad, DType moment, F &&f) {
  withUpdated(param, [&](auto p) {
    withGradient(grad, [&](auto g) {
      withUpdated(moment, [&](auto m) { f(p, g, m); });
    });
  });
}
/// Where an update of a parameter in f32 writes its copy, rounded to nearest;
/// nowhere where there is none.
struct RoundedCopy {
  bf16 *brains;
  f16 *halves;

  RoundedCopy(DType type, void *to)
      : brains(type == DType::BF16 ? static_cast<bf16 *>(to) : nullptr),
        halves(type == DType::F16 ? static_cast<f16 *>(to) : nullptr) {}
  template <int N>
  TMC_HD TMC_INLINE void store(int64_t i, Floats<N> param) const {
    if (brains)
      storeLanes<N>(brains + i, param);
    else if (halves)
      storeLanes<N>(halves + i, param);
  }
};

/// Values of an update to draw for: all `Moments`, or the parameter alone.
template <typename Param, typename Moment, int Moments>
constexpr int kDrawnValues = isNarrow<Moment>  ? 1 + Moments
                             : isNarrow<Param> ? 1
                                               : 0;

} // namespace tmc

#endif // TMC_RUNTIME_KERNELS_STOCHASTIC_H
