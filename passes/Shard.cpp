// Shard.cpp - -tmc-shard: the parts of parameters and moments that ranks keep.

#include "passes/Passes.h"

#include "dialects/nn/Builders.h"
#include "dialects/nn/Ranks.h"
#include "dialects/train/Train.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace tmc {
#define GEN_PASS_DEF_SHARD
#include "passes/Passes.h.inc"

namespace {

int64_t elementsOf(Value value) {
  return cast<RankedTensorType>(value.getType()).getNumElements();
}

/// An update of a parameter that is large enough to be cut.
struct CutUpdate {
  Operation *op;
  nn::SumOverOp sum; // Of its gradient.
};

class Sharding {
public:
  Sharding(train::StepOp step, int64_t ranks, int64_t level)
      : step(step), block(step.getBody().front()), ranks(ranks), level(level),
        b(step) {}

  void run() {
    SmallVector<CutUpdate> updates;
    for (Operation &op : block)
      if (op.hasTrait<train::UpdateRule>())
        if (auto sum = op.getOperand(1).getDefiningOp<nn::SumOverOp>();
            sum && mayBeCut(&op))
          updates.push_back({&op, sum});
    for (CutUpdate update : updates) {
      Value grad = shardOf(update.sum);
      shareSquares(update.sum, grad);
      if (level == 0)
        keepWhole(update, grad);
      else
        cut(update, grad);
    }
    if (level == 3)
      cutFrozen();
    step.setFunctionType(
        FunctionType::get(step.getContext(), block.getArgumentTypes(),
                          block.getTerminator()->getOperandTypes()));
  }

private:
  train::StepOp step;
  Block &block;
  const int64_t ranks, level;
  OpBuilder b;
  /// This rank's shard of each sum.
  llvm::DenseMap<Operation *, Value> shards;

  /// Updates that draw numbers count the elements of the whole parameter, and
  /// Adafactor's moments are means of its rows and columns.
  bool mayBeCut(Operation *update) {
    if (!nn::hasShards(update->getOperand(0).getType(), ranks) ||
        isa<train::AdafactorOp>(update) || update->hasAttr("stream"))
      return false;
    auto isKept = [&](auto pair) {
      auto argument = dyn_cast<BlockArgument>(update->getOperand(pair.first));
      OpResult made = update->getResult(pair.second);
      return argument && argument.getOwner() == &block &&
             (pair.first == 0 || argument.hasOneUse()) &&
             llvm::all_of(made.getUsers(), [](Operation *user) {
               return isa<train::ReturnOp>(user);
             });
    };
    return llvm::all_of(cast<KernelOpInterface>(update).getOverwrites(),
                        isKept);
  }

  /// The sum of the ranks' shards: of this rank's elements.
  Value shardOf(nn::SumOverOp sum) {
    Value &known = shards[sum];
    if (known)
      return known;
    b.setInsertionPoint(sum);
    Location loc = sum.getLoc();
    Value pieces =
        nn::ExchangeOp::create(b, loc, sum.getInput(), sum.getAxis(), ranks);
    return known = nn::SumPiecesOp::create(b, loc, pieces);
  }

  /// The sum of the squares of all ranks' shards.
  Value sumOfSquares(Location loc, Value square) {
    return nn::SumOverOp::create(b, loc, square, nn::Axis::Data, ranks);
  }

  /// A norm of a sum adds the squares of its shards, in any mode: it has the
  /// same bits in all of them.
  void shareSquares(nn::SumOverOp sum, Value grad) {
    for (Operation *user : llvm::make_early_inc_range(sum->getUsers()))
      if (auto square = dyn_cast<train::SquareSumOp>(user)) {
        b.setInsertionPoint(square);
        Value own = train::SquareSumOp::create(b, square.getLoc(), grad);
        square.getResult().replaceAllUsesWith(
            sumOfSquares(square.getLoc(), own));
        square.erase();
      }
  }

  /// The update is of the whole parameter, on each rank.
  void keepWhole(CutUpdate update, Value grad) {
    Operation *op = update.op;
    b.setInsertionPoint(op);
    Value square = op->getResult(op->getNumResults() - 1);
    if (!square.use_empty()) {
      Value own = train::SquareSumOp::create(b, op->getLoc(), grad);
      square.replaceAllUsesWith(sumOfSquares(op->getLoc(), own));
    }
    op->setOperand(
        1, gathered(grad, op->getOperand(1).getType(), update.sum.getLoc()));
  }

  Value gathered(Value shard, Type whole, Location loc) {
    return nn::GatherOp::create(b, loc, whole, shard, nn::Axis::Data, ranks);
  }

