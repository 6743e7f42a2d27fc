#include "dialects/mem/Mem.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace tmc;
using namespace tmc::mem;

#include "dialects/mem/MemDialect.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "dialects/mem/MemAttrs.cpp.inc"
#define GET_OP_CLASSES
#include "dialects/mem/Mem.cpp.inc"

void MemDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialects/mem/MemAttrs.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialects/mem/Mem.cpp.inc"
      >();
}

SpaceKind tmc::mem::spaceOf(Type memref) {
  auto space = dyn_cast_or_null<mem::SpaceAttr>(
      cast<MemRefType>(memref).getMemorySpace());
  return space ? space.getValue() : SpaceKind(); // The device.
}

EngineKind tmc::mem::engineOf(LaunchOp launch) {
  return launch.getEngine().value_or(EngineKind::Compute);
}

using Effects = SmallVectorImpl<MemoryEffects::EffectInstance>;

static void reads(OpOperand &operand, Effects &effects) {
  effects.emplace_back(MemoryEffects::Read::get(), &operand);
}

static void writes(OpOperand &operand, Effects &effects) {
  effects.emplace_back(MemoryEffects::Write::get(), &operand);
}

void LaunchOp::getEffects(Effects &effects) {
  for (OpOperand &operand : getInputsMutable())
    reads(operand, effects);
  for (auto [i, operand] : llvm::enumerate(getOutputsMutable())) {
    if (getAccumulate() && i == getAccumulated())
      reads(operand, effects);
    writes(operand, effects);
  }
  for (OpOperand &operand : getScratchMutable())
    writes(operand, effects);
}

LogicalResult LaunchOp::verify() {
  if (!getJoinsNext())
    return success();
  Operation *next = (*this)->getNextNode();
  while (isa_and_nonnull<BufferOp, ViewOp, PieceOp>(next))
    next = next->getNextNode();
  auto launch = dyn_cast_or_null<LaunchOp>(next);
  if (!getJoinable() || !launch || !launch.getJoinable() ||
      launch.getCallee() != getCallee())
    return emitOpError("joins the launch after it, which isn't a joinable one "
                       "of the same kernel");
  return success();
}

void FillOp::getEffects(Effects &effects) {
  writes(getTargetMutable(), effects);
}

void CopyOp::getEffects(Effects &effects) {
  reads(getSourceMutable(), effects);
  writes(getTargetMutable(), effects);
}
