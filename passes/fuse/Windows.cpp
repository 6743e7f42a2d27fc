#include "passes/fuse/Windows.h"

#include "compiler/analysis/Storage.h"
#include "dialects/nn/Builders.h"
#include "dialects/nn/FusedPlan.h"

#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace tmc;
using namespace tmc::nn;

/// The slice behind reshapes that makes `value`, if its elements have gaps and
/// those of its operand have none; null if there is none.
static SliceOp windowOf(Value value) {
  Value root = value;
  while (auto reshape = root.getDefiningOp<ReshapeOp>())
    root = reshape.getInput();
  auto slice = root.getDefiningOp<SliceOp>();
  if (!slice)
    return {};
  MemRefType own = layoutOf(slice.getResult()),
             whole = layoutOf(slice.getInput());
  const bool hasGaps = !own || !isContiguous(own);
  return hasGaps && whole && isContiguous(whole) ? slice : SliceOp();
}

/// Clones the slice and the reshapes that compute `value` into a region, where
/// `map` has what the first of them reads.
static Value cloneWindow(OpBuilder &b, Value value, IRMapping &map) {
  if (Value known = map.lookupOrNull(value))
    return known;
  Operation *op = value.getDefiningOp();
  cloneWindow(b, op->getOperand(0), map);
  return b.clone(*op, map)->getResult(0);
}

/// `fused` with the windows among its operands read in its region.
static FusedOp withWindows(OpBuilder &b, FusedOp fused) {
  SetVector<Value> inputs;
  for (Value input : fused.getInputs()) {
    SliceOp slice = windowOf(input);
    inputs.insert(slice ? slice.getInput() : input);
  }
  auto wider = FusedOp::create(b, fused.getLoc(), fused.getResultTypes(),
                               inputs.getArrayRef());
  wider->setAttrs(fused->getAttrs());
  Block &block = wider.getBody().emplaceBlock();
  OpBuilder inner = OpBuilder::atBlockEnd(&block);
  IRMapping map;
  for (Value input : inputs)
    map.map(input, block.addArgument(input.getType(), input.getLoc()));
  for (auto [argument, input] :
       llvm::zip_equal(fused.getBlock().getArguments(), fused.getInputs()))
    map.map(argument, cloneWindow(inner, input, map));
  for (Operation &op : fused.getBlock())
    inner.clone(op, map);
  return wider;
}

/// The result of `fused` that `part` is, behind reshapes, if nothing else reads
/// it; null if it is none.
static OpResult resultIn(Value part, FusedOp fused) {
  while (part.hasOneUse() && part.getDefiningOp<ReshapeOp>())
    part = part.getDefiningOp<ReshapeOp>().getInput();
  return part.hasOneUse() && part.getDefiningOp() == fused
             ? cast<OpResult>(part)
             : OpResult();
}

/// A concatenation whose parts are all results of `fused`, which it alone
/// reads; null if there is none.
static ConcatOp wholeOf(FusedOp fused) {
  for (Value result : fused.getResults()) {
    while (result.hasOneUse() && isa<ReshapeOp>(*result.user_begin()))
      result = result.user_begin()->getResult(0);
    auto concat = result.hasOneUse() ? dyn_cast<ConcatOp>(*result.user_begin())
                                     : ConcatOp();
    if (concat && llvm::all_of(concat.getInputs(), [&](Value part) {
          return bool(resultIn(part, fused));
        }))
      return concat;
  }
  return {};
}

/// The numbers of the results of `fused` that are parts of `concat`.
static llvm::BitVector partsOf(ConcatOp concat, FusedOp fused) {
  llvm::BitVector isPart(fused.getNumResults());
  for (Value part : concat.getInputs())
    isPart.set(resultIn(part, fused).getResultNumber());
  return isPart;
}

/// `fused` with `concat` instead of its parts, as the last result.
static FusedOp withWhole(OpBuilder &b, FusedOp fused, ConcatOp concat) {
  SmallVector<Type> types;
  const llvm::BitVector isPart = partsOf(concat, fused);
  for (OpResult result : fused.getResults())
    if (!isPart[result.getResultNumber()])
      types.push_back(result.getType());
  types.push_back(concat.getType());
  auto wider =
      FusedOp::create(b, b.getFusedLoc({fused.getLoc(), concat.getLoc()}),
                      types, fused.getInputs());
  wider->setAttrs(fused->getAttrs());
  IRMapping map;
  fused.getBody().cloneInto(&wider.getBody(), map);
  YieldOp yield = wider.getYield();
  for (auto [result, value] :
       llvm::zip_equal(fused.getResults(), yield.getValues()))
    map.map(result, value);
  OpBuilder inner(yield);
  SmallVector<Value> parts, yielded;
  for (Value part : concat.getInputs())
    parts.push_back(cloneWindow(inner, part, map));
  for (auto [i, value] : llvm::enumerate(yield.getValues()))
    if (!isPart[i])
      yielded.push_back(value);
  yielded.push_back(ConcatOp::create(inner, concat.getLoc(), concat.getType(),
                                     parts, concat.getDim()));
  yield.getValuesMutable().assign(yielded);
  return wider;
}

/// True if the kernel of `fused` reads each slice in runs of columns.
static bool hasGoodPlan(FusedOp fused) {
  std::optional<FusedPlan> plan = planFused(fused.getBlock());
  return plan &&
         llvm::all_of(fused.getBlock().getOps<SliceOp>(), [&](SliceOp slice) {
           return plan->isContiguous(plan->loads.at(slice.getResult()));
         });
}

void tmc::moveWindowsInto(FusedOp fused) {
  OpBuilder b(fused);
  if (llvm::any_of(fused.getInputs(),
                   [](Value input) { return bool(windowOf(input)); })) {
    FusedOp wider = withWindows(b, fused);
    const bool isGood = hasGoodPlan(wider);
    if (isGood)
      fused->replaceAllUsesWith(wider->getResults());
    (isGood ? fused : wider)->erase();
    fused = isGood ? wider : fused;
  }
  ConcatOp concat = wholeOf(fused);
  if (!concat)
    return;
  b.setInsertionPoint(fused);
  FusedOp wider = withWhole(b, fused, concat);
  if (!hasGoodPlan(wider))
    return wider->erase();
  const llvm::BitVector isPart = partsOf(concat, fused);
  concat->replaceAllUsesWith(ValueRange(wider->getResults().back()));
  SmallVector<Value> parts(concat.getInputs());
  concat->erase();
  // The parts' reshapes are dead now.
  for (Value part : parts)
    while (part.getDefiningOp() != fused) {
      Operation *reshape = part.getDefiningOp();
      part = reshape->getOperand(0);
      reshape->erase();
    }
  unsigned next = 0;
  for (OpResult result : fused.getResults())
    if (!isPart[result.getResultNumber()])
      result.replaceAllUsesWith(wider->getResult(next++));
  fused->erase();
}
