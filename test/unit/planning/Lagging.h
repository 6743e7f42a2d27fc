// Lagging.h - small random loops whose carried values lag (R19), and loops
// unrolled.

#ifndef TMC_TEST_UNIT_PLANNING_LAGGING_H
#define TMC_TEST_UNIT_PLANNING_LAGGING_H

#include "test/unit/planning/NetworkBrute.h"
#include "test/unit/planning/SpaceBrute.h"

#include <optional>

namespace tmc::planning {

/// A loop of up to seven trips, with a host or a network; a carried content
/// lags by up to three trips, another one perhaps by another number.
inline Problem laggingLoop(Random &random, bool network) {
  SpaceProblem w =
      network ? NetworkProblem(random, 3).w : randomSpaces(random, 2);
  Problem &p = w.p;
  const int32_t lag = 1 + int32_t(random.below(3));
  const std::vector<ValueId> &adds = p.recipes[w.recipeId("add")].reads;
  // No kernel reads one instance by two names.
  const bool isTwice = std::count(adds.begin(), adds.end(), w.id("v0"));
  for (Value &v : p.values)
    if (v.kind == ValueKind::Carried) {
      v.lag = lag;
      v.initial = isTwice ? kNone : v.initial;
    }
  p.segments[1].trips = 1 + random.below(7);
  if (random.chance(0.5)) {
    Value other = p.values[w.id("c")];
    other.name = "other";
    other.initial = kNone;
    other.lag = 1 + (lag + int32_t(random.below(2))) % 3; // Another one.
    const ValueId v = p.addValue(other);
    p.recipes[w.recipeId("add")].reads.push_back(v);
  }
  for (Recipe &r : p.recipes)
    for (ValueId v : r.reads)
      if (p.values[p.contentOf(v)].kind == ValueKind::Carried)
        r.segment = 1;
  return p;
}

/// A list with each trip as a segment of its own, and each instance as a value.
/// It has no loops and no carried values, so R6, R7, R8, R15 and R19 are its
/// only words. None if a read finds nothing made.
class Unrolled {
public:
  Unrolled(const Problem &loop, const Solution &solution) : loop(loop) {
    p.spaces = loop.spaces;
    p.engines = loop.engines;
    p.reservedBytes = loop.reservedBytes;
    now.assign(loop.values.size(), kUnmade);
    for (size_t seg = 0; seg < loop.segments.size() && isRight; ++seg) {
      const std::vector<ValueId> outside = now;
      std::vector<std::vector<ValueId>> ends;
      for (int64_t trip = 0; trip < loop.segments[seg].trips && isRight;
           ++trip) {
        now = outside;
        for (size_t v = 0; v < now.size(); ++v) {
          const Value &value = loop.values[v];
          if (value.kind != ValueKind::Carried || !isCarriedBy(v, seg))
            continue;
          if (trip >= value.lag)
            now[v] = ends[size_t(trip - value.lag)][value.carriedFrom];
          else
            now[v] = value.initial == kNone ? kNothing : outside[value.initial];
        }
        addTrip(solution.segments[seg]);
        ends.push_back(now);
      }
    }
    for (size_t v = 0; v < now.size() && isRight; ++v)
      if (loop.values[v].liveOut && loop.values[v].formOf == kNone) {
        isRight = now[v] >= 0;
        if (isRight)
          p.values[now[v]].liveOut = true;
      }
  }

  Problem p;
  Solution s;
  bool isRight = true;

private:
  static constexpr ValueId kUnmade = -1, kNothing = -2;

  bool isCarriedBy(size_t v, size_t seg) const {
    const ValueId from = loop.contentOf(loop.values[v].carriedFrom);
    for (InstructionId i : loop.segments[seg].instructions)
      for (ValueId w :
           loop.recipes[loop.instructions[i].recipes.front()].writes)
        if (loop.contentOf(w) == from)
          return true;
    return false;
  }

  void addTrip(const std::vector<Execution> &list) {
    const SegmentId segment = p.addSegment("trip");
    std::vector<Execution> &out = s.segments.emplace_back();
    std::vector<Execution> begun(list.size()); // By work.
    for (const Execution &e : list) {
      if (e.phase == Phase::Done) {
        Execution done = begun[size_t(e.work)];
        done.phase = Phase::Done;
        done.overwrites.clear();
        if (done.recipe != kNone)
          out.push_back(done);
        continue;
      }
      const Recipe &r = loop.recipes[e.recipe];
      Recipe made = r;
      made.reads.clear(), made.writes.clear(), made.overwrites.clear();
      made.segment = kNone;
      const bool isNothing = loop.isCopy(r) && now[r.reads[0]] == kNothing;
      Execution run{kNone, kNone, {}, e.phase};
      if (isNothing)
        now[r.writes[0]] = kNothing;
      else
        add(r, e, made, run);
      if (!isRight)
        return;
      if (!isNothing || !loop.isMove(r)) {
        run.instruction = p.addInstruction(segment, made);
        run.recipe = RecipeId(p.recipes.size()) - 1;
        if (e.phase == Phase::Start)
          run.work = int32_t(out.size());
        out.push_back(run);
      }
      if (e.phase == Phase::Start)
        begun[size_t(e.work)] = run;
    }
  }

  void add(const Recipe &r, const Execution &e, Recipe &made, Execution &run) {
    for (ValueId v : r.reads)
      if (now[v] >= 0)
        made.reads.push_back(now[v]);
      else
        isRight &= now[v] == kNothing;
    std::vector<ValueId> reads = now;
    for (ValueId w : r.writes) {
      Value value = loop.values[w];
      value.kind = ValueKind::Temporary;
      value.formOf = value.carriedFrom = value.initial = kNone;
      value.lag = 1;
      value.liveOut = false;
      made.writes.push_back(now[w] = p.addValue(value));
    }
    for (int32_t o : e.overwrites) {
      const Overwrite &taken = r.overwrites[o];
      if (reads[taken.read] < 0)
        continue;
      run.overwrites.push_back(int32_t(made.overwrites.size()));
      made.overwrites.push_back(
          {reads[taken.read], now[taken.written], taken.must});
    }
  }

  const Problem &loop;
  std::vector<ValueId> now; // The instance that a name means.
};

} // namespace tmc::planning

#endif // TMC_TEST_UNIT_PLANNING_LAGGING_H
