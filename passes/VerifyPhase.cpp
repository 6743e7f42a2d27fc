// VerifyPhase.cpp - -tmc-verify-phase: the conditions at the end of a phase.

#include "passes/Passes.h"

#include "compiler/analysis/MemLiveness.h"
#include "compiler/analysis/PlanRecord.h"
#include "compiler/analysis/StepProblem.h"
#include "compiler/analysis/Storage.h"
#include "compiler/planning/pack/Arena.h"
#include "dialects/mem/Mem.h"
#include "dialects/nn/FusedPlan.h"
#include "dialects/nn/NN.h"
#include "dialects/train/Train.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/SymbolTable.h"
#include "llvm/ADT/StringSwitch.h"

using namespace mlir;

namespace tmc {
#define GEN_PASS_DEF_VERIFYPHASE
#include "passes/Passes.h.inc"

namespace {
using train::TrainDialect;

/// The only op of type `OpTy` in the module, or an error.
template <typename OpTy> FailureOr<OpTy> onlyOne(ModuleOp module) {
  auto ops = module.getOps<OpTy>();
  if (!llvm::hasSingleElement(ops))
    return module.emitError("a defect: ")
           << std::distance(ops.begin(), ops.end()) << " of '"
           << OpTy::getOperationName() << "' where one is expected";
  return *ops.begin();
}

//===----------------------------------------------------------------------===//
// Before autodiff
//===----------------------------------------------------------------------===//

/// A forward function whose arguments have roles and whose one loss is a
/// scalar.
LogicalResult verifyForward(ModuleOp module) {
  auto forward = module.lookupSymbol<func::FuncOp>("forward");
  if (!forward)
    return module.emitError("a defect: there is no @forward");
  for (unsigned i = 0; i < forward.getNumArguments(); ++i)
    if (!train::roleOf(forward, i))
      return forward.emitError("a defect: argument ") << i << " has no role";
  std::optional<unsigned> loss = train::lossResult(forward);
  if (!loss)
    return forward.emitError("a defect: no result is the loss");
  auto type = cast<RankedTensorType>(forward.getResultTypes()[*loss]);
  if (type.getNumElements() != 1)
    return forward.emitError("a defect: the loss is a ") << type;
  return success();
}

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

/// Every parameter that isn't frozen, and every state, has a new value.
LogicalResult verifyStep(ModuleOp module) {
  FailureOr<train::StepOp> step = onlyOne<train::StepOp>(module);
  if (failed(step))
    return failure();
  llvm::DenseSet<unsigned> updated;
  for (unsigned i = 0; i < step->getNumResults(); ++i)
    if (std::optional<unsigned> arg = train::updatedArg(*step, i))
      if (!updated.insert(*arg).second)
        return step->emitError("a defect: two new values for '")
               << train::argName(*step, *arg) << "'";
  for (unsigned i = 0; i < step->getNumArguments(); ++i) {
    bool trained = train::roleOf(*step, i) == train::Role::Param &&
                   !step->getArgAttr(i, TrainDialect::kFrozen);
    bool copies = bool(step->getArgAttr(i, TrainDialect::kCopyOf));
    if (copies && !train::copiedArg(*step, i))
      return step->emitError("a defect: '")
             << train::argName(*step, i) << "' is a copy of no parameter";
    if ((trained || copies || step->getArgAttr(i, TrainDialect::kSlot)) &&
        !updated.contains(i))
      return step->emitError("a defect: no new value for '")
             << train::argName(*step, i) << "'";
  }
  if (!train::lossResult(*step))
    return step->emitError("a defect: no result is the loss");
  return success();
}

/// Calls `visit` for the ops of a step and of its loop, except terminators.
WalkResult walkStep(Block &block,
                    llvm::function_ref<WalkResult(Operation *)> visit) {
  for (Operation &op : block.without_terminator()) {
    if (visit(&op).wasInterrupted())
      return WalkResult::interrupt();
    if (auto loop = dyn_cast<train::MicroBatchOp>(op))
      if (walkStep(loop.getBlock(), visit).wasInterrupted())
        return WalkResult::interrupt();
  }
  return WalkResult::advance();
}

bool isKernel(Operation *op) {
  return isa<KernelOpInterface>(op) && !isView(op);
}

/// Every op is a kernel, a view, a constant or the loop; every fused region has
/// a kernel.
/// `mayMove`: moves are ops of the step, too.
LogicalResult verifyShaped(ModuleOp module, bool mayMove) {
  if (failed(verifyStep(module)))
    return failure();
  train::StepOp step = *module.getOps<train::StepOp>().begin();
  return failure(
      walkStep(step.getBody().front(), [&](Operation *op) -> WalkResult {
        if (!isKernel(op) && !isView(op) &&
            !isa<arith::ConstantOp, train::MicroBatchOp>(op) &&
            !(mayMove && (train::isWork(op) || train::startOf(op))))
          return op->emitError("a defect: neither a kernel nor a view");
        std::string why;
        if (auto fused = dyn_cast<nn::FusedOp>(op))
          if (!nn::planFused(fused.getBlock(), &why))
            return op->emitError("a defect: no kernel computes it: ") << why;
        return WalkResult::advance();
      }).wasInterrupted());
}

/// The last op of `block` that reads the bytes of `argument`, directly or by a
/// view of them, except the op `except`.
Operation *lastReader(BlockArgument argument, Operation *except, Block &block) {
  Operation *last = nullptr;
  SmallVector<Value> worklist{argument};
  while (!worklist.empty()) {
    Value value = worklist.pop_back_val();
    for (Operation *user : value.getUsers()) {
      if (isView(user))
        worklist.append(user->result_begin(), user->result_end());
      else if (Operation *here = block.findAncestorOpInBlock(*user);
               here && here != except &&
               !here->hasTrait<OpTrait::IsTerminator>())
        last = !last || last->isBeforeInBlock(here) ? here : last;
    }
  }
  return last;
}

/// Every kernel has its instance, clones are counted, and no op reads a value
/// after an update overwrote it.
LogicalResult verifyPlanned(ModuleOp module) {
  if (failed(verifyShaped(module, /*mayMove=*/true)))
    return failure();
  train::StepOp step = *module.getOps<train::StepOp>().begin();
  std::optional<PlanRecord> plan = PlanRecord::of(step);
  if (!plan || !plan->isPlanned())
    return step.emitError("a defect: the step has no plan");
  int64_t again = 0;
  Block &block = step.getBody().front();
  if (walkStep(block, [&](Operation *op) -> WalkResult {
        if (!isKernel(op))
          return WalkResult::advance();
        auto instance = op->getAttrOfType<IntegerAttr>(TrainDialect::kInstance);
        if (!instance || instance.getInt() < 0)
          return op->emitError("a defect: no instance number");
        again += instance.getInt() > 0;
        return WalkResult::advance();
      }).wasInterrupted())
    return failure();
  if (again != plan->recomputedOps)
    return step.emitError("a defect: ")
           << again << " recomputed ops where the plan has "
           << plan->recomputedOps;
  for (unsigned i = 0; i < step.getNumResults(); ++i) {
    std::optional<unsigned> arg = train::updatedArg(step, i);
    if (!arg)
      continue;
    Operation *update =
        storageRoot(block.getTerminator()->getOperand(i)).getDefiningOp();
    update = update ? block.findAncestorOpInBlock(*update) : nullptr;
    Operation *reader =
        update ? lastReader(step.getArgument(*arg), update, block) : nullptr;
    if (reader && update->isBeforeInBlock(reader)) {
      InFlightDiagnostic diag = reader->emitError("a defect: '")
                                << train::argName(step, *arg)
                                << "' is read after its update";
      diag.attachNote(update->getLoc()) << "the update is here";
      return failure();
    }
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Programs
//===----------------------------------------------------------------------===//

/// Only mem is left; every generated kernel exists; every read follows a write.
LogicalResult verifyLowered(ModuleOp module) {
  for (Operation &op : *module.getBody())
    if (!isa<mem::ProgramOp, mem::KernelOp>(op))
      return op.emitError("a defect: lowering left it");
  FailureOr<mem::ProgramOp> program = onlyOne<mem::ProgramOp>(module);
  if (failed(program))
    return failure();
  llvm::DenseSet<Operation *> written;
  for (auto buffer : program->getBlock().getOps<mem::BufferOp>())
    if (buffer.getPersistent() || buffer.getConstant())
      written.insert(buffer);
  return failure(
      program
          ->walk([&](Operation *op) -> WalkResult {
            if (op != *program && !isa<mem::MemDialect>(op->getDialect()))
              return op->emitError("a defect: lowering left it");
            if (auto fill = dyn_cast<mem::FillOp>(op))
              written.insert(bufferOf(fill.getTarget()));
            if (auto copy = dyn_cast<mem::CopyOp>(op)) {
              if (!written.contains(bufferOf(copy.getSource())))
                return copy.emitError("a defect: '")
                       << bufferOf(copy.getSource()).getName()
                       << "' is copied before it is written";
              written.insert(bufferOf(copy.getTarget()));
            }
            auto launch = dyn_cast<mem::LaunchOp>(op);
            if (!launch)
              return WalkResult::advance();
            if (launch.getGenerated() &&
                !SymbolTable::lookupNearestSymbolFrom<mem::KernelOp>(
                    *program, launch.getCalleeAttr()))
              return launch.emitError("a defect: there is no kernel '")
                     << launch.getCallee() << "'";
            for (Value input : launch.getInputs())
              if (!written.contains(bufferOf(input)))
                return launch.emitError("a defect: '")
                       << bufferOf(input).getName()
                       << "' is read before it is written";
            for (Value output : launch.getOutputs())
              written.insert(bufferOf(output));
            return WalkResult::advance();
          })
          .wasInterrupted());
}

/// Offsets are aligned and inside the arena, no two buffers that are alive
/// together share bytes, and the live peak is the plan's.
LogicalResult verifyPlaced(ModuleOp module, int64_t alignment) {
  if (failed(verifyLowered(module)))
    return failure();
  mem::ProgramOp program = *module.getOps<mem::ProgramOp>().begin();
  MemLiveness liveness = memLiveness(program);
  std::optional<PlanRecord> plan = PlanRecord::of(program);
  for (const SpaceInfo &row : kSpaces) {
    const SpaceKind space = row.kind;
    int64_t unit = alignmentOf(space, alignment);
    auto [indices, problem] = liveness.buffersIn(space, unit);
    planning::Packing packing;
    packing.arenaBytes = program.arenaBytesIn(space);
    for (size_t index : indices) {
      mem::BufferOp buffer = liveness.buffers[index];
      int64_t bytes = sizeInBytes(buffer.getMemref().getType());
      int64_t offset = buffer.getOffset();
      if (offset < 0 || offset + bytes > packing.arenaBytes)
        return buffer.emitError("a defect: '")
               << buffer.getName() << "' lies at [" << offset << ", "
               << offset + bytes << ") in an arena of " << packing.arenaBytes
               << " bytes";
      packing.offsets.push_back(offset);
    }
    if (std::optional<std::string> wrong =
            planning::verifyPacking(problem, packing))
      return program.emitError("a defect: ") << *wrong;
    int64_t live = liveness.peak(unit, space).first;
    if (plan && plan->isPlanned() && plan->peakIn(space) != live)
      return program.emitError("a defect: ")
             << live << " bytes are alive at the peak" << nameAtPeak(space)
             << " where the plan promised " << plan->peakIn(space);
  }
  return success();
}

struct VerifyPhase : impl::VerifyPhaseBase<VerifyPhase> {
  using VerifyPhaseBase::VerifyPhaseBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    using Check = std::function<LogicalResult(ModuleOp)>;
    Check check =
        llvm::StringSwitch<Check>(phase.getValue())
            .Cases({"import", "raise", "split", "layout"}, verifyForward)
            .Cases({"autodiff", "precision"}, verifyStep)
            .Case("shape",
                  [](ModuleOp m) { return verifyShaped(m, /*mayMove=*/false); })
            .Case("plan", verifyPlanned)
            .Case("lower", verifyLowered)
            .Case("place",
                  [this](ModuleOp m) { return verifyPlaced(m, alignment); })
            .Default(nullptr);
    if (!check)
      module.emitError("there is no phase '") << phase.getValue() << "'";
    if (!check || failed(check(module)))
      return signalPassFailure();
    markAllAnalysesPreserved();
  }
};

} // namespace
} // namespace tmc
