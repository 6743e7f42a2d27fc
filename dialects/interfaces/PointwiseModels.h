// PointwiseModels.h - what the external models of upstream's pointwise ops
// share.

#ifndef TMC_DIALECTS_INTERFACES_POINTWISEMODELS_H
#define TMC_DIALECTS_INTERFACES_POINTWISEMODELS_H

#include "dialects/interfaces/Interfaces.h"

namespace tmc {

/// One flop per element.
template <typename OpTy>
struct PointwiseCost
    : CostOpInterface::ExternalModel<PointwiseCost<OpTy>, OpTy> {
  int64_t getFlops(mlir::Operation *op) const {
    auto type =
        llvm::dyn_cast<mlir::RankedTensorType>(op->getResult(0).getType());
    return type ? type.getNumElements() : 1;
  }
};

/// Every operand that holds the batch holds it in the same dimension; one that
/// doesn't must not be a tensor that varies along it, which only splats are.
template <typename OpTy>
struct PointwiseSplit
    : BatchSplitOpInterface::ExternalModel<PointwiseSplit<OpTy>, OpTy> {
  BatchSplit getSplit(mlir::Operation *op,
                      llvm::ArrayRef<int64_t> batchDims) const {
    int64_t batch = -1;
    for (int64_t dim : batchDims) {
      if (dim >= 0 && batch >= 0 && dim != batch)
        return BatchSplit::refuse("its operands hold the batch in different "
                                  "dimensions");
      batch = std::max(batch, dim);
    }
    return {{batch < 0 ? Rejoin::whole() : Rejoin::concat(batch)}, ""};
  }
};

using Grads = llvm::SmallVector<mlir::Value>;

/// A derivative written as `static Grads build(OpTy, OpBuilder &, Value dy)`.
template <typename Derived, typename OpTy>
struct Vjp : DifferentiableOpInterface::ExternalModel<Derived, OpTy> {
  llvm::SmallVector<mlir::Value> buildVjp(mlir::Operation *op,
                                          mlir::OpBuilder &b,
                                          llvm::ArrayRef<mlir::Value> grads,
                                          llvm::ArrayRef<bool>) const {
    return Derived::build(llvm::cast<OpTy>(op), b, grads[0]);
  }
};

template <typename... OpTys> void attachPointwise(mlir::MLIRContext *context) {
  (OpTys::template attachInterface<PointwiseCost<OpTys>, PointwiseSplit<OpTys>>(
       *context),
   ...);
}

} // namespace tmc

#endif // TMC_DIALECTS_INTERFACES_POINTWISEMODELS_H
