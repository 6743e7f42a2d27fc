//===- MatmulCodes.h - products by frozen weights in codes ------*- C++ -*-===//
//
//   out[i, j] = sum_k lhs[i, k] w[k, j] (+ bias[j])
//
// w is a frozen weight as codes (FrozenCodes.h). The product decodes a panel of
// it at a time, where it packs panels of other factors, so that w is never in
// memory as a whole:
//
//     codes --> panel of w, rounded to the type of lhs --> packed panel
//
// The result has the bits of Dequantize.h and Matmul.h in turn. cpu only.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_KERNELS_MATMULCODES_H
#define TMC_RUNTIME_KERNELS_MATMULCODES_H

#include "runtime/kernels/FrozenCodes.h"
#include "runtime/kernels/Matmul.h"

namespace tmc {

/// ins: lhs [m, k] (stored [k, m] if transposeLhs); codes, absmax and nested
/// maxima (or absent) as those of Dequantize, of w [k, n] (stored [n, k] if
/// transposeRhs); bias [n] if bias. outs: out [m, n]. `accumulate` adds to it.
class MatmulCodes : public Kernel {
public:
  struct Params {
    DType lhs, out;
    int64_t m, n, k;
    bool transposeLhs, transposeRhs, bias;
    bool byRows, nested;
    int64_t scratchBytes = 0;

    TMC_FIELDS(lhs, out, m, n, k, transposeLhs, transposeRhs, bias, byRows,
               nested)

    /// The product of the same matrices in memory.
    Matmul::Params plain() const {
      Matmul::Params p{};
      p.lhs = p.rhs = lhs;
      p.out = out;
      p.batch = 1;
      p.m = m;
      p.n = n;
      p.k = k;
      p.transposeLhs = transposeLhs;
      p.transposeRhs = transposeRhs;
      p.bias = bias;
      return p;
    }
  };
  static constexpr bool takes(const Params &p, Backend backend) {
    return backend == Backend::Cpu &&
           (p.byRows ? !p.nested : p.k * p.n % frozen::kBlock == 0) &&
           Matmul::takes(p.lhs, p.lhs, p.out, backend);
  }
  static int64_t scratchCap(const Params &p, Backend backend) {
    return Matmul::scratchCap(p.plain(), backend);
  }
  TMC_KERNEL(MatmulCodes)
};

} // namespace tmc

#endif // TMC_RUNTIME_KERNELS_MATMULCODES_H
