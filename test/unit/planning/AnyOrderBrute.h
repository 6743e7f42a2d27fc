// AnyOrderBrute.h - small random problems whose order is free, and the least
// cost of a plan in any order.

#ifndef TMC_TEST_UNIT_PLANNING_ANYORDERBRUTE_H
#define TMC_TEST_UNIT_PLANNING_ANYORDERBRUTE_H

#include "test/unit/planning/RandomProblem.h"

#include <optional>
#include <queue>

namespace tmc::planning {

/// Lets most instructions read what the one before in their segment makes.
inline void addSpine(Problem &p, Random &random) {
  for (const Segment &s : p.segments)
    for (size_t at = 1; at < s.instructions.size(); ++at) {
      const Recipe &before =
          p.recipes[p.instructions[s.instructions[at - 1]].recipes[0]];
      const ValueId v =
          before.writes[random.below(uint32_t(before.writes.size()))];
      if (p.values[v].kind != ValueKind::Temporary || random.chance(0.15))
        continue;
      for (RecipeId r : p.instructions[s.instructions[at]].recipes)
        if (std::vector<ValueId> &reads = p.recipes[r].reads;
            !std::count(reads.begin(), reads.end(), v))
          reads.push_back(v);
    }
}

/// All instructions of a problem without loops in one segment, or in the three
/// that it has. Sometimes a temporary is updated in place by its last reader.
inline Problem randomFreeProblem(Random &random) {
  RandomShape shape;
  shape.carried = false;
  shape.extras = random.chance(0.6);
  shape.overwrites = random.chance(0.7);
  shape.variants = random.chance(0.7);
  shape.several = random.chance(0.5);
  shape.prologue = int(random.below(3));
  shape.body = 3 + int(random.below(3));
  shape.epilogue = int(random.below(3 - uint32_t(shape.prologue / 2)));
  Problem p = randomProblem(random, shape);
  if (random.chance(0.7)) {
    Segment all{"step", 1, {}};
    for (const Segment &s : p.segments)
      all.instructions.insert(all.instructions.end(), s.instructions.begin(),
                              s.instructions.end());
    for (Instruction &i : p.instructions)
      i.segment = 0;
    for (Recipe &r : p.recipes)
      r.segment = kNone;
    p.segments = {all};
  }
  if (random.chance(0.7))
    addSpine(p, random);
  if (random.chance(0.4)) {
    std::vector<InstructionId> lastReader(p.values.size(), kNone);
    for (const Segment &s : p.segments)
      for (InstructionId i : s.instructions)
        for (RecipeId r : p.instructions[i].recipes)
          for (ValueId v : p.recipes[r].reads)
            lastReader[v] = i;
    for (ValueId v = 0; v < ValueId(p.values.size()); ++v) {
      const InstructionId i = lastReader[v];
      if (p.values[v].kind != ValueKind::Temporary || p.values[v].liveOut ||
          i == kNone || p.instructions[i].recipes.size() > 1)
        continue;
      Recipe &r = p.recipes[p.instructions[i].recipes[0]];
      if (p.values[r.writes[0]].kind != ValueKind::Temporary)
        continue;
      Problem with = p;
      with.recipes[p.instructions[i].recipes[0]].recomputable = false;
      with.recipes[p.instructions[i].recipes[0]].overwrites = {
          {v, r.writes[0], true}};
      if (check(with).ok())
        return with;
    }
  }
  return p;
}

/// A line of `body` instructions, each of which reads what the one before
/// makes. The first values are read again and again, so they have chains of
/// gaps. With several trips the line is a loop, behind an instruction that
/// makes a value outside, and before one that reads it.
inline Problem randomLine(Random &random, int body, int64_t trips) {
  Problem p;
  auto value = [&](const char *prefix, int64_t bytes) {
    Value v;
    v.name = prefix + std::to_string(p.values.size());
    v.bytes = bytes;
    return p.addValue(v);
  };
  Value parameter;
  parameter.name = "p";
  parameter.bytes = 1;
  parameter.kind = ValueKind::Persistent;
  const ValueId old = p.addValue(parameter);
  const SegmentId before = trips > 1 ? p.addSegment("before") : 0,
                  line = p.addSegment("line", trips),
                  after = trips > 1 ? p.addSegment("after") : line;
  std::vector<ValueId> early, made;
  auto add = [&](SegmentId s, std::vector<ValueId> reads, bool isEarly) {
    Recipe r;
    r.name = "i" + std::to_string(p.instructions.size());
    r.reads = reads;
    r.writes = {
        value("v", isEarly ? 4 + random.below(4) : 1 + random.below(6))};
    r.cost = 1 + random.below(isEarly ? 3 : 9);
    r.recomputable = random.chance(0.9);
    const InstructionId i = p.addInstruction(s, r);
    if (reads.size() > 1 && random.chance(0.2)) {
      Recipe spares = r;
      spares.name += "b";
      spares.reads.pop_back();
      spares.cost += random.below(4);
      spares.recomputable = random.chance(0.5);
      spares.segment = p.recipes.back().segment;
      p.addVariant(i, spares);
    }
    if (random.chance(0.1)) {
      Recipe other = r;
      other.name += "o";
      other.recomputable = true;
      if (random.chance(0.5) && !other.reads.empty())
        other.reads.pop_back();
      other.segment = p.recipes[p.instructions[i].recipes[0]].segment;
      p.addRecipe(other);
    }
    // A loop's value that may be made outside of it.
    if (isEarly && s == line && random.chance(0.4))
      for (Recipe &own : p.recipes)
        if (own.instruction == i || own.instruction == kNone)
          own.segment = kNone;
    (isEarly ? early : made).push_back(r.writes[0]);
  };
  if (trips > 1)
    add(before, {}, true);
  if (trips == 1 || random.chance(0.6))
    add(line, random.chance(0.5) ? early : std::vector<ValueId>{}, true);
  const bool hasSide = trips == 1 && random.chance(0.3);
  for (int at = 0; at < body - (hasSide ? 1 : 0); ++at) {
    std::vector<ValueId> reads;
    if (!made.empty())
      reads = {made.back()};
    else if (p.segments[line].instructions.size())
      reads = {early.back()};
    if (random.chance(0.2))
      reads.push_back(old);
    for (ValueId v : early)
      if (random.chance(0.4) && !std::count(reads.begin(), reads.end(), v))
        reads.push_back(v);
    add(line, reads, false);
  }
  std::vector<ValueId> last = {old};
  if (hasSide) { // Beside the rest of the line.
    add(line, {made[random.below(2)]}, false);
    p.recipes[p.instructions.back().recipes[0]].workspaceBytes =
        random.below(12);
    last.push_back(made.back());
    made.pop_back();
  }
  if (trips > 1 && random.chance(0.5))
    last.push_back(early[0]);
  else if (trips == 1)
    last.push_back(made.back());
  Value fresh = parameter;
  fresh.name = "p.new";
  fresh.updates = old;
  Recipe update;
  update.name = "update";
  update.reads = last;
  update.writes = {p.addValue(fresh)};
  update.cost = 1;
  update.overwrites = {{old, update.writes[0], true}};
  p.addInstruction(after, update);
  return p;
}

/// A stack of `depth` layers, each of which reads the one below, and `back`
/// gradients, each of which reads the one before and a layer. So a layer's
/// value comes back with what it is made of. With several trips the stack is a
/// loop, and an instruction behind it reads its last gradient.
inline Problem randomStack(Random &random, int depth, int back, int64_t trips) {
  Problem p;
  const SegmentId stack = p.addSegment("stack", trips);
  auto add = [&](SegmentId s, std::vector<ValueId> reads, int64_t bytes) {
    Value v;
    v.name = "v" + std::to_string(p.values.size());
    v.bytes = bytes;
    Recipe r;
    r.name = "i" + std::to_string(p.instructions.size());
    r.reads = std::move(reads);
    r.writes = {p.addValue(v)};
    r.cost = 1 + random.below(5);
    r.recomputable = random.chance(0.9);
    r.workspaceBytes = random.chance(0.2) ? random.below(6) : 0;
    p.addInstruction(s, r);
    return r.writes[0];
  };
  /// A variant, or a recipe that only recomputes, that reads `other` in place
  /// of its first value, or nothing.
  auto addAnother = [&](ValueId other) {
    Recipe r = p.recipes.back();
    r.name += "b";
    r.reads.erase(r.reads.begin());
    if (other != kNone && random.chance(0.7))
      r.reads.push_back(other);
    r.cost += random.below(4);
    const InstructionId own = r.instruction;
    r.instruction = kNone;
    r.recomputable = random.chance(0.7);
    if (random.chance(0.5))
      p.addVariant(own, r);
    else if (r.recomputable)
      p.addRecipe(r);
  };
  std::vector<ValueId> layers;
  for (int i = 0; i < depth; ++i) {
    std::vector<ValueId> reads;
    if (i > 0)
      reads.push_back(layers.back());
    if (i > 1 && random.chance(0.3))
      reads.push_back(layers[size_t(i) - 2]);
    layers.push_back(add(stack, reads, 2 + random.below(6)));
    if (i > 0 && random.chance(0.2))
      addAnother(i > 1 ? layers[size_t(i) - 2] : kNone);
  }
  ValueId gradient = layers.back();
  for (int i = 0; i < back; ++i) {
    const ValueId kept = layers[random.below(uint32_t(depth) - 1)];
    gradient = add(stack, {gradient, kept}, 1 + random.below(3));
    if (random.chance(0.1)) {
      std::swap(p.recipes.back().reads[0], p.recipes.back().reads[1]);
      addAnother(kNone);
    }
  }
  const SegmentId end = trips > 1 ? p.addSegment("end") : stack;
  p.values[add(end, {gradient}, 1)].liveOut = true;
  return p;
}

/// The least cost of a plan in any order, of a problem with one space and
/// without loops: Dijkstra's algorithm over what has run for itself and what is
/// in memory.
class AnyOrderOptimum {
public:
  AnyOrderOptimum(const Problem &p, int64_t budgetBytes)
      : p(p), limit(budgetBytes - p.reservedBytes) {
    std::map<ValueId, ValueId> heir;
    for (ValueId v = 0; v < ValueId(p.values.size()); ++v)
      if (p.values[v].updates != kNone)
        heir[p.values[v].updates] = v;
    updatedBy.assign(p.values.size(), kNone);
    maker.assign(p.values.size(), kNone);
    for (InstructionId i = 0; i < InstructionId(p.instructions.size()); ++i)
      for (ValueId w : p.recipes[p.instructions[i].recipes[0]].writes)
        maker[w] = i;
    for (auto [old, fresh] : heir)
      updatedBy[old] = maker[fresh];
    for (ValueId v = 0; v < ValueId(p.values.size()); ++v)
      if (p.values[v].kind == ValueKind::Persistent &&
          p.values[v].updates == kNone)
        resident += p.values[v].bytes;
    for (SegmentId s = 0; s < SegmentId(p.segments.size()); ++s) {
      upTo.push_back(s ? upTo.back() | inside.back() : 0);
      inside.push_back(0);
      for (InstructionId i : p.segments[s].instructions)
        inside.back() |= uint64_t(1) << i;
    }
  }

