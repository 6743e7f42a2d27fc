// Linear.h - matrix products.

#ifndef TMC_FRONTENDS_COMMON_OPS_LINEAR_H
#define TMC_FRONTENDS_COMMON_OPS_LINEAR_H

#include "frontends/common/Site.h"

namespace tmc::frontend {

/// alpha * op(a) * op(w) + beta * c, for matrices; `c`, which may be absent,
/// broadcasts to the result.
struct Gemm {
  bool transposeA = false, transposeW = false;
  double alpha = 1, beta = 1;
};
mlir::FailureOr<Val> gemm(Site &s, const Val &a, const Val &w, const Val &c,
                          const Gemm &how);

/// The product of two tensors by NumPy's rule: vectors are a row on the left
/// and a column on the right, the outer dimensions broadcast.
mlir::FailureOr<Val> matmul(Site &s, const Val &a, const Val &w);

/// x * transposed w + bias over the innermost dimension of `x`; `w` is [out,
/// in], `bias` [out] or absent.
mlir::FailureOr<Val> linear(Site &s, const Val &x, const Val &w,
                            const Val &bias);

/// Rows of `x` [M, K] times the matrix of their group in `w` [G, K, N]; group g
/// ends before row ends[g], and rows after the last group give zeros. All rows
/// are multiplied by all matrices, because sizes of groups are values, not
/// shapes.
mlir::FailureOr<Val> groupedProduct(Site &s, const Val &x, const Val &w,
                                    const Val &ends);

/// The product of two matrices, or of two batches of them; transposes of
/// operands become flags of the product.
mlir::Value product(Site &s, mlir::Value lhs, mlir::Value rhs,
                    bool transposeLhs = false, bool transposeRhs = false,
                    mlir::Value bias = {});

} // namespace tmc::frontend

#endif // TMC_FRONTENDS_COMMON_OPS_LINEAR_H
