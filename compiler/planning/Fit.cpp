#include "compiler/planning/Fit.h"

#include "compiler/planning/Parallel.h"
#include "compiler/planning/Planners.h"
#include "compiler/planning/Unroll.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>

using namespace tmc::planning;

namespace {

/// What is done on top for a plan is for steps of at most this size.
constexpr size_t kMostInstructions = 5000;

/// Of more instructions a plan takes long.
constexpr size_t kLarge = 1000;

/// Counted work of the search for the smallest plan, one to three nanoseconds a
/// unit: in all, and for each instruction of a large step. Steps of some
/// hundred to two thousand launches are done with 50 to 350 million.
constexpr int64_t kSmallestWork = 600'000'000;
constexpr int64_t kSmallestWorkEach = 300'000;

/// Lays out the buffers of one solution.
class BufferLayout {
public:
  BufferLayout(const Problem &problem, const Solution &solution)
      : problem(problem), solution(solution) {}

  ArenaProblem run(int64_t alignment) {
    ArenaProblem out;
    out.alignment = alignment;
    absl::StatusOr<Unrolled> unrolled = unroll(problem, solution);
    if (!unrolled.ok())
      return out;
    u = std::move(*unrolled);
    for (const auto &list : solution.segments) {
      segmentBegin.push_back(rows);
      rows += int32_t(list.size());
    }
    segmentBegin.push_back(rows);
    findBuffers();
    collectTouches();
    for (size_t b = 0; b < owner.size(); ++b)
      if (find(int32_t(b)) == int32_t(b))
        if (Lifetime life = lifeOf(int32_t(b)); life.begin < life.end)
          out.buffers.push_back(
              {problem.values[valueOf[b]].name, bytes[b], life});
    for (size_t s = 0; s < solution.segments.size(); ++s)
      for (size_t i = 0; i < solution.segments[s].size(); ++i) {
        const Recipe &recipe = problem.recipes[solution.segments[s][i].recipe];
        int64_t row = segmentBegin[s] + int32_t(i);
        if (recipe.workspaceBytes > 0)
          out.buffers.push_back({recipe.name + ".scratch",
                                 recipe.workspaceBytes,
                                 {row, row + 1}});
      }
    return out;
  }

private:
  struct Touch {
    int32_t row;
    SegmentId loop; // kNone: in a segment of one trip.
    bool reads;
  };

  const Problem &problem;
  const Solution &solution;
  Unrolled u;
  int32_t rows = 0;
  std::vector<int32_t> segmentBegin;
  /// Buffers: one per place in the lists that writes a value, then joined.
  std::vector<int32_t> owner;
  std::vector<ValueId> valueOf;
  std::vector<int64_t> bytes; // The most of what shares a buffer.
  std::vector<char> persistent, liveOut;
  std::vector<int32_t> bufferOf; // Of each instance.
  std::vector<std::vector<Touch>> touches;

  int32_t find(int32_t b) {
    while (owner[b] != b)
      b = owner[b] = owner[owner[b]];
    return b;
  }

  void unite(int32_t a, int32_t b) {
    a = find(a), b = find(b);
    if (a == b)
      return;
    owner[std::max(a, b)] = std::min(a, b);
    bytes[std::min(a, b)] = std::max(bytes[a], bytes[b]);
    persistent[std::min(a, b)] |= persistent[std::max(a, b)];
    liveOut[std::min(a, b)] |= liveOut[std::max(a, b)];
  }

  int32_t rowOf(int32_t moment) const {
    return segmentBegin[u.moments[moment].segment] + u.moments[moment].index;
  }

