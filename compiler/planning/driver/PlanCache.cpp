#include "compiler/planning/driver/PlanCache.h"

#include "compiler/planning/driver/MovesFit.h"
#include "compiler/planning/driver/PlanBy.h"
#include "compiler/planning/driver/Proofs.h"
#include "compiler/planning/model/Parallel.h"

#include <algorithm>

using namespace tmc::planning;

namespace {

/// Checkpoints at blocks are tried up to this number of instructions.
constexpr size_t kMostForBlocks = 5000;

/// Above this number of instructions, a plan takes long.
constexpr size_t kLarge = 1000;

/// Counted work of the search for the smallest plan, one to three nanoseconds a
/// unit: in all, and for each instruction of a large step. Steps of some
/// hundred to two thousand launches are done with 50 to 350 million.
constexpr int64_t kSmallestWork = 600'000'000;
constexpr int64_t kSmallestWorkEach = 600'000;

/// Walks from the coarse plan, each with its own seed.
constexpr size_t kWalks = 2;
/// A repair must promise to save this part of the step.
constexpr int64_t kWorthRepairPart = 1000;
/// Packings with other seeds, of a small step and of a large one; their effort
/// in percent.
constexpr uint64_t kRepacks = 3, kLargeRepacks = 1;
constexpr int64_t kRepackEffort = 400;
/// Local repairs at most.
constexpr int kMostLocal = 4;
/// Global repairs plan for this many quarters less than was lost by packing.
constexpr int64_t kQuartersLess[] = {5, 7, 9};
/// A repair that recomputes something expensive repeats with this part of the
/// work.
constexpr int64_t kHarderPart = 2;

} // namespace

PlanCache::PlanCache(Problem problem, std::vector<int64_t> alignments,
                     SolveOptions options, std::string planner)
    : stated(std::move(problem)), alignments(std::move(alignments)),
      options(std::move(options)), given(this->options.effort),
      planner(std::move(planner)), impossible(impossibleBelow(stated)) {
  this->options.wantCases = false;
}

/// The status of `planner`, which gave no plan. The fault of another planner
/// than our own search is no defect of ours.
static absl::Status planFault(const std::string &planner,
                              const absl::Status &status) {
  return planner.empty() ? status
                         : absl::FailedPreconditionError(status.message());
}

absl::StatusOr<Plan> PlanCache::planFor(const SolveOptions &how,
                                        const Orders *orders) const {
  if (planner.empty() && !orders)
    return solve(stated, how);
  if (planner.empty()) {
    SolveOptions fixed = how;
    fixed.order = OrderMode::Fixed;
    return solve(inOrder(stated, *orders), fixed);
  }
  absl::StatusOr<Plan> plan = planBy(planner, stated, how);
  if (!plan.ok())
    return planFault(planner, plan.status());
  if (how.wantBound && how.budgetBytes >= 0)
    proveByPrices(stated, *plan, how.budgetBytes);
  return plan;
}

absl::StatusOr<Plan> PlanCache::fittedFor(int64_t limitBytes,
                                          const SolveOptions &how,
                                          const Orders *orders) const {
  SolveOptions here = how;
  here.budgetBytes = limitBytes;
  absl::StatusOr<Plan> plan = planFor(here, orders);
  if (!plan.ok())
    return plan.status();
  return packed(std::move(*plan));
}

Plan PlanCache::packed(Plan plan) const {
  ArenaProblem arena = arenaOf(stated, plan.solution, alignments[0]);
  plan.arenas = {{packSorted(arena).arenaBytes, peakBytes(arena)}};
  return plan;
}

