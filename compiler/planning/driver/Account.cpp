#include "compiler/planning/driver/Account.h"

#include "compiler/planning/driver/MoveLevers.h"

#include <algorithm>
#include <numeric>
#include <utility>

using namespace tmc::planning;

namespace {

class Accounting {
public:
  Accounting(const Problem &problem, const Plan &plan)
      : problem(problem), plan(plan), moves(fastestMoves(problem, kDevice)) {}

  absl::StatusOr<Account> run() {
    orders = plan.orders.empty() ? firstExecutions(plan.solution) : plan.orders;
    layRows();
    absl::StatusOr<Timeline> timeline = timelineOf(problem, plan.solution);
    if (!timeline.ok())
      return timeline.status();
    const SpaceUse &device = timeline->spaces[kDeviceSpace];
    for (size_t t = 0; t < timeline->size(); ++t) {
      AccountRow &row = out.rows[rowOf(timeline->moments[t])];
      row.times.push_back(timeline->times[t]);
      row.liveBytes = std::max(row.liveBytes, device.liveBytes[t]);
      for (size_t s = 1; s < timeline->spaces.size(); ++s)
        row.otherBytes[s - 1] =
            std::max(row.otherBytes[s - 1], timeline->spaces[s].liveBytes[t]);
    }
    out.tripLengths = timeline->tripLengths;
    out.peakRow = rowOf(timeline->moments[device.peakMoment]);
    out.peakBytes = device.peakBytes;
    layIntervals(*timeline);
    priceRows();
    decideGaps();
    out.levers = levers();
    if (absl::Status status =
            addMoveLevers(problem, plan, *timeline, out.levers);
        !status.ok())
      return status;
    return std::move(out);
  }

private:
  static constexpr SpaceId kDevice = SpaceId(kDeviceSpace);

  const Problem &problem;
  const Plan &plan;
  const FastestMoves moves; // Between the device and the host.
  Orders orders;            // Orders of first executions.
  Account out;
  std::vector<int32_t>
      segmentBegin;             // Row of each segment's first, and the end.
  std::vector<int32_t> mainRow; // For each moment of `orders`.
  std::vector<int32_t> rowOfInstruction;
  bool isPriced = false; // The proof has prices for bytes of the device.
  std::vector<std::vector<int32_t>> intervalsOf; // For each value.

  int32_t rowOf(const Profile::Moment &moment) const {
    return segmentBegin[moment.segment] + moment.index;
  }

  void layRows() {
    rowOfInstruction.assign(problem.instructions.size(), 0);
    for (size_t s = 0; s < problem.segments.size(); ++s) {
      segmentBegin.push_back(int32_t(out.rows.size()));
      std::vector<int32_t> startOf; // For each work.
      for (const Execution &e : plan.solution.segments[s]) {
        int32_t at = int32_t(out.rows.size());
        if (e.instruction != kNone && e.phase != Phase::Done)
          rowOfInstruction[e.instruction] = at;
        AccountRow row;
        row.segment = SegmentId(s);
        row.recipe = e.recipe;
        row.instruction = e.instruction;
        row.trips = problem.segments[s].trips;
        row.phase = e.phase;
        row.otherBytes.assign(problem.spaces.size() - 1, 0);
        if (e.phase == Phase::Start) {
          startOf.resize(std::max(startOf.size(), size_t(e.work) + 1), kNone);
          startOf[e.work] = at;
        } else if (e.phase == Phase::Done) {
          row.other = startOf[e.work];
          out.rows[row.other].other = at;
        }
        out.rows.push_back(std::move(row));
      }
    }
    segmentBegin.push_back(int32_t(out.rows.size()));
    for (size_t s = 0; s < problem.segments.size(); ++s)
      for (InstructionId i : orders[s])
        mainRow.push_back(rowOfInstruction[i]);
  }

  /// The trip that represents a segment: not the first and, of at least three
  /// trips, not the last.
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
        // A body that reads it in its last trip needs it in earlier trips.
        bool through =
            last.segment != home && problem.segments[last.segment].trips > 1;
        interval.end =
            through ? segmentBegin[last.segment + 1] : rowOf(last) + 1;
        if (last.segment == home && last.trip != trip) {
          interval.begin = segmentBegin[home]; // Carried to the next trip.
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
    for (const Certificate::Price &price : plan.certificate.prices)
      if (price.space == kDevice && price.price > 0) {
        out.rows[rowOfInstruction[price.moment]].price =
            double(price.price) / double(plan.certificate.denominator);
        isPriced = true;
      }
  }

  /// The time of a value's copies to the host and back; -1 if one of the two
  /// isn't offered.
  int64_t moveCost(ValueId v) const {
    if (moves.in[v] == kNone || moves.out[v] == kNone)
      return -1;
    return problem.recipes[moves.in[v]].cost +
           problem.recipes[moves.out[v]].cost;
  }

  /// The least cost of breaking a gap by kernels; -1 if none can.
  int64_t costByKernels(const GapModel &model, const GapModel::Gap &gap) const {
    int64_t least = -1;
    for (int32_t c = gap.charges.begin; c < gap.charges.end; ++c)
      if (const GapModel::Charge &charge = model.charges[c];
          charge.engine == 0 && (least < 0 || charge.cost < least))
        least = charge.cost;
    return least;
  }

