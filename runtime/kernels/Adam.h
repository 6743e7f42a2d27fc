//===- Adam.h - AdamW of one element, and 8-bit moments ---------*- C++ -*-===//
//
// The code that AdamW's kernels on both backends share.
//
// Moments in 8 bits: a block of kCodeBlock elements stores its largest absolute
// value in f32, and a code for each element. The moment is the code's value
// times the maximum. Codes are numbered by value. Between 0 and 1 there are
// seven decades (10^(i-7), 10^(i-6)], i = 0..6. Decade i is cut into 2^i equal
// intervals if the map is signed, else into 2^(i+1). A code's value is the
// middle of its interval. 0 and 1 are codes, and if signed the negatives of all
// but 1. So 8 bits span seven orders of magnitude, with a relative step of 1 %
// at the top.
//
// Source: Dettmers, Lewis, Shleifer, Zettlemoyer, "8-bit Optimizers via
// Block-wise Quantization" (ICLR 2022), dynamic tree quantization.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_KERNELS_ADAM_H
#define TMC_RUNTIME_KERNELS_ADAM_H

#include "runtime/kernels/Optimizer.h"
#include "runtime/kernels/Portable.h"

#include <cmath>
#include <cstdint>
#include <cstring>

namespace tmc::adam {

/// base^n by squares.
TMC_HD inline double powerOf(double base, int64_t n) {
  double power = 1;
  for (; n > 0; n /= 2, base *= base)
    if (n % 2 == 1)
      power *= base;
  return power;
}

/// The factors of one step; computed in double and rounded once.
struct Factors {
  float decay, w1, b2, w2, root, epsilon, size, scale;
};

/// The factors from the kernels' scalar operands; `clipScale` may be absent.
TMC_HD inline Factors factors(const AdamParams &q, const float *rate,
                              const int64_t *count, const float *clipScale) {
  const double lr = *rate;
  const int64_t step = *count; // from 1
  Factors f;
  f.decay = float(1 - lr * q.weightDecay);
  f.w1 = float(1 - q.beta1);
  f.b2 = float(q.beta2);
  f.w2 = float(1 - q.beta2);
  f.root = float(sqrt(1 - powerOf(q.beta2, step)));
  f.epsilon = float(q.epsilon);
  f.size = float(-lr / (1 - powerOf(q.beta1, step)));
  f.scale = clipScale ? *clipScale : 1.0f;
  return f;
}

/// Returns the new parameter and updates the moments in place. V is a float or
/// a vector of floats, F the factors of that type; `root` is the square root of
/// V.
template <typename V, typename F, typename Root>
TMC_HD inline V update(const F &f, V grad, V param, V &first, V &second,
                       Root root) {
  const V g = grad * f.scale;
  const V p = param * f.decay;
  first = first + f.w1 * (g - first);
  second = second * f.b2 + f.w2 * g * g;
  return p + f.size * first / (root(second) / f.root + f.epsilon);
}

//===----------------------------------------------------------------------===//
// Codes
//===----------------------------------------------------------------------===//

/// Elements that share a maximum.
constexpr int kCodeBlock = 256;
constexpr int kCodes = 256;
/// The code of 0 in the signed map.
constexpr int kSignedZero = 127;

/// The value of a code.
TMC_HD inline float codeValue(bool isSigned, int code) {
  if (code == kCodes - 1)
    return 1;
  const bool isNegative = isSigned && code < kSignedZero;
  // Nonzero values count from 1; decade i begins at 2^i, or 2^(i+1) - 1.
  const int number = isNegative ? kSignedZero - code
                     : isSigned ? code - kSignedZero
                                : code;
  if (number == 0)
    return 0;
  const int at = isSigned ? number : number + 1;
  int intervals = 1, decade = isSigned ? 0 : -1;
  for (; 2 * intervals <= at; intervals *= 2)
    ++decade;
  double value = 0.1 + 0.9 * (at - intervals + 0.5) / intervals;
  for (int i = decade; i < 6; ++i)
    value /= 10;
  return float(isNegative ? -value : value);
}

/// The largest float that isn't nearer to `upper` than to `lower`; the midpoint
/// belongs to `lower`.
TMC_HD inline float boundBetween(float lower, float upper) {
  const double middle = 0.5 * (double(lower) + double(upper));
  float bound = float(middle);
  if (double(bound) > middle) {
    uint32_t bits;
    memcpy(&bits, &bound, sizeof bits);
    bits += bound > 0 ? uint32_t(-1) : 1u;
    memcpy(&bound, &bits, sizeof bits);
  }
  return bound;
}

/// The nearest code; `above[c]` is the bound between the values of c and c + 1.
/// NaN has code 0.
TMC_HD inline int nearestCode(float x, const float *above) {
  int code = 0;
  for (int step = kCodes / 2; step; step /= 2)
    if (x > above[code + step - 1])
      code += step;
  return code;
}

/// The divisor of a block's values.
TMC_HD inline float divisorOf(float largest) {
  return largest > 0 ? largest : 1.0f;
}

/// False for NaN and infinities: such a gradient changes nothing.
TMC_HD inline bool isFinite(float x) { return x - x == 0; }

} // namespace tmc::adam

#endif // TMC_RUNTIME_KERNELS_ADAM_H