/// Packs a plan in other ways if the excess over the room is at most half of
/// the packing's loss: another packing costs less time than another plan.
void PlanCache::packHarder(Plan &plan, int64_t roomBytes) const {
  int64_t lost = plan.arenaBytes() - plan.peakBytes[0];
  int64_t over = plan.arenaBytes() - roomBytes;
  if (roomBytes < 0 || over <= 0 || 2 * over > lost ||
      options.without.has(Strategy::Repack))
    return;
  ArenaProblem arena = arenaOf(stated, plan.solution, alignments[0]);
  uint64_t tries =
      stated.instructions.size() > kLarge ? kLargeRepacks : kRepacks;
  for (uint64_t seed = 1; seed <= tries && plan.arenaBytes() > roomBytes;
       ++seed) {
    PackOptions packing{.seed = seed, .effort = kRepackEffort};
    int64_t bytes = packSorted(arena, packing).arenaBytes;
    if (bytes < plan.arenaBytes()) {
      plan.arenas[0].bytes = bytes;
      plan.arenas[0].packing = packing;
    }
  }
}

/// Bytes by which the buffers at each instruction exceed the room.
std::vector<int64_t> PlanCache::overAt(const Plan &plan,
                                       int64_t roomBytes) const {
  ArenaProblem arena = arenaOf(stated, plan.solution, alignments[0]);
  Packing packing = packSorted(arena, plan.arenas[0].packing);
  size_t rows = 0;
  for (const auto &list : plan.solution.segments)
    rows += list.size();
  std::vector<int64_t> over(rows, 0);
  for (size_t b = 0; b < arena.buffers.size(); ++b) {
    const Buffer &buffer = arena.buffers[b];
    int64_t excess = packing.offsets[b] + buffer.bytes - roomBytes;
    for (int64_t row = buffer.lifetime.begin;
         excess > 0 && row < buffer.lifetime.end; ++row)
      over[row] = std::max(over[row], excess);
  }
  std::vector<int64_t> result(stated.instructions.size(), 0);
  size_t row = 0;
  for (const auto &list : plan.solution.segments) {
    int64_t most = 0; // Includes recomputations before an instruction.
    for (const Execution &e : list) {
      most = std::max(most, over[row++]);
      if (e.instruction == kNone)
        continue;
      result[e.instruction] = most;
      most = 0;
    }
  }
  return result;
}

/// Whether some instruction leaves less memory free than its headroom.
bool PlanCache::isOver(const Solution &solution,
                       const std::vector<int64_t> &headroom,
                       int64_t limitBytes) const {
  absl::StatusOr<Profile> profile = simulate(stated, solution);
  if (!profile.ok())
    return false;
  for (size_t m = 0; m < profile->moments.size(); ++m) {
    const Profile::Moment &at = profile->moments[m];
    InstructionId i = solution.segments[at.segment][at.index].instruction;
    if (i != kNone &&
        profile->liveBytes[m] + headroom[i] > limitBytes - stated.reservedBytes)
      return true;
  }
  return false;
}

const Plan *PlanCache::keep(Plan plan) {
  plans.push_back(std::make_unique<Plan>(std::move(plan)));
  return plans.back().get();
}

absl::StatusOr<Plan> PlanCache::leastFitted() const {
  SolveOptions how = options;
  how.wantBound = how.wantFrontier = false;
  how.effort = given; // The full effort, not the part that budgets get.
  if (how.smallestWork == 0)
    how.smallestWork =
        int64_t(double(std::max(kSmallestWork,
                                kSmallestWorkEach *
                                    int64_t(stated.instructions.size()))) *
                given.percent / 100);
  // An impossible budget makes the solver seek the smallest feasible one.
  absl::StatusOr<Plan> least =
      fittedFor(std::max<int64_t>(impossible - 1, 0), how);
  if (least.ok())
    packHarder(*least, (least->peakBytes[0] + least->arenaBytes()) / 2);
  return least;
}

absl::StatusOr<const Plan *> PlanCache::smallest() {
  if (!smallestPlan && !isOneSpace(stated)) {
    if (absl::Status status = findSmallestWithMoves(); !status.ok())
      return status;
  } else if (!smallestPlan) {
    absl::StatusOr<Plan> found = leastFitted();
    if (!found.ok())
      return found.status();
    keepSmallest(std::move(*found));
  }
  return smallestPlan;
}

