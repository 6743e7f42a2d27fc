// StepUpdates.cpp - the reads of a step's updates, and the order of updates.

#include "compiler/analysis/StepUpdates.h"
#include "compiler/analysis/StepProblem.h"
#include "compiler/analysis/Storage.h"

#include "dialects/nn/NN.h"

#include "llvm/ADT/SmallPtrSet.h"

#include <queue>

using namespace mlir;
using namespace tmc;

Value tmc::gradientOf(Value value) {
  for (OpOperand &use : value.getUses()) {
    Operation *user = use.getOwner();
    if (use.getOperandNumber() == 1 && user->hasTrait<train::UpdateRule>())
      return storageRoot(user->getOperand(0));
    if (isa<train::StashStartOp, train::FetchStartOp>(user))
      if (Value param = gradientOf(user->getResult(0)))
        return param;
    if (auto kernel = dyn_cast<KernelOpInterface>(user);
        kernel && kernel.getAccumulator() == int64_t(use.getOperandNumber()))
      if (Value param = gradientOf(user->getResult(kernel.getAccumulated())))
        return param;
  }
  return {};
}

//===----------------------------------------------------------------------===//
// The places of new values
//===----------------------------------------------------------------------===//

bool tmc::mayTakePlace(OpResult made, BlockArgument argument) {
  auto kernel = dyn_cast<KernelOpInterface>(made.getOwner());
  if (!kernel || sizeInBytes(made.getType()) != sizeInBytes(argument.getType()))
    return false;
  if (isa<nn::GatherOp>(kernel)) // It reads another value.
    return true;
  auto isIt = [&](unsigned operand) {
    Value read = kernel->getOperand(operand);
    return storageRoot(read) == argument &&
           sizeInBytes(read.getType()) == sizeInBytes(argument.getType());
  };
  if (kernel.getAccumulator() >= 0 &&
      kernel.getAccumulated() == made.getResultNumber() &&
      isIt(kernel.getAccumulator()))
    return true;
  return llvm::any_of(kernel.getOverwrites(), [&](auto pair) {
    return pair.second == made.getResultNumber() && isIt(pair.first);
  });
}

namespace {

/// The ops of a step's block, and the order that they require: an op comes
/// before the readers of its results, and further pairs can be required.
class StepOrder {
public:
  explicit StepOrder(train::StepOp step) : block(step.getBody().front()) {
    for (Operation &op : block.without_terminator())
      op.walk([&](Operation *inner) {
        if (!isView(inner))
          for (Value operand : inner->getOperands())
            if (auto argument = dyn_cast<BlockArgument>(storageRoot(operand));
                argument && argument.getOwner() == &block)
              readersOf[argument].insert(&op);
      });
  }

  /// The ops that read the bytes of `argument`, through any views.
  ArrayRef<Operation *> readers(BlockArgument argument) const {
    auto found = readersOf.find(argument);
    return found == readersOf.end() ? ArrayRef<Operation *>()
                                    : found->second.getArrayRef();
  }

  /// Requires every other reader of `argument` to come before `update`. Returns
  /// false and requires nothing if a reader already depends on `update`.
  bool requireLast(Operation *update, BlockArgument argument) {
    SmallVector<Operation *> others;
    for (Operation *reader : readers(argument))
      if (reader != update)
        others.push_back(reader);
    if (others.empty())
      return true;
    llvm::SmallPtrSet<Operation *, 32> seen{update};
    SmallVector<Operation *> left{update};
    while (!left.empty())
      for (Operation *next : after(left.pop_back_val()))
        if (seen.insert(next).second)
          left.push_back(next);
    if (llvm::any_of(others, [&](Operation *op) { return seen.contains(op); }))
      return false;
    for (Operation *reader : others)
      required[reader].push_back(update);
    return true;
  }

