#include "compiler/analysis/StepWork.h"

#include "compiler/analysis/Storage.h"
#include "dialects/nn/Builders.h"
#include "dialects/nn/NN.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/SmallPtrSet.h"

using namespace mlir;

namespace tmc {

/// How often `op` runs in a step.
static int64_t tripsOf(Operation *op) {
  int64_t trips = 1;
  while (auto loop = op->getParentOfType<mem::LoopOp>()) {
    trips *= loop.getCount();
    op = loop;
  }
  return trips;
}

/// True if a view begins at a multiple of 16 bytes in its buffer. Each buffer
/// begins so in the arena.
static bool isAligned(Value operand) {
  auto type = cast<MemRefType>(operand.getType());
  SmallVector<int64_t> strides;
  int64_t offset = 0;
  if (failed(type.getStridesAndOffset(strides, offset)) ||
      ShapedType::isDynamic(offset))
    return true; // Trips of a loop move it by whole rows.
  return offset * type.getElementTypeBitWidth() % (16 * 8) == 0;
}

StepWork workOf(mem::ProgramOp program, Backend backend) {
  const bool onCard = backend == Backend::Cuda;
  StepWork work;
  work.bytesMoved = 0;
  if (onCard)
    work.deviceLaunches = work.productBytes = work.unalignedProducts = 0;
  program.walk([&](mem::LaunchOp launch) {
    if (mem::engineOf(launch) != EngineKind::Compute)
      return;
    const int64_t trips = tripsOf(launch);
    const int64_t bytes = launch.getBytes() * trips;
    StepWork::Family &family =
        work.families[launch.getGenerated() ? "Fused"
                                            : launch.getCallee().str()];
    family.bytes += bytes;
    work.bytesMoved += bytes;
    if (!onCard)
      return;
    const int64_t launches = launch.getDeviceLaunches() * trips;
    family.launches += launches;
    work.deviceLaunches += launches;
    const std::optional<int64_t> unaligned = launch.getUnalignedProducts();
    if (!unaligned)
      return;
    work.productBytes += bytes;
    auto operands =
        llvm::concat<Value>(launch.getInputs(), launch.getOutputs());
    work.unalignedProducts +=
        trips *
        std::max<int64_t>(*unaligned, !llvm::all_of(operands, isAligned));
  });
  return work;
}

/// The value outside of all fused kernels that `value` is inside of them.
static Value outside(Value value) {
  while (auto argument = dyn_cast<BlockArgument>(value)) {
    auto fused = dyn_cast<nn::FusedOp>(argument.getOwner()->getParentOp());
    if (!fused)
      break;
    value = fused.getInputs()[argument.getArgNumber()];
  }
  return value;
}

/// The value without the casts and views between it and its maker.
static Value uncast(Value value) {
  while (true) {
    value = outside(value);
    Operation *op = value.getDefiningOp();
    if (!op || !(isView(op) || isa<arith::ExtFOp, arith::TruncFOp>(op)))
      return value;
    value = op->getOperand(0);
  }
}

/// True if `value` repeats one of the step's vectors along its rows.
static bool isBias(Value value) {
  Value vector = nn::repeatedVector(value);
  auto argument =
      dyn_cast_or_null<BlockArgument>(vector ? uncast(vector) : Value());
  return argument && isa<train::StepOp>(argument.getOwner()->getParentOp());
}

int64_t unfoldedBiases(train::StepOp step) {
  llvm::SmallPtrSet<Operation *, 16> found;
  step->walk([&](arith::AddFOp add) {
    for (auto [product, other] : {std::pair(add.getLhs(), add.getRhs()),
                                  {add.getRhs(), add.getLhs()}}) {
      auto matmul = uncast(product).getDefiningOp<nn::MatmulOp>();
      if (matmul && !matmul.getBias() && !matmul.getAcc() && isBias(other))
        found.insert(matmul);
    }
  });
  return int64_t(found.size());
}

} // namespace tmc