void PlanCache::keepSmallest(Plan plan) {
  smallestStoppedEarly = plan.stats.stoppedEarly;
  smallestPlan = keep(std::move(plan));
  if (!planner.empty() || stated.instructions.size() > kMostForBlocks)
    return;
  // Checkpoints at blocks, a common practice, may need fewer bytes.
  absl::StatusOr<Plan> blocks = planBy("blocks", stated, {}, {});
  if (!blocks.ok())
    return;
  blocks->feasible = true; // Feasible for budgets that its arena fits.
  const Plan *kept = keep(packed(std::move(*blocks)));
  if (kept->arenaBytes() < smallestPlan->arenaBytes())
    smallestPlan = kept;
}

const Plan *PlanCache::cheapestWithin(int64_t budgetBytes) const {
  const Plan *best = nullptr;
  for (const auto &each : plans) {
    if (budgetBytes >= 0 &&
        each->arenaBytes() + stated.reservedBytes > budgetBytes)
      continue;
    if (!best || std::pair(each->cost, each->arenaBytes()) <
                     std::pair(best->cost, best->arenaBytes()))
      best = each.get();
  }
  return best;
}

std::vector<const Plan *> PlanCache::frontier() const {
  std::vector<const Plan *> all, best;
  for (const auto &each : plans)
    all.push_back(each.get());
  std::stable_sort(all.begin(), all.end(), [](const Plan *a, const Plan *b) {
    return std::pair(a->arenaBytes(), a->cost) <
           std::pair(b->arenaBytes(), b->cost);
  });
  for (const Plan *plan : all)
    if (best.empty() || plan->cost < best.back()->cost)
      best.push_back(plan);
  return best;
}

absl::StatusOr<const Plan *> PlanCache::fit(int64_t budgetBytes) {
  return isOneSpace(stated) ? fitOnDevice(budgetBytes)
                            : fitWithMoves(budgetBytes);
}

absl::StatusOr<const Plan *> PlanCache::fitOnDevice(int64_t budgetBytes) {
  bool solves = budgetBytes < 0 || budgetBytes >= impossible;
  bool ours = planner.empty();
  absl::StatusOr<Plan> coarse(Plan{});
  absl::StatusOr<Plan> least(Plan{});
  auto begin = [&](size_t i) {
    SolveOptions how = options;
    how.budgetBytes = budgetBytes;
    how.coarse = true;
    if (i == 0 && solves)
      coarse = planFor(how, nullptr);
    if (i == 1 && !smallestPlan)
      least = leastFitted();
  };
  if (ours) {
    inParallel(2, begin);
  } else { // A user's program may not support two runs at a time.
    begin(1);
    begin(0);
  }
  if (!least.ok())
    return least.status();
  if (!coarse.ok())
    return coarse.status();
  if (!smallestPlan)
    keepSmallest(std::move(*least));
  if (!solves)
    return cheapestWithin(budgetBytes);

  int64_t room = budgetBytes - stated.reservedBytes, limit = budgetBytes;
  std::vector<Plan> walks;
  if (ours && coarse->feasible && coarse->cost > coarse->baseCost) {
    // Reduces the limit by the loss of packing the smallest plan.
    if (stated.instructions.size() > kLarge)
      limit -= smallestPlan->arenaBytes() - smallestPlan->peakBytes[0];
    absl::Status status = walk(*coarse, limit, room, Expensive::Held, walks);
    if (status.ok() && walks.empty() &&
        recomputesExpensive(stated, coarse->solution))
      status = walk(*coarse, limit, room, Expensive::Free, walks);
    if (!status.ok())
      return status;
  }
  std::vector<const Plan *> firsts;
  for (Plan &plan : walks)
    firsts.push_back(keep(std::move(plan)));
  // The coarse plan was made for the full room, so it can be cheaper.
  const Plan *best = cheapestWithin(budgetBytes);
  if (firsts.empty() || !best || coarse->cost < best->cost) {
    Plan plan = packed(std::move(*coarse));
    if (firsts.empty())
      packHarder(plan, room);
    const Plan *kept = keep(std::move(plan));
    if (firsts.empty())
      firsts.push_back(kept);
  }
  if (budgetBytes < 0)
    return cheapestWithin(budgetBytes);

  // Repair plans that cost much less than all that fit.
  best = cheapestWithin(budgetBytes);
  std::erase_if(firsts, [&](const Plan *plan) {
    return !plan->feasible ||
           (best &&
            plan->cost > best->cost - best->baseCost / kWorthRepairPart);
  });
  std::vector<absl::StatusOr<std::vector<Plan>>> repaired(firsts.size(),
                                                          std::vector<Plan>());
  inParallel(firsts.size(), [&](size_t i) {
    repaired[i] = repair(*firsts[i], limit, room, options.seed + i);
  });
  for (absl::StatusOr<std::vector<Plan>> &each : repaired) {
    if (!each.ok())
      return each.status();
    for (Plan &plan : *each)
      keep(std::move(plan));
  }
  return cheapestWithin(budgetBytes);
}

