#include "compiler/analysis/MemAccess.h"

#include "dialects/interfaces/Interfaces.h"

using namespace mlir;
using namespace tmc;

MemRange tmc::rangeOf(Value memref, int64_t trip) {
  auto type = cast<MemRefType>(memref.getType());
  SmallVector<int64_t> strides;
  int64_t first = 0, elements = 1;
  (void)type.getStridesAndOffset(strides, first);
  for (int64_t d = 0; d < type.getRank(); ++d)
    elements += (type.getDimSize(d) - 1) * strides[d];
  for (int64_t size : type.getShape())
    elements = size ? elements : 0;
  int64_t width = (type.getElementTypeBitWidth() + 7) / 8, begin = 0;
  while (!memref.getDefiningOp<mem::BufferOp>()) {
    Operation *op = memref.getDefiningOp();
    auto here = cast<MemRefType>(memref.getType());
    if (isa<mem::PieceOp>(op)) {
      begin += trip * sizeInBytes(here);
    } else {
      auto source = cast<MemRefType>(op->getOperand(0).getType());
      int64_t mine = 0, before = 0;
      (void)here.getStridesAndOffset(strides, mine);
      (void)source.getStridesAndOffset(strides, before);
      begin += (mine - before) * ((here.getElementTypeBitWidth() + 7) / 8);
    }
    memref = op->getOperand(0);
  }
  auto buffer = memref.getDefiningOp<mem::BufferOp>();
  begin += int64_t(buffer.getOffset());
  return {mem::spaceOf(buffer.getType()), begin, begin + elements * width,
          buffer};
}

MemAccesses tmc::accessesOf(Operation *op, int64_t trip) {
  MemAccesses its;
  if (auto copy = dyn_cast<mem::CopyOp>(op)) {
    its.reads.push_back(copy.getSource());
    its.writes.push_back(copy.getTarget());
  } else if (auto fill = dyn_cast<mem::FillOp>(op)) {
    its.writes.push_back(fill.getTarget());
  } else {
    auto launch = cast<mem::LaunchOp>(op);
    llvm::append_range(its.reads, launch.getInputs());
    if (launch.getAccumulate() && !(launch.getFirstWrites() && trip == 0))
      its.reads.push_back(launch.getOutputs()[launch.getAccumulated()]);
    llvm::append_range(its.writes, launch.getOutputs());
    if (launch.getScratch())
      its.writes.push_back(launch.getScratch());
  }
  return its;
}
