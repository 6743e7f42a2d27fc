#include "compiler/planning/laboratory/Optimum.h"

#include "compiler/planning/laboratory/OptimumSteps.h"

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <deque>
#include <queue>
#include <string>
#include <tuple>
#include <unordered_map>

using namespace tmc::planning;

namespace {

/// Most choices of homes, and most overwrites of one recipe.
constexpr size_t kMostHomes = 1024, kMostOverwrites = 6;

using State = OptimumState;

struct Node {
  State state;
  int32_t behind = kNone; // The node that it was made from.
  OptimumStep step;
  int64_t bound = 0;
  bool isDropped = false;
};

class OptimumSearch {
public:
  OptimumSearch(const Problem &problem, const OptimumLimits &limits,
                std::vector<Homes> homes)
      : p(problem), limits(limits), steps(problem, std::move(homes)) {}

  absl::StatusOr<std::optional<OptimalPlan>> run();

private:
  static std::string placeOf(const State &s);
  static bool isNoWorse(const State &a, const State &b);
  void push(int32_t from, OptimumSteps::Next next);
  OptimalPlan planOf(int32_t node) const;

  const Problem &p;
  const OptimumLimits limits;
  const OptimumSteps steps;
  std::deque<Node> nodes;
  std::unordered_map<std::string, std::vector<int32_t>> places;
  /// Least bound first; among equal ones the nearest to the step's beginning.
  std::priority_queue<std::tuple<int64_t, int64_t, int32_t>> queue;
};

/// The parts of a state that must be equal for two states to be compared.
std::string OptimumSearch::placeOf(const State &s) {
  std::string place;
  auto add = [&](auto x) {
    place.append(reinterpret_cast<const char *>(&x), sizeof(x));
  };
  add(s.homes), add(s.segment), add(s.left), add(s.carries), add(s.guessed);
  for (const OpenWork &o : s.open)
    add(o.recipe), add(o.instruction), add(o.taking->overwrites);
  return place;
}

/// Whether each list that may stand before `b` may stand before `a`, no later.
bool OptimumSearch::isNoWorse(const State &a, const State &b) {
  if (a.behind > b.behind || (a.outer & ~b.outer) || (a.crosses & ~b.crosses))
    return false;
  for (Lane lane : {Last, Others})
    if ((a.need[lane] & ~b.need[lane]) || (a.need[lane] & b.outer & ~a.outer))
      return false;
  for (size_t i = 0; i < a.spare.size(); ++i)
    if (a.spare[i] < b.spare[i])
      return false;
  auto isNoLater = [](const std::vector<int64_t> &x,
                      const std::vector<int64_t> &y) {
    return std::equal(x.begin(), x.end(), y.begin(), std::less_equal<>());
  };
  for (size_t t = 0; t < a.tails.size(); ++t) {
    const Tails &x = a.tails[t], &y = b.tails[t];
    if (x.compute > y.compute || x.done > y.done ||
        !isNoLater(x.engine, y.engine) || !isNoLater(x.work, y.work))
      return false;
  }
  return true;
}

void OptimumSearch::push(int32_t from, OptimumSteps::Next next) {
  const State &s = next.state;
  const int64_t bound = steps.boundOf(s);
  if (bound >= limits.below || bound == OptimumSteps::kNoList)
    return;
  std::vector<int32_t> &here = places[placeOf(s)];
  for (int32_t n : here)
    if (isNoWorse(nodes[n].state, s))
      return;
  std::erase_if(here, [&](int32_t n) {
    const bool isWorse = isNoWorse(s, nodes[n].state);
    nodes[n].isDropped |= isWorse;
    return isWorse;
  });
  const int32_t node = int32_t(nodes.size());
  here.push_back(node);
  int64_t left = s.left;
  for (SegmentId i = 0; i < s.segment; ++i)
    left += int64_t(p.segments[i].instructions.size()) + 1;
  nodes.push_back({std::move(next.state), from, next.step, bound, false});
  queue.push({-bound, -left, node});
}

absl::StatusOr<std::optional<OptimalPlan>> OptimumSearch::run() {
  for (OptimumSteps::Next &end : steps.ends())
    push(kNone, std::move(end));
  while (!queue.empty()) {
    const int32_t node = std::get<2>(queue.top());
    queue.pop();
    if (nodes[node].isDropped)
      continue;
    if (nodes[node].state.segment == kNone)
      return planOf(node);
    if (nodes.size() > limits.mostStates)
      return absl::ResourceExhaustedError(
          absl::StrCat("no optimum within ", limits.mostStates, " states"));
    for (OptimumSteps::Next &next : steps.before(nodes[node].state))
      push(node, std::move(next));
  }
  return std::nullopt;
}

/// The list of the steps from a node to the end.
OptimalPlan OptimumSearch::planOf(int32_t node) const {
  OptimalPlan plan;
  plan.makespan = nodes[node].bound;
  plan.solution.homes = steps.homesOf(nodes[node].state);
  plan.solution.segments.resize(p.segments.size());
  std::vector<std::queue<int32_t>> started(p.engines.size());
  for (; node != kNone; node = nodes[node].behind) {
    const auto &[recipe, instruction, phase, overwrites] = nodes[node].step;
    if (recipe == kNone)
      continue;
    std::vector<Execution> &list =
        plan.solution.segments[nodes[node].state.segment];
    Execution e{recipe, instruction, {}, phase, kNone};
    for (size_t o = 0; o < p.recipes[recipe].overwrites.size(); ++o)
      if (overwrites >> o & 1)
        e.overwrites.push_back(int32_t(o));
    std::queue<int32_t> &work = started[p.recipes[recipe].engine];
    if (phase == Phase::Start)
      work.push(e.work = int32_t(list.size()));
    if (phase == Phase::Done) {
      e.work = work.front();
      work.pop();
    }
    list.push_back(std::move(e));
  }
  return plan;
}

} // namespace

absl::StatusOr<std::optional<OptimalPlan>>
tmc::planning::planOptimum(const Problem &problem,
                           const OptimumLimits &limits) {
  if (problem.values.size() > kMostNames)
    return absl::UnimplementedError(
        absl::StrCat("the optimum is for problems of up to ", kMostNames,
                     " values, not ", problem.values.size()));
  if (hasLag(problem))
    return absl::UnimplementedError(
        "the optimum is for carried values of the trip before (R19)");
  for (const Recipe &r : problem.recipes)
    if (r.busShare > 0)
      return absl::UnimplementedError(
          absl::StrCat("the optimum is for engines that don't slow each other, "
                       "and '",
                       r.name, "' shares the host's memory"));
  for (const Recipe &r : problem.recipes)
    if (r.overwrites.size() > kMostOverwrites)
      return absl::UnimplementedError(absl::StrCat(
          "the optimum is for recipes of up to ", kMostOverwrites,
          " overwrites, and '", r.name, "' has ", r.overwrites.size()));
  std::vector<Homes> homes = everyHomes(problem, kMostHomes);
  if (homes.empty())
    return absl::UnimplementedError(absl::StrCat(
        "the optimum is for up to ", kMostHomes, " choices of homes"));
  return OptimumSearch(problem, limits, std::move(homes)).run();
}
