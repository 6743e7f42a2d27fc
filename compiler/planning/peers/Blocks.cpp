#include "compiler/planning/peers/Blocks.h"

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

std::vector<int32_t> tmc::planning::blockStarts(const LinearProblem &linear) {
  const std::vector<int64_t> across =
      crossingForward(linear, turningPoint(crossing(linear)));
  std::vector<std::vector<int32_t>> cuts = repeatedBlocks(linear, across);
  return cuts.empty() ? narrowPlaces(across) : std::move(cuts.front());
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
    Schedule schedule(linear, limit);
    addCheckpoints(linear, partsOf(starts, 0, turn),
                   {0, int32_t(linear.stages.size())}, /*blocks=*/true,
                   schedule);
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