  void findBuffers() {
    std::map<std::pair<int32_t, ValueId>, int32_t> bufferAt;
    for (const Instance &instance : u.instances) {
      int32_t row = instance.begin < 0 ? -1 : rowOf(instance.begin);
      auto [at, fresh] =
          bufferAt.try_emplace({row, instance.value}, int32_t(owner.size()));
      bufferOf.push_back(at->second);
      const Value &value = problem.values[instance.value];
      if (fresh) {
        owner.push_back(at->second);
        valueOf.push_back(instance.value);
        bytes.push_back(value.bytes);
        persistent.push_back(value.kind == ValueKind::Persistent);
        liveOut.push_back(false);
      }
      liveOut[at->second] |= instance.last >= int32_t(u.moments.size());
    }
    for (size_t i = 0; i < u.instances.size(); ++i)
      if (u.instances[i].storageOf != kNone)
        unite(bufferOf[i], bufferOf[u.instances[i].storageOf]);
    // A carried value is one buffer, whichever trip it comes from.
    std::map<std::pair<int32_t, ValueId>, int32_t> carried;
    for (size_t t = 0; t < u.moments.size(); ++t) {
      const Recipe &recipe = recipeAt(t);
      for (size_t i = 0; i < recipe.reads.size(); ++i) {
        int32_t instance = u.refs[u.refBegin[t] + int32_t(i)];
        if (instance == kNone ||
            problem.values[recipe.reads[i]].kind != ValueKind::Carried)
          continue;
        auto [at, fresh] = carried.try_emplace(
            {u.moments[t].segment, recipe.reads[i]}, bufferOf[instance]);
        if (!fresh)
          unite(at->second, bufferOf[instance]);
      }
    }
  }

  const Recipe &recipeAt(size_t t) const {
    const Profile::Moment &m = u.moments[t];
    return problem.recipes[solution.segments[m.segment][m.index].recipe];
  }

  void collectTouches() {
    touches.resize(owner.size());
    for (size_t t = 0; t < u.moments.size(); ++t) {
      const Profile::Moment &m = u.moments[t];
      bool loops = problem.segments[m.segment].trips > 1;
      if (loops && m.trip != 1)
        continue; // The second trip shows what a body reads and writes.
      const Recipe &recipe = recipeAt(t);
      for (int32_t ref = u.refBegin[t]; ref < u.refBegin[t + 1]; ++ref)
        if (u.refs[ref] != kNone)
          touches[find(bufferOf[u.refs[ref]])].push_back(
              {rowOf(int32_t(t)), loops ? m.segment : kNone,
               ref - u.refBegin[t] < int32_t(recipe.reads.size())});
    }
  }

  Lifetime lifeOf(int32_t buffer) {
    if (persistent[buffer])
      return {0, rows};
    const std::vector<Touch> &list = touches[buffer];
    if (list.empty())
      return {0, 0};
    Lifetime life{list.front().row, list.back().row + 1};
    for (size_t s = 0; s < problem.segments.size(); ++s) {
      auto inside = [&](const Touch &t) { return t.loop == SegmentId(s); };
      auto first = std::find_if(list.begin(), list.end(), inside);
      if (first == list.end())
        continue;
      if (first->reads || !std::all_of(list.begin(), list.end(), inside)) {
        life.begin = std::min<int64_t>(life.begin, segmentBegin[s]);
        life.end = std::max<int64_t>(life.end, segmentBegin[s + 1]);
      }
    }
    if (liveOut[buffer])
      life.end = rows;
    return life;
  }
};

} // namespace

ArenaProblem tmc::planning::arenaOf(const Problem &problem,
                                    const Solution &solution,
                                    int64_t alignment) {
  return BufferLayout(problem, solution).run(alignment);
}

Packing tmc::planning::packSorted(const ArenaProblem &problem,
                                  const PackOptions &options) {
  std::vector<int32_t> order(problem.buffers.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    auto key = [&](int32_t i) {
      const Buffer &buffer = problem.buffers[i];
      return std::tuple(buffer.lifetime.begin, -buffer.lifetime.end,
                        -buffer.bytes);
    };
    return key(a) < key(b);
  });
  ArenaProblem sorted = problem;
  for (size_t i = 0; i < order.size(); ++i) {
    sorted.buffers[i] = problem.buffers[order[i]];
    int64_t unit = problem.alignment;
    sorted.buffers[i].bytes =
        (sorted.buffers[i].bytes + unit - 1) / unit * unit;
  }
  Packing found = packArena(sorted, options), out = found;
  for (size_t i = 0; i < order.size(); ++i)
    out.offsets[order[i]] = found.offsets[i];
  return out;
}

