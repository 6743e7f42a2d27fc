//===- GemmPack.h - packing narrow operands of products ---------*- C++ -*-===//
//
// Gemm.h's packA and packB for elements of 8 and 16 bits, and for floats that
// are rounded: a square of elements is widened or rounded on the stack, and
// transposed there if the layout requires it.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_CPU_GEMMPACK_H
#define TMC_RUNTIME_CPU_GEMMPACK_H

#include "runtime/cpu/Gemm.h"

namespace tmc::gemm {

/// packA of a matrix that isn't plain.
void packNarrowA(const Matrix &a, int64_t m, int64_t k, float *to);
/// packB of a matrix that isn't plain.
void packNarrowB(const Matrix &b, int64_t k, int64_t n, float *to);

} // namespace tmc::gemm

#endif // TMC_RUNTIME_CPU_GEMMPACK_H
