#include "compiler/planning/laboratory/OptimumReach.h"

#include <algorithm>
#include <limits>

using namespace tmc::planning;

OptimumReach::OptimumReach(const OptimumModel &model,
                           const std::vector<Homes> &homes) {
  const Problem &p = model.problem;
  for (size_t r = 0; r < p.recipes.size(); ++r)
    if (!p.touchesDevice(p.recipes[r]))
      onlyAwaited &= ~model.recipes[r].writes;
  for (const Homes &choice : homes) {
    auto &ofHomes = all.emplace_back();
    Names before = choice.atBegin;
    bool isPossible = true;
    for (size_t s = 0; s < p.segments.size(); ++s) {
      auto &ofSegment = ofHomes.emplace_back();
      const std::vector<InstructionId> &own = p.segments[s].instructions;
      for (size_t left = 0; left <= own.size(); ++left) {
        if (left > 0)
          isPossible = isPossible && hasRoom(model, choice, own[left - 1]);
        ofSegment.push_back(
            isPossible ? reachOf(model, before, SegmentId(s), left) : Reach());
      }
      before |= ofSegment.back().makeable;
    }
  }
}

/// True if a variant of the instruction fits beside the persistent homes. An
/// old home or its successor is there, not both.
bool OptimumReach::hasRoom(const OptimumModel &model, const Homes &homes,
                           InstructionId instruction) {
  const Problem &p = model.problem;
  const Names nothing =
      model.segments[p.instructions[instruction].segment].nothing;
  auto fits = [&](RecipeId r) {
    const Recipe &recipe = p.recipes[r];
    const RecipeFacts &facts = model.recipes[r];
    for (size_t s = 0; s < p.spaces.size(); ++s) {
      if (model.budgets[s] < 0)
        continue;
      int64_t bytes =
          recipe.workspaceSpace == SpaceId(s) ? recipe.workspaceBytes : 0;
      forEachName(homes.persistent & model.inSpace[s], [&](ValueId v) {
        if (homes.atBegin & bitOf(v))
          bytes += p.values[v].bytes;
      });
      // A first trip's nothing has no bytes.
      bytes += model.bytesOf((facts.reads | facts.writes) & model.inSpace[s] &
                             ~homes.persistent & ~nothing);
      for (const Overwrite &o : recipe.overwrites)
        if (p.values[o.read].space == SpaceId(s) &&
            !((bitOf(o.read) | bitOf(o.written)) & homes.persistent))
          bytes -= std::min(p.values[o.read].bytes, p.values[o.written].bytes);
      if (bytes > model.budgets[s])
        return false;
    }
    return true;
  };
  const std::vector<RecipeId> &all = p.instructions[instruction].recipes;
  return std::any_of(all.begin(), all.end(), fits);
}

Reach OptimumReach::reachOf(const OptimumModel &model, Names before,
                            SegmentId segment, size_t left) const {
  const Problem &p = model.problem;
  const SegmentFacts &facts = model.segments[segment];
  constexpr int64_t kNever = std::numeric_limits<int64_t>::max();
  Reach reach;
  reach.ready.assign(p.values.size(), kNever);
  reach.makeable = before | facts.carried;
  forEachName(reach.makeable & ~(~Names(0) << (p.values.size() - 1) << 1),
              [&](ValueId v) { reach.ready[v] = 0; });
  bool grows = true;
  auto run = [&](RecipeId r, int64_t begin) {
    if (model.recipes[r].reads & ~reach.makeable)
      return;
    for (ValueId v : p.recipes[r].reads)
      begin = std::max(begin, reach.ready[v]);
    const int64_t end = facts.trips > 1 ? 0 : begin + p.recipes[r].cost;
    for (ValueId v : p.recipes[r].writes)
      if (end < reach.ready[v]) {
        reach.ready[v] = end;
        grows = true;
      }
    reach.makeable |= model.recipes[r].writes;
  };
  // Shortest paths: costs aren't negative, so the rounds end.
  while (grows) {
    grows = false;
    for (RecipeId r : facts.again)
      run(r, 0);
    for (size_t i = 0; i < left; ++i)
      for (RecipeId r :
           p.instructions[p.segments[segment].instructions[i]].recipes)
        run(r, facts.leastBefore[i]);
  }
  return reach;
}
