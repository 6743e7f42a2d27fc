//===- Adam4bit.h - AdamW's moments in 4 bits -------------------*- C++ -*-===//
//
// A block of kNibbleBlock elements stores a scale in f32, its largest absolute
// value but at least 1e-12, and a 4-bit code for each element. The moment is
// the code's value times the scale. A byte holds two codes, the first in the
// high bits. Codes are numbered by value. Those of the first moment are a
// dynamic map as in Adam.h, with three decades cut into 1, 2 and 4 intervals,
// their negatives, 0 and 1. Those of the second moment are 1/16, 2/16, ..., 1:
// without zero, so that no element is divided by the root of zero.
//
// Sources: Li, Chen, Zhu, "Memory Efficient Optimizers with 4-bit States"
// (NeurIPS 2023), and torchao's AdamW4bit, with the same values and blocks.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_KERNELS_ADAM4BIT_H
#define TMC_RUNTIME_KERNELS_ADAM4BIT_H

#include "runtime/kernels/Adam.h"

namespace tmc::adam {

/// Elements that share a scale.
constexpr int kNibbleBlock = 128;
constexpr int kNibbles = 16;
constexpr float kLeastScale = 1e-12f;

/// The value of a code of 4 bits.
TMC_HD inline float nibbleValue(bool isSigned, int code) {
  if (!isSigned)
    return float(code + 1) / kNibbles;
  constexpr int kZero = 7;
  constexpr float kValues[9] = {0,       0.0055f, 0.0325f, 0.0775f, 0.2125f,
                                0.4375f, 0.6625f, 0.8875f, 1};
  return code < kZero ? -kValues[kZero - code] : kValues[code - kZero];
}

/// The smallest float that isn't nearer to `code` than to `code` + 1; the
/// midpoint belongs to the upper one.
TMC_HD inline float nibbleBound(bool isSigned, int code) {
  const double middle = 0.5 * (double(nibbleValue(isSigned, code)) +
                               double(nibbleValue(isSigned, code + 1)));
  float bound = float(middle);
  if (double(bound) < middle) {
    uint32_t bits;
    memcpy(&bits, &bound, sizeof bits);
    bits += bound > 0 ? 1u : uint32_t(-1);
    memcpy(&bound, &bits, sizeof bits);
  }
  return bound;
}

/// The divisor of a block whose largest absolute value is `largest`.
TMC_HD inline float scaleOf(float largest) {
  return largest < kLeastScale ? kLeastScale : largest;
}

} // namespace tmc::adam

#endif // TMC_RUNTIME_KERNELS_ADAM4BIT_H
