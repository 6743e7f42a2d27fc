#include "compiler/planning/search/Construct.h"

#include <algorithm>
#include <cmath>
#include <limits>

using namespace tmc::planning;

namespace {

/// Counted work of a visit of a value, and of a moment or edge of the profile;
/// edges counted for one recomputation.
constexpr int64_t kVisitWork = 20, kMomentWork = 8, kCloneEdges = 8;
/// Prices move by this part of their sum, and by less in each round; the sum
/// used as the scale falls by at most a tenth per round.
constexpr double kFirstStep = 0.5, kStepFall = 0.95, kLeastStep = 0.02;
constexpr double kScaleFall = 0.9;
/// The least price, for problems where nothing costs anything.
constexpr double kLeastPrice = 1e-12;

class Pass {
public:
  Pass(const LinearProblem &linear, const std::vector<double> &prices,
       const Reach &reach)
      : linear(linear), reach(reach) {
    size_t n = linear.stages.size(), values = linear.bytes.size();
    upTo.assign(n + 1, 0);
    for (size_t k = 0; k < n; ++k)
      upTo[k + 1] = upTo[k] + prices[k];
    last.assign(values, -1);
    memo.assign(values, {-1, 0, kNone});
    timeline = timelineOf(linear, ownExecutions(linear));
    instance.assign(values, kNone);
    for (size_t i = 0; i < timeline.instances.size(); ++i)
      instance[timeline.instances[i].value] = int32_t(i);
    nextUse.assign(values, 0);
    credit.assign(values, std::numeric_limits<double>::infinity());
    for (size_t v = 0; v < values; ++v)
      for (OpId o : linear.recomputes[v])
        credit[v] =
            std::min(credit[v], reach.credit * double(linear.ops[o].cost));
  }

  std::vector<Schedule::Clone> run() {
    for (int32_t k = 0; k < int32_t(linear.stages.size()); ++k) {
      const LinearOp &op = linear.ops[linear.stages[k].variants.front()];
      // Inputs in memory already must not count as missing for the other
      // inputs.
      for (ValueId v : op.reads) {
        visits = 0;
        fetch(v, k);
        allVisits += visits + 1;
      }
      for (ValueId v : op.reads)
        if (std::span<const int32_t> uses = usesOf(v);
            nextUse[v] < int32_t(uses.size()) && uses[nextUse[v]] == k)
          ++nextUse[v];
      for (ValueId v : op.writes)
        last[v] = k;
    }
    return std::move(clones);
  }

  int64_t allVisits = 0;

private:
  struct Memo {
    int32_t stage;
    double cost;
    OpId op; // kNone: extend.
  };

  /// Stages that read v.
  std::span<const int32_t> usesOf(ValueId v) const {
    return instance[v] == kNone ? std::span<const int32_t>()
                                : timeline.usesOf(instance[v]);
  }
  double held(ValueId v, int32_t from, int32_t to) const {
    return from + 1 < to ? double(linear.bytes[v]) * (upTo[to] - upTo[from + 1])
                         : 0;
  }
  /// The least cost of v's next own use, if v is last alive at `from`.
  double ahead(ValueId v, int32_t from, int32_t now) const {
    std::span<const int32_t> uses = usesOf(v);
    size_t at = size_t(nextUse[v]);
    while (at < uses.size() && uses[at] <= now)
      ++at;
    if (at == uses.size())
      return 0;
    return std::min(held(v, from, uses[at]),
                    credit[v] * double(linear.stages[uses[at]].trips));
  }

  const Memo &price(ValueId v, int32_t s, int depth) {
    Memo &m = memo[v];
    if (last[v] == s)
      m = {s, 0, kNone};
    if (m.stage == s)
      return m;
    double best = held(v, last[v], s);
    OpId choice = kNone;
    m = {s, best, kNone}; // Also the result for a cycle of recipes.
    if (best > 0 && depth < reach.depth && ++visits < reach.visits)
      for (OpId o : linear.recomputes[v]) {
        const LinearOp &op = linear.ops[o];
        if (!op.mayRecomputeAt(s))
          continue;
        double cost = double(op.cost) * double(linear.stages[s].trips);
        for (ValueId u : op.reads) {
          if (cost >= best)
            break;
          if (last[u] == s)
            continue;
          cost += price(u, s, depth + 1).cost + ahead(u, s, s) -
                  ahead(u, last[u], s);
        }
        if (cost < best)
          best = cost, choice = o;
      }
    memo[v] = {s, best, choice};
    return memo[v];
  }

  void fetch(ValueId v, int32_t s) {
    if (last[v] == s)
      return;
    if (OpId o = price(v, s, 0).op; o != kNone) {
      // Inputs first. One of their recipes may have several results and make v
      // too.
      for (ValueId u : linear.ops[o].reads)
        fetch(u, s);
      if (last[v] != s) {
        clones.push_back({o, s});
        for (ValueId w : linear.ops[o].writes)
          last[w] = s;
      }
      return;
    }
    last[v] = s;
  }

