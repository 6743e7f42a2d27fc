// Split.cpp - -tmc-split: the forward function of one micro-batch of one rank.
//
// Ranks get equal pieces: all run one program. Then the piece of a rank is cut
// into micro-batches.
//
// If the pieces can't all be equal, the last is smaller: @forward is the
// function of an equal piece, @rest that of the last one. Both take facts that
// @prologue computes of the whole batch (passes/Splitter.h).

#include "passes/Passes.h"
#include "passes/Splitter.h"

#include "dialects/interfaces/Fault.h"
#include "dialects/nn/Builders.h"
#include "dialects/nn/Statistics.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace tmc {
#define GEN_PASS_DEF_SPLIT
#include "passes/Passes.h.inc"

using train::TrainDialect;

/// Builds @prologue, which computes `facts` of `whole`, before `whole`.
static void makePrologue(func::FuncOp whole, ArrayRef<Value> facts) {
  if (facts.empty())
    return;
  // All ops that the facts depend on, in the order of the whole.
  SetVector<Operation *> needed;
  SmallVector<Value> work(facts);
  SetVector<BlockArgument> inputs;
  while (!work.empty()) {
    Value value = work.pop_back_val();
    if (auto arg = dyn_cast<BlockArgument>(value))
      inputs.insert(arg);
    else if (needed.insert(value.getDefiningOp()))
      llvm::append_range(work, value.getDefiningOp()->getOperands());
  }
  SmallVector<BlockArgument> args(inputs.begin(), inputs.end());
  llvm::sort(args, [](BlockArgument x, BlockArgument y) {
    return x.getArgNumber() < y.getArgNumber();
  });
  SmallVector<Type> types;
  SmallVector<Attribute> attrs;
  for (BlockArgument arg : args) {
    types.push_back(arg.getType());
    attrs.push_back(whole.getArgAttrDict(arg.getArgNumber()));
  }
  OpBuilder b(whole);
  b.setInsertionPointToStart(whole->getBlock());
  auto prologue = func::FuncOp::create(
      b, whole.getLoc(), "prologue",
      b.getFunctionType(types, ValueRange(facts).getTypes()));
  prologue.setArgAttrsAttr(b.getArrayAttr(attrs));
  Block *block = prologue.addEntryBlock();
  b.setInsertionPointToEnd(block);
  IRMapping local;
  for (auto [from, to] : llvm::zip(args, block->getArguments())) {
    local.map(from, to);
    to.setLoc(from.getLoc());
  }
  for (Operation &op : whole.front())
    if (needed.contains(&op))
      b.clone(op, local);
  SmallVector<Value> results;
  for (Value fact : facts)
    results.push_back(local.lookup(fact));
  func::ReturnOp::create(b, whole.getLoc(), results);
}

/// The result of `norm` by the running statistics.
static Value normalizeByRunning(OpBuilder &b, nn::BatchNormOp norm) {
  Location loc = norm.getLoc();
  Value epsilon = nn::splat(b, loc, norm.getRunningVar().getType(),
                            norm.getEpsilon().convertToDouble());
  Value rstd = math::RsqrtOp::create(
      b, loc, nn::add(b, loc, norm.getRunningVar(), epsilon));
  return nn::Channels(b, norm).result(norm.getRunningMean(), rstd,
                                      norm.getScale(), norm.getShift());
}

/// Makes batch norms use the running statistics, without updating them.
static LogicalResult freezeBatchNorms(func::FuncOp forward) {
  auto isState = [&](Value value) {
    auto argument = dyn_cast<BlockArgument>(value);
    return argument && train::roleOf(forward, argument.getArgNumber()) ==
                           train::Role::State;
  };
  SmallVector<nn::BatchNormOp> norms(forward.getOps<nn::BatchNormOp>());
  for (nn::BatchNormOp norm : norms) {
    if (!isState(norm.getRunningMean()) || !isState(norm.getRunningVar()))
      return emitFault(norm.getLoc(), FailureKind::Unsupported)
             << "has no running statistics that --batchnorm=frozen could take";
    if (!norm.getMean().use_empty() || !norm.getRstd().use_empty())
      return emitFault(norm.getLoc(), FailureKind::Unsupported)
             << "returns statistics of the batch, which --batchnorm=frozen "
                "doesn't take";
    OpBuilder b(norm);
    norm.getResult().replaceAllUsesWith(normalizeByRunning(b, norm));
    norm.getNewMean().replaceAllUsesWith(norm.getRunningMean());
    norm.getNewVar().replaceAllUsesWith(norm.getRunningVar());
    norm.erase();
  }
  // Drops updates of a state by itself.
  Operation *ret = forward.front().getTerminator();
  BitVector unchanged(forward.getNumResults());
  for (unsigned i = 0; i < forward.getNumResults(); ++i)
    if (std::optional<unsigned> state = train::updatedArg(forward, i))
      unchanged[i] = ret->getOperand(i) == forward.getArgument(*state);
  ret->eraseOperands(unchanged);
  return forward.eraseResults(unchanged);
}

/// The variance of one value is zero, so the running one would decay to zero.
/// PyTorch refuses it as well.
static LogicalResult checkBatchNorms(func::FuncOp forward) {
  for (auto norm : forward.getOps<nn::BatchNormOp>())
    if (nn::valuesPerChannel(norm) == 1) {
      InFlightDiagnostic diag =
          emitFault(norm.getLoc(), FailureKind::Unsupported)
          << "has one value for each channel, which has no variance";
      diag.attachNote(forward.getLoc())
          << "take a larger batch, or --batchnorm=frozen for the running "
             "statistics";
      return diag;
    }
  return success();
}

