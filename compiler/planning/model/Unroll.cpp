#include "compiler/planning/model/Unroll.h"

#include "absl/strings/str_cat.h"

#include <algorithm>

using namespace tmc::planning;

int32_t Unrolled::readInstance(const Recipe &recipe, size_t t,
                               ValueId value) const {
  for (size_t i = 0; i < recipe.reads.size(); ++i)
    if (recipe.reads[i] == value)
      return refs[refBegin[t] + i];
  return kNone;
}

int32_t Unrolled::writtenInstance(const Recipe &recipe, size_t t,
                                  ValueId value) const {
  for (size_t i = 0; i < recipe.writes.size(); ++i)
    if (recipe.writes[i] == value)
      return refs[refBegin[t] + recipe.reads.size() + i];
  return kNone;
}

namespace {

absl::Status broken(const std::string &what) {
  return absl::FailedPreconditionError(what);
}

/// Each instruction once in its own segment, by a recipe of its own.
absl::Status checkLists(const Problem &problem, const Solution &solution) {
  if (solution.segments.size() != problem.segments.size())
    return broken(absl::StrCat("the solution has ", solution.segments.size(),
                               " segments of ", problem.segments.size()));
  std::vector<char> ran(problem.instructions.size(), 0);
  for (size_t s = 0; s < solution.segments.size(); ++s)
    for (const Execution &e : solution.segments[s]) {
      if (e.recipe < 0 || size_t(e.recipe) >= problem.recipes.size())
        return broken(absl::StrCat("the solution runs recipe ", e.recipe,
                                   " of ", problem.recipes.size()));
      const Recipe &recipe = problem.recipes[e.recipe];
      if (recipe.segment != kNone && size_t(recipe.segment) != s)
        return broken(absl::StrCat("'", recipe.name,
                                   "' may not run in segment '",
                                   problem.segments[s].name, "'"));
      if (e.instruction == kNone) {
        if (!recipe.recomputable)
          return broken(absl::StrCat("'", recipe.name,
                                     "' runs again, but isn't recomputable"));
        for (ValueId w : recipe.writes)
          if (problem.values[w].pinned)
            return broken(absl::StrCat("'", recipe.name, "' recomputes '",
                                       problem.values[w].name,
                                       "', which is pinned"));
        continue;
      }
      if (e.instruction != recipe.instruction)
        return broken(absl::StrCat(
            "'", recipe.name, "' runs for an instruction that isn't its own"));
      const Instruction &instruction = problem.instructions[e.instruction];
      if (size_t(instruction.segment) != s)
        return broken(absl::StrCat(
            "instruction '", instruction.name, "' runs in segment '",
            problem.segments[s].name, "', not in its own"));
      if (ran[e.instruction]++)
        return broken(
            absl::StrCat("instruction '", instruction.name, "' runs twice"));
    }
  for (size_t i = 0; i < ran.size(); ++i)
    if (!ran[i])
      return broken(absl::StrCat("instruction '", problem.instructions[i].name,
                                 "' doesn't run"));
  return absl::OkStatus();
}

} // namespace

absl::StatusOr<Unrolled> tmc::planning::unroll(const Problem &problem,
                                               const Solution &solution) {
  if (absl::Status status = checkLists(problem, solution); !status.ok())
    return status;
  Unrolled u;
  std::vector<int32_t> current(problem.values.size(), kNone);
  // A carried value that is nothing is told from one that isn't made yet.
  std::vector<char> isNothing(problem.values.size(), 0);
  std::vector<std::vector<ValueId>> own(problem.segments.size()),
      carried(problem.segments.size());
  std::vector<SegmentId> home(problem.values.size(), kNone);
  for (const Instruction &i : problem.instructions)
    for (ValueId v : problem.recipes[i.recipes.front()].writes) {
      own[i.segment].push_back(v);
      home[v] = i.segment;
    }
  for (size_t v = 0; v < problem.values.size(); ++v) {
    const Value &value = problem.values[v];
    if (value.kind == ValueKind::Carried)
      carried[home[value.carriedFrom]].push_back(ValueId(v));
    if (value.kind == ValueKind::Persistent && value.updates == kNone) {
      current[v] = int32_t(u.instances.size());
      u.instances.push_back({ValueId(v), -1, -1, kNone});
    }
  }

  for (size_t s = 0; s < problem.segments.size(); ++s) {
    const std::vector<Execution> &list = solution.segments[s];
    int32_t trips = problem.segments[s].trips > 1 ? 3 : 1;
    for (int32_t trip = 0; trip < trips; ++trip) {
      std::vector<int32_t> bindings;
      for (ValueId c : carried[s]) {
        ValueId from =
            trip ? problem.values[c].carriedFrom : problem.values[c].initial;
        bindings.push_back(from == kNone ? kNone : current[from]);
        isNothing[c] = from == kNone;
      }
      for (ValueId v : own[s])
        current[v] = kNone;
      for (size_t i = 0; i < carried[s].size(); ++i)
        current[carried[s][i]] = bindings[i];

      for (size_t index = 0; index < list.size(); ++index) {
        const Recipe &recipe = problem.recipes[list[index].recipe];
        int32_t t = int32_t(u.moments.size());
        u.moments.push_back({SegmentId(s), trip, int32_t(index)});
        u.refBegin.push_back(int32_t(u.refs.size()));
        for (ValueId v : recipe.reads) {
          if (current[v] != kNone)
            u.instances[current[v]].last = t;
          else if (!isNothing[v])
            return broken(absl::StrCat(
                "'", recipe.name, "' at position ", index, " of segment '",
                problem.segments[s].name, "' reads '", problem.values[v].name,
                "' before it is made"));
          u.refs.push_back(current[v]);
        }
        for (ValueId v : recipe.writes) {
          current[v] = int32_t(u.instances.size());
          u.instances.push_back({v, t, t, kNone});
          u.refs.push_back(current[v]);
        }
      }
    }
  }

  int32_t end = int32_t(u.moments.size());
  std::vector<char> isUpdated(problem.values.size(), 0);
  for (const Value &value : problem.values)
    if (value.updates != kNone)
      isUpdated[value.updates] = 1;
  for (size_t v = 0; v < problem.values.size(); ++v) {
    const Value &value = problem.values[v];
    bool stays =
        value.kind == ValueKind::Persistent ? !isUpdated[v] : value.liveOut;
    if (stays && current[v] != kNone)
      u.instances[current[v]].last = end;
  }
  u.refBegin.push_back(int32_t(u.refs.size()));

  for (int32_t t = 0; t < end; ++t) {
    const Execution &e =
        solution.segments[u.moments[t].segment][u.moments[t].index];
    const Recipe &recipe = problem.recipes[e.recipe];
    for (int32_t o : e.overwrites) {
      if (o < 0 || size_t(o) >= recipe.overwrites.size())
        return broken(absl::StrCat("'", recipe.name, "' takes overwrite ", o,
                                   " of ", recipe.overwrites.size()));
      int32_t from = u.readInstance(recipe, t, recipe.overwrites[o].read);
      int32_t to = u.writtenInstance(recipe, t, recipe.overwrites[o].written);
      u.instances[to].storageOf = from;
    }
  }
  return u;
}
