// VerifyLists.cpp - the verifier's own check of lists: indices, instructions
// that run once, and work with a Start and a Done (R10).

#include "compiler/planning/model/VerifyWalk.h"

#include "absl/strings/str_cat.h"

using namespace tmc::planning;

namespace {

using Defect = std::optional<std::string>;

template <typename... Words> Defect defect(const Words &...words) {
  return absl::StrCat(words...);
}

/// R11 and R18: each engine reads and writes values of its own spaces.
Defect checkReach(const Problem &problem, const Recipe &r) {
  const Engine &engine = problem.engines[r.engine];
  auto isOf = [&](ValueId v, SpaceKind kind) {
    return problem.spaces[problem.values[v].space].kind == kind;
  };
  const char *rule = engine.kind == EngineKind::Network ? "R18" : "R11";
  for (ValueId v : r.reads)
    if (!isOf(v, infoOf(engine.kind).reads))
      return defect(rule, ": '", r.name, "' on '", engine.name, "' reads '",
                    problem.values[v].name, "', which its engine can't");
  for (ValueId w : r.writes)
    if (!isOf(w, infoOf(engine.kind).writes))
      return defect(rule, ": '", r.name, "' on '", engine.name, "' writes '",
                    problem.values[w].name, "', which its engine can't");
  return std::nullopt;
}

Defect checkEntries(const Problem &problem, const Solution &solution,
                    SegmentId s, std::vector<int64_t> &runs) {
  for (const Execution &e : solution.segments[s]) {
    if (e.recipe < 0 || size_t(e.recipe) >= problem.recipes.size())
      return defect("lists: there is no recipe ", e.recipe);
    const Recipe &r = problem.recipes[e.recipe];
    if (r.segment != kNone && r.segment != s)
      return defect("lists: '", r.name, "' runs in segment '",
                    problem.segments[s].name, "', where it may not");
    for (int32_t o : e.overwrites)
      if (o < 0 || size_t(o) >= r.overwrites.size())
        return defect("lists: '", r.name, "' takes overwrite ", o,
                      ", which it doesn't have");
    if (e.phase == Phase::Done)
      continue;
    if (Defect d = checkReach(problem, r))
      return d;
    if (e.instruction == kNone) {
      if (!r.recomputable)
        return defect("lists: '", r.name, "' runs again but may not");
      for (ValueId w : r.writes)
        if (problem.values[w].pinned)
          return defect("lists: '", r.name, "' makes the pinned '",
                        problem.values[w].name, "' again");
    } else if (e.instruction != r.instruction ||
               problem.instructions[e.instruction].segment != s) {
      return defect("lists: '", r.name, "' runs for an instruction that isn't ",
                    "its own, or outside its segment");
    } else {
      ++runs[e.instruction];
    }
  }
  return std::nullopt;
}

/// R10: every Start has its Done, in the order of its engine.
Defect checkPairs(const Problem &problem, const std::vector<Execution> &list) {
  std::vector<int32_t> startAt(list.size(), kNone), doneAt(list.size(), kNone);
  for (size_t at = 0; at < list.size(); ++at) {
    const Execution &e = list[at];
    const std::string &name = problem.recipes[e.recipe].name;
    bool compute = problem.recipes[e.recipe].engine == 0;
    if (compute != (e.phase == Phase::Whole))
      return defect("R10: '", name, "' stands as ",
                    compute ? "work, but computes" : "one entry, but is work");
    if (compute)
      continue;
    if (e.work < 0 || size_t(e.work) >= list.size())
      return defect("R10: '", name, "' has work number ", e.work);
    int32_t &mine = (e.phase == Phase::Start ? startAt : doneAt)[e.work];
    if (mine != kNone)
      return defect("R10: '", name, "' has two starts or dones of one number");
    mine = int32_t(at);
    if (e.phase == Phase::Start)
      continue;
    int32_t start = startAt[e.work];
    if (start == kNone || list[start].recipe != e.recipe ||
        list[start].instruction != e.instruction || !e.overwrites.empty())
      return defect("R10: the done of '", name, "' has no start before it");
  }
  std::vector<std::vector<int32_t>> dones(problem.engines.size());
  for (const Execution &e : list) {
    if (e.phase != Phase::Start)
      continue;
    const Recipe &r = problem.recipes[e.recipe];
    if (doneAt[e.work] == kNone)
      return defect("R10: '", r.name, "' starts, but is never done");
    std::vector<int32_t> &mine = dones[r.engine];
    if (!mine.empty() && mine.back() > doneAt[e.work])
      return defect("R10: '", r.name, "' is done before what engine '",
                    problem.engines[r.engine].name, "' runs before it");
    mine.push_back(doneAt[e.work]);
  }
  return std::nullopt;
}

} // namespace

std::optional<std::string>
tmc::planning::verifyLists(const Problem &problem, const Solution &solution) {
  if (solution.segments.size() != problem.segments.size())
    return defect("lists: the solution has ", solution.segments.size(),
                  " segments, the problem ", problem.segments.size());
  std::vector<int64_t> runs(problem.instructions.size(), 0);
  for (SegmentId s = 0; s < SegmentId(problem.segments.size()); ++s) {
    if (Defect d = checkEntries(problem, solution, s, runs))
      return d;
    if (Defect d = checkPairs(problem, solution.segments[s]))
      return d;
  }
  for (size_t i = 0; i < runs.size(); ++i)
    if (runs[i] != 1)
      return defect("lists: instruction '", problem.instructions[i].name,
                    "' runs ", runs[i], " times for itself, not once");
  return std::nullopt;
}
