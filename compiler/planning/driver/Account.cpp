#include "compiler/planning/driver/Account.h"

#include "compiler/planning/model/Timeline.h"

#include <algorithm>
#include <numeric>

using namespace tmc::planning;

namespace {

class Accounting {
public:
  Accounting(const Problem &problem, const Plan &plan)
      : problem(problem), plan(plan) {}

  absl::StatusOr<Account> run() {
    layRows();
    absl::StatusOr<Timeline> timeline = timelineOf(problem, plan.solution);
    if (!timeline.ok())
      return timeline.status();
    const SpaceUse &device = timeline->spaces[kDeviceSpace];
    for (size_t t = 0; t < timeline->size(); ++t) {
      int64_t &live = out.rows[rowOf(timeline->moments[t])].liveBytes;
      live = std::max(live, device.liveBytes[t]);
    }
    out.peakRow = rowOf(timeline->moments[device.peakMoment]);
    out.peakBytes = device.peakBytes;
    layIntervals(*timeline);
    priceRows();
    decideGaps();
    out.levers = levers();
    return std::move(out);
  }

private:
  const Problem &problem;
  const Plan &plan;
  Account out;
  std::vector<int32_t>
      segmentBegin;             // Row of each segment's first, and the end.
  std::vector<int32_t> mainRow; // Of each moment of `plan.orders`.
  std::vector<std::vector<int32_t>> intervalsOf; // Of each value.

  int32_t rowOf(const Profile::Moment &moment) const {
    return segmentBegin[moment.segment] + moment.index;
  }

  void layRows() {
    std::vector<int32_t> rowOfInstruction(problem.instructions.size(), 0);
    for (size_t s = 0; s < problem.segments.size(); ++s) {
      segmentBegin.push_back(int32_t(out.rows.size()));
      for (const Execution &e : plan.solution.segments[s]) {
        if (e.instruction != kNone && e.phase != Phase::Done)
          rowOfInstruction[e.instruction] = int32_t(out.rows.size());
        out.rows.push_back({SegmentId(s), e.recipe, e.instruction,
                            problem.segments[s].trips, e.phase, 0, 0});
      }
    }
    segmentBegin.push_back(int32_t(out.rows.size()));
    for (size_t s = 0; s < problem.segments.size(); ++s)
      for (InstructionId i : s < plan.orders.size()
                                 ? plan.orders[s]
                                 : problem.segments[s].instructions)
        mainRow.push_back(rowOfInstruction[i]);
  }

  /// The trip that stands for a segment: neither the first nor, where there are
  /// three, the last.
  int32_t shownTrip(SegmentId s) const {
    return problem.segments[s].trips > 1 ? 1 : 0;
  }

  void layIntervals(const Timeline &u) {
    std::vector<int32_t> intervalOf(u.instances.size(), kNone);
    intervalsOf.resize(problem.values.size());
    int32_t n = int32_t(u.size());
    for (size_t i = 0; i < u.instances.size(); ++i) {
      const Instance &instance = u.instances[i];
      LiveInterval interval{instance.value, 0, 0, kNone};
      SegmentId home = kNone;
      int32_t trip = 0;
      if (instance.begin >= 0) {
        const Profile::Moment &made = u.moments[instance.begin];
        home = made.segment;
        trip = made.trip;
        if (trip != shownTrip(home))
          continue;
        interval.begin = rowOf(made);
      }
      if (instance.last >= n) {
        interval.end = int32_t(out.rows.size());
      } else if (instance.last < 0) {
        interval.end = 1;
      } else {
        const Profile::Moment &last = u.moments[instance.last];
        // A body that reads it in its last trip needed it in those before.
        bool through =
            last.segment != home && problem.segments[last.segment].trips > 1;
        interval.end =
            through ? segmentBegin[last.segment + 1] : rowOf(last) + 1;
        if (last.segment == home && last.trip != trip) {
          interval.begin =
              segmentBegin[home]; // Carried: around the body's end.
          interval.end = segmentBegin[home + 1];
        }
      }
      if (instance.storageOf != kNone)
        interval.storageOf = intervalOf[instance.storageOf];
      intervalOf[i] = int32_t(out.intervals.size());
      intervalsOf[instance.value].push_back(intervalOf[i]);
      out.intervals.push_back(interval);
    }
  }

