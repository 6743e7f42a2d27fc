// FusedOverwrites.cpp - results of a fused kernel that take an operand's place.

#include "dialects/nn/FusedPlan.h"

#include "dialects/nn/Builders.h"
#include "dialects/nn/NN.h"

using namespace mlir;
using namespace tmc;
using namespace tmc::nn;

/// True if `argument`, a single number, is read only for `yielded`: once, by
/// the one thread that then stores the result after all other work.
static bool isRunningTotal(const FusedPlan &plan, BlockArgument argument,
                           Value yielded) {
  if (!argument.hasOneUse() || !yielded.hasOneUse() ||
      *argument.user_begin() != yielded.getDefiningOp())
    return false;
  return plan.isFinished(yielded) ||
         (plan.shape.rows == 1 && plan.shape.wholeRows);
}

/// True if each slice of `argument` has the elements of a part of `result`, so
/// that one thread reads and then writes them.
static bool isReadWhereWritten(const FusedPlan &plan, BlockArgument argument,
                               unsigned result) {
  return !argument.use_empty() &&
         llvm::all_of(argument.getUsers(), [&](Operation *user) {
           auto slice = dyn_cast<SliceOp>(user);
           return slice &&
                  llvm::any_of(plan.stores, [&](const FusedAccess &store) {
                    return store.number == result &&
                           plan.place.lookup(store.value) ==
                               plan.place.lookup(slice.getResult()) &&
                           store.isSameElements(
                               plan.loads.at(slice.getResult()));
                  });
         });
}

SmallVector<std::pair<unsigned, unsigned>>
tmc::nn::overwritesOf(Block &block, const FusedPlan &plan) {
  SmallVector<std::pair<unsigned, unsigned>> pairs;
  for (BlockArgument argument : block.getArguments()) {
    auto type = tensorType(argument);
    // A seed or the samples' numbers have no place, and a constant below has
    // none either.
    auto own = plan.place.find(argument);
    if (own == plan.place.end()) {
      for (auto [index, result] :
           llvm::enumerate(block.getTerminator()->getOperandTypes()))
        if (result == type && isReadWhereWritten(plan, argument, index))
          pairs.push_back({argument.getArgNumber(), unsigned(index)});
      continue;
    }
    // The argument is read with other columns than the result's: by gathering.
    if (!plan.isContiguous(argument) || !llvm::is_sorted(own->second))
      continue;
    for (auto [index, yielded] :
         llvm::enumerate(block.getTerminator()->getOperands())) {
      auto resultType = tensorType(yielded);
      auto place = plan.place.find(yielded);
      if (resultType.getElementType() != type.getElementType() ||
          resultType.getNumElements() != type.getNumElements() ||
          place == plan.place.end() || place->second != own->second)
        continue;
      // An element of rows x cols is read by the thread that writes it, in the
      // same pass or an earlier one; a column is read by the finish or before
      // it. One number per row, or in total, is read by several threads, unless
      // it is a total that is only added to.
      AtomSet type = plan.typeAtoms(yielded);
      if (type == plan.allMask() || (type && plan.isFinished(yielded)) ||
          (!type && isRunningTotal(plan, argument, yielded)))
        pairs.push_back({argument.getArgNumber(), unsigned(index)});
    }
  }
  return pairs;
}
