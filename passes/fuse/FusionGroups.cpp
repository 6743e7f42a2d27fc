// FusionGroups.cpp - groups of ops that become one kernel.

#include "passes/fuse/FusionGroups.h"

#include "dialects/nn/Builders.h"
#include "dialects/nn/FusedPlan.h"
#include "dialects/nn/NN.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/StringMap.h"

#include <map>

using namespace mlir;
using namespace tmc;
using namespace tmc::nn;

static bool isConstant(Value value) { return splatValue(value).has_value(); }

//===----------------------------------------------------------------------===//
// Cheap producers
//===----------------------------------------------------------------------===//

/// An operand is small if it is this many times smaller than the result.
static constexpr int64_t kSmallPart = 8;

/// Ops that are computed again for each user of their results, with the number
/// of ops that one such user then computes.
using LeafyOps = DenseMap<Operation *, unsigned>;

/// The ops that compute the result of `op` from little data: all operands,
/// through other such ops, are small compared with it. 0: its data are large,
/// or there are too many ops. A long chain isn't cheap: its clones for the
/// users of each of its ops would be the square of its length.
static unsigned leafySize(Operation *op, const LeafyOps &leafy) {
  constexpr unsigned kMostOps = 32;
  if (!isFusible(op) || isa<ReduceOp, ReshapeOp>(op) || op->use_empty())
    return 0;
  int64_t bytes = sizeInBytes(op->getResult(0).getType());
  unsigned size = 1;
  for (Value operand : op->getOperands()) {
    auto found = leafy.find(operand.getDefiningOp());
    if (found != leafy.end())
      size += found->second;
    else if (!isConstant(operand) && !isa<RandomOp>(op) &&
             sizeInBytes(operand.getType()) * kSmallPart > bytes)
      return 0;
  }
  return size <= kMostOps ? size : 0;
}