  std::optional<int64_t> run() {
    reach({0, 0}, 0);
    uint64_t kept = 0;
    for (size_t v = 0; v < p.values.size(); ++v)
      kept |= uint64_t(p.values[v].liveOut) << v;
    const uint64_t all = (uint64_t(1) << p.instructions.size()) - 1;
    while (!open.empty()) {
      auto [cost, at] = open.top();
      open.pop();
      if (cost > costs[at])
        continue;
      if (at.first == all && (at.second & kept) == kept)
        return cost;
      for (uint64_t left = at.second; left; left &= left - 1)
        reach({at.first, at.second & ~(left & -left)}, cost);
      for (RecipeId r = 0; r < RecipeId(p.recipes.size()); ++r) {
        if (p.recipes[r].instruction != kNone)
          step(at, cost, r, true);
        step(at, cost, r, false);
      }
    }
    return std::nullopt;
  }

private:
  using State = std::pair<uint64_t, uint64_t>; // Done, and in memory.

  void reach(State s, int64_t cost) {
    auto [it, isNew] = costs.insert({s, cost});
    if (!isNew && it->second <= cost)
      return;
    it->second = cost;
    open.push({cost, s});
  }
  bool lasts(ValueId v) const {
    return p.values[v].kind == ValueKind::Persistent;
  }
  bool isThere(const State &at, ValueId v) const {
    if (!lasts(v))
      return at.second >> v & 1;
    return (maker[v] == kNone || at.first >> maker[v] & 1) &&
           (updatedBy[v] == kNone || !(at.first >> updatedBy[v] & 1));
  }
  /// True if the list may stand in this segment now.
  bool isOpen(const State &at, SegmentId s) const {
    return (at.first & upTo[s]) == upTo[s] &&
           !(at.first & ~(upTo[s] | inside[s]));
  }

