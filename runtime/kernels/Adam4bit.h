//===- Adam4bit.h - AdamW's moments in 4 bits -------------------*- C++ -*-===//
//
// Each block of kNibbleBlock elements has a scale in f32, its largest absolute
// value but at least 1e-12, and each element a code of 4 bits, whose value
// times the scale is the moment. A byte holds two, the first element's above.
// Codes are numbered by value: those of the first moment are a dynamic map of
// three decades as that of Adam.h, cut into 1, 2 and 4 intervals, with
// negatives, 0 and 1; those of the second are 1/16, 2/16, ..., 1. Zero isn't
// among these, so that no element is divided by a root of nothing.
//
// Sources: Li, Chen, Zhu, "Memory Efficient Optimizers with 4-bit States"
// (NeurIPS 2023), and torchao's AdamW4bit, whose numbers and blocks these are.
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

/// The least float that isn't nearer to code than to code + 1: half way is the
/// upper one's.
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

/// What a block whose largest absolute value is `largest` is divided by.
TMC_HD inline float scaleOf(float largest) {
  return largest < kLeastScale ? kLeastScale : largest;
}

} // namespace tmc::adam

#endif // TMC_RUNTIME_KERNELS_ADAM4BIT_H
