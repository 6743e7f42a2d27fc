// FusionGroups.cpp - which ops become one kernel.

#include "passes/FusionGroups.h"

#include "dialects/nn/Builders.h"
#include "dialects/nn/FusedPlan.h"
#include "dialects/nn/NN.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/IRMapping.h"

#include <map>

using namespace mlir;
using namespace tmc;
using namespace tmc::nn;

//===----------------------------------------------------------------------===//
// Building a fused op
//===----------------------------------------------------------------------===//

static bool isConstant(Value value) { return splatValue(value).has_value(); }

GroupInterface tmc::interfaceOf(ArrayRef<Operation *> group) {
  GroupInterface interface;
  DenseSet<Operation *> members(group.begin(), group.end());
  for (Operation *op : group) {
    for (Value operand : op->getOperands())
      if (!isConstant(operand) && !members.contains(operand.getDefiningOp()))
        interface.inputs.insert(operand);
    for (Value result : op->getResults())
      if (llvm::any_of(result.getUsers(), [&](Operation *user) {
            return !members.contains(user);
          }))
        interface.outputs.insert(result);
  }
  return interface;
}

FusionGroup tmc::withoutBorderViews(ArrayRef<Operation *> group) {
  FusionGroup rest(group);
  for (bool changed = true; changed;) {
    changed = false;
    DenseSet<Operation *> members(rest.begin(), rest.end());
    llvm::erase_if(rest, [&](Operation *op) {
      if (!isa<ReshapeOp>(op))
        return false;
      bool fromInside = members.contains(op->getOperand(0).getDefiningOp());
      bool toInside = llvm::any_of(op->getUsers(), [&](Operation *user) {
        return members.contains(user);
      });
      if (fromInside && toInside)
        return false;
      members.erase(op);
      return changed = true;
    });
  }
  return rest;
}

