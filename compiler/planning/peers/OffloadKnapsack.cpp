#include "compiler/planning/peers/OffloadRules.h"
#include "compiler/planning/peers/TurningGaps.h"

#include <algorithm>
#include <limits>

using namespace tmc::planning;

namespace {

using Decision = TurningGaps::Decision;

/// Bytes are counted in this many parts of the limit, fewer with many items.
constexpr int64_t kMostParts = 512, kLeastParts = 32, kMostCells = 4'000'000;
/// Prices of a link's second, in seconds of compute, found by halving.
constexpr double kMostPrice = 16;
constexpr int kPriceHalvings = 6;

class Knapsack {
public:
  explicit Knapsack(const TurningGaps &gaps)
      : gaps(gaps),
        parts(std::clamp(kMostCells / (int64_t(gaps.items.size()) + 1),
                         kLeastParts, kMostParts)) {}

  /// Decisions at the least price at which the link's time hides; at each
  /// price, the cheapest decisions that hold at most `bytes`.
  std::vector<Decision> within(int64_t bytes) const {
    const int64_t hidden = std::min(gaps.timeBefore, gaps.timeBehind);
    double low = 0, high = kMostPrice;
    int64_t link = 0;
    std::vector<Decision> best = decisionsAt(bytes, low, link);
    if (link <= hidden)
      return best;
    best = decisionsAt(bytes, high, link);
    for (int i = 0; i < kPriceHalvings; ++i) {
      const double price = (low + high) / 2;
      std::vector<Decision> decisions = decisionsAt(bytes, price, link);
      if (link <= hidden)
        best = std::move(decisions), high = price;
      else
        low = price;
    }
    return best;
  }

private:
  /// The cost of not holding an item, and how the item comes back.
  std::pair<double, Decision> costOf(const TurningGaps::Item &item,
                                     double price) const {
    const double moved = item.fetch == kNone
                             ? std::numeric_limits<double>::infinity()
                             : price * double(item.linkTime);
    return item.canRecompute && double(item.recomputeCost) < moved
               ? std::pair(double(item.recomputeCost), Decision::Recompute)
               : std::pair(moved, Decision::Fetch);
  }

  std::vector<Decision> decisionsAt(int64_t bytes, double price,
                                    int64_t &link) const {
    const size_t n = gaps.items.size();
    const int64_t part = std::max<int64_t>(1, bytes / parts);
    // gain[b]: the largest saving from holding b parts.
    std::vector<double> gain(parts + 1, 0);
    std::vector<std::vector<bool>> takes(n, std::vector<bool>(parts + 1));
    for (size_t i = 0; i < n; ++i) {
      const TurningGaps::Item &item = gaps.items[i];
      const double cost = costOf(item, price).first;
      const int64_t size = (item.bytes + part - 1) / part;
      for (int64_t b = parts; b >= size; --b)
        if (gain[b - size] + cost > gain[b]) {
          gain[b] = gain[b - size] + cost;
          takes[i][b] = true;
        }
    }
    std::vector<Decision> decisions = gaps.keepingAll();
    link = 0;
    int64_t b = bytes >= parts ? parts : 0;
    for (size_t i = n; i-- > 0;) {
      const TurningGaps::Item &item = gaps.items[i];
      if (takes[i][b]) {
        b -= (item.bytes + part - 1) / part;
        continue;
      }
      decisions[item.value] = costOf(item, price).second;
      if (decisions[item.value] == Decision::Fetch)
        link += item.linkTime;
    }
    return decisions;
  }

  const TurningGaps &gaps;
  const int64_t parts;
};

} // namespace

absl::StatusOr<MovedPlan>
tmc::planning::offloadByKnapsack(const Problem &problem, int64_t liveBytes) {
  const SpaceChoice choice = plainChoice(problem);
  absl::StatusOr<Projection> projection = project(problem, choice, 1);
  if (!projection.ok())
    return projection.status();
  const TurningGaps gaps(problem, *projection);
  const Knapsack knapsack(gaps);
  return placeWithin(problem, choice, *projection, gaps, liveBytes,
                     [&](int64_t bytes) { return knapsack.within(bytes); });
}
