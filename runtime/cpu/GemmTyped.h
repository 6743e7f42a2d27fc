//===- GemmTyped.h - products of narrow operands on cpu ---------*- C++ -*-===//
//
//   out[b, i, j] = round(sum_k widen(lhs[b, i, k]) widen(rhs[b, k, j])
//                        (+ widen(bias[j])) (+ widen(out[b, i, j])))
//
// Blocks of the operands are widened to f32 and multiplied as in Gemm.h:
//
//     rows, columns of out in blocks of kTypedBlock:
//       k in blocks of kTypedBlock:
//         widen lhs's block and rhs's block     shared, in the L2 cache
//         block += lhs rhs                      (Gemm.h; in depths of its own)
//       round the block into out
//
// Sums have the bits that Gemm.h gives on operands widened as a whole, and are
// rounded once. f32 operands are read in place.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_CPU_GEMMTYPED_H
#define TMC_RUNTIME_CPU_GEMMTYPED_H

#include "runtime/kernels/Matmul.h"

namespace tmc {

class Stream;

namespace gemm {

/// Runs all products of `params`, not all of whose types are f32, on the
/// stream's threads. scratch: TypedGemmScratch(params).bytes() bytes.
void runTyped(Stream &stream, const Matmul::Params &params, const void *lhs,
              const void *rhs, const void *bias, void *out, void *scratch,
              bool accumulate);

} // namespace gemm
} // namespace tmc

#endif // TMC_RUNTIME_CPU_GEMMTYPED_H