void tmc::planning::restate(const Problem &problem, Plan &plan,
                            int64_t budgetBytes) {
  if (plan.certificate.budgetBytes == budgetBytes)
    return;
  Problem ordered = problem;
  for (size_t s = 0; s < plan.orders.size(); ++s)
    ordered.segments[s].instructions = plan.orders[s];
  plan.certificate.budgetBytes = budgetBytes;
  absl::StatusOr<int64_t> proven = provenExtraCost(ordered, plan.certificate);
  if (proven.ok() && *proven > 0) {
    plan.certificate.extraCost = *proven;
  } else {
    plan.certificate.lambda.clear();
    plan.certificate.extraCost = 0;
  }
  if (!plan.cases)
    return;
  plan.cases->budgetBytes = budgetBytes;
  proven = provenByBranching(ordered, *plan.cases);
  if (proven.ok())
    plan.cases->extraCost = *proven;
  else
    plan.cases.reset();
}

/// What is proved of the order of a plan that came without a proof.
static void proveByPrices(const Problem &problem, Plan &plan,
                          int64_t budgetBytes) {
  int64_t extra = plan.cost - plan.baseCost;
  if (extra <= plan.certificate.extraCost)
    return;
  Problem ordered = problem;
  for (size_t s = 0; s < plan.orders.size(); ++s)
    ordered.segments[s].instructions = plan.orders[s];
  Relaxation relaxation = relax(ordered);
  DualOptions dual;
  dual.knownExtraCost = extra;
  Certificate found =
      certify(ordered, relaxation,
              ascend(relaxation, budgetBytes - problem.reservedBytes, dual),
              budgetBytes);
  if (found.extraCost > plan.certificate.extraCost)
    plan.certificate = std::move(found);
}

void tmc::planning::proveByCases(const Problem &problem, Plan &plan,
                                 int64_t budgetBytes) {
  int64_t extra = plan.cost - plan.baseCost;
  if (budgetBytes >= 0 && plan.certificate.lambda.empty())
    proveByPrices(problem, plan, budgetBytes);
  if (budgetBytes < 0 || extra <= plan.certificate.extraCost ||
      problem.instructions.size() > kMostInstructions)
    return;
  Problem ordered = problem;
  for (size_t s = 0; s < plan.orders.size(); ++s)
    ordered.segments[s].instructions = plan.orders[s];
  Relaxation relaxation = relax(ordered);
  std::vector<double> prices(relaxation.live.size(), 0);
  for (auto [moment, lambda] : plan.certificate.lambda)
    prices[moment] = double(lambda) / double(plan.certificate.denominator);
  BranchOptions options; // Of counted work, about a tenth of a second.
  options.knownExtraCost = extra;
  options.work = 100'000'000;
  BranchCertificate found =
      branch(ordered, relaxation, prices, budgetBytes, options);
  if (found.extraCost > plan.certificate.extraCost)
    plan.cases = std::move(found);
}

PlanBook::PlanBook(Problem problem, int64_t alignment, SolveOptions options,
                   std::string planner, std::string problemFile)
    : stated(std::move(problem)), alignment(alignment),
      options(std::move(options)), planner(std::move(planner)),
      problemFile(std::move(problemFile)),
      impossible(impossibleBelowFreely(stated, relax(stated))) {
  this->options.wantCases = false;
}

absl::StatusOr<Plan> PlanBook::planFor(const SolveOptions &how,
                                       const Orders *orders) const {
  if (planner.empty() && !orders)
    return solve(stated, how);
  if (planner.empty()) {
    Problem ordered = stated;
    for (size_t s = 0; s < orders->size(); ++s)
      ordered.segments[s].instructions = (*orders)[s];
    SolveOptions fixed = how;
    fixed.order = OrderMode::Fixed;
    return solve(ordered, fixed);
  }
  absl::StatusOr<Plan> plan = planBy(planner, stated, how, problemFile);
  if (!plan.ok()) // The planner is at fault, and not the problem.
    return absl::FailedPreconditionError(plan.status().message());
  if (how.wantBound && how.budgetBytes >= 0)
    proveByPrices(stated, *plan, how.budgetBytes);
  return plan;
}

absl::StatusOr<FittedPlan> PlanBook::fittedFor(int64_t limitBytes,
                                               const SolveOptions &how,
                                               const Orders *orders) const {
  SolveOptions here = how;
  here.budgetBytes = limitBytes;
  absl::StatusOr<Plan> plan = planFor(here, orders);
  if (!plan.ok())
    return plan.status();
  return packed(std::move(*plan));
}

