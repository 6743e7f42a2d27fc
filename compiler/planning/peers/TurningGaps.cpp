#include "compiler/planning/peers/TurningGaps.h"

#include "compiler/planning/model/Timeline.h"

#include <algorithm>
#include <optional>

using namespace tmc::planning;

namespace {
/// Depth to which a cost follows inputs; longer chains never pay off.
constexpr int kMostDepth = 12;
constexpr size_t kNever = size_t(-1);
} // namespace

TurningGaps::TurningGaps(const Problem &whole, const Projection &projection)
    : whole(whole), projection(projection), device(projection.problem),
      makers(device.values.size(), kNone), madeAt(makers.size(), kNever),
      lastUse(makers.size(), 0) {
  auto workOf = [&](const Segment &s) {
    int64_t work = 0;
    for (InstructionId i : s.instructions)
      work += s.trips * device.recipes[device.instructions[i].recipes[0]].cost;
    return work;
  };
  for (size_t s = 1; s < device.segments.size(); ++s)
    if (workOf(device.segments[s]) > workOf(device.segments[segment]))
      segment = s;
  std::vector<RecipeId> fetches(makers.size(), kNone);
  for (size_t r = 0; r < device.recipes.size(); ++r) {
    const Recipe &recipe = device.recipes[r];
    const Projection::Origin &origin = projection.origins[r];
    if (origin.kind == Projection::Kind::Fetch && origin.stash != kNone)
      fetches[recipe.writes[0]] = RecipeId(r);
    if (origin.kind == Projection::Kind::Kernel && recipe.recomputable)
      for (ValueId v : recipe.writes)
        if (makers[v] == kNone || recipe.cost < device.recipes[makers[v]].cost)
          makers[v] = RecipeId(r);
  }
  std::vector<char> isGap(makers.size(), 0); // Across the turn.
  if (absl::StatusOr<Timeline> timeline =
          timelineOf(device, baseSolution(device));
      timeline.ok())
    readTimeline(*timeline, isGap);
  for (size_t e = 0; e < order().size(); ++e)
    (e < turn ? timeBefore : timeBehind) += recipeAt(e).cost;
  for (size_t v = 0; v < makers.size(); ++v) {
    const Value &value = device.values[v];
    if (value.kind != ValueKind::Temporary || value.pinned ||
        madeAt[v] >= turn || lastUse[v] < turn)
      continue;
    if (!isGap[v]) {
      held.push_back(ValueId(v));
      continue;
    }
    Item item{ValueId(v), value.bytes,        madeAt[v], fetches[v],
              0,          makers[v] != kNone, 0};
    if (item.fetch != kNone)
      item.linkTime = whole.recipes[projection.origins[item.fetch].recipe].cost;
    if (item.canRecompute)
      item.recomputeCost = chainCost(ValueId(v), 0);
    if (item.canRecompute || item.fetch != kNone)
      items.push_back(item);
  }
  std::stable_sort(
      items.begin(), items.end(),
      [](const Item &a, const Item &b) { return a.made < b.made; });
}

/// Finds the turn, and the places and gaps of the segment's first trip.
void TurningGaps::readTimeline(const Timeline &timeline,
                               std::vector<char> &isGap) {
  int32_t first = kNone;
  int64_t most = -1;
  const std::vector<int64_t> &live = timeline.spaces[kDeviceSpace].liveBytes;
  for (size_t t = 0; t < timeline.moments.size(); ++t) {
    const Profile::Moment &at = timeline.moments[t];
    if (size_t(at.segment) != segment)
      continue;
    if (first == kNone)
      first = int32_t(t);
    if (live[t] > most) {
      most = live[t];
      turn = size_t(at.index) + 1;
    }
  }
  const int32_t end = first + int32_t(order().size());
  for (size_t i = 0; i < timeline.instances.size(); ++i) {
    const Instance &instance = timeline.instances[i];
    if (instance.begin < first || instance.begin >= end)
      continue;
    madeAt[instance.value] = size_t(instance.begin - first);
    lastUse[instance.value] = madeAt[instance.value];
    // Adjacent moments have no gap.
    const int32_t turning = first + int32_t(turn);
    int32_t from = instance.begin;
    for (int32_t use : timeline.usesOf(int32_t(i))) {
      if (use >= end)
        break;
      lastUse[instance.value] = size_t(use - first);
      if (use - from > 1 && from < turning && use >= turning)
        isGap[instance.value] = 1;
      from = use;
    }
  }
}

