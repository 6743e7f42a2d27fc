#include "compiler/analysis/Storage.h"

#include "dialects/mem/Mem.h"
#include "dialects/train/Train.h"

using namespace mlir;
using namespace tmc;

bool tmc::isView(Operation *op) { return op && isa<ViewOpInterface>(op); }

/// One step from `value` towards its root; null at the root.
static Value towardsRoot(Value value) {
  if (isView(value.getDefiningOp()))
    return value.getDefiningOp()->getOperand(0);
  if (auto loop = value.getDefiningOp<train::MicroBatchOp>()) {
    Operation *yield = loop.getBlock().getTerminator();
    return yield->getOperand(cast<OpResult>(value).getResultNumber());
  }
  if (auto argument = dyn_cast<BlockArgument>(value))
    if (auto loop =
            dyn_cast<train::MicroBatchOp>(argument.getOwner()->getParentOp()))
      if (argument.getArgNumber() < loop.getSlices().size())
        return loop.getSlices()[argument.getArgNumber()];
  return {};
}

Value tmc::storageRoot(Value value) {
  while (Value next = towardsRoot(value))
    value = next;
  return value;
}

Value tmc::contentRoot(Value value) {
  Value root = storageRoot(value);
  while (isa_and_nonnull<train::StashStartOp, train::FetchStartOp>(
      root.getDefiningOp()))
    root = storageRoot(root.getDefiningOp()->getOperand(0));
  return root;
}

MemRefType tmc::contiguous(Type tensor) {
  auto type = cast<RankedTensorType>(tensor);
  return MemRefType::get(type.getShape(), type.getElementType(),
                         MemRefLayoutAttrInterface(), memorySpaceOf(type));
}

Attribute tmc::memorySpaceOf(Type tensor) {
  SpaceKind space = train::spaceOf(tensor);
  if (onDevice(space))
    return {};
  return mem::SpaceAttr::get(tensor.getContext(), space);
}

MemRefType tmc::layoutOf(Value value) {
  Operation *op = value.getDefiningOp();
  if (!isView(op))
    return contiguous(value.getType()); // A piece begins at its own element 0.
  MemRefType source = layoutOf(op->getOperand(0));
  return source ? cast<ViewOpInterface>(op).viewOf(source) : MemRefType();
}

bool tmc::hasContiguousRows(MemRefType type) {
  SmallVector<int64_t> strides;
  int64_t offset;
  if (failed(type.getStridesAndOffset(strides, offset)))
    return false;
  return strides.empty() || strides.back() == 1 || type.getShape().back() == 1;
}

bool tmc::isContiguous(MemRefType type) {
  SmallVector<int64_t> strides;
  int64_t offset;
  if (failed(type.getStridesAndOffset(strides, offset)))
    return false;
  int64_t expected = 1;
  for (int64_t dim = type.getRank() - 1; dim >= 0; --dim) {
    if (type.getDimSize(dim) != 1 && strides[dim] != expected)
      return false;
    expected *= type.getDimSize(dim);
  }
  return true;
}