FittedPlan PlanBook::packed(Plan plan) const {
  FittedPlan fitted{.plan = std::move(plan)};
  fitted.arenaBytes =
      packSorted(arenaOf(stated, fitted.plan.solution, alignment)).arenaBytes;
  return fitted;
}

/// Packs in other ways what has lost more than twice what it is over: that
/// costs less than another plan does, now and in each step.
void PlanBook::packHarder(FittedPlan &plan, int64_t roomBytes) const {
  int64_t lost = plan.arenaBytes - plan.plan.peakBytes;
  int64_t over = plan.arenaBytes - roomBytes;
  if (roomBytes < 0 || over <= 0 || 2 * over > lost)
    return;
  ArenaProblem arena = arenaOf(stated, plan.plan.solution, alignment);
  uint64_t tries = stated.instructions.size() > kLarge ? 1 : 3;
  for (uint64_t seed = 1; seed <= tries && plan.arenaBytes > roomBytes;
       ++seed) {
    PackOptions packing{.seed = seed, .effort = 400};
    int64_t bytes = packSorted(arena, packing).arenaBytes;
    if (bytes < plan.arenaBytes) {
      plan.arenaBytes = bytes;
      plan.packing = packing;
    }
  }
}

/// Of each instruction, by how much the buffers that are alive there stick out
/// of the room.
std::vector<int64_t> PlanBook::overAt(const FittedPlan &plan,
                                      int64_t roomBytes) const {
  ArenaProblem arena = arenaOf(stated, plan.plan.solution, alignment);
  Packing packing = packSorted(arena, plan.packing);
  size_t rows = 0;
  for (const auto &list : plan.plan.solution.segments)
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
  for (const auto &list : plan.plan.solution.segments) {
    int64_t most = 0; // Of what runs before an instruction as well.
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

/// Whether some instruction leaves less free than it is to spare.
bool PlanBook::isOver(const Solution &solution,
                      const std::vector<int64_t> &spared,
                      int64_t limitBytes) const {
  absl::StatusOr<Profile> profile = simulate(stated, solution);
  if (!profile.ok())
    return false;
  for (size_t m = 0; m < profile->moments.size(); ++m) {
    const Profile::Moment &at = profile->moments[m];
    InstructionId i = solution.segments[at.segment][at.index].instruction;
    if (i != kNone &&
        profile->liveBytes[m] + spared[i] > limitBytes - stated.reservedBytes)
      return true;
  }
  return false;
}

const FittedPlan *PlanBook::keep(FittedPlan plan) {
  plans.push_back(std::make_unique<FittedPlan>(std::move(plan)));
  return plans.back().get();
}

absl::StatusOr<FittedPlan> PlanBook::leastFitted() const {
  SolveOptions how = options;
  how.wantBound = how.wantFrontier = false;
  how.effort = SolveOptions().effort; // The same in every book.
  how.maxWork = SolveOptions().maxWork;
  if (how.smallestWork == 0)
    how.smallestWork = std::max(
        kSmallestWork, kSmallestWorkEach * int64_t(stated.instructions.size()));
  // What can't be makes the solver look for the least that can.
  return fittedFor(std::max<int64_t>(impossible - 1, 0), how);
}

absl::StatusOr<const FittedPlan *> PlanBook::smallest() {
  if (!smallestPlan) {
    absl::StatusOr<FittedPlan> found = leastFitted();
    if (!found.ok())
      return found.status();
    keepSmallest(std::move(*found));
  }
  return smallestPlan;
}

void PlanBook::keepSmallest(FittedPlan plan) {
  smallestStoppedEarly = plan.plan.stats.stoppedEarly;
  smallestPlan = keep(std::move(plan));
  if (!planner.empty() || stated.instructions.size() > kMostInstructions)
    return;
  // What everybody does by hand is never refused for something dearer.
  absl::StatusOr<Plan> blocks = planBy("blocks", stated, {}, {});
  if (!blocks.ok())
    return;
  blocks->feasible = true; // Of the budgets that its arena fits.
  const FittedPlan *kept = keep(packed(std::move(*blocks)));
  if (kept->arenaBytes < smallestPlan->arenaBytes)
    smallestPlan = kept;
}

const FittedPlan *PlanBook::cheapestWithin(int64_t budgetBytes) const {
  const FittedPlan *best = nullptr;
  for (const auto &each : plans) {
    if (budgetBytes >= 0 &&
        each->arenaBytes + stated.reservedBytes > budgetBytes)
      continue;
    if (!best || std::pair(each->plan.cost, each->arenaBytes) <
                     std::pair(best->plan.cost, best->arenaBytes))
      best = each.get();
  }
  return best;
}

std::vector<const FittedPlan *> PlanBook::frontier() const {
  std::vector<const FittedPlan *> all, best;
  for (const auto &each : plans)
    all.push_back(each.get());
  std::stable_sort(all.begin(), all.end(),
                   [](const FittedPlan *a, const FittedPlan *b) {
                     return std::pair(a->arenaBytes, a->plan.cost) <
                            std::pair(b->arenaBytes, b->plan.cost);
                   });
  for (const FittedPlan *plan : all)
    if (best.empty() || plan->plan.cost < best.back()->plan.cost)
      best.push_back(plan);
  return best;
}

absl::StatusOr<const FittedPlan *> PlanBook::fit(int64_t budgetBytes) {
  bool solves = budgetBytes < 0 || budgetBytes >= impossible;
  bool ours = planner.empty();
  absl::StatusOr<Plan> rough(Plan{});
  absl::StatusOr<FittedPlan> least(FittedPlan{});
  auto begin = [&](size_t i) {
    SolveOptions how = options;
    how.budgetBytes = budgetBytes;
    how.roughly = true;
    if (i == 0 && solves)
      rough = planFor(how, nullptr);
    if (i == 1 && !smallestPlan)
      least = leastFitted();
  };
  if (ours) {
    inParallel(2, begin);
  } else { // Somebody's program, which need not like to run twice at a time.
    begin(1);
    begin(0);
  }
  if (!least.ok())
    return least.status();
  if (!rough.ok())
    return rough.status();
  if (!smallestPlan)
    keepSmallest(std::move(*least));
  if (!solves)
    return cheapestWithin(budgetBytes);

  int64_t room = budgetBytes - stated.reservedBytes, limit = budgetBytes;
  std::vector<FittedPlan> walks;
  if (ours && rough->feasible && rough->cost > rough->baseCost) {
    // As much as packing has lost of the smallest plan is left out at once.
    if (stated.instructions.size() > kLarge)
      limit -= smallestPlan->arenaBytes - smallestPlan->plan.peakBytes;
    absl::Status status = walk(*rough, limit, room, Dear::Kept, walks);
    if (status.ok() && walks.empty() && makesDearAgain(stated, rough->solution))
      status = walk(*rough, limit, room, Dear::Free, walks);
    if (!status.ok())
      return status;
  }
  std::vector<const FittedPlan *> firsts;
  for (FittedPlan &plan : walks)
    firsts.push_back(keep(std::move(plan)));
  // The rough plan had all of the room, and that can be worth more.
  const FittedPlan *best = cheapestWithin(budgetBytes);
  if (firsts.empty() || !best || rough->cost < best->plan.cost) {
    FittedPlan plan = packed(std::move(*rough));
    if (firsts.empty())
      packHarder(plan, room);
    const FittedPlan *kept = keep(std::move(plan));
    if (firsts.empty())
      firsts.push_back(kept);
  }
  if (budgetBytes < 0)
    return cheapestWithin(budgetBytes);

  // What costs much less than all that fits is worth mending.
  best = cheapestWithin(budgetBytes);
  std::erase_if(firsts, [&](const FittedPlan *plan) {
    return !plan->plan.feasible ||
           (best &&
            plan->plan.cost > best->plan.cost - best->plan.baseCost / 1000);
  });
  std::vector<absl::StatusOr<std::vector<FittedPlan>>> mended(
      firsts.size(), std::vector<FittedPlan>());
  inParallel(firsts.size(), [&](size_t i) {
    mended[i] = mend(*firsts[i], limit, room, options.seed + i);
  });
  for (absl::StatusOr<std::vector<FittedPlan>> &each : mended) {
    if (!each.ok())
      return each.status();
    for (FittedPlan &plan : *each)
      keep(std::move(plan));
  }
  return cheapestWithin(budgetBytes);
}

/// Adds where two walks from `rough` on end, if that is a plan within the
/// limit: near the smallest budgets no two end alike.
absl::Status PlanBook::walk(const Plan &rough, int64_t limitBytes,
                            int64_t roomBytes, Dear dear,
                            std::vector<FittedPlan> &found) const {
  std::vector<absl::StatusOr<FittedPlan>> walks(2, FittedPlan{});
  inParallel(walks.size(), [&](size_t i) {
    SolveOptions how = options;
    how.seed += i;
    how.dear = dear;
    how.start = &rough.solution;
    walks[i] = fittedFor(limitBytes, how, &rough.orders);
    if (walks[i].ok())
      packHarder(*walks[i], roomBytes);
  });
  for (absl::StatusOr<FittedPlan> &each : walks) {
    if (!each.ok())
      return each.status();
    if (each->plan.feasible)
      found.push_back(std::move(*each));
  }
  return absl::OkStatus();
}

/// Adds a plan from `how.start` on, packed; two where the first needs a dear
/// kernel again.
absl::Status PlanBook::mendOnce(const SolveOptions &how, int64_t limitBytes,
                                int64_t roomBytes, const Orders &orders,
                                std::vector<FittedPlan> &found) const {
  absl::StatusOr<FittedPlan> next = fittedFor(limitBytes, how, &orders);
  if (next.ok() && makesDearAgain(stated, next->plan.solution) &&
      !makesDearAgain(stated, *how.start)) {
    // What little work didn't find would cost a dear kernel.
    found.push_back(std::move(*next));
    SolveOptions harder = how;
    harder.maxWork = options.maxWork / 2;
    next = fittedFor(limitBytes, harder, &orders);
  }
  if (!next.ok())
    return next.status();
  packHarder(*next, roomBytes);
  found.push_back(std::move(*next));
  return absl::OkStatus();
}

/// Plans that may fit, from `first` on, which was planned for a limit and whose
/// arena is too large.
absl::StatusOr<std::vector<FittedPlan>> PlanBook::mend(const FittedPlan &first,
                                                       int64_t limitBytes,
                                                       int64_t roomBytes,
                                                       uint64_t seed) const {
  std::vector<FittedPlan> found;
  Solution start = first.plan.solution;
  SolveOptions how = options;
  how.seed = seed;
  how.maxWork = options.maxWork / 16;
  how.start = &start;
  how.spared = overAt(first, roomBytes);
  int64_t lost = first.arenaBytes - first.plan.peakBytes; // By packing.
  int64_t over = first.arenaBytes - roomBytes;
  // Whether a plan was found that fits.
  auto attempt = [&](int64_t limit) -> absl::StatusOr<bool> {
    absl::Status status =
        mendOnce(how, limit, roomBytes, first.plan.orders, found);
    if (!status.ok())
      return status;
    const FittedPlan &next = found.back();
    lost = std::max(lost, next.arenaBytes - next.plan.peakBytes);
    return next.plan.feasible && next.arenaBytes <= roomBytes;
  };

  // Less where buffers stick out; then where they do now, while that halves
  // what is over. Somebody else's planner knows of limits only.
  constexpr int kMostLocal = 4;
  bool local = planner.empty() && isOver(start, how.spared, limitBytes);
  for (int i = 0; local && i < kMostLocal && limitBytes >= impossible; ++i) {
    absl::StatusOr<bool> fits = attempt(limitBytes);
    if (!fits.ok())
      return fits.status();
    if (*fits)
      return found;
    const FittedPlan &next = found.back();
    int64_t left = next.arenaBytes - roomBytes;
    if (!next.plan.feasible || 2 * left > over)
      break;
    over = left;
    std::vector<int64_t> more = overAt(next, roomBytes);
    for (size_t k = 0; k < more.size(); ++k)
      how.spared[k] += more[k];
    start = next.plan.solution;
  }

  // Less everywhere.
  how.spared.clear();
  start = first.plan.solution;
  for (int64_t quarters : {5, 7, 9}) {
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

void PlanBook::correct(const FittedPlan *plan, int64_t arenaBytes) {
  for (auto &each : plans)
    if (each.get() == plan)
      each->arenaBytes = arenaBytes;
}
