//===- Normal.h - random numbers, identical on all machines -----*- C++ -*-===//
//
// Element i of a tensor is word i of the Philox sequence of (seed, the tensor's
// name), mapped by the inverse of the normal distribution, or to an interval.
// The only library function is the square root, which is exactly rounded, so
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

/// out[i] = std * normal(first + i); `first` is a multiple of 4.
void normalNumbers(const Philox &philox, uint64_t first, int64_t count,
                   float std, float *out);

/// out[i] is uniform in [-size, size); `first` is a multiple of 4.
void uniformNumbers(const Philox &philox, uint64_t first, int64_t count,
                    float size, float *out);

} // namespace tmc

#endif // TMC_RUNTIME_STEP_NORMAL_H