  const LinearProblem &linear;
  const Reach &reach;
  std::vector<double> upTo;  // Prefix sums of prices.
  std::vector<int32_t> last; // Stage at which a value was last alive.
  std::vector<Memo> memo;
  Timeline timeline;             // With all values held.
  std::vector<int32_t> instance; // Per value: the latest, or kNone.
  std::vector<int32_t> nextUse;  // Per value, index into its uses.
  std::vector<double> credit;    // Per value: the most for its next use.
  std::vector<Schedule::Clone> clones;
  int32_t visits = 0;
};

} // namespace

std::vector<Schedule::Clone>
tmc::planning::construct(const LinearProblem &linear,
                         const std::vector<double> &prices, const Reach &reach,
                         int64_t &work) {
  Pass pass(linear, prices, reach);
  std::vector<Schedule::Clone> clones = pass.run();
  work += kVisitWork * pass.allVisits;
  return clones;
}

std::vector<int64_t>
tmc::planning::liveOf(const LinearProblem &linear,
                      std::vector<Schedule::Clone> clones) {
  std::sort(clones.begin(), clones.end(),
            [&](const Schedule::Clone &a, const Schedule::Clone &b) {
              return a.stage != b.stage
                         ? a.stage < b.stage
                         : linear.ops[a.op].rank < linear.ops[b.op].rank;
            });
  size_t n = linear.stages.size(), c = 0;
  std::vector<OpId> sequence;
  std::vector<int32_t> stageAt; // Per moment.
  for (int32_t k = 0; k < int32_t(n); ++k) {
    for (; c < clones.size() && clones[c].stage == k; ++c) {
      sequence.push_back(clones[c].op);
      stageAt.push_back(k);
    }
    sequence.push_back(linear.stages[k].variants.front());
    stageAt.push_back(k);
  }
  Timeline timeline = timelineOf(linear, sequence, /*countUses=*/false);
  std::vector<int64_t> bytes = timeline.liveBytes(linear.bytes);
  std::vector<int64_t> live(n, 0);
  std::vector<int32_t> death(linear.bytes.size(), -1); // Moment, so far.
  for (int32_t t = 0; t < int32_t(sequence.size()); ++t) {
    const LinearOp &op = linear.ops[sequence[t]];
    int64_t saved = 0;
    if (!op.overwrites.empty()) {
      for (size_t i = 0; i < op.reads.size(); ++i)
        if (timeline.diesAt(timeline.readsAt(t)[i], t))
          death[op.reads[i]] = t;
      saved = savedByOverwrites(op, [&](ValueId v) { return death[v] == t; });
    }
    int64_t &most = live[stageAt[t]];
    most = std::max(most, bytes[t] - saved + op.workspaceBytes);
  }
  return live;
}

RematPlan tmc::planning::constructWithin(const LinearProblem &linear,
                                         int64_t limitBytes,
                                         std::vector<double> prices,
                                         const ConstructOptions &options,
                                         int64_t &work) {
  size_t n = linear.stages.size();
  RematPlan best;
  double bestExcess = std::numeric_limits<double>::infinity();
  double scale = 0;
  for (double p : prices)
    scale += p;
  if (!(scale > 0)) {
    // Without start prices: mean cost of an operation per mean bytes of a
    // moment.
    double cost = 0, bytes = 0;
    for (const LinearOp &op : linear.ops)
      cost += double(op.cost), bytes += double(op.writtenBytes);
    scale = bytes > 0 ? cost / bytes + kLeastPrice : 1;
  }
  double step = kFirstStep;
  int64_t endWork = work + options.work;
  int64_t edges = 0;
  for (const LinearOp &op : linear.ops)
    edges += int64_t(op.reads.size() + op.writes.size());
  for (int round = 0; round < options.rounds; ++round) {
    if ((options.stop && options.stop()) || work > endWork)
      break;
    std::vector<Schedule::Clone> clones =
        construct(linear, prices, options.reach, work);
    std::vector<int64_t> live = liveOf(linear, clones);
    work += kMomentWork *
            (int64_t(n) + edges + int64_t(clones.size()) * kCloneEdges);
    int64_t cost = 0;
    for (const Schedule::Clone &c : clones)
      cost += linear.ops[c.op].cost * linear.stages[c.stage].trips;
    double excess = 0, size = 0;
    for (size_t k = 0; k < n; ++k) {
      double over = double(live[k] - limitBytes);
      excess += std::max(over, 0.0);
      if (over < 0 && prices[k] <= 0)
        continue;
      size += std::abs(over);
    }
    bool feasible = excess <= 0;
    if (feasible ? !best.feasible || cost < best.cost
                 : !best.feasible && excess < bestExcess) {
      best.clones = std::move(clones);
      best.cost = cost;
      best.feasible = feasible;
      bestExcess = excess;
    }
    if (size <= 0)
      break;
    // All price changes together are `step` times the sum of prices.
    double length = step * scale / size;
    double sum = 0;
    for (size_t k = 0; k < n; ++k) {
      prices[k] =
          std::max(0.0, prices[k] + length * double(live[k] - limitBytes));
      sum += prices[k];
    }
    scale = std::max(scale * kScaleFall, sum);
    step = std::max(step * kStepFall, kLeastStep);
  }
  return best;
}