/// The cut of the batch of `whole`, or an error with the reason for having
/// none.
static FailureOr<Cut> cutOf(func::FuncOp whole, int64_t pieces) {
  const int64_t batch = train::markUncut(whole);
  BlockArgument least;
  for (BlockArgument arg : whole.getArguments())
    if (train::isCut(whole, arg.getArgNumber()) &&
        cast<RankedTensorType>(arg.getType()).getDimSize(0) == batch)
      least = arg;
  if (!batch)
    return emitFault(whole.getLoc(), FailureKind::Input)
           << "has no argument that is a batch, and can't be cut into "
           << pieces << " micro-batches";
  if (batch < pieces) {
    InFlightDiagnostic diag = emitFault(whole.getLoc(), FailureKind::Usage)
                              << "a batch of " << batch << " can't be cut into "
                              << pieces << " micro-batches";
    diag.attachNote(least.getLoc())
        << "'" << train::argName(whole, least.getArgNumber()) << "' is "
        << least.getType();
    return diag;
  }
  Cut cut = Cut::of(batch, pieces);
  if (cut.pieces() != pieces)
    emitWarning(whole.getLoc())
        << "a batch of " << batch << " makes " << cut.pieces()
        << " micro-batches of at most " << cut.rows << ", not " << pieces;
  return cut;
}

/// Makes `whole` the function of one of `ranks` ranks.
static LogicalResult deal(func::FuncOp &whole, int64_t ranks) {
  const int64_t batch = train::markUncut(whole);
  if (!batch)
    return emitFault(whole.getLoc(), FailureKind::Input)
           << "has no argument that is a batch, and can't be dealt to " << ranks
           << " ranks";
  if (batch % ranks) {
    const int64_t less = batch / ranks * ranks;
    InFlightDiagnostic diag = emitFault(whole.getLoc(), FailureKind::Usage)
                              << "a batch of " << batch << " can't be dealt to "
                              << ranks << " ranks in equal parts";
    diag.attachNote(whole.getLoc())
        << "take a batch of " << (less ? std::to_string(less) + " or " : "")
        << less + ranks;
    return diag;
  }
  const Cut cut{batch, ranks, batch / ranks, 0};
  SmallVector<Value> facts;
  Splitter part(whole, whole.getName(), cut, cut.rows,
                /*ownStatistics=*/false, facts, PiecesRun::OnRanks);
  if (failed(part.run())) {
    part.erase();
    return failure();
  }
  part.close();
  func::FuncOp dealt = part.function();
  dealt->setAttr(TrainDialect::kRanks,
                 OpBuilder(whole).getI64IntegerAttr(ranks));
  whole.erase();
  whole = dealt;
  return success();
}

static LogicalResult split(func::FuncOp whole, int64_t pieces,
                           bool ownStatistics) {
  FailureOr<Cut> cut = cutOf(whole, pieces);
  if (failed(cut))
    return failure();
  SmallVector<Value> facts;
  Splitter equal(whole, whole.getName(), *cut, cut->rows, ownStatistics, facts);
  Splitter last(whole, "rest", *cut, cut->rest, ownStatistics, facts);
  bool done = succeeded(equal.run());
  if (done && cut->rest && failed(last.run())) {
    last.erase();
    done = false;
  }
  if (!done) {
    equal.erase();
    return failure();
  }
  equal.close();
  if (cut->rest)
    last.close();
  makePrologue(whole, facts);
  OpBuilder b(whole);
  equal.function()->setAttr(TrainDialect::kMicroBatches,
                            b.getI64IntegerAttr(cut->count));
  whole.erase();
  return success();
}

namespace {

struct Split : impl::SplitBase<Split> {
  using SplitBase::SplitBase;

  void runOnOperation() override {
    if (ranks < 1) {
      emitFault(getOperation().getLoc(), FailureKind::Usage)
          << "can't deal a batch to " << ranks.getValue() << " ranks";
      return signalPassFailure();
    }
    if (microBatches < 1) {
      emitFault(getOperation().getLoc(), FailureKind::Usage)
          << "can't cut a batch into " << microBatches.getValue()
          << " micro-batches";
      return signalPassFailure();
    }
    auto forward = getOperation().lookupSymbol<func::FuncOp>("forward");
    if (!forward)
      return;
    if (batchNorm != "" && batchNorm != "frozen" &&
        batchNorm != "per-micro-batch") {
      emitFault(getOperation().getLoc(), FailureKind::Usage)
          << "--batchnorm takes per-micro-batch or frozen, not '"
          << batchNorm.getValue() << "'";
      return signalPassFailure();
    }
    if (batchNorm == "frozen" && failed(freezeBatchNorms(forward)))
      return signalPassFailure();
    if (failed(checkBatchNorms(forward)))
      return signalPassFailure();
    if (ranks > 1 && failed(deal(forward, ranks)))
      return signalPassFailure();
    if (microBatches > 1 &&
        failed(split(forward, microBatches, batchNorm == "per-micro-batch")))
      signalPassFailure();
  }
};

} // namespace
} // namespace tmc