  /// True if `value` is alive over the rows from one use to the next.
  bool isHeld(ValueId value, int32_t from, int32_t to) const {
    for (int32_t interval : intervalsOf[value])
      if (out.intervals[interval].begin <= from &&
          to <= out.intervals[interval].end)
        return true;
    return false;
  }

  /// The cost of the recomputations of `value` between two rows: the value's
  /// share of each execution, by bytes.
  int64_t paid(ValueId value, int32_t from, int32_t to) const {
    int64_t cost = 0;
    for (int32_t row = from + 1; row < to; ++row) {
      const AccountRow &at = out.rows[row];
      const Recipe &recipe = problem.recipes[at.recipe];
      if (at.instruction != kNone || at.phase == Phase::Done ||
          (problem.isMove(recipe) && !problem.isGather(recipe)) ||
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

  /// Finds whether a form of the gap's value waits in another space, and the
  /// time of its moves. A copy may begin before the last use; it serves the
  /// first gap after it, so moves from row `since` on count.
  void findMoves(GapDecision &gap, int32_t since) const {
    ValueId content = problem.contentOf(gap.value);
    bool comesBack = !reads(gap.to, gap.value);
    SpaceId space = 0;
    int64_t busy = 0, waits = 0;
    for (int32_t row = since; row < gap.to; ++row) {
      const AccountRow &at = out.rows[row];
      const Recipe &recipe = problem.recipes[at.recipe];
      if (!problem.isMove(recipe) || problem.isGather(recipe) ||
          problem.contentOf(recipe.reads[0]) != content)
        continue;
      if (at.phase == Phase::Done) {
        waits += (at.times.back().end - at.times.back().begin) * at.trips;
        continue;
      }
      busy += recipe.cost * at.trips;
      for (ValueId v : {recipe.reads[0], recipe.writes[0]})
        space = std::max(space, problem.values[v].space);
      comesBack |= recipe.writes[0] == gap.value;
    }
    if (!comesBack || !space)
      return;
    gap.space = space;
    gap.paidCost = busy;
    gap.waitedCost = waits;
  }

  bool reads(int32_t row, ValueId value) const {
    return size_t(row) < out.rows.size() &&
           isRead(problem.recipes[out.rows[row].recipe], value);
  }

  void decideGaps() {
    const GapModel model(problem, orders);
    std::vector<double> prices(mainRow.size() + 1, 0); // Prefix sums.
    for (size_t k = 0; k < mainRow.size(); ++k)
      prices[k + 1] = prices[k] + out.rows[mainRow[k]].price;
    for (const GapModel::Gap &found : model.gaps) {
      // States, and forms in other spaces, have decisions of their own.
      const Value &value = problem.values[found.value];
      if (value.kind == ValueKind::Persistent || value.formOf != kNone ||
          found.moments.size() != 1 || found.charges.size() == 0)
        continue;
      const GapModel::Range moments = model.ranges[found.moments.begin];
      const Gap gap{found.value, moments.begin, moments.end - 1, value.bytes};
      GapDecision decision;
      decision.value = gap.value;
      decision.from = gap.first > 0 ? mainRow[gap.first - 1] : 0;
      decision.to = size_t(gap.last) + 1 < mainRow.size()
                        ? mainRow[gap.last + 1]
                        : int32_t(out.rows.size());
      decision.held = isHeld(gap.value, decision.from, decision.to);
      decision.overPeak =
          decision.from < out.peakRow && out.peakRow < decision.to;
      decision.leastCost = costByKernels(model, found);
      decision.moveCost = moveCost(gap.value);
      if (isPriced)
        decision.worth = int64_t((prices[gap.last + 1] - prices[gap.first]) *
                                 double(gap.bytes));
      out.gaps.push_back(decision);
    }
    std::stable_sort(out.gaps.begin(), out.gaps.end(),
                     [](const GapDecision &a, const GapDecision &b) {
                       return std::pair(a.value, a.from) <
                              std::pair(b.value, b.from);
                     });
    int32_t since = 0; // The end of the last gap that was bridged.
    ValueId last = kNone;
    for (GapDecision &gap : out.gaps) {
      if (std::exchange(last, gap.value) != gap.value)
        since = 0;
      if (!gap.held)
        findMoves(gap, since);
      if (!gap.space)
        gap.paidCost = paid(gap.value, gap.from, gap.to);
      if (!gap.held)
        since = gap.to;
    }
  }

  /// The peak of one execution per instruction in this order; -1 if the order
  /// isn't possible.
  int64_t peakOf(const Orders &orders, bool inPlace) const {
    Problem ordered = inOrder(problem, orders);
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
    levers.orderPeak = peakOf(orders, true);
    Orders late = orders;
    if (!late.empty())
      std::stable_partition(late.back().begin(), late.back().end(),
                            [&](InstructionId i) { return !isUpdate(i); });
    levers.lateUpdatePeak = peakOf(late, true);
    levers.planPeak = out.peakBytes;
    return levers;
  }
};

} // namespace

absl::StatusOr<Account> tmc::planning::account(const Problem &problem,
                                               const Plan &plan) {
  return Accounting(problem, plan).run();
}
