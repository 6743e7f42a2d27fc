#include "compiler/planning/search/LinearProblem.h"

#include <algorithm>
#include <limits>
#include <unordered_map>
#include <unordered_set>

using namespace tmc::planning;

void tmc::planning::indexOverwrites(const LinearProblem &linear, LinearOp &op) {
  std::unordered_map<ValueId, size_t> groupOf;
  std::vector<std::vector<OverwriteOption>> groups;
  std::unordered_set<ValueId> served;
  for (const LinearOverwrite &o : op.overwrites) {
    auto [at, opens] = groupOf.try_emplace(o.written, groups.size());
    if (opens)
      groups.emplace_back();
    groups[at->second].push_back(
        {o.read, opens, served.insert(o.read).second,
         std::min(linear.bytes[o.read], linear.bytes[o.written])});
  }
  op.options.clear();
  for (std::vector<OverwriteOption> &group : groups) {
    while (!group.empty() && !group.back().serves)
      group.pop_back();
    op.options.insert(op.options.end(), group.begin(), group.end());
  }
}

namespace {

/// Lays the segments of a problem out as one line of stages.
class Linearizing {
public:
  Linearizing(const Problem &problem,
              std::span<const std::vector<InstructionId>> orders)
      : problem(problem), orders(orders), numValues(problem.values.size()),
        persistent(numValues, 0), home(numValues, kNone),
        firstOf(problem.segments.size()), lastOf(problem.segments.size()),
        heldFrom(numValues, std::numeric_limits<int32_t>::max()),
        heldUntil(numValues, -1) {}

  LinearProblem run() {
    readValues();
    for (size_t r = 0; r < problem.recipes.size(); ++r)
      addOp(RecipeId(r));
    for (SegmentId s = 0; s < SegmentId(problem.segments.size()); ++s)
      addSegment(s);
    std::vector<ValueId> liveOut;
    for (size_t v = 0; v < numValues; ++v)
      if (problem.values[v].liveOut && !persistent[v])
        liveOut.push_back(ValueId(v));
    if (!liveOut.empty())
      addPseudo(SegmentId(problem.segments.size()) - 1, liveOut, {});
    findOverwrites();
    rankOps();
    for (OpId o = 0; o < OpId(problem.recipes.size()); ++o)
      allowRecomputation(o);
    for (LinearOp &op : linear.ops)
      indexOverwrites(linear, op);
    return std::move(linear);
  }

private:
  void readValues();
  void addOp(RecipeId r);
  void addPseudo(SegmentId s, std::vector<ValueId> reads,
                 std::vector<ValueId> writes);
  void addSegment(SegmentId s);
  std::vector<ValueId> addCarried(SegmentId s);
  void addStage(SegmentId s, InstructionId i, std::vector<ValueId> &atEnd);
  void findOverwrites();
  void rankOps();
  void allowRecomputation(OpId o);

