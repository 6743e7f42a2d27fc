// RandomProblem.h - small random problems with every feature, and every
// solution of a small problem.

#ifndef TMC_TEST_UNIT_PLANNING_RANDOMPROBLEM_H
#define TMC_TEST_UNIT_PLANNING_RANDOMPROBLEM_H

#include "compiler/planning/model/Problem.h"
#include "compiler/planning/model/Random.h"
#include "compiler/planning/model/Verify.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>

namespace tmc::planning {

struct RandomShape {
  int prologue = 1, body = 3, epilogue = 2; // Instructions.
  int64_t trips = 1;
  bool overwrites = true, variants = true, several = true, carried = true;
  /// Kernels from other values, pinned values, carried ones that begin as
  /// something, overwrites to choose from, reserved bytes.
  bool extras = false;
};

/// A graph as most planners take it: every instruction runs one kernel, which
/// writes one value.
inline constexpr RandomShape kRandomGraph{.prologue = 0,
                                          .body = 5,
                                          .epilogue = 1,
                                          .overwrites = false,
                                          .variants = false,
                                          .several = false,
                                          .carried = false};

/// Adds recipes that make a value again from one or two others, made before it
/// or, as an inverse does, after it.
inline void addOtherRecipes(Random &random, Problem &p) {
  std::vector<int32_t> madeAt(p.values.size(), -1);
  std::vector<SegmentId> home(p.values.size(), 0);
  std::vector<ValueId> made;
  int32_t at = 0;
  for (const Segment &segment : p.segments)
    for (InstructionId i : segment.instructions) {
      for (ValueId v : p.recipes[p.instructions[i].recipes[0]].writes) {
        madeAt[v] = at;
        home[v] = p.instructions[i].segment;
        if (p.values[v].kind == ValueKind::Temporary)
          made.push_back(v);
      }
      ++at;
    }
  for (int trial = 0; trial < 3; ++trial) {
    ValueId w = made[random.below(uint32_t(made.size()))];
    bool inverse = random.chance(0.3);
    Recipe other;
    other.name = p.values[w].name + "o";
    for (uint32_t k = 0, many = 1 + random.below(2); k < many; ++k) {
      ValueId v = made[random.below(uint32_t(made.size()))];
      bool fits = inverse ? madeAt[v] > madeAt[w] && home[v] == home[w]
                          : madeAt[v] < madeAt[w];
      if (fits && (home[v] == home[w] || p.segments[home[v]].trips == 1) &&
          !std::count(other.reads.begin(), other.reads.end(), v))
        other.reads.push_back(v);
    }
    if (other.reads.empty())
      continue;
    std::sort(other.reads.begin(), other.reads.end());
    other.writes = {w};
    other.cost = 1 + random.below(6);
    other.workspaceBytes = random.below(4);
    other.recomputable = true;
    if (p.segments[home[w]].trips > 1)
      other.segment = home[w];
    p.addRecipe(other);
  }
}

inline Problem randomProblem(Random &random, const RandomShape &shape) {
  Problem p;
  auto value = [&](const char *prefix) {
    Value v;
    v.name = prefix + std::to_string(p.values.size());
    v.bytes = 1 + random.below(9);
    return v;
  };
  Value parameter = value("p");
  parameter.kind = ValueKind::Persistent;
  ValueId old = p.addValue(parameter);
  std::vector<ValueId> readable = {old};
  ValueId carried = kNone;
  auto addInstruction = [&](SegmentId s, std::vector<ValueId> must) {
    Recipe r;
    r.name = "i" + std::to_string(p.instructions.size());
    r.reads = must;
    for (uint32_t k = 0, many = 1 + random.below(3); k < many; ++k)
      r.reads.push_back(
          readable[random.chance(0.6)
                       ? readable.size() - 1 -
                             random.below(
                                 uint32_t(std::min<size_t>(3, readable.size())))
                       : random.below(uint32_t(readable.size()))]);
    std::sort(r.reads.begin(), r.reads.end());
    r.reads.erase(std::unique(r.reads.begin(), r.reads.end()), r.reads.end());
    for (uint32_t k = 0, many = shape.several && random.chance(0.3) ? 2 : 1;
         k < many; ++k)
      r.writes.push_back(p.addValue(value("v")));
    r.cost = 1 + random.below(9);
    r.workspaceBytes = random.chance(0.3) ? random.below(5) : 0;
    r.recomputable = random.chance(0.85);
    if (shape.overwrites && random.chance(0.5)) {
      ValueId read = r.reads[random.below(uint32_t(r.reads.size()))];
      if (p.values[read].kind == ValueKind::Temporary)
        r.overwrites.push_back({read, r.writes[0], false});
    }
    if (shape.extras)
      for (ValueId read : r.reads)
        if (p.values[read].kind == ValueKind::Temporary && random.chance(0.3) &&
            (r.overwrites.empty() || r.overwrites[0].read != read))
          r.overwrites.push_back({read, r.writes.back(), false});
    std::vector<ValueId> writes = r.writes, reads = r.reads;
    bool again = r.recomputable;
    InstructionId i = p.addInstruction(s, r);
    SegmentId bound = p.recipes.back().segment;
    if (shape.variants && random.chance(0.25)) { // Another kernel for it.
      Recipe other;
      other.name = r.name + "b";
      other.reads = reads;
      if (other.reads.size() > 1)
        other.reads.erase(other.reads.begin() +
                          random.below(uint32_t(other.reads.size())));
      other.writes = writes;
      other.cost = r.cost + random.below(6);
      other.recomputable = false;
      p.addVariant(i, other);
    }
    if (shape.variants && again && writes.size() > 1 && random.chance(0.5)) {
      Recipe pruned; // Only the first result, for less.
      pruned.name = r.name + "p";
      pruned.reads = reads;
      pruned.writes = {writes[0]};
      pruned.cost = 1 + r.cost / 2;
      pruned.recomputable = true;
      pruned.segment = bound;
      p.addRecipe(pruned);
    }
    for (ValueId w : writes)
      readable.push_back(w);
  };
  SegmentId prologue = p.addSegment("prologue"),
            body = p.addSegment("body", shape.trips),
            epilogue = p.addSegment("epilogue");
  for (int i = 0; i < shape.prologue; ++i)
    addInstruction(prologue, {});
  size_t outside = readable.size();
  if (shape.carried) {
    Value c = value("c");
    c.kind = ValueKind::Carried;
    ValueId from = readable.back();
    if (shape.extras && p.values[from].kind == ValueKind::Temporary &&
        random.chance(0.5)) {
      p.values[from].pinned = true;
      c.initial = from;
      c.bytes = p.values[from].bytes;
      readable.pop_back(); // The body overwrites it.
      outside = readable.size();
    }
    carried = p.addValue(c);
  }
  for (int i = 0; i < shape.body; ++i)
    addInstruction(body, {});
  ValueId total = kNone;
  if (shape.carried) {
    Value t = value("t");
    t.bytes = p.values[carried].bytes;
    total = p.addValue(t);
    p.values[carried].carriedFrom = total;
    Recipe add;
    add.name = "accumulate";
    add.reads = {carried, readable.back()};
    add.writes = {total};
    add.cost = 1;
    add.overwrites = {{carried, total, true}};
    p.addInstruction(body, add);
  }
  // Of what the body makes, only what is carried, or all if it runs once.
  if (shape.trips > 1)
    readable.resize(outside);
  for (int i = 0; i < shape.epilogue; ++i)
    addInstruction(epilogue, total == kNone ? std::vector<ValueId>{}
                                            : std::vector<ValueId>{total});
  parameter.name = "p.new";
  parameter.updates = old;
  ValueId fresh = p.addValue(parameter);
  Recipe update;
  update.name = "update";
  update.reads = {old, readable.back()};
  if (update.reads[1] == old)
    update.reads.pop_back();
  update.writes = {fresh};
  update.cost = 1;
  update.overwrites = {{old, fresh, true}};
  p.addInstruction(epilogue, update);
  if (p.values[readable.back()].kind == ValueKind::Temporary)
    p.values[readable.back()].liveOut = random.chance(0.3);
  if (shape.extras) {
    addOtherRecipes(random, p);
    for (Value &v : p.values)
      v.pinned |= v.kind == ValueKind::Temporary && random.chance(0.1);
    p.reservedBytes = random.chance(0.3) ? 1 + random.below(20) : 0;
  }
  return p;
}

/// `p` with a last instruction in each body of several trips that reads, for
/// nothing, what the body reads of values made outside. Its solutions are those
/// of `p` that hold these values over the end of every trip, the last included.
///
/// The search (LinearProblem.h) looks among these: it folds a loop to one trip,
/// and a trip that begins without a value from outside would have to end
/// without it.
inline Problem holdingOutside(Problem p) {
  std::vector<SegmentId> home(p.values.size(), kNone);
  for (const Instruction &i : p.instructions)
    for (ValueId v : p.recipes[i.recipes[0]].writes)
      home[v] = i.segment;
  for (SegmentId s = 0; s < SegmentId(p.segments.size()); ++s) {
    if (p.segments[s].trips == 1)
      continue;
    Recipe end;
    end.name = "end of trip";
    for (InstructionId i : p.segments[s].instructions)
      for (RecipeId r : p.instructions[i].recipes)
        for (ValueId v : p.recipes[r].reads)
          if (home[v] != s && p.values[v].kind == ValueKind::Temporary)
            end.reads.push_back(v);
    std::sort(end.reads.begin(), end.reads.end());
    end.reads.erase(std::unique(end.reads.begin(), end.reads.end()),
                    end.reads.end());
    if (end.reads.empty())
      continue;
    Value nothing;
    nothing.name = "nothing";
    end.writes = {p.addValue(nothing)};
    p.addInstruction(s, end);
  }
  return p;
}

/// Every solution in the program's order with at most `most` recomputations,
/// by every recipe; calls `visit` with those that the verifier accepts.
inline void forEachSolution(
    const Problem &p, int most,
    const std::function<void(const Solution &, const Claim &)> &visit) {
  Solution s;
  s.segments.resize(p.segments.size());
  std::function<void(size_t, size_t, int)> go = [&](size_t segment, size_t at,
                                                    int left) {
    if (segment == p.segments.size()) {
      Solution full = s;
      takeOverwrites(p, full);
      if (absl::StatusOr<Claim> claim = measure(p, full); claim.ok())
        visit(full, *claim);
      return;
    }
    if (left > 0)
      for (RecipeId r = 0; r < RecipeId(p.recipes.size()); ++r)
        if (p.recipes[r].recomputable &&
            (p.recipes[r].segment == kNone ||
             p.recipes[r].segment == SegmentId(segment))) {
          s.segments[segment].push_back({r, kNone, {}});
          go(segment, at, left - 1);
          s.segments[segment].pop_back();
        }
    if (at == p.segments[segment].instructions.size())
      return go(segment + 1, 0, left);
    InstructionId i = p.segments[segment].instructions[at];
    for (RecipeId r : p.instructions[i].recipes) {
      s.segments[segment].push_back({r, i, {}});
      go(segment, at + 1, left);
      s.segments[segment].pop_back();
    }
  };
  go(0, 0, most);
}

/// Peaks below `limit`, ascending, each with the least cost of all solutions of
/// `forEachSolution` within it.
inline std::map<int64_t, int64_t>
cheapestWithin(const Problem &p, int most, int64_t limit = INT64_MAX,
               const std::function<bool(const Solution &)> &counts = nullptr) {
  std::map<int64_t, int64_t> cheapest;
  forEachSolution(p, most, [&](const Solution &s, const Claim &claim) {
    if (claim.peakBytes >= limit || (counts && !counts(s)))
      return;
    auto [it, fresh] = cheapest.insert({claim.peakBytes, claim.cost});
    it->second = std::min(it->second, claim.cost);
  });
  int64_t best = INT64_MAX;
  for (auto &[peak, cost] : cheapest)
    cost = best = std::min(best, cost);
  return cheapest;
}

/// The peaks below that of the base solution: budgets that ask for something.
inline std::map<int64_t, int64_t> worthwhileBudgets(const Problem &p,
                                                    int most) {
  return cheapestWithin(p, most, simulate(p, baseSolution(p))->peakBytes);
}

} // namespace tmc::planning

#endif // TMC_TEST_UNIT_PLANNING_RANDOMPROBLEM_H
