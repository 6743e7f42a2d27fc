#include "compiler/planning/Baselines.h"

#include "compiler/planning/Schedule.h"

#include <algorithm>
#include <limits>
#include <optional>

using namespace tmc::planning;

namespace {

/// Bytes alive across the boundary before each stage when all is kept.
std::vector<int64_t> crossing(const Flat &flat) {
  size_t n = flat.stages.size();
  std::vector<int64_t> delta(n + 2, 0);
  std::vector<int32_t> last(flat.bytes.size(), -1);
  for (size_t k = 0; k < n; ++k)
    for (ValueId v : flat.ops[flat.stages[k].mains.front()].reads)
      last[v] = int32_t(k);
  for (size_t v = 0; v < last.size(); ++v)
    if (flat.madeAt[v] >= 0 && last[v] > flat.madeAt[v]) {
      delta[flat.madeAt[v] + 1] += flat.bytes[v];
      delta[last[v] + 1] -= flat.bytes[v];
    }
  std::vector<int64_t> out(n + 1, 0);
  for (size_t k = 0; k <= n; ++k)
    out[k] = (k ? out[k - 1] : 0) + delta[k];
  return out;
}

/// The forward part ends where the most is alive.
int32_t turningPoint(const std::vector<int64_t> &across) {
  return int32_t(std::max_element(across.begin(), across.end()) -
                 across.begin());
}

/// Keeps what leads from one part to a later one of the forward stages; all
/// else that is used beyond its own part is computed again, a part at a time,
/// where its first value is needed.
Schedule checkpointed(const Flat &flat, const std::vector<int32_t> &partOf,
                      int64_t limit) {
  int32_t turn = int32_t(partOf.size());
  std::vector<char> kept(flat.bytes.size(), 0);
  for (size_t v = 0; v < flat.bytes.size(); ++v) {
    kept[v] = flat.madeAt[v] < 0 || flat.madeAt[v] >= turn ||
              flat.recomputes[v].empty();
  }
  for (int32_t k = 0; k < turn; ++k)
    for (ValueId v : flat.ops[flat.stages[k].mains.front()].reads)
      if (flat.madeAt[v] >= 0 && partOf[flat.madeAt[v]] != partOf[k])
        kept[v] = 1;
  Schedule schedule(flat, limit);
  std::vector<char> back(turn ? size_t(partOf.back()) + 1 : 0, 0);
  for (int32_t k = turn; k < int32_t(flat.stages.size()); ++k)
    for (ValueId v : flat.ops[flat.stages[k].mains.front()].reads) {
      if (kept[v] || back[partOf[flat.madeAt[v]]])
        continue;
      int32_t part = partOf[flat.madeAt[v]];
      back[part] = 1;
      int32_t first =
          int32_t(std::lower_bound(partOf.begin(), partOf.end(), part) -
                  partOf.begin());
      for (int32_t j = first; j < turn && partOf[j] == part; ++j) {
        OpId o = flat.stages[j].mains.front();
        bool wanted = false;
        for (ValueId w : flat.ops[o].writes)
          wanted |= !kept[w];
        if (wanted && schedule.canInsert(o, k))
          schedule.insert(o, k);
      }
    }
  // What nobody reads needn't have been made.
  for (bool again = true; again;) {
    again = false;
    std::vector<Schedule::Clone> clones = schedule.clones();
    for (const Schedule::Clone &c : clones)
      if (schedule.isUseless(c.op, c.stage)) {
        schedule.erase(c.op, c.stage);
        again = true;
      }
  }
  return schedule;
}

int64_t limitOf(const Problem &problem, const SolveOptions &options,
                const Flat &flat) {
  int64_t budget = options.budgetBytes < 0
                       ? std::numeric_limits<int64_t>::max() / 4
                       : options.budgetBytes;
  return budget - problem.reservedBytes - flat.constantBytes;
}

} // namespace