  const Problem &problem;
  std::span<const std::vector<InstructionId>> orders;
  size_t numValues;
  LinearProblem linear;
  std::vector<char> persistent;
  std::vector<SegmentId> home;          // Per value: its maker's segment.
  std::vector<int32_t> firstOf, lastOf; // Stages of a segment.
  /// Stage at which a value is overwritten in place; no later read.
  std::vector<int32_t> overwrittenAt;
  /// From a value's first read in a loop after its maker's segment, to the end
  /// of the last such loop.
  std::vector<int32_t> heldFrom, heldUntil;
};

void makeUnique(std::vector<ValueId> &list) {
  std::sort(list.begin(), list.end());
  list.erase(std::unique(list.begin(), list.end()), list.end());
}

void Linearizing::readValues() {
  linear.bytes.resize(numValues);
  linear.madeAt.assign(numValues, -1);
  linear.recomputes.resize(numValues);
  for (const Instruction &i : problem.instructions)
    for (ValueId v : problem.recipes[i.recipes.front()].writes)
      home[v] = i.segment;
  for (size_t v = 0; v < numValues; ++v) {
    const Value &value = problem.values[v];
    persistent[v] = value.kind == ValueKind::Persistent;
    linear.bytes[v] = persistent[v] ? 0 : value.bytes;
    if (persistent[v] && value.updates == kNone)
      linear.constantBytes += value.bytes;
    if (value.kind == ValueKind::Carried)
      home[v] = home[value.carriedFrom];
  }
}

void Linearizing::addOp(RecipeId r) {
  const Recipe &recipe = problem.recipes[r];
  LinearOp op;
  for (ValueId v : recipe.reads)
    if (!persistent[v])
      op.reads.push_back(v);
  for (ValueId v : recipe.writes)
    if (!persistent[v]) {
      op.writes.push_back(v);
      op.writtenBytes += linear.bytes[v];
    }
  for (bool must : {true, false})
    for (const Overwrite &o : recipe.overwrites)
      if (o.must == must && !persistent[o.read] && !persistent[o.written])
        op.overwrites.push_back({o.read, o.written, o.must});
  op.cost = recipe.cost;
  op.workspaceBytes = recipe.workspaceBytes;
  op.recipe = r;
  linear.ops.push_back(std::move(op));
}

/// A stage without instruction, at the begin or end of a segment.
void Linearizing::addPseudo(SegmentId s, std::vector<ValueId> reads,
                            std::vector<ValueId> writes) {
  LinearOp op;
  op.reads = std::move(reads);
  op.writes = std::move(writes);
  for (ValueId v : op.writes) {
    op.writtenBytes += linear.bytes[v];
    if (ValueId from = problem.values[v].initial;
        from != kNone && !persistent[from])
      op.overwrites.push_back({from, v, false});
    linear.madeAt[v] = int32_t(linear.stages.size());
  }
  linear.stages.push_back(
      {{OpId(linear.ops.size())}, kNone, s, problem.segments[s].trips});
  linear.ops.push_back(std::move(op));
}

/// The stage that writes a segment's carried values; returns the values that
/// the next trip needs.
std::vector<ValueId> Linearizing::addCarried(SegmentId s) {
  int64_t trips = problem.segments[s].trips;
  std::vector<ValueId> carried, initials, atEnd;
  for (size_t v = 0; v < numValues; ++v)
    if (problem.values[v].kind == ValueKind::Carried && home[v] == s) {
      carried.push_back(ValueId(v));
      if (trips > 1)
        atEnd.push_back(problem.values[v].carriedFrom);
      if (ValueId from = problem.values[v].initial;
          from != kNone && !persistent[from])
        initials.push_back(from);
    }
  makeUnique(initials);
  // In a segment of one trip, a carried value without initial value stays
  // nothing.
  if (trips == 1)
    for (ValueId v : carried)
      if (problem.values[v].initial == kNone)
        linear.bytes[v] = 0;
  if (!carried.empty())
    addPseudo(s, initials, carried);
  return atEnd;
}

void Linearizing::addStage(SegmentId s, InstructionId i,
                           std::vector<ValueId> &atEnd) {
  const Instruction &instruction = problem.instructions[i];
  int64_t trips = problem.segments[s].trips;
  int32_t stage = int32_t(linear.stages.size());
  LinearStage &out = linear.stages.emplace_back();
  out.instruction = i;
  out.segment = s;
  out.trips = trips;
  for (RecipeId r : instruction.recipes)
    out.variants.push_back(r);
  const Recipe &first = problem.recipes[instruction.recipes.front()];
  for (ValueId v : first.writes)
    linear.madeAt[v] = stage;
  linear.baseCost += first.cost * trips;
  if (trips > 1)
    for (RecipeId r : instruction.recipes)
      for (ValueId v : linear.ops[r].reads)
        if (home[v] != s) {
          atEnd.push_back(v);
          heldFrom[v] = std::min(heldFrom[v], stage + 1);
        }
}

void Linearizing::addSegment(SegmentId s) {
  const Segment &segment = problem.segments[s];
  firstOf[s] = int32_t(linear.stages.size());
  std::vector<ValueId> atEnd = addCarried(s);
  for (InstructionId i :
       size_t(s) < orders.size() ? orders[s] : segment.instructions)
    addStage(s, i, atEnd);
  if (segment.trips > 1) {
    makeUnique(atEnd);
    addPseudo(s, atEnd, {});
    for (ValueId v : atEnd)
      if (home[v] != s)
        heldUntil[v] = int32_t(linear.stages.size());
  }
  lastOf[s] = int32_t(linear.stages.size()) - 1;
}

void Linearizing::findOverwrites() {
  int32_t n = int32_t(linear.stages.size());
  overwrittenAt.assign(numValues, n);
  for (int32_t k = 0; k < n; ++k)
    for (OpId op : linear.stages[k].variants)
      if (RecipeId r = linear.ops[op].recipe; r != kNone)
        for (const Overwrite &o : problem.recipes[r].overwrites)
          if (o.must)
            overwrittenAt[o.read] = std::min(overwrittenAt[o.read], k);
  // The initial value of a carried value is overwritten too, in the first trip.
  // In a body of several trips a recomputation would read it in each trip.
  for (size_t v = 0; v < numValues; ++v)
    if (ValueId from = problem.values[v].initial;
        from != kNone && overwrittenAt[v] < n) {
      int32_t last = problem.segments[home[v]].trips > 1 ? firstOf[home[v]] - 1
                                                         : overwrittenAt[v];
      overwrittenAt[from] = std::min(overwrittenAt[from], last);
    }
}

/// The rank is the place of the outputs' first maker in the order.
void Linearizing::rankOps() {
  std::vector<std::pair<int32_t, OpId>> ranks;
  for (OpId o = 0; o < OpId(problem.recipes.size()); ++o) {
    const Recipe &recipe = problem.recipes[o];
    int32_t at = recipe.writes.empty() ? 0 : int32_t(linear.stages.size());
    for (ValueId v : recipe.writes)
      at = std::min(at, linear.madeAt[v]);
    ranks.push_back({at, o});
  }
  std::sort(ranks.begin(), ranks.end());
  for (size_t i = 0; i < ranks.size(); ++i)
    linear.ops[ranks[i].second].rank = int32_t(i);
}

/// Sets the stages in which an operation may recompute.
void Linearizing::allowRecomputation(OpId o) {
  const Recipe &recipe = problem.recipes[o];
  LinearOp &op = linear.ops[o];
  bool pinned = !recipe.recomputable || recipe.writes.empty();
  for (ValueId v : recipe.writes)
    pinned |= problem.values[v].pinned;
  if (pinned)
    return;
  op.firstStage = 0;
  op.lastStage = int32_t(linear.stages.size()) - 1;
  if (recipe.segment != kNone) {
    op.firstStage = firstOf[recipe.segment];
    op.lastStage = lastOf[recipe.segment];
  }
  // A loop holds the values that it reads from outside from its first read on.
  op.heldFrom = std::numeric_limits<int32_t>::max();
  for (ValueId v : op.writes) {
    op.heldFrom = std::min(op.heldFrom, heldFrom[v]);
    op.heldUntil = std::max(op.heldUntil, heldUntil[v]);
  }
  // Before all of its outputs exist, a recomputation only makes some of them
  // early. After an overwrite in place, nothing is read or recomputed.
  for (const std::vector<ValueId> *list : {&recipe.reads, &recipe.writes})
    for (ValueId v : *list) {
      op.firstStage = std::max(op.firstStage, linear.madeAt[v] + 1);
      op.lastStage = std::min(op.lastStage, overwrittenAt[v]);
    }
  if (op.firstStage <= op.lastStage)
    for (ValueId v : op.writes)
      linear.recomputes[v].push_back(o);
}

} // namespace

LinearProblem
tmc::planning::linearize(const Problem &problem,
                         std::span<const std::vector<InstructionId>> orders) {
  return Linearizing(problem, orders).run();
}

Timeline tmc::planning::timelineOf(const LinearProblem &linear,
                                   std::span<const OpId> sequence,
                                   bool countUses) {
  Timeline timeline;
  size_t references = 0;
  for (OpId o : sequence)
    references += linear.ops[o].reads.size() + linear.ops[o].writes.size();
  timeline.reserve(sequence.size(), references);
  std::vector<int32_t> current(linear.bytes.size(), kNone);
  for (OpId o : sequence) {
    timeline.addMoment();
    for (ValueId v : linear.ops[o].reads)
      timeline.read(current[v]);
    for (ValueId v : linear.ops[o].writes)
      current[v] = timeline.write(v);
  }
  timeline.finish(countUses);
  return timeline;
}

std::vector<OpId> tmc::planning::ownExecutions(const LinearProblem &linear) {
  std::vector<OpId> sequence;
  for (const LinearStage &stage : linear.stages)
    sequence.push_back(stage.variants.front());
  return sequence;
}
