#include "dialects/train/Batch.h"

#include "dialects/train/Train.h"

using namespace mlir;
using namespace tmc;

bool tmc::train::isCut(func::FuncOp forward, unsigned index) {
  return roleOf(forward, index) == Role::Batch &&
         !forward.getArgAttr(index, kUncut);
}

int64_t tmc::train::markUncut(func::FuncOp forward) {
  int64_t batch = 0;
  SmallVector<BlockArgument> uncut;
  for (BlockArgument arg : forward.getArguments()) {
    if (!isCut(forward, arg.getArgNumber()))
      continue;
    auto type = cast<RankedTensorType>(arg.getType());
    int64_t size = type.getRank() ? type.getDimSize(0) : 1;
    if (size == 1 || (size % std::max<int64_t>(batch, 1) && batch % size))
      uncut.push_back(arg);
    else
      batch = batch ? std::min(batch, size) : size;
  }
  if (!batch && llvm::any_of(uncut, [](BlockArgument arg) {
        return cast<RankedTensorType>(arg.getType()).getRank() > 0;
      })) {
    batch = 1; // One sample.
    llvm::erase_if(uncut, [](BlockArgument arg) {
      return cast<RankedTensorType>(arg.getType()).getRank() > 0;
    });
  }
  for (BlockArgument arg : uncut)
    forward.setArgAttr(arg.getArgNumber(), kUncut,
                       UnitAttr::get(forward.getContext()));
  return batch;
}