/// Adds the results of two walks from `coarse` that are within the limit. Near
/// the smallest budgets the results of walks differ.
absl::Status PlanCache::walk(const Plan &coarse, int64_t limitBytes,
                             int64_t roomBytes, Expensive expensive,
                             std::vector<Plan> &found) const {
  std::vector<absl::StatusOr<Plan>> walks(
      options.without.has(Strategy::SecondWalk) ? 1 : kWalks, Plan{});
  inParallel(walks.size(), [&](size_t i) {
    SolveOptions how = options;
    how.seed += i;
    how.expensive = expensive;
    how.start = &coarse.solution;
    walks[i] = fittedFor(limitBytes, how, &coarse.orders);
    if (walks[i].ok())
      packHarder(*walks[i], roomBytes);
  });
  for (absl::StatusOr<Plan> &each : walks) {
    if (!each.ok())
      return each.status();
    if (each->feasible)
      found.push_back(std::move(*each));
  }
  return absl::OkStatus();
}

/// Adds a packed plan from `how.start`, or two if the first recomputes an
/// expensive kernel.
absl::Status PlanCache::repairOnce(const SolveOptions &how, int64_t limitBytes,
                                   int64_t roomBytes, const Orders &orders,
                                   std::vector<Plan> &found) const {
  absl::StatusOr<Plan> next = fittedFor(limitBytes, how, &orders);
  if (next.ok() && recomputesExpensive(stated, next->solution) &&
      !recomputesExpensive(stated, *how.start)) {
    // More work may avoid recomputing the expensive kernel.
    found.push_back(std::move(*next));
    SolveOptions harder = how;
    harder.effort.mostWork = options.effort.mostWork / kHarderPart;
    next = fittedFor(limitBytes, harder, &orders);
  }
  if (!next.ok())
    return next.status();
  packHarder(*next, roomBytes);
  found.push_back(std::move(*next));
  return absl::OkStatus();
}

