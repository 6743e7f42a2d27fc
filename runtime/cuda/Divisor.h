//===- Divisor.h - divisions by numbers known before a launch ---*- C++ -*-===//
//
// A division of numbers below 2^31 as a multiplication and a shift. The host
// computes the factors once for a launch. Source: Granlund, Montgomery,
// "Division by Invariant Integers using Multiplication", 1994, section 4.
//
// Plain C++, so that tests can run it on the host.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_CUDA_DIVISOR_H
#define TMC_RUNTIME_CUDA_DIVISOR_H

#include "runtime/kernels/Portable.h"

#include <cstdint>

namespace tmc::cuda {

/// Numbers below this can be divided.
constexpr int64_t kDividends = int64_t(1) << 31;

struct Divisor {
  uint32_t by = 1, factor = 1, shift = 0;

  Divisor() = default;
  /// `divisor` is in [1, 2^31].
  explicit Divisor(int64_t divisor) : by(uint32_t(divisor)) {
    while (int64_t(1) << shift < divisor)
      ++shift;
    factor = uint32_t(
        ((uint64_t(1) << 32) * ((uint64_t(1) << shift) - uint64_t(divisor))) /
            uint64_t(divisor) +
        1);
  }

  TMC_HD uint32_t divide(uint32_t n) const {
    return (uint32_t(uint64_t(n) * factor >> 32) + n) >> shift;
  }
  /// The quotient, and the rest.
  TMC_HD uint32_t divide(uint32_t n, uint32_t &rest) const {
    const uint32_t q = divide(n);
    rest = n - q * by;
    return q;
  }
};

} // namespace tmc::cuda

#endif // TMC_RUNTIME_CUDA_DIVISOR_H
