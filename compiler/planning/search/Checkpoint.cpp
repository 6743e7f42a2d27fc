#include "compiler/planning/search/Checkpoint.h"

#include <algorithm>
#include <limits>
#include <optional>

using namespace tmc::planning;

namespace {

/// Factor between two numbers of segments that are tried: sqrt(2).
constexpr double kNextParts = 1.41421356;
/// A segment's end may move by a quarter of its length.
constexpr int32_t kCutPart = 4;
/// The longest segment that is tried. A longer one is no smaller than the
/// shorter ones near the square root, and one stage would recompute all of it.
constexpr int32_t kLongestPart = 8192;
constexpr int64_t kNoLimit = std::numeric_limits<int64_t>::max() / 2;

} // namespace

std::vector<Stretch>
tmc::planning::segmentStretches(const LinearProblem &linear) {
  std::vector<Stretch> all;
  for (int32_t k = 0; k < int32_t(linear.stages.size()); ++k) {
    if (!k || linear.stages[k].segment != linear.stages[k - 1].segment)
      all.push_back({k, k});
    all.back().end = k + 1;
  }
  return all;
}

std::vector<int64_t> tmc::planning::crossing(const LinearProblem &linear) {
  return timelineOf(linear, ownExecutions(linear), /*countUses=*/false)
      .crossingBytes(linear.bytes);
}

int32_t tmc::planning::turningPoint(const std::vector<int64_t> &across,
                                    Stretch of) {
  return int32_t(
      std::max_element(across.begin() + of.begin, across.begin() + of.end) -
      across.begin());
}

int32_t tmc::planning::turningPoint(const std::vector<int64_t> &across) {
  return turningPoint(across, {0, int32_t(across.size())});
}

void tmc::planning::addCheckpoints(const LinearProblem &linear,
                                   const std::vector<int32_t> &partOf,
                                   Stretch of, bool blocks,
                                   Schedule &schedule) {
  int32_t turn = int32_t(partOf.size());
  std::vector<char> kept(linear.bytes.size(), 0);
  for (size_t v = 0; v < linear.bytes.size(); ++v) {
    kept[v] = linear.madeAt[v] < of.begin || linear.madeAt[v] >= turn ||
              linear.recomputes[v].empty() ||
              (blocks && partOf[linear.madeAt[v]] == partOf.back());
  }
  for (int32_t k = of.begin; k < turn; ++k)
    for (ValueId v : linear.ops[linear.stages[k].variants.front()].reads)
      if (linear.madeAt[v] >= of.begin && linear.madeAt[v] < turn &&
          partOf[linear.madeAt[v]] != partOf[k])
        kept[v] = 1;
  // Values that lead into a part and can be made from other kept values.
  std::vector<int32_t> backWith(linear.bytes.size(), -1);
  std::vector<std::vector<OpId>> entering(turn ? size_t(partOf.back()) + 1 : 0);
  for (ValueId v = 0; v < ValueId(kept.size()); ++v)
    if (!kept[v])
      backWith[v] = partOf[linear.madeAt[v]];
  for (ValueId v = 0; blocks && v < ValueId(kept.size()); ++v) {
    if (!kept[v] || linear.madeAt[v] < of.begin || linear.madeAt[v] >= turn ||
        partOf[linear.madeAt[v]] == partOf.back())
      continue;
    for (OpId o : linear.recomputes[v]) {
      bool ready = true, entered = false;
      for (ValueId u : linear.ops[o].reads) {
        ready &= u != v && kept[u];
        entered |= linear.madeAt[u] >= 0;
      }
      if (!ready || !entered)
        continue;
      kept[v] = 0;
      backWith[v] = partOf[linear.madeAt[v]] + 1;
      entering[backWith[v]].push_back(o);
      break;
    }
  }
  std::vector<char> back(turn ? size_t(partOf.back()) + 1 : 0, 0);
  for (int32_t k = turn; k < of.end; ++k)
    for (ValueId v : linear.ops[linear.stages[k].variants.front()].reads) {
      if (kept[v] || back[backWith[v]])
        continue;
      int32_t part = backWith[v];
      back[part] = 1;
      for (OpId o : entering[part])
        if (schedule.canInsert(o, k))
          schedule.insert(o, k);
      int32_t first =
          int32_t(std::lower_bound(partOf.begin(), partOf.end(), part) -
                  partOf.begin());
      for (int32_t j = first; j < turn && partOf[j] == part; ++j) {
        OpId o = linear.stages[j].variants.front();
        bool wanted = false;
        for (ValueId w : linear.ops[o].writes)
          wanted |= !kept[w];
        if (wanted && schedule.canInsert(o, k))
          schedule.insert(o, k);
      }
    }
  dropUseless(schedule);
}

