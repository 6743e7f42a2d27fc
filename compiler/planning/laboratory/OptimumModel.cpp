#include "compiler/planning/laboratory/OptimumModel.h"

#include <algorithm>

using namespace tmc::planning;

namespace {

Names namesOf(const std::vector<ValueId> &values) {
  Names names = 0;
  for (ValueId v : values)
    names |= bitOf(v);
  return names;
}

/// Compute waits for the Done of a stash, but not for the Done of host work
/// that reads the stash's result, so the reader's Done may stand first. For all
/// other work an earlier Done is free: the work ends before its reader, for
/// which compute waits, or compute doesn't wait for it.
bool outlasts(const Problem &problem, const RecipeFacts &facts,
              const Recipe &recipe, const std::vector<RecipeFacts> &others) {
  if (!facts.isWork || !problem.touchesDevice(recipe))
    return false;
  for (size_t r = 0; r < others.size(); ++r)
    if ((others[r].reads & facts.writes) && others[r].isWork &&
        !problem.touchesDevice(problem.recipes[r]))
      return true;
  return false;
}

void findRecipes(OptimumModel &model) {
  const Problem &p = model.problem;
  for (const Recipe &r : p.recipes)
    model.recipes.push_back(
        {namesOf(r.reads), namesOf(r.writes), r.engine != 0, false});
  for (size_t r = 0; r < p.recipes.size(); ++r)
    model.recipes[r].outlastsReaders =
        outlasts(p, model.recipes[r], p.recipes[r], model.recipes);
}

/// Finds the recipes that may run again in segment `s`, and its writable
/// values.
void findRuns(OptimumModel &model, SegmentId s) {
  const Problem &p = model.problem;
  SegmentFacts &facts = model.segments[s];
  for (size_t r = 0; r < p.recipes.size(); ++r) {
    const Recipe &recipe = p.recipes[r];
    const bool isHere = recipe.segment == kNone || recipe.segment == s;
    const bool isAgain =
        isHere && recipe.recomputable &&
        std::none_of(recipe.writes.begin(), recipe.writes.end(),
                     [&](ValueId w) { return p.values[w].pinned; });
    const bool isOwn = recipe.instruction != kNone &&
                       p.instructions[recipe.instruction].segment == s;
    if (isAgain)
      facts.again.push_back(RecipeId(r));
    if (isAgain || isOwn)
      facts.writable |= model.recipes[r].writes;
  }
}

void findCarried(OptimumModel &model) {
  const Problem &p = model.problem;
  std::vector<SegmentId> madeIn(p.values.size(), kNone);
  for (const Instruction &i : p.instructions)
    for (ValueId w : p.recipes[i.recipes[0]].writes)
      madeIn[p.contentOf(w)] = i.segment;
  for (size_t v = 0; v < p.values.size(); ++v) {
    const Value &main = p.values[p.contentOf(ValueId(v))];
    if (main.kind != ValueKind::Carried)
      continue;
    SegmentFacts &facts = model.segments[madeIn[p.contentOf(main.carriedFrom)]];
    if (main.initial == kNone)
      facts.nothing |= bitOf(ValueId(v));
    if (p.values[v].kind != ValueKind::Carried)
      continue;
    facts.carried |= bitOf(ValueId(v));
    if (p.values[v].initial == kNone)
      continue;
    facts.twofold |= bitOf(ValueId(v));
    if (facts.trips == 1)
      facts.twofold |= bitOf(p.values[v].initial);
  }
}

} // namespace

OptimumModel::OptimumModel(const Problem &problem) : problem(problem) {
  for (size_t s = 0; s < problem.spaces.size(); ++s) {
    const int64_t budget = problem.spaces[s].budgetBytes;
    budgets.push_back(
        budget < 0
            ? -1
            : std::max<int64_t>(0, budget - problem.reservedOf(SpaceId(s))));
    inSpace.push_back(0);
  }
  for (size_t v = 0; v < problem.values.size(); ++v)
    inSpace[problem.values[v].space] |= bitOf(ValueId(v));
  findRecipes(*this);
  for (const Segment &segment : problem.segments)
    segments.emplace_back().trips = segment.trips;
  findCarried(*this);
  Names before = 0;
  for (size_t v = 0; v < problem.values.size(); ++v)
    if (problem.values[v].kind == ValueKind::Persistent &&
        problem.values[v].updates == kNone)
      before |= bitOf(ValueId(v));
  int64_t earlier = 0;
  for (size_t s = 0; s < segments.size(); ++s) {
    SegmentFacts &facts = segments[s];
    findRuns(*this, SegmentId(s));
    facts.before = before;
    before |= facts.writable;
    if (facts.trips > 1) // All but carried values without initial.
      facts.twofold |= ~facts.carried;
    for (size_t r = 0; r < recipes.size(); ++r)
      if (problem.isMove(problem.recipes[r]) &&
          (recipes[r].reads & facts.nothing))
        facts.movesNothing = true;
    facts.leastEarlier = earlier;
    facts.leastBefore = {0};
    for (InstructionId i : problem.segments[s].instructions) {
      int64_t least = INT64_MAX;
      for (RecipeId r : problem.instructions[i].recipes)
        least =
            std::min(least, recipes[r].isWork ? 0 : problem.recipes[r].cost);
      facts.leastBefore.push_back(facts.leastBefore.back() + least);
    }
    earlier += facts.trips * facts.leastBefore.back();
  }
}

