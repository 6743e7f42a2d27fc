#include "dialects/interfaces/Cuts.h"

#include "llvm/ADT/STLExtras.h"

#include <numeric>

using namespace mlir;
using namespace tmc;

RankedTensorType OpCut::pieceOf(RankedTensorType whole, int64_t dim,
                                int64_t mine) const {
  if (dim < 0)
    return whole;
  SmallVector<int64_t> shape(whole.getShape());
  shape[dim] = shape[dim] / units * mine;
  return whole.clone(shape);
}

void OpCuts::add(ArrayRef<int64_t> operands, ArrayRef<Rejoin> results) {
  int64_t units = 0;
  auto meet = [&](Type type, int64_t dim) {
    if (dim >= 0)
      units = std::gcd(units, cast<RankedTensorType>(type).getDimSize(dim));
  };
  for (auto [type, dim] : llvm::zip_equal(op->getOperandTypes(), operands))
    meet(type, dim);
  for (auto [type, how] : llvm::zip_equal(op->getResultTypes(), results))
    meet(type, how.dim);
  if (units > 1)
    list.push_back(
        {SmallVector<int64_t>(operands), SmallVector<Rejoin>(results), units});
}

BatchSplit OpCuts::find(ArrayRef<int64_t> dims) const {
  if (llvm::all_of(dims, [](int64_t dim) { return dim < 0; }))
    return {SmallVector<Rejoin>(op->getNumResults(), Rejoin::whole()), ""};
  for (const OpCut &cut : list)
    if (ArrayRef(cut.operands) == dims)
      return {cut.results, ""};
  // A cut of more operands.
  auto holds = [&](const OpCut &cut) {
    return llvm::all_of(llvm::zip_equal(dims, cut.operands), [](auto pair) {
      auto [dim, cutDim] = pair;
      return dim < 0 || dim == cutDim;
    });
  };
  return BatchSplit::refuse(llvm::any_of(list, holds) ? kOneForAll : otherwise);
}

OpCuts tmc::pointwiseCuts(Operation *op) {
  OpCuts cuts(op, "its operands hold the batch in different dimensions");
  auto result = dyn_cast<RankedTensorType>(op->getResult(0).getType());
  for (int64_t dim = 0; result && dim < result.getRank(); ++dim) {
    SmallVector<int64_t> operands;
    for (Type type : op->getOperandTypes()) // A choice may be one for all.
      operands.push_back(isa<RankedTensorType>(type) ? dim : OpCut::kWhole);
    cuts.add(operands, Rejoin::concat(dim));
  }
  return cuts;
}
