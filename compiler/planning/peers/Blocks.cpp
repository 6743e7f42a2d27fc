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
/// In cuts of more values, none is left out for others that make it.
constexpr size_t kMostCrossing = 64;

/// Bytes that cross before each forward stage, counting forward readers only.
std::vector<int64_t> crossingForward(const LinearProblem &linear,
                                     int32_t turn) {
  std::vector<OpId> forward = ownExecutions(linear);
  forward.resize(size_t(turn));
  return timelineOf(linear, forward, /*countUses=*/false)
      .crossingBytes(linear.bytes);
}

/// Forward values that are read at or after a cut, where few of them are.
class Cuts {
public:
  Cuts(const LinearProblem &linear, int32_t begin, int32_t turn)
      : linear(linear), begin(begin), lastRead(linear.bytes.size(), -1) {
    for (int32_t k = begin; k < turn; ++k)
      for (ValueId v : readsAt(k))
        lastRead[v] = k;
    bytes.assign(size_t(turn) + 1, 0);
    std::vector<ValueId> crossing;
    for (int32_t k = begin; k <= turn; ++k) {
      std::erase_if(crossing, [&](ValueId v) { return lastRead[v] < k; });
      for (ValueId v : withoutMade(crossing))
        bytes[k] += linear.bytes[v];
      for (ValueId v : writesAt(k, turn))
        crossing.push_back(v);
    }
  }

  /// Bytes before each stage, without those of values that others make.
  const std::vector<int64_t> &crossingBytes() const { return bytes; }

  /// The values before stage `k` without those that others make.
  std::vector<ValueId> at(int32_t k) const {
    std::vector<ValueId> crossing;
    for (int32_t j = begin; j < k; ++j)
      for (ValueId v : writesAt(j, k))
        if (lastRead[v] >= k)
          crossing.push_back(v);
    return withoutMade(crossing);
  }

private:
  const std::vector<ValueId> &readsAt(int32_t k) const {
    return linear.ops[linear.stages[k].variants.front()].reads;
  }
  std::vector<ValueId> writesAt(int32_t k, int32_t end) const {
    if (k >= end)
      return {};
    return linear.ops[linear.stages[k].variants.front()].writes;
  }
  /// A norm's result can be made from the sum before it: both are made by one
  /// kernel, and one is enough.
  std::vector<ValueId> withoutMade(std::vector<ValueId> crossing) const {
    if (crossing.size() > kMostCrossing)
      return crossing;
    auto isThere = [&](ValueId u) {
      return linear.madeAt[u] < begin || std::ranges::count(crossing, u);
    };
    for (size_t i = crossing.size(); i-- > 0;)
      for (OpId o : linear.recomputes[crossing[i]]) {
        const std::vector<ValueId> &reads = linear.ops[o].reads;
        if (!std::ranges::count(reads, crossing[i]) &&
            std::ranges::all_of(reads, isThere) &&
            std::ranges::any_of(
                reads, [&](ValueId u) { return linear.madeAt[u] >= begin; })) {
          crossing.erase(crossing.begin() + ptrdiff_t(i));
          break;
        }
      }
    return crossing;
  }

  const LinearProblem &linear;
  const int32_t begin;
  std::vector<int32_t> lastRead; // Forward stages, per value.
  std::vector<int64_t> bytes;
};

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
  Schedule schedule(linear, limit);
  for (Stretch of : segmentStretches(linear)) {
    const int32_t turn = turningPoint(all, of);
    const std::vector<std::vector<int32_t>> cuts =
        repeatedBlocks(linear, crossingForward(linear, turn), of.begin);
    if (!cuts.empty())
      addCheckpoints(linear, partsOf(cuts.front(), of.begin, turn), of,
                     /*blocks=*/true, schedule);
  }
  return rematPlanOf(linear, schedule);
}

std::vector<std::vector<ValueId>>
tmc::planning::blockInputs(const LinearProblem &linear, Stretch of,
                           int32_t turn) {
  const Cuts cuts(linear, of.begin, turn);
  std::vector<std::vector<ValueId>> inputs;
  const std::vector<std::vector<int32_t>> starts =
      repeatedBlocks(linear, cuts.crossingBytes(), of.begin);
  if (!starts.empty())
    for (int32_t k : starts.front())
      inputs.push_back(cuts.at(k));
  return inputs;
}