/// Seeks plans that fit, beginning with `first`, which was planned for a limit
/// and whose arena is too large.
absl::StatusOr<std::vector<Plan>> PlanCache::repair(const Plan &first,
                                                    int64_t limitBytes,
                                                    int64_t roomBytes,
                                                    uint64_t seed) const {
  std::vector<Plan> found;
  Solution start = first.solution;
  SolveOptions how = options;
  how.seed = seed;
  how.effort.mostWork =
      options.effort.mostWork / rowOf(Strategy::LocalRepair).divisor;
  how.start = &start;
  how.headroom = overAt(first, roomBytes);
  int64_t lost = first.arenaBytes() - first.peakBytes[0]; // By packing.
  int64_t over = first.arenaBytes() - roomBytes;
  // Returns whether the found plan fits.
  auto attempt = [&](int64_t limit) -> absl::StatusOr<bool> {
    absl::Status status =
        repairOnce(how, limit, roomBytes, first.orders, found);
    if (!status.ok())
      return status;
    const Plan &next = found.back();
    lost = std::max(lost, next.arenaBytes() - next.peakBytes[0]);
    return next.feasible && next.arenaBytes() <= roomBytes;
  };

  // Local repair: headroom at the instructions where buffers exceed the room,
  // while each round halves the excess. Other planners accept limits only.
  bool local = planner.empty() && !options.without.has(Strategy::LocalRepair) &&
               isOver(start, how.headroom, limitBytes);
  for (int i = 0; local && i < kMostLocal && limitBytes >= impossible; ++i) {
    absl::StatusOr<bool> fits = attempt(limitBytes);
    if (!fits.ok())
      return fits.status();
    if (*fits)
      return found;
    const Plan &next = found.back();
    int64_t left = next.arenaBytes() - roomBytes;
    if (!next.feasible || 2 * left > over)
      break;
    over = left;
    std::vector<int64_t> more = overAt(next, roomBytes);
    for (size_t k = 0; k < more.size(); ++k)
      how.headroom[k] += more[k];
    start = next.solution;
  }

  // Global repair: a smaller limit everywhere.
  how.headroom.clear();
  start = first.solution;
  for (int64_t quarters : kQuartersLess) {
    if (options.without.has(Strategy::GlobalRepair))
      break;
    int64_t less = roomBytes + stated.reservedBytes - lost * quarters / 4;
    if (less < impossible)
      break;
    absl::StatusOr<bool> fits = attempt(less);
    if (!fits.ok())
      return fits.status();
    if (*fits)
      break;
  }
  return found;
}

//===----------------------------------------------------------------------===//
// With moves
//===----------------------------------------------------------------------===//

/// Seeks a plan within the budgets from the cheapest one that is known to fit.
absl::StatusOr<const Plan *> PlanCache::fitWithMoves(int64_t budgetBytes) {
  if (budgetBytes >= 0 && budgetBytes < impossible)
    return nullptr;
  Problem wanted = stated;
  wanted.spaces[0].budgetBytes = budgetBytes;
  SolveOptions how = options;
  if (const Plan *known = cheapestWithin(budgetBytes))
    how.start = &known->solution;
  absl::StatusOr<Plan> found = fitMoves(wanted, {how, planner}, alignments);
  if (!found.ok())
    return planFault(planner, found.status());
  if (found->feasible)
    return keep(*std::move(found));
  if (options.wantSmallest && !smallestPlan) {
    if (absl::Status status = findSmallestWithMoves(); !status.ok())
      return status;
    // A plan for a smaller budget fits this one; a faster one is sought from
    // it.
    if (cheapestWithin(budgetBytes))
      return fitWithMoves(budgetBytes);
  }
  return cheapestWithin(budgetBytes);
}

absl::Status PlanCache::findSmallestWithMoves() {
  const Plan *known = nullptr;
  for (const auto &each : plans)
    if (!known || each->arenaBytes() < known->arenaBytes())
      known = each.get();
  SolveOptions how = options;
  how.effort = given;
  absl::StatusOr<Plan> least =
      smallestByMoves(stated, {how, planner}, alignments, impossible,
                      known ? known->arenaBytes() + stated.reservedBytes : -1);
  if (!least.ok())
    return planFault(planner, least.status());
  smallestPlan = least->feasible ? keep(*std::move(least)) : known;
  return absl::OkStatus();
}

void PlanCache::correct(const Plan *plan, int64_t arenaBytes) {
  for (auto &each : plans)
    if (each.get() == plan)
      each->arenas[0].bytes = arenaBytes;
}
