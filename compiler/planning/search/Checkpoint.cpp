#include "compiler/planning/search/Checkpoint.h"

#include <algorithm>
#include <limits>
#include <optional>

using namespace tmc::planning;

namespace {

/// Fewer forward stages than this are not searched for repeats.
constexpr int32_t kLeastForward = 4;
/// The search for repeats skips a stage that writes less than 1/16 of the
/// median.
constexpr int32_t kSmallPart = 16;
constexpr int32_t kLongestBlock = 512;
/// A cut is narrow if its crossing bytes are at most the 10th percentile of all
/// cuts.
constexpr size_t kNarrowPart = 10;
/// Factor between two numbers of segments that are tried: sqrt(2).
constexpr double kNextParts = 1.41421356;
/// A segment's end may move by a quarter of its length.
constexpr int32_t kCutPart = 4;

/// Bytes alive across the boundary before each stage if all values are kept.
std::vector<int64_t> crossing(const LinearProblem &linear) {
  return timelineOf(linear, ownExecutions(linear), /*countUses=*/false)
      .crossingBytes(linear.bytes);
}

/// Stages that contain one forward part: all stages, or those of a segment.
struct Stretch {
  int32_t begin, end;
};

/// The forward part ends where the most bytes are alive.
int32_t turningPoint(const std::vector<int64_t> &across, Stretch of) {
  return int32_t(
      std::max_element(across.begin() + of.begin, across.begin() + of.end) -
      across.begin());
}
int32_t turningPoint(const std::vector<int64_t> &across) {
  return turningPoint(across, {0, int32_t(across.size())});
}

/// Bytes that cross before each forward stage, counting forward readers only.
std::vector<int64_t> crossingForward(const LinearProblem &linear,
                                     int32_t turn) {
  std::vector<OpId> forward = ownExecutions(linear);
  forward.resize(size_t(turn));
  return timelineOf(linear, forward, /*countUses=*/false)
      .crossingBytes(linear.bytes);
}

/// Starts of the repeated blocks of a model, and of the part after them. Two
/// stages one period apart have the same cost and the same result sizes. The
/// repeated stretch may begin anywhere in a block, so the result holds each
/// set of cuts that the fewest bytes cross. Empty: nothing repeats.
std::vector<std::vector<int32_t>>
repeatedBlocks(const LinearProblem &linear, const std::vector<int64_t> &across,
               int32_t first = 0) {
  int32_t turn = int32_t(across.size()) - 1;
  if (turn - first < kLeastForward)
    return {};
  // Small stages, such as a count of the labels, may stand anywhere in between.
  auto written = [&](int32_t k) {
    return linear.ops[linear.stages[k].variants.front()].writtenBytes;
  };
  std::vector<int64_t> sizes;
  for (int32_t k = first; k < turn; ++k)
    sizes.push_back(written(k));
  std::sort(sizes.begin(), sizes.end());
  std::vector<int32_t> stages;
  for (int32_t k = first; k < turn; ++k)
    if (written(k) >= sizes[sizes.size() / 2] / kSmallPart)
      stages.push_back(k);
  int32_t count = int32_t(stages.size());
  auto areIsomorphic = [&](int32_t i, int32_t j) {
    const LinearOp &a = linear.ops[linear.stages[stages[i]].variants.front()];
    const LinearOp &b = linear.ops[linear.stages[stages[j]].variants.front()];
    return a.cost == b.cost &&
           std::ranges::equal(a.writes, b.writes, [&](ValueId v, ValueId w) {
             return linear.bytes[v] == linear.bytes[w];
           });
  };
  int32_t period = 0, begin = 0, length = 0;
  for (int32_t p = 2; p <= std::min(count / 2, kLongestBlock); ++p)
    for (int32_t i = 0, run = 0; i + p < count; ++i) {
      run = areIsomorphic(i, i + p) ? run + 1 : 0;
      if (run >= p && run > length)
        period = p, begin = i + 1 - run, length = run;
    }
  if (!period)
    return {};
  // The last kernel of the last block may differ: it is fused with its
  // successor.
  int32_t end = std::min(count - 1, begin + length + period + 1);
  std::vector<std::vector<int32_t>> best;
  int64_t least = std::numeric_limits<int64_t>::max();
  for (int32_t shift = 0; shift < period; ++shift) {
    std::vector<int32_t> starts;
    int64_t bytes = 0;
    for (int32_t i = begin + shift; i <= end; i += period) {
      starts.push_back(stages[i]);
      bytes += across[stages[i]];
    }
    bytes /= int64_t(starts.size());
    if (bytes < least)
      best.clear();
    least = std::min(least, bytes);
    if (bytes == least)
      best.push_back(std::move(starts));
  }
  return best;
}

/// Without repeats: the narrow cuts.
std::vector<int32_t> narrowPlaces(const std::vector<int64_t> &across) {
  int32_t turn = int32_t(across.size()) - 1;
  std::vector<int64_t> sorted(across.begin() + std::min(turn, 1), across.end());
  std::sort(sorted.begin(), sorted.end());
  int64_t least = sorted.empty() ? 0 : sorted[sorted.size() / kNarrowPart];
  std::vector<int32_t> starts;
  for (int32_t k = 2; k < turn; ++k)
    if (across[k] <= least && across[k - 1] > across[k])
      starts.push_back(k);
  return starts;
}

/// Keeps values that lead from one forward part to a later one. Other values
/// used beyond their own part are recomputed, one part at a time, where the
/// first value of that part is needed. With `blocks`, a value that leads on is
/// kept only if the other kept values can't make it, and the last part, whose
/// values are needed at once, is kept whole. `partOf` ends with the stretch's
/// forward part; stages before the stretch are in no part.
void addCheckpoints(const LinearProblem &linear,
                    const std::vector<int32_t> &partOf, Stretch of, bool blocks,
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

Schedule checkpointed(const LinearProblem &linear,
                      const std::vector<int32_t> &partOf, int64_t limit,
                      bool blocks = false) {
  Schedule schedule(linear, limit);
  addCheckpoints(linear, partOf, {0, int32_t(linear.stages.size())}, blocks,
                 schedule);
  return schedule;
}

/// The part of each forward stage: 0 before the first start, -1 before `first`.
std::vector<int32_t> partsOf(const std::vector<int32_t> &starts, int32_t first,
                             int32_t turn) {
  std::vector<int32_t> partOf(turn, 0);
  std::fill(partOf.begin(), partOf.begin() + first, -1);
  for (size_t i = 0; i < starts.size(); ++i)
    for (int32_t k = starts[i];
         k < (i + 1 < starts.size() ? starts[i + 1] : turn); ++k)
      partOf[k] = int32_t(i) + 1;
  return partOf;
}

} // namespace

int32_t tmc::planning::turningStage(const LinearProblem &linear) {
  return turningPoint(crossing(linear));
}

std::vector<int32_t> tmc::planning::blockStarts(const LinearProblem &linear) {
  const std::vector<int64_t> across =
      crossingForward(linear, turningPoint(crossing(linear)));
  std::vector<std::vector<int32_t>> cuts = repeatedBlocks(linear, across);
  return cuts.empty() ? narrowPlaces(across) : std::move(cuts.front());
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

RematPlan tmc::planning::checkpoint(const LinearProblem &linear,
                                    int64_t limit) {
  std::vector<int64_t> across = crossing(linear);
  int32_t turn = turningPoint(across);
  std::optional<Schedule> best;
  for (double parts = 1; parts <= turn; parts *= kNextParts) {
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
    Schedule schedule = checkpointed(linear, partOf, limit);
    bool fits = schedule.excess() == 0, fitted = best && best->excess() == 0;
    if (!best || (fits && (!fitted || schedule.cost() < best->cost())) ||
        (!fits && !fitted && schedule.excess() < best->excess()))
      best.emplace(std::move(schedule));
  }
  return best ? rematPlanOf(linear, *best) : RematPlan{};
}

RematPlan tmc::planning::checkpointBlocks(const LinearProblem &linear,
                                          int64_t limit) {
  int32_t turn = turningPoint(crossing(linear));
  std::vector<int64_t> across = crossingForward(linear, turn);
  std::vector<std::vector<int32_t>> cuts = repeatedBlocks(linear, across);
  if (cuts.empty())
    cuts.push_back(narrowPlaces(across));
  std::optional<Schedule> best;
  for (const std::vector<int32_t> &starts : cuts) {
    Schedule schedule = checkpointed(linear, partsOf(starts, 0, turn), limit,
                                     /*blocks=*/true);
    if (!best || std::pair(schedule.peakBytes(), schedule.cost()) <
                     std::pair(best->peakBytes(), best->cost()))
      best.emplace(std::move(schedule));
  }
  return rematPlanOf(linear, *best);
}

RematPlan tmc::planning::checkpointBlocksOfSegments(const LinearProblem &linear,
                                                    int64_t limit) {
  const std::vector<int64_t> all = crossing(linear);
  const int32_t count = int32_t(linear.stages.size());
  Schedule schedule(linear, limit);
  Stretch of{0, 0};
  for (; of.begin < count; of.begin = of.end) {
    while (of.end < count &&
           linear.stages[of.end].segment == linear.stages[of.begin].segment)
      ++of.end;
    const int32_t turn = turningPoint(all, of);
    const std::vector<std::vector<int32_t>> cuts =
        repeatedBlocks(linear, crossingForward(linear, turn), of.begin);
    if (!cuts.empty())
      addCheckpoints(linear, partsOf(cuts.front(), of.begin, turn), of,
                     /*blocks=*/true, schedule);
  }
  return rematPlanOf(linear, schedule);
}