  void step(const State &at, int64_t cost, RecipeId r, bool isOwn) {
    const Recipe &recipe = p.recipes[r];
    if (isOwn) {
      if (at.first >> recipe.instruction & 1 ||
          !isOpen(at, p.instructions[recipe.instruction].segment))
        return;
    } else {
      if (!recipe.recomputable ||
          (recipe.segment != kNone && !isOpen(at, recipe.segment)))
        return;
      for (ValueId w : recipe.writes)
        if (p.values[w].pinned)
          return;
    }
    for (ValueId v : recipe.reads)
      if (!isThere(at, v))
        return;
    const uint64_t done =
        isOwn ? at.first | uint64_t(1) << recipe.instruction : at.first;
    for (uint32_t taken = 0; taken < 1u << recipe.overwrites.size(); ++taken) {
      uint64_t memory = at.second;
      int64_t bytes = resident + recipe.workspaceBytes;
      for (ValueId w : recipe.writes)
        if (!lasts(w))
          memory |= uint64_t(1) << w;
      for (size_t v = 0; v < p.values.size(); ++v)
        if (memory >> v & 1)
          bytes += p.values[v].bytes;
      bool isRight = true;
      uint64_t ends = 0;
      for (size_t o = 0; o < recipe.overwrites.size(); ++o) {
        const Overwrite &x = recipe.overwrites[o];
        if (!(taken >> o & 1)) {
          isRight &= !x.must;
          continue;
        }
        const uint64_t both = uint64_t(1) << x.read | uint64_t(1) << x.written;
        isRight &= !(ends & both) && lasts(x.read) == lasts(x.written);
        ends |= both;
        if (lasts(x.read))
          continue;
        bytes -= std::min(p.values[x.read].bytes, p.values[x.written].bytes);
        memory &= ~(uint64_t(1) << x.read);
      }
      if (isRight && bytes <= limit)
        reach({done, memory}, cost + recipe.cost);
    }
  }

