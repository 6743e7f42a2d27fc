#include "compiler/planning/search/CostToGo.h"

#include <limits>

using namespace tmc::planning;

static constexpr double kNever = std::numeric_limits<double>::infinity();

CostToGo::CostToGo(const LinearProblem &linear, int64_t limit,
                   const std::vector<double> &prices)
    : linear(linear), n(int32_t(linear.stages.size())),
      words((linear.bytes.size() + 63) / 64), useful(linear.bytes.size(), -1),
      uses(linear.bytes.size()), recomputeCost(linear.bytes.size(), kNever),
      inputs(linear.bytes.size()), wanted(size_t(n) + 1),
      rest(size_t(n) + 1, 0), seen(words) {
  for (int32_t k = 0; k < n; ++k) {
    const std::vector<OpId> &variants = linear.stages[k].variants;
    for (OpId o : variants)
      for (ValueId v : linear.ops[o].reads) {
        useful[v] = k;
        bool always = o == variants.front();
        for (OpId other : variants)
          always &= std::ranges::count(linear.ops[other].reads, v) > 0;
        if (always)
          uses[v].push_back(k);
      }
  }
  // An input is of use as long as the values made from it are.
  for (bool grew = true; grew;) {
    grew = false;
    for (const LinearOp &op : linear.ops)
      for (ValueId w : op.writes)
        for (ValueId v : op.reads)
          if (int32_t until = std::min(op.lastStage, useful[w]);
              op.firstStage <= op.lastStage && until > useful[v]) {
            useful[v] = until;
            grew = true;
          }
  }
  int64_t leastTrips = std::numeric_limits<int64_t>::max();
  for (const LinearStage &stage : linear.stages)
    leastTrips = std::min(leastTrips, stage.trips);
  for (ValueId v = 0; v < ValueId(recomputeCost.size()); ++v)
    for (OpId o : linear.recomputes[v]) {
      const LinearOp &op = linear.ops[o];
      double share = op.writes.size() == 1 || op.writtenBytes == 0
                         ? 1.0 / double(op.writes.size())
                         : double(linear.bytes[v]) / double(op.writtenBytes);
      recomputeCost[v] = std::min(recomputeCost[v],
                                  double(op.cost) * share * double(leastTrips));
      if (o == linear.recomputes[v].front())
        inputs[v] = op.reads;
      else // Keep only inputs that every recipe needs.
        std::erase_if(inputs[v], [&](ValueId u) {
          return std::find(op.reads.begin(), op.reads.end(), u) ==
                 op.reads.end();
        });
    }
  std::vector<double> upTo(size_t(n) + 1, 0);
  for (int32_t k = 0; k < n; ++k)
    upTo[k + 1] = upTo[k] + prices[k];
  auto held = [&](ValueId v, int32_t from, int32_t to) {
    return std::min(recomputeCost[v],
                    double(linear.bytes[v]) * (upTo[to] - upTo[from]));
  };
  for (int32_t k = 0; k < n; ++k) {
    double most = -kNever;
    for (OpId o : linear.stages[k].variants) {
      const LinearOp &op = linear.ops[o];
      double room = double(limit - op.writtenBytes - op.workspaceBytes);
      for (ValueId v : op.reads)
        room -= double(linear.bytes[v]);
      for (const LinearOverwrite &w : op.overwrites)
        room += double(std::min(linear.bytes[w.read], linear.bytes[w.written]));
      most = std::max(most, room);
    }
    rest[k] = -prices[k] * most;
  }
  for (ValueId v = 0; v < ValueId(uses.size()); ++v)
    if (int32_t from = linear.madeAt[v]; from >= 0)
      for (int32_t use : uses[v]) {
        rest[from] += held(v, from + 1, use);
        for (int32_t k = from + 1; k <= use; ++k)
          wanted[k].push_back({v, held(v, k, use)});
        from = use;
      }
  for (int32_t k = n; k-- > 0;)
    rest[k] += rest[k + 1];
}

double CostToGo::bound(const Word *set, int32_t stage, Word *toMake) {
  double sum = rest[stage];
  stack.clear();
  std::fill(seen.begin(), seen.end(), 0);
  for (const Wanted &w : wanted[stage])
    if (contains(set, w.value)) {
      sum += w.held;
    } else {
      sum += recomputeCost[w.value];
      add(seen.data(), w.value);
      stack.push_back(w.value);
    }
  steps += int64_t(wanted[stage].size()) + 4;
  while (!stack.empty()) {
    ValueId v = stack.back();
    stack.pop_back();
    steps += 2 + int64_t(inputs[v].size());
    for (ValueId u : inputs[v])
      if (!contains(set, u) && !contains(seen.data(), u)) {
        add(seen.data(), u);
        sum += recomputeCost[u];
        stack.push_back(u);
      }
  }
  if (toMake)
    std::copy(seen.begin(), seen.end(), toMake);
  return sum;
}