  /// Sorts the ops into an order that meets all requirements, as close to the
  /// present one as possible.
  void sort() {
    DenseMap<Operation *, unsigned> indexOf;
    SmallVector<Operation *> ops;
    for (Operation &op : block.without_terminator()) {
      indexOf[&op] = ops.size();
      ops.push_back(&op);
    }
    SmallVector<unsigned> waitsFor(ops.size(), 0);
    for (Operation *op : ops)
      for (Operation *next : after(op))
        ++waitsFor[indexOf.at(next)];
    std::priority_queue<unsigned, std::vector<unsigned>, std::greater<>> ready;
    for (unsigned i = 0; i < ops.size(); ++i)
      if (!waitsFor[i])
        ready.push(i);
    while (!ready.empty()) {
      Operation *op = ops[ready.top()];
      ready.pop();
      op->moveBefore(block.getTerminator());
      for (Operation *next : after(op))
        if (!--waitsFor[indexOf.at(next)])
          ready.push(indexOf.at(next));
    }
  }

private:
  Block &block;
  DenseMap<Value, SetVector<Operation *>> readersOf;
  DenseMap<Operation *, SmallVector<Operation *>> required;

  /// The direct successors of `op`, each once per requirement.
  SmallVector<Operation *> after(Operation *op) const {
    SmallVector<Operation *> all;
    for (Operation *user : op->getUsers())
      if (Operation *here = block.findAncestorOpInBlock(*user);
          here != block.getTerminator())
        all.push_back(here);
    if (auto found = required.find(op); found != required.end())
      llvm::append_range(all, found->second);
    return all;
  }
};

/// A new value that a step returns.
struct NewValue {
  OpOperand *returned;
  BlockArgument argument;
  Value root; ///< The value that owns its bytes.
};

/// The new values that differ from the old ones.
SmallVector<NewValue> newValues(train::StepOp step) {
  SmallVector<NewValue> all;
  Operation *ret = step.getBody().front().getTerminator();
  for (OpOperand &returned : ret->getOpOperands())
    if (std::optional<unsigned> arg =
            train::updatedArg(step, returned.getOperandNumber())) {
      BlockArgument argument = step.getBody().getArgument(*arg);
      Value root = storageRoot(returned.get());
      if (root != argument)
        all.push_back({&returned, argument, root});
    }
  return all;
}

} // namespace

void tmc::copyUpdates(train::StepOp step) {
  Block &block = step.getBody().front();
  Operation *ret = block.getTerminator();
  SmallVector<NewValue> all = newValues(step);
  llvm::DenseSet<Value> isUpdated, isTaken;
  for (const NewValue &each : all)
    isUpdated.insert(each.argument);
  // A value that the step returns as an output has bytes of its own.
  for (OpOperand &returned : ret->getOpOperands())
    if (!train::updatedArg(step, returned.getOperandNumber()))
      isTaken.insert(storageRoot(returned.get()));
  StepOrder order(step);
  SmallVector<NewValue> homeless;
  for (const NewValue &each : all) {
    auto made = dyn_cast<OpResult>(each.root);
    if (made && made.getOwner()->getBlock() != &block)
      continue; // A loop carries it.
    bool isInPlace = made && mayTakePlace(made, each.argument) &&
                     !isTaken.contains(made) &&
                     order.requireLast(made.getOwner(), each.argument);
    if (isInPlace)
      isTaken.insert(made);
    else
      homeless.push_back(each);
  }
  OpBuilder b(ret);
  // Old values that become another state's new value are copied aside first.
  for (NewValue &each : homeless)
    if (isUpdated.contains(each.root))
      each.returned->set(
          nn::CopyOp::create(b, each.argument.getLoc(), each.returned->get()));
  for (NewValue &each : homeless)
    each.returned->set(
        nn::CopyOp::create(b, each.argument.getLoc(), each.returned->get()));
}

void tmc::sinkUpdates(train::StepOp step) {
  Block &block = step.getBody().front();
  StepOrder order(step);
  bool isSorted = true;
  for (const NewValue &each : newValues(step)) {
    Operation *update = each.root.getDefiningOp();
    update = update ? block.findAncestorOpInBlock(*update) : nullptr;
    if (!update)
      continue;
    Operation *last = nullptr;
    for (Operation *reader : order.readers(each.argument))
      if (!last || last->isBeforeInBlock(reader))
        last = reader;
    if (!last || last == update || !update->isBeforeInBlock(last))
      continue;
    bool isReadBefore = llvm::any_of(update->getUsers(), [&](Operation *user) {
      Operation *here = block.findAncestorOpInBlock(*user);
      return !last->isBeforeInBlock(here);
    });
    if (!isReadBefore) {
      update->moveAfter(last);
      continue;
    }
    isSorted &= !order.requireLast(update, each.argument);
  }
  if (!isSorted)
    order.sort();
}