static void cloneInto(FusedOp fused, ArrayRef<Operation *> group,
                      const GroupInterface &interface) {
  Block &block = fused.getBody().emplaceBlock();
  IRMapping map;
  for (Value input : interface.inputs)
    map.map(input, block.addArgument(input.getType(), input.getLoc()));
  OpBuilder b = OpBuilder::atBlockEnd(&block);
  for (Operation *op : group) {
    for (Value operand : op->getOperands())
      if (isConstant(operand) && !map.contains(operand))
        b.clone(*operand.getDefiningOp(), map);
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

//===----------------------------------------------------------------------===//
// Cheap producers
//===----------------------------------------------------------------------===//

/// A value this many times smaller than what is made from it counts as nothing.
static constexpr int64_t kSmallPart = 8;

/// True if `op` makes much from little: all it reads, through other such ops,
/// is small beside its result.
static bool isLeafy(Operation *op, const DenseSet<Operation *> &leafy) {
  if (!isFusible(op) || isa<ReduceOp>(op) || op->use_empty())
    return false;
  if (isa<ReshapeOp>(op)) // A view costs nothing.
    return true;
  int64_t bytes = sizeInBytes(op->getResult(0).getType());
  return llvm::all_of(op->getOperands(), [&](Value operand) {
    return isConstant(operand) || leafy.contains(operand.getDefiningOp()) ||
           sizeInBytes(operand.getType()) * kSmallPart <= bytes ||
           isa<RandomOp>(op);
  });
}

void tmc::cloneForEachUser(Block &block) {
  DenseSet<Operation *> leafy;
  SmallVector<Operation *> ops;
  for (Operation &op : block.without_terminator()) {
    ops.push_back(&op);
    if (!op.hasTrait<OpTrait::ConstantLike>() && isLeafy(&op, leafy))
      leafy.insert(&op);
  }
  for (Operation *op : llvm::reverse(ops)) {
    if (!leafy.contains(op))
      continue;
    SmallVector<Operation *> users;
    for (Operation *user : op->getUsers())
      if (isFusible(user) && user->getBlock() == &block &&
          !llvm::is_contained(users, user))
        users.push_back(user);
    bool others = llvm::any_of(op->getUsers(), [&](Operation *user) {
      return !llvm::is_contained(users, user);
    });
    // The last one keeps the original.
    if (!others && !users.empty())
      users.pop_back();
    for (Operation *user : users) {
      OpBuilder b(user);
      Operation *clone = b.clone(*op);
      for (auto [from, to] : llvm::zip(op->getResults(), clone->getResults()))
        user->replaceUsesOfWith(from, to);
    }
  }
}

//===----------------------------------------------------------------------===//
// Merging
//===----------------------------------------------------------------------===//

namespace {

class Grouping {
public:
  explicit Grouping(Block &block) : block(block) {
    for (Operation &op : block.without_terminator()) {
      place[&op] = order.size();
      order.push_back(&op);
    }
  }

  SmallVector<FusionGroup> run() {
    for (Operation *op : order)
      if (isFusible(op) && !isConstant(op->getResult(0))) {
        groupOf[op] = op;
        members[op] = {op};
      }
    // A broadcast waits for its reader: before, it has dimensions that nothing
    // else in its group has.
    for (bool broadcasts : {false, true})
      for (Operation *op : order)
        if (groupOf.contains(op) && isa<BroadcastOp>(op) == broadcasts)
          mergeWithProducers(op);
    for (Operation *op : order)
      if (groupOf.contains(op) && isa<ReduceOp>(op))
        mergeWithReaders(op);
    recompute();
    SmallVector<FusionGroup> groups;
    for (Operation *op : order)
      if (auto found = members.find(op); found != members.end())
        groups.push_back(found->second);
    return groups;
  }

private:
  Block &block;
  SmallVector<Operation *> order;
  DenseMap<Operation *, unsigned> place;
  /// The first op of an op's group, and the group of that op.
  DenseMap<Operation *, Operation *> groupOf;
  DenseMap<Operation *, FusionGroup> members;

  /// The op in this block that `op` is, or is inside of.
  Operation *here(Operation *op) { return block.findAncestorOpInBlock(*op); }

  Operation *groupAt(Operation *op) {
    auto found = groupOf.find(op);
    return found == groupOf.end() ? nullptr : found->second;
  }

  /// Broadcasts first, since what they repeat often comes from the group that
  /// the op joins next; then the largest operands, which gain the most.
  void mergeWithProducers(Operation *op) {
    SmallVector<Operation *> producers;
    auto collect = [&](Operation *of) {
      for (Value operand : of->getOperands())
        if (Operation *made = operand.getDefiningOp();
            made && groupOf.contains(made))
          producers.push_back(made);
    };
    collect(op);
    for (Operation *made : SmallVector<Operation *>(producers))
      if (isa<BroadcastOp>(made) && tryMerge(groupOf[made], groupOf[op]))
        collect(made);
    llvm::stable_sort(producers, [&](Operation *a, Operation *b) {
      return sizeInBytes(a->getResult(0).getType()) >
             sizeInBytes(b->getResult(0).getType());
    });
    for (Operation *producer : producers)
      tryMerge(groupOf[producer], groupOf[op]);
  }

  /// A reduction whose input nothing fusible makes joins those who read it.
  void mergeWithReaders(Operation *op) {
    Value input = op->getOperand(0);
    if (input.getDefiningOp() && groupOf.contains(input.getDefiningOp()) &&
        groupOf[input.getDefiningOp()] == groupOf[op])
      return;
    for (Operation *user : input.getUsers())
      if (Operation *group = groupAt(user); group && group != groupOf[op])
        if (tryMerge(groupOf[op], group))
          return;
  }

  bool tryMerge(Operation *a, Operation *b) {
    if (a == b)
      return false;
    constexpr size_t kMostOps = 256;
    FusionGroup both(members[a]);
    both.append(members[b]);
    if (both.size() > kMostOps)
      return false;
    llvm::sort(both,
               [&](Operation *x, Operation *y) { return place[x] < place[y]; });
    if (!isExpressible(both) || mustRunBetween(a, b))
      return false;
    members.erase(a);
    members.erase(b);
    for (Operation *op : both)
      groupOf[op] = both.front();
    members[both.front()] = std::move(both);
    return true;
  }

  static bool isExpressible(ArrayRef<Operation *> group) {
    if (llvm::all_of(group, [](Operation *op) { return isa<ReshapeOp>(op); }))
      return true; // Views: no kernel at all.
    FusionGroup inner = withoutBorderViews(group);
    if (inner.size() == 1)
      return true;
    OpBuilder b(group.front()->getContext());
    Operation *fused = buildFused(b, inner);
    if (fused)
      fused->destroy();
    return fused;
  }

  /// True if a path leads from one group to the other through others, which a
  /// kernel of both would have to wait for, and they for it. Far apart counts
  /// as that.
  bool mustRunBetween(Operation *a, Operation *b) {
    return reaches(a, b) || reaches(b, a);
  }

  bool reaches(Operation *from, Operation *to) {
    constexpr size_t kMostVisits = 1000;
    DenseSet<Operation *> seen{from};
    SmallVector<Operation *> work;
    auto leave = [&](Operation *node, bool first) {
      auto visit = [&](Operation *op) {
        for (Operation *user : op->getUsers()) {
          Operation *next = here(user);
          if (Operation *group = groupAt(next))
            next = group;
          if (first && next == to)
            continue; // A direct edge is what merging is for.
          if (seen.insert(next).second)
            work.push_back(next);
        }
      };
      if (auto group = members.find(node); group != members.end())
        llvm::for_each(group->second, visit);
      else
        visit(node);
    };
    leave(from, true);
    while (!work.empty()) {
      Operation *node = work.pop_back_val();
      if (node == to || seen.size() > kMostVisits)
        return true;
      leave(node, false);
    }
    return false;
  }

  //===--------------------------------------------------------------------===//
  // Making again
  //===--------------------------------------------------------------------===//

  unsigned lastPlace(ArrayRef<Operation *> group) {
    unsigned last = 0;
    for (Operation *op : group)
      last = std::max(last, placeOf(op));
    return last;
  }
  unsigned placeOf(Operation *op) {
    auto found = place.find(op);
    return found == place.end() ? order.size() : found->second;
  }

  void recompute() {
    SmallVector<Operation *> heads;
    for (Operation *op : order)
      if (members.contains(op))
        heads.push_back(op);
    // Consumers from the last to the first: what they stop reading may then
    // have fewer readers.
    for (Operation *head : llvm::reverse(heads))
      if (members.contains(head))
        recomputeFor(head);
  }

  /// What a group would make again, and what it would read instead.
  struct Cone {
    llvm::SetVector<Operation *> ops;
    llvm::SetVector<Value> leaves;
  };

  /// A statistic of a row is made again with the row; a sum of all rows isn't.
  static bool isSumOverRows(Operation *op) {
    auto reduce = dyn_cast<ReduceOp>(op);
    return reduce && !llvm::is_contained(
                         reduce.getDims(),
                         tensorType(reduce.getInput()).getRank() - 1);
  }

  bool grow(Value value, Cone &cone) {
    constexpr size_t kMostOps = 24;
    Operation *op = value.getDefiningOp();
    if (isConstant(value))
      return true;
    if (!op || !groupOf.contains(op) || isSumOverRows(op)) {
      cone.leaves.insert(value);
      return true;
    }
    if (cone.ops.contains(op))
      return true;
    for (Value operand : op->getOperands())
      if (!grow(operand, cone))
        return false;
    cone.ops.insert(op);
    return cone.ops.size() <= kMostOps;
  }

  /// True if `value` is in memory at `moment` anyway: nobody computes it in the
  /// step, or someone outside `group` reads it then or later.
  bool isAliveAnyway(Value value, ArrayRef<Operation *> group,
                     unsigned moment) {
    if (isa<BlockArgument>(value))
      return true;
    return llvm::any_of(value.getUsers(), [&](Operation *user) {
      Operation *at = here(user);
      return !llvm::is_contained(group, at) && placeOf(at) >= moment &&
             (!groupAt(at) || groupAt(at) != groupAt(value.getDefiningOp()));
    });
  }

  void recomputeFor(Operation *head) {
    FusionGroup group = members[head];
    const unsigned moment = lastPlace(group);
    GroupInterface interface = interfaceOf(group);
    Cone cone;
    int64_t saved = 0;
    bool otherwiseUnused = true;
    SmallVector<Value> replaced;
    for (Value input : interface.inputs) {
      Operation *made = input.getDefiningOp();
      if (!made || !groupOf.contains(made) || isa<ReshapeOp>(made) || isSumOverRows(made) ||
          isAliveAnyway(input, group, moment))
        continue;
      Cone larger = cone;
      if (!grow(input, larger))
        continue;
      cone = std::move(larger);
      replaced.push_back(input);
      saved += sizeInBytes(input.getType());
      otherwiseUnused &= llvm::all_of(input.getUsers(), [&](Operation *user) {
        return llvm::is_contained(group, user) ||
               groupAt(user) == groupAt(made);
      });
    }
    if (replaced.empty())
      return;
    int64_t retained = 0;
    for (Value leaf : cone.leaves)
      if (!interface.inputs.contains(leaf) &&
          !isAliveAnyway(leaf, group, moment))
        retained += sizeInBytes(leaf.getType());
    if (retained > saved || (retained == saved && !otherwiseUnused))
      return;
    adopt(head, cone, replaced);
  }

  /// Clones the cone before the group and makes it the group's.
  void adopt(Operation *head, const Cone &cone, ArrayRef<Value> replaced) {
    FusionGroup group = members[head];
    OpBuilder b(group.front());
    IRMapping map;
    FusionGroup clones;
    SmallVector<Operation *> ordered(cone.ops.begin(), cone.ops.end());
    llvm::sort(ordered,
               [&](Operation *x, Operation *y) { return place[x] < place[y]; });
    for (Operation *op : ordered)
      clones.push_back(b.clone(*op, map));
    SmallVector<std::pair<OpOperand *, Value>> undo;
    for (Value value : replaced)
      for (OpOperand &use : llvm::make_early_inc_range(value.getUses()))
        if (llvm::is_contained(group, use.getOwner())) {
          undo.push_back({&use, value});
          use.set(map.lookup(value));
        }
    FusionGroup larger(clones);
    larger.append(group);
    if (!isExpressible(larger)) {
      for (auto [use, value] : undo)
        use->set(value);
      for (Operation *clone : llvm::reverse(clones))
        clone->erase();
      return;
    }
    for (Operation *clone : clones) {
      groupOf[clone] = head;
      place[clone] = place[group.front()];
    }
    members[head] = std::move(larger);
  }
};

} // namespace

SmallVector<FusionGroup> tmc::findFusionGroups(Block &block) {
  return Grouping(block).run();
}
