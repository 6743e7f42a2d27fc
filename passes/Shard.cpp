// Shard.cpp - -tmc-shard: the parts of parameters and moments that ranks keep.

#include "passes/Copies.h"
#include "passes/Passes.h"
#include "passes/ShardRows.h"

#include "compiler/analysis/Storage.h"
#include "dialects/nn/Builders.h"
#include "dialects/nn/Ranks.h"
#include "dialects/train/Train.h"

#include "mlir/Analysis/TopologicalSortUtils.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
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
  nn::SumOverOp sum; // Its gradient's, over all ranks.
};

class Sharding {
public:
  Sharding(train::StepOp step, int64_t ranks, const ShardOptions &how)
      : step(step), block(step.getBody().front()), ranks(ranks),
        level(how.level), how(how), rows(ranks), b(step) {}

  void run() {
    SmallVector<CutUpdate> updates;
    for (Operation &op : block)
      if (op.hasTrait<train::UpdateRule>())
        if (auto sum = op.getOperand(1).getDefiningOp<nn::SumOverOp>();
            sum && mayBeCut(&op))
          updates.push_back({&op, sum});
    if (level == 3)
      chooseShards(updates);
    for (CutUpdate update : updates) {
      Value grad = shardOf(update.sum);
      shareSquares(update.sum, grad);
      if (level == 0)
        keepWhole(update, grad);
      else
        cut(update, grad);
      eraseUnused(update.sum);
    }
    cutFrozen();
    rows.lookUpInShards(step);
    groupSmallSums();
    step.setFunctionType(
        FunctionType::get(step.getContext(), block.getArgumentTypes(),
                          block.getTerminator()->getOperandTypes()));
  }

private:
  train::StepOp step;
  Block &block;
  const int64_t ranks, level;
  const ShardOptions how;
  ShardRows rows;
  OpBuilder b;
  /// Parameters of which the rank keeps its shard.
  llvm::DenseSet<Value> cutParams;
  /// This rank's shard of each sum.
  llvm::DenseMap<Operation *, Value> shards;

  /// Chooses the parameters that are kept as shards: all that can be, but the
  /// first ones that the step reads.
  void chooseShards(ArrayRef<CutUpdate> updates) {
    struct Param {
      BlockArgument value;
      Operation *update; // Null: it is frozen.
    };
    SmallVector<Param> params;
    for (CutUpdate update : updates)
      params.push_back(
          {cast<BlockArgument>(update.op->getOperand(0)), update.op});
    for (BlockArgument argument : block.getArguments())
      if (isFrozen(argument))
        params.push_back({argument, nullptr});
    llvm::DenseMap<Operation *, int64_t> places;
    for (Operation &op : block)
      places[&op] = int64_t(places.size());
    auto firstRead = [&](const Param &param) {
      int64_t first = int64_t(places.size());
      auto read = [&](Operation *user) {
        auto lookup = dyn_cast<nn::EmbeddingOp>(user);
        if (user != param.update &&
            (!lookup ||
             !rows.areFew(lookup.getIds(),
                          cast<RankedTensorType>(lookup.getTable().getType()))))
          first = std::min(first, places[block.findAncestorOpInBlock(*user)]);
      };
      for (Operation *user : param.value.getUsers())
        if (isa<arith::TruncFOp>(user))
          llvm::for_each(user->getUsers(), read);
        else
          read(user);
      return std::pair(first, param.value.getArgNumber());
    };
    llvm::sort(params, [&](const Param &a, const Param &b) {
      return firstRead(a) < firstRead(b);
    });
    for (const Param &param : ArrayRef(params).drop_front(
             std::min<size_t>(how.whole, params.size())))
      cutParams.insert(param.value);
  }