/// Cost of v's kernel and of the kernels of inputs that are dropped.
int64_t TurningGaps::chainCost(ValueId v, int depth) const {
  const Recipe &r = device.recipes[makers[v]];
  int64_t cost = r.cost;
  if (depth < kMostDepth)
    for (ValueId u : r.reads)
      if (madeAt[u] < turn && lastUse[u] < turn && makers[u] != kNone)
        cost += chainCost(u, depth + 1);
  return cost;
}

/// Writes the list and knows the values in memory.
class TurningGaps::Builder {
public:
  Builder(const TurningGaps &gaps, const std::vector<Decision> &decisions)
      : gaps(gaps), decisions(decisions), fetches(decisions.size(), kNone),
        isBack(decisions.size(), 0) {
    for (const Item &item : gaps.items)
      fetches[item.value] = item.fetch;
  }

  std::vector<Execution> run() {
    for (size_t e = 0; e < gaps.order().size(); ++e) {
      if (e >= gaps.turn)
        for (ValueId v : gaps.recipeAt(e).reads)
          bring(v);
      const InstructionId i = gaps.order()[e];
      list.push_back({gaps.device.instructions[i].recipes[0], i, {}});
    }
    return std::move(list);
  }

private:
  /// A kernel that runs again when its inputs are back.
  struct Again {
    RecipeId recipe;
    size_t next; // Index into its reads.
  };

  /// Without recursion: a step of a million kernels may be one chain.
  void bring(ValueId v) {
    open(v);
    while (!chain.empty()) {
      Again &again = chain.back();
      const Recipe &r = gaps.device.recipes[again.recipe];
      if (again.next < r.reads.size()) {
        open(r.reads[again.next++]);
        continue;
      }
      list.push_back({again.recipe, kNone, {}});
      for (ValueId w : r.writes)
        isBack[w] = 1;
      chain.pop_back();
    }
  }
  void open(ValueId v) {
    if (isBack[v] || decisions[v] == Decision::Keep ||
        gaps.madeAt[v] >= gaps.turn)
      return;
    isBack[v] = 1;
    if (decisions[v] == Decision::Fetch && fetches[v] != kNone)
      list.push_back({fetches[v], kNone, {}});
    else if (gaps.makers[v] != kNone) // Without a maker, v is held.
      chain.push_back({gaps.makers[v], 0});
  }

  const TurningGaps &gaps;
  const std::vector<Decision> &decisions;
  std::vector<RecipeId> fetches;
  std::vector<char> isBack;
  std::vector<Again> chain;
  std::vector<Execution> list;
};

Solution TurningGaps::listOf(const std::vector<Decision> &decisions) const {
  Solution solution = baseSolution(device);
  solution.segments[segment] = Builder(*this, decisions).run();
  takeOverwrites(device, solution);
  return solution;
}

absl::StatusOr<MovedPlan> tmc::planning::placeWithin(
    const Problem &whole, const SpaceChoice &choice,
    const Projection &projection, const TurningGaps &gaps, int64_t liveBytes,
    const std::function<std::vector<TurningGaps::Decision>(int64_t)>
        &decisionsWithin) {
  // Tries parts of all bytes from above, then halves the rest. With few bytes,
  // a rule may recompute so much that it needs more bytes.
  constexpr int64_t kParts = 12;
  constexpr int kHalvings = 5;
  int64_t all = 0;
  for (const TurningGaps::Item &item : gaps.items)
    all += item.bytes;
  std::optional<Solution> best;
  auto fits = [&](int64_t bytes) {
    Solution list = gaps.listOf(decisionsWithin(bytes));
    absl::StatusOr<Profile> profile = simulate(projection.problem, list);
    const bool does =
        profile.ok() && (liveBytes < 0 || profile->peakBytes <= liveBytes);
    if (does || !best)
      best = std::move(list);
    return does;
  };
  int64_t part = kParts;
  while (part >= 0 && !fits(all * part / kParts))
    --part;
  if (part >= 0 && part < kParts)
    for (int64_t i = 0, low = all * part / kParts, step = all / kParts / 2;
         i < kHalvings; ++i, step /= 2)
      if (fits(low + step))
        low += step;
  return placeMoves(whole, choice, projection, *best, liveBytes);
}
