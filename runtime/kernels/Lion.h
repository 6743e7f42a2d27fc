//===- Lion.h - Lion of one element -----------------------------*- C++ -*-===//
//
// The code that Lion's kernels on both backends share.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_KERNELS_LION_H
#define TMC_RUNTIME_KERNELS_LION_H

#include "runtime/kernels/Optimizer.h"
#include "runtime/kernels/Portable.h"

namespace tmc::lion {

/// The factors of one step; computed in double and rounded once. F is a float,
/// or a vector with the same number in each lane.
template <typename F> struct Factors {
  F decay, b1, w1, b2, w2, rate, scale;

  /// The same of another type.
  template <typename To, typename Convert>
  TMC_HD Factors<To> as(Convert convert) const {
    return {convert(decay), convert(b1),   convert(w1),   convert(b2),
            convert(w2),    convert(rate), convert(scale)};
  }
};

/// The factors from the kernels' scalar operands; `clipScale` may be absent.
TMC_HD inline Factors<float> factors(const Lion::Params &q, const float *rate,
                                     const float *clipScale) {
  return {float(1 - double(*rate) * q.weightDecay),
          float(q.beta1),
          float(1 - q.beta1),
          float(q.beta2),
          float(1 - q.beta2),
          *rate,
          clipScale ? *clipScale : 1.0f};
}

/// Returns the new parameter and updates the moment in place.
template <typename V>
TMC_HD inline V update(const Factors<V> &f, V grad, V param, V &moment) {
  const V g = grad * f.scale;
  const V blend = moment * f.b1 + f.w1 * g;
  const V p = param * f.decay;
  moment = moment * f.b2 + f.w2 * g;
  const V zero{};
  return blend > zero ? p - f.rate : blend < zero ? p + f.rate : p;
}

} // namespace tmc::lion

#endif // TMC_RUNTIME_KERNELS_LION_H
