// StackProducts.h - the part of -tmc-fold-into-kernels that joins short
// products.
//
// The gradient of a weight that many steps of a recurrent layer read is a sum
// of products, one for each step:
//
//     dW = a0^T b0 + a1^T b1 + ...      a [k, m], b [k, n]
//
// If k is small, passing over dW once per step takes longer than the
// multiplications. They become one product of all a and all b:
//
//     dW = [a0; a1; ...]^T [b0; b1; ...]

#ifndef TMC_PASSES_FUSE_STACKPRODUCTS_H
#define TMC_PASSES_FUSE_STACKPRODUCTS_H

#include "mlir/IR/Operation.h"

namespace tmc {

/// Joins the products of each sum in `root`.
void stackProducts(mlir::Operation *root);

} // namespace tmc

#endif // TMC_PASSES_FUSE_STACKPRODUCTS_H