  /// The shard of a state that has an element for each few of `all`, a power of
  /// two: codes and their scales.
  RankedTensorType shardType(Value state, int64_t all) {
    const int64_t each =
        llvm::PowerOf2Ceil(uint64_t(llvm::divideCeil(all, elementsOf(state))));
    return RankedTensorType::get(
        {nn::shardElements(all, ranks) / each},
        cast<RankedTensorType>(state.getType()).getElementType());
  }

  /// The argument holds this rank's shard.
  void keepShard(BlockArgument argument, RankedTensorType shard) {
    step.setArgAttr(argument.getArgNumber(), train::TrainDialect::kWhole,
                    TypeAttr::get(argument.getType()));
    argument.setType(shard);
  }

  /// The update is of this rank's shard.
  void cut(CutUpdate update, Value grad) {
    Operation *op = update.op;
    const int64_t all = elementsOf(op->getOperand(0));
    IRMapping operands;
    SmallVector<Type> types(op->getResultTypes());
    Type whole = op->getOperand(0).getType();
    Value param = op->getOperand(0);
    SmallVector<Value> inputs(op->getOperands());
    inputs[1] = grad;
    for (auto [operand, result] : cast<KernelOpInterface>(op).getOverwrites()) {
      auto state = cast<BlockArgument>(op->getOperand(operand));
      RankedTensorType shard = shardType(state, all);
      types[result] = shard;
      if (operand > 0 || level == 3) {
        if (operand == 0)
          gatherBeforeReaders(state, op);
        keepShard(state, shard);
      }
    }
    b.setInsertionPoint(op);
    if (level < 3)
      inputs[0] =
          nn::ShardOfOp::create(b, op->getLoc(), param, nn::Axis::Data, ranks);
    Operation *made = Operation::create(
        op->getLoc(), op->getName(), types, inputs,
        op->getDiscardableAttrDictionary(), op->getPropertiesStorage(),
        /*successors=*/{}, /*numRegions=*/0);
    b.insert(made);
    for (auto [old, now] : llvm::zip(op->getResults(), made->getResults()))
      old.replaceAllUsesWith(now);
    b.setInsertionPointAfter(made);
    if (level < 3) {
      Value home = gathered(made->getResult(0), whole, op->getLoc());
      made->getResult(0).replaceAllUsesExcept(home, home.getDefiningOp());
    }
    Value square = made->getResult(made->getNumResults() - 1);
    if (!square.use_empty()) {
      Value total = sumOfSquares(op->getLoc(), square);
      square.replaceAllUsesExcept(total, total.getDefiningOp());
    }
    op->erase();
  }

  /// Each block reads the whole parameter from a gather of its own, before its
  /// first reader.
  void gatherBeforeReaders(BlockArgument param, Operation *update) {
    llvm::MapVector<Block *, SmallVector<OpOperand *>> readers;
    for (OpOperand &use : param.getUses())
      if (use.getOwner() != update)
        readers[use.getOwner()->getBlock()].push_back(&use);
    for (auto &[where, uses] : readers) {
      Operation *first = uses.front()->getOwner();
      for (OpOperand *use : uses)
        if (use->getOwner()->isBeforeInBlock(first))
          first = use->getOwner();
      b.setInsertionPoint(first);
      Value whole = gathered(param, param.getType(), param.getLoc());
      for (OpOperand *use : uses)
        use->set(whole);
    }
  }

  /// Parameters that aren't trained are kept as shards, too.
  void cutFrozen() {
    for (BlockArgument argument : block.getArguments()) {
      const unsigned index = argument.getArgNumber();
      if (train::roleOf(step, index) != train::Role::Param ||
          !step.getArgAttr(index, train::TrainDialect::kFrozen) ||
          step.getArgAttr(index, train::TrainDialect::kStored) ||
          !isa<FloatType>(getElementTypeOrSelf(argument.getType())) ||
          !nn::hasShards(argument.getType(), ranks))
        continue;
      gatherBeforeReaders(argument, /*update=*/nullptr);
      keepShard(argument, shardType(argument, elementsOf(argument)));
    }
  }
};

struct Shard : impl::ShardBase<Shard> {
  using ShardBase::ShardBase;
  void runOnOperation() override {
    train::StepOp step = getOperation();
    if (auto ranks =
            step->getAttrOfType<IntegerAttr>(train::TrainDialect::kRanks))
      Sharding(step, ranks.getInt(), level).run();
  }
};

} // namespace
} // namespace tmc
