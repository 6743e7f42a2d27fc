// FusedGroup.cpp - a group of ops as one fused op.

#include "passes/fuse/FusionGroups.h"

#include "dialects/nn/Builders.h"
#include "dialects/nn/FusedPlan.h"
#include "dialects/nn/NN.h"

#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace tmc;
using namespace tmc::nn;

static bool isConstant(Value value) { return splatValue(value).has_value(); }

Value tmc::throughViews(Value value) {
  while (auto reshape = value.getDefiningOp<ReshapeOp>())
    value = reshape.getInput();
  return value;
}

void tmc::forEachUser(Value value, llvm::function_ref<void(Operation *)> f) {
  for (Operation *user : value.getUsers())
    if (isa<ReshapeOp>(user))
      forEachUser(user->getResult(0), f);
    else
      f(user);
}

bool tmc::anyUser(Value value, llvm::function_ref<bool(Operation *)> holds) {
  bool any = false;
  forEachUser(value, [&](Operation *user) { any |= holds(user); });
  return any;
}

/// The ops of a group without those that nothing reads any more, because their
/// readers compute them again: what such an op reads is no operand.
static FusionGroup liveOf(ArrayRef<Operation *> group) {
  DenseSet<Operation *> members(group.begin(), group.end()), live;
  FusionGroup kept;
  for (Operation *op : llvm::reverse(group))
    if (llvm::any_of(op->getResults(), [&](Value result) {
          return anyUser(result, [&](Operation *user) {
            return !members.contains(user) || live.contains(user);
          });
        })) {
      live.insert(op);
      kept.push_back(op);
    }
  std::reverse(kept.begin(), kept.end());
  return kept;
}

GroupInterface tmc::interfaceOf(ArrayRef<Operation *> group) {
  GroupInterface interface;
  DenseSet<Operation *> members(group.begin(), group.end());
  for (Operation *op : liveOf(group)) {
    for (Value operand : op->getOperands())
      if (!isConstant(operand) &&
          !members.contains(throughViews(operand).getDefiningOp()))
        interface.inputs.insert(operand);
    for (Value result : op->getResults())
      if (anyUser(result,
                  [&](Operation *user) { return !members.contains(user); }))
        interface.outputs.insert(result);
  }
  return interface;
}

void tmc::cloneOperand(OpBuilder &b, Value value, IRMapping &map) {
  if (map.contains(value))
    return;
  Operation *op = value.getDefiningOp();
  if (isa<ReshapeOp>(op))
    cloneOperand(b, op->getOperand(0), map);
  b.clone(*op, map);
}

static void cloneInto(FusedOp fused, ArrayRef<Operation *> group,
                      const GroupInterface &interface) {
  Block &block = fused.getBody().emplaceBlock();
  IRMapping map;
  for (Value input : interface.inputs)
    map.map(input, block.addArgument(input.getType(), input.getLoc()));
  OpBuilder b = OpBuilder::atBlockEnd(&block);
  for (Operation *op : liveOf(group)) {
    for (Value operand : op->getOperands())
      cloneOperand(b, operand, map);
    b.clone(*op, map);
  }
  SmallVector<Value> yielded;
  for (Value output : interface.outputs)
    yielded.push_back(map.lookup(output));
  YieldOp::create(b, fused.getLoc(), yielded);
}

Operation *tmc::buildFused(OpBuilder &b, ArrayRef<Operation *> group) {
  GroupInterface interface = interfaceOf(group);
  SmallVector<Location> locs;
  for (Operation *op : group)
    locs.push_back(op->getLoc());
  SmallVector<Type> types;
  for (Value output : interface.outputs)
    types.push_back(output.getType());
  auto fused = FusedOp::create(b, FusedLoc::get(b.getContext(), locs), types,
                               interface.inputs.getArrayRef());
  cloneInto(fused, group, interface);
  if (planFused(fused.getBlock()))
    return fused;
  fused.erase();
  return nullptr;
}
