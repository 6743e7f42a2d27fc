// StepUpdates.cpp - what a step's updates read, and where they stand.

#include "compiler/analysis/StepProblem.h"
#include "compiler/analysis/Storage.h"

#include "dialects/interfaces/Interfaces.h"

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

void tmc::sinkUpdates(train::StepOp step) {
  Block &block = step.getBody().front();
  Operation *ret = block.getTerminator();
  // The last op that reads each argument, by whatever views.
  DenseMap<Value, Operation *> lastRead;
  for (Operation &op : block.without_terminator())
    op.walk([&](Operation *inner) {
      if (!isView(inner))
        for (Value operand : inner->getOperands())
          lastRead[storageRoot(operand)] = block.findAncestorOpInBlock(*inner);
    });
  for (auto [i, value] : llvm::enumerate(ret->getOperands())) {
    std::optional<unsigned> arg = train::updatedArg(step, i);
    Operation *update = value.getDefiningOp();
    if (!arg || !update || update->getBlock() != &block)
      continue;
    Operation *last = lastRead.lookup(step.getArgument(*arg));
    if (last && update != last && update->isBeforeInBlock(last))
      update->moveAfter(last);
  }
}