Plain tmc::planning::checkpoint(const Flat &flat, int64_t limit) {
  std::vector<int64_t> across = crossing(flat);
  int32_t turn = turningPoint(across);
  std::optional<Schedule> best;
  for (double parts = 1; parts <= turn; parts *= 1.41421356) {
    std::vector<int32_t> partOf(turn);
    int32_t part = 0, since = 0;
    int32_t length = std::max(1, int32_t(turn / parts));
    for (int32_t k = 0; k < turn; ++k) {
      // Near the end of its length a part ends where least crosses.
      int32_t from = since + length - length / 4,
              to = std::min(turn, since + length + length / 4 + 1);
      if (k > since && k >= from && k < to &&
          k == int32_t(std::min_element(across.begin() + from,
                                        across.begin() + to) -
                       across.begin()))
        ++part, since = k;
      partOf[k] = part;
    }
    Schedule schedule = checkpointed(flat, partOf, limit);
    bool fits = schedule.excess() == 0, fitted = best && best->excess() == 0;
    if (!best || (fits && (!fitted || schedule.cost() < best->cost())) ||
        (!fits && !fitted && schedule.excess() < best->excess()))
      best.emplace(std::move(schedule));
  }
  return best ? plainOf(flat, *best) : Plain{};
}

absl::StatusOr<Solution> tmc::planning::planSqrt(const Problem &problem,
                                                 const SolveOptions &options) {
  Flat flat = flatten(problem);
  Schedule schedule(flat, limitOf(problem, options, flat));
  restore(flat, schedule, checkpoint(flat, schedule.limit()));
  return schedule.toSolution(problem);
}

absl::StatusOr<Solution>
tmc::planning::planBlocks(const Problem &problem, const SolveOptions &options) {
  Flat flat = flatten(problem);
  int64_t limit = limitOf(problem, options, flat);
  int32_t turn = turningPoint(crossing(flat));
  // Bytes that cross for the sake of the forward part alone; a boundary with
  // fewer than both its neighbours' surroundings is the end of a block.
  std::vector<int64_t> across(turn + 1, 0);
  for (size_t v = 0; v < flat.bytes.size(); ++v) {
    int32_t last = -1;
    if (flat.madeAt[v] < 0 || flat.madeAt[v] >= turn)
      continue;
    for (int32_t k = flat.madeAt[v] + 1;
         k < std::min(turn, flat.madeAt[v] + 4096); ++k)
      for (ValueId r : flat.ops[flat.stages[k].mains.front()].reads)
        if (r == ValueId(v))
          last = k;
    for (int32_t k = flat.madeAt[v] + 1; k <= last; ++k)
      across[k] += flat.bytes[v];
  }
  std::vector<int64_t> sorted(across.begin() + std::min(turn, 1), across.end());
  std::sort(sorted.begin(), sorted.end());
  int64_t least = sorted.empty() ? 0 : sorted[sorted.size() / 10];
  std::vector<int32_t> partOf(turn);
  int32_t part = 0;
  for (int32_t k = 0; k < turn; ++k) {
    part += k > 1 && across[k] <= least && across[k - 1] > across[k];
    partOf[k] = part;
  }
  return checkpointed(flat, partOf, limit).toSolution(problem);
}

absl::StatusOr<Solution>
tmc::planning::planGreedy(const Problem &problem, const SolveOptions &options) {
  Flat flat = flatten(problem);
  Schedule schedule(flat, limitOf(problem, options, flat));
  for (int32_t k = 0; k < int32_t(flat.stages.size()) && schedule.excess() > 0;
       ++k) {
    for (int tries = 0;
         tries < 1000 && schedule.liveAtMain(k) > schedule.limit(); ++tries) {
      double bestScore = 0;
      OpId bestOp = kNone;
      int32_t bestStage = 0;
      for (ValueId v = 0; v < ValueId(flat.bytes.size()); ++v) {
        if (flat.recomputes[v].empty() || flat.madeAt[v] >= k)
          continue;
        const std::vector<Key> &uses = schedule.uses(v);
        auto next = std::lower_bound(uses.begin(), uses.end(), keyOf(k, 0));
        if (next == uses.end() || stageOf(*next) <= k)
          continue;
        OpId op = flat.recomputes[v].front();
        int32_t stage = stageOf(*next);
        if (!schedule.canInsert(op, stage))
          continue;
        double score = double(flat.bytes[v]) / double(flat.ops[op].cost + 1);
        if (score <= bestScore)
          continue;
        // XLA only asks that its operands are alive there anyway.
        bool there = true;
        for (ValueId u : flat.ops[op].reads) {
          int32_t i =
              schedule.instanceBefore(u, keyOf(stage, flat.ops[op].rank));
          there &= i >= 0 && stageOf(schedule.instances(u)[i].last) >= k;
        }
        if (there)
          bestScore = score, bestOp = op, bestStage = stage;
      }
      if (bestOp == kNone)
        break;
      schedule.insert(bestOp, bestStage);
    }
  }
  return schedule.toSolution(problem);
}