void tmc::cloneForEachUser(Block &block) {
  LeafyOps leafy;
  SmallVector<Operation *> ops;
  for (Operation &op : block.without_terminator()) {
    ops.push_back(&op);
    if (op.hasTrait<OpTrait::ConstantLike>())
      continue;
    if (unsigned size = leafySize(&op, leafy))
      leafy[&op] = size;
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
    // The last user keeps the original.
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
      if (isFusible(op) && !isa<ReshapeOp>(op) &&
          !isConstant(op->getResult(0))) {
        groupOf[op] = op;
        members[op] = {op};
      }
    for (Operation *op : order)
      rank[op] = place[op];
    sequence.assign(order.begin(), order.end());
    // A broadcast is merged after its readers: before, it has dimensions that
    // no other op of its group has.
    for (bool broadcasts : {false, true})
      for (Operation *op : order)
        if (groupOf.contains(op) && isa<BroadcastOp>(op) == broadcasts)
          mergeWithProducers(op);
    for (Operation *op : order)
      if (groupOf.contains(op) && isa<ReduceOp>(op))
        mergeWithReaders(op);
    for (Operation *op : order)
      if (auto concat = dyn_cast<ConcatOp>(op))
        mergeParts(concat);
    for (Operation *op : order)
      if (auto widened = dyn_cast<arith::ExtFOp>(op);
          widened && groupOf.contains(op))
        widenInReaders(widened);
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
  /// The first op of each op's group, and the group of each first op.
  DenseMap<Operation *, Operation *> groupOf;
  DenseMap<Operation *, FusionGroup> members;

  /// The op of this block that is `op` or contains it.
  Operation *here(Operation *op) { return block.findAncestorOpInBlock(*op); }

  Operation *groupAt(Operation *op) {
    auto found = groupOf.find(op);
    return found == groupOf.end() ? nullptr : found->second;
  }

  /// Broadcasts come first, because their operands often come from the group
  /// that the op joins next; then the largest operands, which gain the most. A
  /// sum of two reductions joins the later one, so that the sums of tiles are
  /// always added up in one order.
  void mergeWithProducers(Operation *op) {
    SmallVector<Operation *> producers;
    auto collect = [&](Operation *of) {
      for (Value operand : of->getOperands())
        if (Operation *made = throughViews(operand).getDefiningOp();
            made && groupOf.contains(made))
          producers.push_back(made);
    };
    collect(op);
    for (Operation *made : SmallVector<Operation *>(producers))
      if (isa<BroadcastOp>(made) && tryMerge(groupOf[made], groupOf[op]))
        collect(made);
    llvm::stable_sort(producers, [&](Operation *a, Operation *b) {
      int64_t more = sizeInBytes(a->getResult(0).getType()),
              less = sizeInBytes(b->getResult(0).getType());
      if (more != less || !isa<ReduceOp>(a) || !isa<ReduceOp>(b))
        return more > less;
      return place[a] > place[b];
    });
    for (Operation *producer : producers)
      tryMerge(groupOf[producer], groupOf[op]);
  }

  /// A sum over rows joins a group that reads one of its large inputs: the
  /// gradients of a norm's scale and shift join the gradient of its input.
  void mergeWithReaders(Operation *op) {
    if (!isSumOverRows(op))
      return;
    GroupInterface interface = interfaceOf(members[groupOf[op]]);
    int64_t bytes = sizeInBytes(op->getOperand(0).getType());
    for (Value input : interface.inputs) {
      if (sizeInBytes(input.getType()) < bytes)
        continue;
      SmallVector<Operation *> readers;
      forEachUser(throughViews(input), [&](Operation *user) {
        if (Operation *group = groupAt(user); group && group != groupOf[op])
          readers.push_back(group);
      });
      for (Operation *group : readers)
        if (tryMerge(groupOf[op], group))
          return;
    }
  }

  /// Groups that make neighbouring parts of a concatenation from a common large
  /// operand become one, which can write the whole: the gradients of the halves
  /// of a product's result.
  void mergeParts(ConcatOp concat) {
    auto groupOfPart = [&](Value part) -> Operation * {
      Operation *made = throughViews(part).getDefiningOp();
      return made ? groupAt(made) : nullptr;
    };
    auto reads = [&](Operation *group) {
      llvm::SmallDenseSet<Value> large;
      for (Value input : interfaceOf(members[group]).inputs)
        if (sizeInBytes(input.getType()) * kSmallPart >
            sizeInBytes(concat.getType()))
          large.insert(throughViews(input));
      return large;
    };
    for (auto [left, right] : llvm::zip(concat.getInputs().drop_back(),
                                        concat.getInputs().drop_front())) {
      Operation *a = groupOfPart(left), *b = groupOfPart(right);
      if (!a || !b || a == b)
        continue;
      const auto both = reads(b);
      if (llvm::any_of(reads(a), [&](Value x) { return both.contains(x); }))
        tryMerge(a, b);
    }
  }

  /// Groups that read a widened value of another group widen it themselves: the
  /// narrow one has half of the bytes.
  void widenInReaders(arith::ExtFOp widened) {
    Operation *own = groupOf[widened];
    if (groupAt(widened.getIn().getDefiningOp()) != own)
      return;
    llvm::SetVector<Operation *> readers;
    for (Operation *user : widened->getUsers())
      if (Operation *group = groupAt(user); group && group != own)
        readers.insert(group);
    for (Operation *group : readers) {
      OpBuilder b(group);
      Operation *clone = b.clone(*widened);
      FusionGroup larger{clone};
      larger.append(members[group]);
      SmallVector<OpOperand *> uses;
      for (OpOperand &use : widened->getUses())
        if (groupAt(use.getOwner()) == group)
          uses.push_back(&use);
      for (OpOperand *use : uses)
        use->set(clone->getResult(0));
      if (!isExpressible(larger)) {
        for (OpOperand *use : uses)
          use->set(widened);
        clone->erase();
        continue;
      }
      groupOf[clone] = group;
      place[clone] = place[group];
      members[group] = std::move(larger);
    }
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
    if (rank[a] > rank[b])
      std::swap(a, b);
    if (!isExpressible(both) || !bringTogether(a, b))
      return false;
    unsigned at = rank[b];
    members.erase(a);
    members.erase(b);
    for (Operation *op : both)
      groupOf[op] = both.front();
    sequence[at] = both.front();
    rank[both.front()] = at;
    members[both.front()] = std::move(both);
    return true;
  }

  bool isExpressible(ArrayRef<Operation *> group) {
    auto [found, isNew] = expressible.try_emplace(patternOf(group), false);
    if (isNew) {
      OpBuilder b(group.front()->getContext());
      Operation *fused = buildFused(b, group);
      found->second = fused;
      if (fused)
        fused->destroy();
    }
    return found->second;
  }

  /// Whether groups can be one kernel, by their patterns: the layers of a model
  /// have the same patterns.
  llvm::StringMap<bool> expressible;

  /// Equal for groups whose fused ops differ only by names and positions.
  static std::string patternOf(ArrayRef<Operation *> group) {
    std::string pattern;
    auto add = [&](auto part) {
      pattern.append(reinterpret_cast<const char *>(&part), sizeof(part));
    };
    DenseMap<Operation *, unsigned> members;
    DenseMap<Value, unsigned> inputs;
    for (Operation *op : group) {
      add(op->getName().getAsOpaquePointer());
      if (!isa<RandomOp>(op)) // Random numbers differ by their streams.
        add(op->getAttrDictionary().getAsOpaquePointer());
      for (Value operand : op->getOperands()) {
        add(operand.getType().getAsOpaquePointer());
        Operation *root = throughViews(operand).getDefiningOp();
        auto member = members.find(root);
        if (isConstant(operand)) {
          add('c');
          add(operand.getDefiningOp()
                  ->getAttrDictionary()
                  .getAsOpaquePointer());
        } else if (member != members.end()) {
          for (Value view = operand; view.getDefiningOp() != root;
               view = view.getDefiningOp()->getOperand(0))
            add(view.getType().getAsOpaquePointer());
          add('m');
          add(member->second);
          add(cast<OpResult>(throughViews(operand)).getResultNumber());
        } else {
          add('i');
          add(inputs.try_emplace(operand, inputs.size()).first->second);
        }
      }
      members[op] = members.size();
      for (Value result : op->getResults())
        add(result.getType().getAsOpaquePointer());
    }
    for (Operation *op : group)
      for (Value result : op->getResults())
        add(anyUser(result,
                    [&](Operation *user) { return !members.contains(user); }));
    return pattern;
  }

  /// Groups and ungrouped ops, in a valid execution order; null entries have
  /// been merged into another group.
  SmallVector<Operation *> sequence;
  DenseMap<Operation *, unsigned> rank;

  void forEachReader(Operation *node, llvm::function_ref<void(Operation *)> f) {
    auto visit = [&](Operation *op) {
      for (Value result : op->getResults())
        forEachUser(result, [&](Operation *user) {
          if (Operation *next = here(user)) {
            Operation *group = groupAt(next);
            f(group ? group : next);
          }
        });
    };
    if (auto group = members.find(node); group != members.end())
      llvm::for_each(group->second, visit);
    else
      visit(node);
  }

  /// Moves the ops that must run after `a` behind `b`, so that both can run
  /// together at b's rank. False if another op must run between them. Groups
  /// that are far apart aren't merged: one kernel would keep its inputs alive
  /// for a long time.
  bool bringTogether(Operation *a, Operation *b) {
    constexpr unsigned kFar = 400;
    unsigned first = rank[a], last = rank[b];
    if (last - first > kFar)
      return false;
    DenseSet<Operation *> after;
    SmallVector<Operation *> work{a};
    bool between = false;
    while (!work.empty() && !between) {
      Operation *node = work.pop_back_val();
      forEachReader(node, [&](Operation *reader) {
        if (reader == b)
          between |= node != a; // Merging removes a direct edge.
        else if (reader != node && rank.contains(reader) &&
                 rank[reader] < last && after.insert(reader).second)
          work.push_back(reader);
      });
    }
    if (between)
      return false;
    SmallVector<Operation *> reordered{nullptr}; // The place that becomes free.
    for (unsigned i = first + 1; i < last; ++i)
      if (sequence[i] && !after.contains(sequence[i]))
        reordered.push_back(sequence[i]);
    reordered.push_back(b);
    for (unsigned i = first + 1; i < last; ++i)
      if (sequence[i] && after.contains(sequence[i]))
        reordered.push_back(sequence[i]);
    reordered.resize(last - first + 1, nullptr);
    for (auto [i, node] : llvm::enumerate(reordered)) {
      sequence[first + i] = node;
      if (node)
        rank[node] = first + i;
    }
    return true;
  }

  //===--------------------------------------------------------------------===//
  // Recomputation
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
    // Goes from the last consumer to the first: a value that a consumer no
    // longer reads then has fewer readers.
    for (Operation *head : llvm::reverse(heads))
      if (members.contains(head))
        recomputeFor(head);
  }

  /// The ops that a group would recompute, and the values that it would then
  /// read.
  struct Cone {
    llvm::SetVector<Operation *> ops;
    llvm::SetVector<Value> leaves;
  };

  /// A statistic of a row is recomputed with the row; a sum over all rows
  /// isn't.
  static bool isSumOverRows(Operation *op) {
    auto reduce = dyn_cast<ReduceOp>(op);
    return reduce &&
           !llvm::is_contained(reduce.getDims(),
                               tensorType(reduce.getInput()).getRank() - 1);
  }

  /// True if a group writes `value` for readers other than itself and `group`.
  bool isWrittenAnyway(Value value, ArrayRef<Operation *> group) {
    return anyUser(value, [&](Operation *user) {
      Operation *at = here(user);
      return !llvm::is_contained(group, at) &&
             (!groupAt(at) || groupAt(at) != groupAt(value.getDefiningOp()));
    });
  }

  bool grow(Value value, ArrayRef<Operation *> group, Cone &cone,
            bool isRoot = true) {
    constexpr size_t kMostOps = 32;
    if (isConstant(value))
      return true;
    value = throughViews(value);
    Operation *op = value.getDefiningOp();
    if (!op || !groupOf.contains(op) || isSumOverRows(op) ||
        (!isRoot && isWrittenAnyway(value, group))) {
      cone.leaves.insert(value);
      return true;
    }
    if (cone.ops.contains(op))
      return true;
    for (Value operand : op->getOperands())
      if (!grow(operand, group, cone, false))
        return false;
    cone.ops.insert(op);
    return cone.ops.size() <= kMostOps;
  }

  /// True if `value` is in memory at `moment` anyway: it is an argument of the
  /// step, or an op outside `group` reads it then, later, or shortly before.
  bool isAliveAnyway(Value value, ArrayRef<Operation *> group,
                     unsigned moment) {
    value = throughViews(value);
    if (isa<BlockArgument>(value))
      return true;
    constexpr unsigned kJustBefore = 16;
    return anyUser(value, [&](Operation *user) {
      Operation *at = here(user);
      return !llvm::is_contained(group, at) &&
             placeOf(at) + kJustBefore >= moment &&
             (!groupAt(at) || groupAt(at) != groupAt(value.getDefiningOp()));
    });
  }

  void recomputeFor(Operation *head) {
    FusionGroup group = members[head];
    const unsigned moment = lastPlace(group);
    GroupInterface interface = interfaceOf(group);
    llvm::SetVector<Value> read;
    for (Value input : interface.inputs)
      read.insert(throughViews(input));
    // Adds one input at a time while bytes are saved: a value that is then read
    // anyway may make the next input free.
    Cone cone;
    DenseSet<Value> replaced;
    for (bool changed = true; changed;) {
      changed = false;
      for (Value input : read) {
        Operation *made = input.getDefiningOp();
        if (replaced.contains(input) || !made || !groupOf.contains(made) ||
            isSumOverRows(made) || isAliveAnyway(input, group, moment))
          continue;
        Cone larger = cone;
        if (!grow(input, group, larger))
          continue;
        int64_t saved = sizeInBytes(input.getType()), retained = 0;
        for (Value leaf : larger.leaves)
          if (!cone.leaves.contains(leaf) &&
              (!read.contains(leaf) || replaced.contains(leaf)) &&
              !isAliveAnyway(leaf, group, moment))
            retained += sizeInBytes(leaf.getType());
        if (retained > saved ||
            (retained == saved && isWrittenAnyway(input, group)))
          continue;
        cone = std::move(larger);
        replaced.insert(input);
        changed = true;
      }
    }
    if (!replaced.empty())
      adopt(head, cone, replaced);
  }

  /// Clones the cone before the group and adds the clones to the group.
  void adopt(Operation *head, const Cone &cone,
             const DenseSet<Value> &replaced) {
    FusionGroup group = members[head];
    OpBuilder b(group.front());
    Operation *before = group.front()->getPrevNode();
    IRMapping map;
    FusionGroup clones;
    // Clones of earlier adoptions have equal places; they keep the cone's
    // order, operands first.
    SmallVector<Operation *> ordered(cone.ops.begin(), cone.ops.end());
    llvm::stable_sort(ordered, [&](Operation *x, Operation *y) {
      return place[x] < place[y];
    });
    for (Operation *op : ordered) {
      for (Value operand : op->getOperands())
        if (cone.ops.contains(throughViews(operand).getDefiningOp()))
          cloneOperand(b, operand, map);
      clones.push_back(b.clone(*op, map));
    }
    SmallVector<std::pair<OpOperand *, Value>> undo;
    for (Operation *op : group)
      for (OpOperand &operand : op->getOpOperands())
        if (replaced.contains(throughViews(operand.get()))) {
          undo.push_back({&operand, operand.get()});
          cloneOperand(b, operand.get(), map);
          operand.set(map.lookup(operand.get()));
        }
    FusionGroup larger(clones);
    larger.append(group);
    if (!isExpressible(larger)) {
      for (auto [use, value] : undo)
        use->set(value);
      while (group.front()->getPrevNode() != before)
        group.front()->getPrevNode()->erase();
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