  const Problem &p;
  const int64_t limit;
  int64_t resident = 0;
  std::vector<InstructionId> maker, updatedBy; // By value.
  std::vector<uint64_t> upTo, inside;          // By segment: instructions.
  std::map<State, int64_t> costs;
  std::priority_queue<std::pair<int64_t, State>,
                      std::vector<std::pair<int64_t, State>>, std::greater<>>
      open;
};

/// Peaks, ascending, each with the least cost within it, of the solutions with
/// at most `most` recomputations in every order of each segment.
inline std::map<int64_t, int64_t> cheapestInAnyOrder(Problem p, int most) {
  std::map<int64_t, int64_t> cheapest;
  for (Segment &s : p.segments)
    std::sort(s.instructions.begin(), s.instructions.end());
  std::function<void(size_t)> go = [&](size_t s) {
    if (s == p.segments.size()) {
      for (auto [peak, cost] : cheapestWithin(p, most)) {
        auto [it, isNew] = cheapest.insert({peak, cost});
        it->second = std::min(it->second, cost);
      }
      return;
    }
    std::vector<InstructionId> &list = p.segments[s].instructions;
    do
      go(s + 1);
    while (std::next_permutation(list.begin(), list.end()));
  };
  go(0);
  int64_t best = INT64_MAX;
  for (auto &[peak, cost] : cheapest)
    cost = best = std::min(best, cost);
  return cheapest;
}

} // namespace tmc::planning

#endif // TMC_TEST_UNIT_PLANNING_ANYORDERBRUTE_H
