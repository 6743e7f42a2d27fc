//===- Normal.h - normal numbers that are the same everywhere ---*- C++ -*-===//
//
// Element i of a tensor takes word i of the Philox sequence that belongs to
// (seed, the tensor's name) through the inverse of the normal distribution. No
// library function is involved but the square root, which is exactly rounded:
// every machine draws the same bits.
//
// Source: M. Giles, "Approximating the erfinv function", GPU Computing Gems,
// 2010 (the polynomials).
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_STEP_NORMAL_H
#define TMC_RUNTIME_STEP_NORMAL_H

#include "runtime/kernels/Philox.h"

#include <cstdint>

namespace tmc {

/// out[i] = std times normal number first + i; `first` is a multiple of 4.
void normalNumbers(const Philox &philox, uint64_t first, int64_t count,
                   float std, float *out);

} // namespace tmc

#endif // TMC_RUNTIME_STEP_NORMAL_H