  void priceRows() {
    for (auto [moment, lambda] : plan.certificate.lambda)
      if (size_t(moment) < mainRow.size())
        out.rows[mainRow[moment]].price =
            double(lambda) / double(plan.certificate.denominator);
  }

  bool isHeld(const Gap &gap) const {
    int32_t first = mainRow[gap.first], last = mainRow[gap.last];
    for (int32_t interval : intervalsOf[gap.value])
      if (out.intervals[interval].begin <= first &&
          last < out.intervals[interval].end)
        return true;
    return false;
  }

  /// What the recomputations of `value` between two rows cost: its share of
  /// each.
  int64_t paid(ValueId value, int32_t from, int32_t to) const {
    int64_t cost = 0;
    for (int32_t row = from + 1; row < to; ++row) {
      const AccountRow &at = out.rows[row];
      const Recipe &recipe = problem.recipes[at.recipe];
      if (at.instruction != kNone ||
          std::find(recipe.writes.begin(), recipe.writes.end(), value) ==
              recipe.writes.end())
        continue;
      int64_t bytes = 0;
      for (ValueId v : recipe.writes)
        bytes += problem.values[v].bytes;
      cost += int64_t(__int128(recipe.cost) * problem.values[value].bytes /
                      std::max<int64_t>(bytes, 1)) *
              at.trips;
    }
    return cost;
  }

  void decideGaps() {
    Relaxation relaxation = relax(problem, plan.orders);
    std::vector<double> prices(mainRow.size() + 1, 0); // Prefix sums.
    for (size_t k = 0; k < mainRow.size(); ++k)
      prices[k + 1] = prices[k] + out.rows[mainRow[k]].price;
    bool priced = !plan.certificate.lambda.empty();
    for (const Gap &gap : relaxation.gaps) {
      GapDecision decision;
      decision.value = gap.value;
      decision.from = gap.first > 0 ? mainRow[gap.first - 1] : 0;
      decision.to = size_t(gap.last + 1) < mainRow.size()
                        ? mainRow[gap.last + 1]
                        : int32_t(out.rows.size());
      decision.held = isHeld(gap);
      decision.overPeak =
          decision.from < out.peakRow && out.peakRow < decision.to;
      decision.leastCost = gap.cost;
      decision.paidCost = paid(gap.value, decision.from, decision.to);
      if (priced)
        decision.worth = int64_t((prices[gap.last + 1] - prices[gap.first]) *
                                 double(gap.bytes));
      out.gaps.push_back(decision);
    }
    std::stable_sort(out.gaps.begin(), out.gaps.end(),
                     [](const GapDecision &a, const GapDecision &b) {
                       return std::pair(a.value, a.from) <
                              std::pair(b.value, b.from);
                     });
  }

  /// The peak of one execution per instruction in this order; -1 where the
  /// order can't be.
  int64_t peakOf(const std::vector<std::vector<InstructionId>> &orders,
                 bool inPlace) const {
    Problem ordered = problem;
    for (size_t s = 0; s < orders.size(); ++s)
      ordered.segments[s].instructions = orders[s];
    if (!inPlace)
      for (Recipe &recipe : ordered.recipes)
        std::erase_if(recipe.overwrites,
                      [](const Overwrite &o) { return !o.must; });
    absl::StatusOr<Profile> profile = simulate(ordered, baseSolution(ordered));
    return profile.ok() ? profile->peakBytes : -1;
  }

  bool isUpdate(InstructionId i) const {
    const Recipe &recipe =
        problem.recipes[problem.instructions[i].recipes.front()];
    return std::any_of(
        recipe.writes.begin(), recipe.writes.end(),
        [&](ValueId v) { return problem.values[v].updates != kNone; });
  }

  Levers levers() const {
    Levers levers;
    levers.plainPeak = peakOf({}, false);
    levers.inPlacePeak = peakOf({}, true);
    levers.orderPeak = peakOf(plan.orders, true);
    std::vector<std::vector<InstructionId>> late = plan.orders;
    if (!late.empty())
      std::stable_partition(late.back().begin(), late.back().end(),
                            [&](InstructionId i) { return !isUpdate(i); });
    levers.lateUpdatePeak = peakOf(late, true);
    levers.planPeak = out.peakBytes;
    levers.recomputeCost = plan.cost - plan.baseCost;
    return levers;
  }
};

} // namespace

absl::StatusOr<Account> tmc::planning::account(const Problem &problem,
                                               const Plan &plan) {
  return Accounting(problem, plan).run();
}