void tmc::planning::dropUseless(Schedule &schedule) {
  for (bool erased = true; erased;) {
    erased = false;
    std::vector<Schedule::Clone> clones = schedule.clones();
    for (const Schedule::Clone &c : clones)
      if (schedule.isUseless(c.op, c.stage)) {
        schedule.erase(c.op, c.stage);
        erased = true;
      }
  }
}

void tmc::planning::dropNeedless(const LinearProblem &linear,
                                 Schedule &schedule) {
  // The bytes that are missing up to each stage if nothing is recomputed.
  const Schedule whole(linear, schedule.limit());
  std::vector<double> missing(1, 0);
  for (int32_t k = 0; k < int32_t(linear.stages.size()); ++k)
    missing.push_back(
        missing.back() +
        double(std::max<int64_t>(0, whole.liveAtOwn(k) - schedule.limit())));
  std::vector<std::pair<double, Schedule::Clone>> all;
  for (const Schedule::Clone &c : schedule.clones()) {
    const LinearOp &op = linear.ops[c.op];
    double room = 1;
    for (ValueId w : op.writes) {
      const int32_t i =
          schedule.lives().instanceBefore(w, keyOf(c.stage, op.rank));
      if (i >= 0)
        room += double(linear.bytes[w]) *
                (missing[c.stage] -
                 missing[stageOf(schedule.lives().instances(w)[i].last)]);
    }
    all.push_back({double(op.cost) / room, c});
  }
  std::stable_sort(all.begin(), all.end(), [](const auto &a, const auto &b) {
    return a.first > b.first;
  });
  for (const auto &[gain, c] : all) {
    schedule.erase(c.op, c.stage);
    if (schedule.excess() > 0)
      schedule.insert(c.op, c.stage);
  }
  dropUseless(schedule);
}

RematPlan tmc::planning::checkpoint(const LinearProblem &linear,
                                    int64_t limit) {
  std::vector<int64_t> across = crossing(linear);
  int32_t turn = turningPoint(across);
  std::optional<Schedule> best;
  for (double parts = std::max(1, turn / kLongestPart); parts <= turn;
       parts *= kNextParts) {
    std::vector<int32_t> partOf(turn);
    int32_t part = 0, since = 0;
    int32_t length = std::max(1, int32_t(turn / parts));
    for (int32_t k = 0; k < turn; ++k) {
      // A part ends where the fewest bytes cross, near the end of its length.
      int32_t from = since + length - length / kCutPart,
              to = std::min(turn, since + length + length / kCutPart + 1);
      if (k > since && k >= from && k < to &&
          k == int32_t(std::min_element(across.begin() + from,
                                        across.begin() + to) -
                       across.begin()))
        ++part, since = k;
      partOf[k] = part;
    }
    // Above a limit, each change would walk down to the moments.
    Schedule schedule(linear, kNoLimit);
    addCheckpoints(linear, partOf, {0, int32_t(linear.stages.size())},
                   /*blocks=*/false, schedule);
    schedule.setLimit(limit);
    bool fits = schedule.excess() == 0, fitted = best && best->excess() == 0;
    if (!best || (fits && (!fitted || schedule.cost() < best->cost())) ||
        (!fits && !fitted && schedule.excess() < best->excess()))
      best.emplace(std::move(schedule));
  }
  return best ? rematPlanOf(linear, *best) : RematPlan{};
}
