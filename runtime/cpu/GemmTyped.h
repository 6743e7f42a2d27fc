//===- GemmTyped.h - products with narrow results on cpu --------*- C++ -*-===//
//
//   out[b, i, j] = round(sum_k lhs[b, i, k] rhs[b, k, j]
//                        (+ bias[j]) (+ out[b, i, j]))
//
//   with scales:   round((sum * lhsScale) * rhsScale (+ bias[j])
//                        (+ out[b, i, j]))
//
// Gemm.h adds up in f32 and reads operands of any type. If the result is
// narrow, blocks of it are computed in scratch and rounded from there: each
// element is rounded once, for any k. Scaled sums use such blocks too.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_CPU_GEMMTYPED_H
#define TMC_RUNTIME_CPU_GEMMTYPED_H

#include "runtime/cpu/Gemm.h"
#include "runtime/kernels/Matmul.h"

namespace tmc::gemm {

/// c[m, n] = a b (+ bias) for one product with a result of type `out`, in rows
/// `ldc` elements apart. A bias has the result's type. scratch:
/// Matmul::scratchCap() bytes.
struct TypedProblem {
  int64_t m, n, k;
  Matrix a, b;
  const void *bias; // or nullptr
  void *c;
  int64_t ldc;
  DType out;
  bool accumulate;
  /// One factor each for all sums, or nullptr.
  const float *lhsScale = nullptr, *rhsScale = nullptr;
  bool scalesSums() const { return lhsScale || rhsScale; }
};
void runTyped(Stream &stream, const TypedProblem &problem, void *scratch);

} // namespace tmc::gemm

#endif // TMC_RUNTIME_CPU_GEMMTYPED_H