int64_t OptimumModel::bytesOf(Names names) const {
  int64_t bytes = 0;
  forEachName(names, [&](ValueId v) { bytes += problem.values[v].bytes; });
  return bytes;
}

ValueId OptimumModel::outsideOf(SegmentId s, ValueId v) const {
  return segments[s].carried & bitOf(v) ? problem.values[v].initial : v;
}

Names OptimumModel::outsideNamesOf(SegmentId s, Names names) const {
  Names outside = 0;
  forEachName(names, [&](ValueId v) { outside |= bitOf(outsideOf(s, v)); });
  return outside;
}

std::vector<Homes> tmc::planning::everyHomes(const Problem &problem,
                                             size_t most) {
  std::vector<std::vector<ValueId>> chosen = {{}};
  for (size_t v = 0; v < problem.values.size(); ++v) {
    const Value &main = problem.values[v];
    const bool persists =
        main.kind == ValueKind::Persistent && main.updates == kNone;
    if (main.formOf != kNone || (!persists && !main.liveOut) || main.pinned)
      continue;
    const size_t n = chosen.size();
    for (size_t f = 0; f < problem.values.size(); ++f) {
      const Value &form = problem.values[f];
      if (form.formOf != ValueId(v) ||
          !(persists ? form.kind == ValueKind::Persistent : form.liveOut))
        continue;
      for (size_t i = 0; i < n && chosen.size() <= most; ++i) {
        chosen.push_back(chosen[i]);
        chosen.back().push_back(ValueId(f));
      }
    }
    if (chosen.size() > most)
      return {};
  }
  std::vector<Homes> all;
  for (const std::vector<ValueId> &forms : chosen) {
    Homes homes{forms, 0, 0, 0};
    Solution named;
    named.homes = forms;
    const std::vector<ValueId> home = homesOf(problem, named);
    bool isPossible = true;
    Names replaced = 0;
    for (size_t v = 0; v < home.size(); ++v) {
      const Value &value = problem.values[v];
      if (value.updates == kNone)
        continue;
      replaced |= bitOf(value.updates);
      isPossible &= value.formOf != kNone ||
                    problem.values[home[v]].updates == home[value.updates];
    }
    for (size_t v = 0; v < home.size(); ++v) {
      const Value &main = problem.values[problem.contentOf(ValueId(v))];
      const Names bit = bitOf(ValueId(v));
      if (home[v] != ValueId(v))
        continue;
      if (main.kind == ValueKind::Persistent) {
        homes.persistent |= bit;
        (problem.values[v].updates == kNone ? homes.atBegin : homes.atEnd) |=
            bit;
        if (!(replaced & bit))
          homes.atEnd |= bit;
      } else if (main.liveOut) {
        homes.atEnd |= bit;
      }
    }
    if (isPossible)
      all.push_back(std::move(homes));
  }
  return all;
}

std::vector<Taking> tmc::planning::takingsOf(const Problem &problem,
                                             const Homes &homes,
                                             RecipeId recipe) {
  const Recipe &r = problem.recipes[recipe];
  std::vector<Taking> all;
  for (uint32_t set = 0; set < uint32_t(1) << r.overwrites.size(); ++set) {
    Taking taking;
    taking.overwrites = set;
    Names takers = 0;
    bool isRight = true;
    for (size_t o = 0; o < r.overwrites.size(); ++o) {
      const auto [read, written, must] = r.overwrites[o];
      if (!(set >> o & 1)) {
        isRight &= !must;
        continue;
      }
      isRight &= !(taking.gives & bitOf(read)) && !(takers & bitOf(written));
      const ValueId old = homes.persistent & bitOf(written)
                              ? problem.values[written].updates
                              : kNone;
      // A home gives its place only to its new version, which takes no other
      // place.
      isRight &=
          old == read || (old == kNone && !(homes.persistent & bitOf(read)));
      taking.gives |= bitOf(read);
      takers |= bitOf(written);
      taking.places.push_back({read, written});
    }
    for (ValueId w : r.writes) {
      const ValueId old =
          homes.persistent & bitOf(w) ? problem.values[w].updates : kNone;
      if (old == kNone || (takers & bitOf(w)))
        continue;
      isRight &=
          std::find(r.reads.begin(), r.reads.end(), old) == r.reads.end();
      taking.gives |= bitOf(old);
      taking.places.push_back({old, w});
    }
    if (isRight)
      all.push_back(std::move(taking));
  }
  return all;
}
