#include "compiler/planning/model/Checks.h"

#include "absl/strings/str_cat.h"

#include <deque>
#include <map>

using namespace tmc::planning;

namespace {

template <typename... Words> absl::Status broken(const Words &...words) {
  return absl::FailedPreconditionError(absl::StrCat(words...));
}

absl::Status checkRecomputation(const Problem &problem, const Recipe &recipe) {
  if (!recipe.recomputable)
    return broken("'", recipe.name, "' runs again, but isn't recomputable");
  for (ValueId w : recipe.writes)
    if (problem.values[w].pinned)
      return broken("'", recipe.name, "' recomputes '", problem.values[w].name,
                    "', which is pinned");
  return absl::OkStatus();
}

/// Each instruction runs once in its own segment, by one of its recipes.
absl::Status checkRuns(const Problem &problem, const Solution &solution) {
  std::vector<char> ran(problem.instructions.size(), 0);
  for (size_t s = 0; s < solution.segments.size(); ++s)
    for (const Execution &e : solution.segments[s]) {
      if (e.recipe < 0 || size_t(e.recipe) >= problem.recipes.size())
        return broken("the solution runs recipe ", e.recipe, " of ",
                      problem.recipes.size());
      const Recipe &recipe = problem.recipes[e.recipe];
      if (recipe.segment != kNone && size_t(recipe.segment) != s)
        return broken("'", recipe.name, "' may not run in segment '",
                      problem.segments[s].name, "'");
      if (e.phase == Phase::Done)
        continue; // `checkWork` compares it with its Start.
      if (e.instruction == kNone) {
        if (absl::Status status = checkRecomputation(problem, recipe);
            !status.ok())
          return status;
        continue;
      }
      if (e.instruction != recipe.instruction)
        return broken("'", recipe.name,
                      "' runs for an instruction that isn't its own");
      const Instruction &instruction = problem.instructions[e.instruction];
      if (size_t(instruction.segment) != s)
        return broken("instruction '", instruction.name, "' runs in segment '",
                      problem.segments[s].name, "', not in its own");
      if (ran[e.instruction]++)
        return broken("instruction '", instruction.name, "' runs twice");
    }
  for (size_t i = 0; i < ran.size(); ++i)
    if (!ran[i])
      return broken("instruction '", problem.instructions[i].name,
                    "' doesn't run");
  return absl::OkStatus();
}

/// R10 in one segment.
absl::Status checkWork(const Problem &problem, const Segment &segment,
                       const std::vector<Execution> &list) {
  std::map<int32_t, const Execution *> starts;
  std::vector<std::deque<int32_t>> queues(problem.engines.size());
  for (const Execution &e : list) {
    const Recipe &recipe = problem.recipes[e.recipe];
    if ((recipe.engine == 0) != (e.phase == Phase::Whole))
      return broken("'", recipe.name, "' on engine '",
                    problem.engines[recipe.engine].name, "' stands as ",
                    recipe.engine ? "one entry" : "a start or a done");
    if (e.phase == Phase::Whole)
      continue;
    if (e.work < 0 || size_t(e.work) >= list.size())
      return broken("'", recipe.name, "' is work ", e.work, " in segment '",
                    segment.name, "' of ", list.size(), " entries");
    std::deque<int32_t> &queue = queues[recipe.engine];
    if (e.phase == Phase::Start) {
      if (!starts.emplace(e.work, &e).second)
        return broken("work ", e.work, " of segment '", segment.name,
                      "' starts twice");
      queue.push_back(e.work);
      continue;
    }
    auto start = starts.find(e.work);
    if (start == starts.end() || start->second->recipe != e.recipe ||
        start->second->instruction != e.instruction || !e.overwrites.empty())
      return broken("the done of '", recipe.name, "' in segment '",
                    segment.name, "' has no start of its own before it");
    if (queue.empty() || queue.front() != e.work)
      return broken("engine '", problem.engines[recipe.engine].name,
                    "' is first in, first out, but '", recipe.name,
                    "' is done out of turn");
    queue.pop_front();
  }
  for (const std::deque<int32_t> &queue : queues)
    if (!queue.empty())
      return broken("'", problem.recipes[starts.at(queue.front())->recipe].name,
                    "' in segment '", segment.name,
                    "' starts, but is never done");
  return absl::OkStatus();
}

/// R14: which forms are homes.
absl::Status checkHomes(const Problem &problem, const Solution &solution) {
  std::vector<ValueId> named(problem.values.size(), kNone);
  for (ValueId h : solution.homes) {
    if (h < 0 || size_t(h) >= problem.values.size())
      return broken("value ", h, " of ", problem.values.size(), " is a home");
    const Value &value = problem.values[h];
    if (value.kind != ValueKind::Persistent && !value.liveOut)
      return broken("'", value.name, "' can't be a home");
    ValueId content = problem.contentOf(h);
    if (named[content] != kNone)
      return broken("'", problem.values[content].name, "' has two homes");
    if (h != content && problem.values[content].pinned)
      return broken("'", problem.values[content].name,
                    "' is pinned, so its home can't be '", value.name, "'");
    named[content] = h;
  }
  std::vector<ValueId> home = homesOf(problem, solution);
  for (size_t v = 0; v < problem.values.size(); ++v) {
    ValueId old = problem.values[v].updates;
    if (problem.values[v].formOf != kNone || old == kNone)
      continue;
    ValueId left = problem.values[home[v]].updates;
    if (left != home[old] || (named[v] != kNone && named[v] != home[v]))
      return broken("'", problem.values[home[v]].name, "' is a home, but '",
                    problem.values[home[old]].name,
                    "' is that of what it updates");
  }
  return absl::OkStatus();
}

} // namespace

absl::Status tmc::planning::checkLists(const Problem &problem,
                                       const Solution &solution) {
  if (solution.segments.size() != problem.segments.size())
    return broken("the solution has ", solution.segments.size(),
                  " segments of ", problem.segments.size());
  if (absl::Status status = checkRuns(problem, solution); !status.ok())
    return status;
  for (size_t s = 0; s < solution.segments.size(); ++s)
    if (absl::Status status =
            checkWork(problem, problem.segments[s], solution.segments[s]);
        !status.ok())
      return status;
  return checkHomes(problem, solution);
}