  /// A sum of shards leaves operands of other types behind.
  static void eraseUnused(nn::SumOverOp sum) {
    if (!sum->use_empty())
      return;
    auto last = sum.getInput().getDefiningOp<arith::AddFOp>();
    sum.erase();
    if (last && last->use_empty())
      last.erase();
  }

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
    known = how.shards ? sumOfShards(sum) : Value();
    if (known)
      return known;
    b.setInsertionPoint(sum);
    return known = exchanged(sum.getInput());
  }

  /// This rank's shard of the sum of all ranks' `value`.
  Value exchanged(Value value) {
    if (std::optional<RowsGradient> part = rows.rowsIn(value))
      return rows.sum(b, *part,
                      part->rest ? exchangedAtOnce(part->rest) : Value());
    Location loc = value.getLoc();
    Value pieces = nn::ExchangeOp::create(b, loc, value, nn::Axis::Data, ranks);
    return nn::SumPiecesOp::create(b, loc, pieces);
  }

  /// The same, where `value` is made.
  Value exchangedAtOnce(Value value) {
    OpBuilder::InsertionGuard guard(b);
    if (Operation *maker = value.getDefiningOp();
        maker && maker->getBlock() == b.getInsertionBlock())
      b.setInsertionPointAfter(maker);
    return exchanged(value);
  }

  /// The shard where micro-batches add up `sum`: each is exchanged in its trip,
  /// and the loop carries the sum of the shards. Null: no loop carries it.
  Value sumOfShards(nn::SumOverOp sum) {
    Value whole = sum.getInput();
    auto last = whole.getDefiningOp<arith::AddFOp>(); // Adds the smaller piece.
    auto result = dyn_cast<OpResult>(last ? last.getLhs() : whole);
    auto loop =
        result ? dyn_cast<train::MicroBatchOp>(result.getOwner()) : nullptr;
    auto isTaken = [](Operation *user) {
      return user->hasTrait<train::UpdateRule>() ||
             isa<train::SquareSumOp>(user);
    };
    if (!loop || !result.hasOneUse() || !whole.hasOneUse() ||
        !llvm::all_of(sum->getUsers(), isTaken))
      return {};
    const unsigned index = result.getResultNumber();
    BlockArgument carried = loop.getCarried()[index];
    Operation *yield = loop.getBlock().getTerminator();
    auto add = yield->getOperand(index).getDefiningOp<arith::AddFOp>();
    if (!add || add.getLhs() != carried || !carried.hasOneUse() ||
        !add->hasOneUse())
      return {};
    b.setInsertionPoint(add);
    Value shard = exchanged(add.getRhs());
    carried.setType(shard.getType());
    result.setType(shard.getType());
    add.getRhsMutable().assign(shard);
    add.getResult().setType(shard.getType());
    if (!last)
      return result;
    b.setInsertionPoint(last);
    return arith::AddFOp::create(b, last.getLoc(), result,
                                 exchanged(last.getRhs()));
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
    SmallVector<Type> types(op->getResultTypes());
    Type whole = op->getOperand(0).getType();
    Value param = op->getOperand(0);
    const RankedTensorType copied = copiedType(update);
    const bool cutsParam = copied || cutParams.contains(param);
    SmallVector<Value> inputs(op->getOperands());
    inputs[1] = grad;
    for (auto [operand, result] : cast<KernelOpInterface>(op).getOverwrites()) {
      auto state = cast<BlockArgument>(op->getOperand(operand));
      RankedTensorType shard = shardType(state, all);
      types[result] = shard;
      if (operand > 0 || cutsParam) {
        keepShard(state, shard);
        if (operand == 0 && !copied)
          gatherBeforeReaders(state, cast<RankedTensorType>(whole), op);
      }
    }
    b.setInsertionPoint(op);
    if (!cutsParam)
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
    if (copied) {
      keepCopy(cast<BlockArgument>(param), op, made->getResult(0), copied);
    } else if (!cutsParam) {
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

  /// The narrow type that all of these readers round the parameter to; null:
  /// there is none.
  static RankedTensorType roundedType(ArrayRef<OpOperand *> uses) {
    Type type = uses.front()->getOwner()->getResultTypes().front();
    bool isRounded = llvm::all_of(uses, [&](OpOperand *use) {
      return isa<arith::TruncFOp>(use->getOwner()) &&
             use->getOwner()->getResultTypes().front() == type;
    });
    return isRounded ? cast<RankedTensorType>(type) : RankedTensorType();
  }

  /// The type of the whole copy that a rank keeps of a parameter of which it
  /// keeps its shard; null: it keeps none, or all readers don't round alike.
  RankedTensorType copiedType(CutUpdate update) {
    Value param = update.op->getOperand(0);
    if (!how.copies || cutParams.contains(param) ||
        !getElementTypeOrSelf(param).isF32())
      return {};
    SmallVector<OpOperand *> readers;
    for (OpOperand &use : param.getUses())
      if (use.getOwner() != update.op)
        readers.push_back(&use);
    return readers.empty() ? RankedTensorType() : roundedType(readers);
  }

  /// Readers of `param` read a copy of all of it, rounded. Ranks gather the new
  /// one behind `made`, the new shard.
  void keepCopy(BlockArgument param, Operation *update, Value made,
                RankedTensorType type) {
    BlockArgument copy = addCopy(step, param.getArgNumber(), type);
    for (Operation *user : llvm::make_early_inc_range(param.getUsers()))
      if (isa<arith::TruncFOp>(user)) {
        user->getResult(0).replaceAllUsesWith(copy);
        user->erase();
      }
    auto shard = cast<RankedTensorType>(made.getType());
    Value narrow = arith::TruncFOp::create(
        b, update->getLoc(), shard.clone(type.getElementType()), made);
    train::addNewValue(step, copy, gathered(narrow, type, update->getLoc()));
  }

  /// Each block reads the parameter, whose shard is there, from a gather of its
  /// own, before its first reader. Rounded numbers travel if readers round.
  void gatherBeforeReaders(BlockArgument param, RankedTensorType whole,
                           Operation *update) {
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
      RankedTensorType rounded = roundedType(uses);
      if (!rounded) {
        Value read = gathered(param, whole, param.getLoc());
        for (OpOperand *use : uses)
          use->set(read);
        continue;
      }
      auto shard = cast<RankedTensorType>(param.getType());
      Value narrow = arith::TruncFOp::create(
          b, param.getLoc(), shard.clone(rounded.getElementType()), param);
      Value read = gathered(narrow, rounded, param.getLoc());
      for (OpOperand *use : uses) {
        Operation *cast = use->getOwner();
        cast->getResult(0).replaceAllUsesWith(read);
        cast->erase();
      }
    }
  }

  /// True if no later sum depends on `sum`: it is of a gradient or of squares,
  /// whose sum over tp may follow. A value that the step returns has bytes of
  /// its own.
  bool isLast(nn::SumOverOp sum) {
    SmallVector<Operation *> open{sum};
    llvm::SmallPtrSet<Operation *, 16> seen;
    while (!open.empty()) {
      Operation *op = open.pop_back_val();
      for (Operation *user : op->getUsers()) {
        if (isa<train::ReturnOp>(user) && (op == sum || isView(op)))
          return false;
        Operation *here = block.findAncestorOpInBlock(*user);
        if (!seen.insert(here).second)
          continue;
        auto next = dyn_cast<nn::SumOverOp>(here);
        if (next && next.getAxis() != sum.getAxis() && isLast(next))
          continue;
        WalkResult sums = here->walk([](Operation *inner) {
          return isa<nn::SumOverOp, nn::ExchangeOp>(inner)
                     ? WalkResult::interrupt()
                     : WalkResult::advance();
        });
        if (sums.wasInterrupted())
          return false;
        open.push_back(here);
      }
    }
    return true;
  }

  /// Small sums ride together, up to this number of bytes: a message has a
  /// latency.
  static constexpr int64_t kMostGrouped = int64_t(32) << 20;

  void groupSmallSums() {
    struct Group {
      SmallVector<nn::SumOverOp> sums;
      int64_t bytes = 0;
    };
    llvm::MapVector<Type, Group> open; // By the type of their elements.
    SmallVector<Group> full;
    for (auto sum : block.getOps<nn::SumOverOp>()) {
      if (sum.getAxis() != nn::Axis::Data ||
          nn::hasShards(sum.getType(), ranks) || !isLast(sum))
        continue;
      Group &group = open[getElementTypeOrSelf(sum.getType())];
      group.sums.push_back(sum);
      group.bytes += sizeInBytes(sum.getType());
      if (group.bytes >= kMostGrouped)
        full.push_back(std::exchange(group, Group()));
    }
    for (auto &[element, group] : open)
      full.push_back(std::move(group));
    for (Group &group : full)
      if (group.sums.size() > 1)
        addTogether(group.sums);
    sortTopologically(&block);
  }

  /// One sum of values side by side.
  void addTogether(ArrayRef<nn::SumOverOp> sums) {
    b.setInsertionPointAfter(sums.back());
    SmallVector<Value> flat;
    for (nn::SumOverOp sum : sums) {
      auto type = cast<RankedTensorType>(sum.getType());
      flat.push_back(nn::ReshapeOp::create(
          b, sum.getLoc(),
          RankedTensorType::get({type.getNumElements()}, type.getElementType()),
          sum.getInput()));
    }
    Location loc = NameLoc::get(b.getStringAttr("small gradients"));
    Value all = nn::ConcatOp::create(b, loc, flat, /*dim=*/0);
    Value total = nn::SumOverOp::create(b, loc, all, nn::Axis::Data, ranks);
    int64_t at = 0;
    for (auto [each, part] : llvm::zip(sums, flat)) {
      nn::SumOverOp sum = each;
      Value its =
          nn::SliceOp::create(b, sum.getLoc(), part.getType(), total,
                              ArrayRef<int64_t>{at}, ArrayRef<int64_t>{1});
      at += elementsOf(part);
      Value shaped = nn::ReshapeOp::create(b, sum.getLoc(), sum.getType(), its);
      sum.getResult().replaceAllUsesWith(shaped);
      sum.getOperation()->erase();
    }
  }

  /// True for a parameter that isn't trained and may be kept as a shard.
  bool isFrozen(BlockArgument argument) {
    const unsigned index = argument.getArgNumber();
    return train::roleOf(step, index) == train::Role::Param &&
           step.getArgAttr(index, train::TrainDialect::kFrozen) &&
           !step.getArgAttr(index, train::TrainDialect::kStored) &&
           isa<FloatType>(getElementTypeOrSelf(argument.getType())) &&
           nn::hasShards(argument.getType(), ranks);
  }

  void cutFrozen() {
    for (BlockArgument argument : block.getArguments()) {
      if (!cutParams.contains(argument) || !isFrozen(argument))
        continue;
      auto whole = cast<RankedTensorType>(argument.getType());
      keepShard(argument, shardType(argument, whole.getNumElements()));
      gatherBeforeReaders(argument, whole, /*update=*/nullptr);
    }
  }
};

struct Shard : impl::ShardBase<Shard> {
  using ShardBase::ShardBase;
  void runOnOperation() override {
    train::StepOp step = getOperation();
    if (auto ranks =
            step->getAttrOfType<IntegerAttr>(train::TrainDialect::kRanks))
      Sharding(step, ranks.getInt(), {level, whole, shards, copies}).run();
  }
};

} // namespace
} // namespace tmc
