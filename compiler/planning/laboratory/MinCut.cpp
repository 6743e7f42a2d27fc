#include "compiler/planning/laboratory/MinCut.h"

#include "compiler/planning/search/Checkpoint.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>

using namespace tmc::planning;

namespace {

constexpr int64_t kInfinite = std::numeric_limits<int64_t>::max() / 4;
/// Up to this many items the knapsack is exact, except for rounding.
constexpr size_t kExactItems = 4096;
constexpr int32_t kKnapsackUnits = 1000;
/// An operation is expensive if its cost per byte is more than this many times
/// the lower quartile. 0: every operation with a cost.
constexpr double kExpensive[] = {4, 1, 0};
constexpr int32_t kMostRatios = 51, kFewestRatios = 6;

/// A network of directed edges; each edge is stored next to its reverse.
class Network {
public:
  explicit Network(size_t nodes) : out(nodes) {}

  void add(int32_t from, int32_t to, int64_t capacity) {
    out[from].push_back(int32_t(edges.size()));
    edges.push_back({to, capacity});
    out[to].push_back(int32_t(edges.size()));
    edges.push_back({from, 0});
  }

  /// Dinic's algorithm: shortest augmenting paths, all of one length at once.
  void saturate(int32_t source, int32_t sink) {
    while (findLevels(source, sink)) {
      next.assign(out.size(), 0);
      while (augment(source, sink)) {
      }
    }
  }
  /// After `saturate`: whether the source still reaches the node.
  bool isReached(int32_t node) const { return level[node] >= 0; }

private:
  struct Edge {
    int32_t to;
    int64_t room;
  };

  bool findLevels(int32_t source, int32_t sink) {
    level.assign(out.size(), -1);
    level[source] = 0;
    std::vector<int32_t> queue = {source};
    for (size_t i = 0; i < queue.size(); ++i)
      for (int32_t e : out[queue[i]])
        if (edges[e].room > 0 && level[edges[e].to] < 0) {
          level[edges[e].to] = level[queue[i]] + 1;
          queue.push_back(edges[e].to);
        }
    return level[sink] >= 0;
  }

  /// Finds one path along the levels; without recursion, because graphs are
  /// deep.
  bool augment(int32_t source, int32_t sink) {
    std::vector<int32_t> path;
    int32_t at = source;
    while (at != sink) {
      bool found = false;
      for (size_t &i = next[at]; i < out[at].size(); ++i) {
        const Edge &edge = edges[out[at][i]];
        if (edge.room > 0 && level[edge.to] == level[at] + 1) {
          path.push_back(out[at][i]);
          at = edge.to;
          found = true;
          break;
        }
      }
      if (found)
        continue;
      if (path.empty())
        return false;
      at = edges[path.back() ^ 1].to;
      path.pop_back();
      ++next[at];
    }
    int64_t amount = kInfinite;
    for (int32_t e : path)
      amount = std::min(amount, edges[e].room);
    for (int32_t e : path) {
      edges[e].room -= amount;
      edges[e ^ 1].room += amount;
    }
    return true;
  }

  std::vector<std::vector<int32_t>> out;
  std::vector<Edge> edges;
  std::vector<int32_t> level;
  std::vector<size_t> next;
};

bool isForward(const LinearProblem &linear, ValueId v, int32_t turn) {
  return linear.madeAt[v] >= 0 && linear.madeAt[v] < turn;
}

/// Made without inputs: like a batch, it can't be recomputed.
bool isInput(const Problem &problem, const LinearProblem &linear, ValueId v) {
  return !linear.recomputes[v].empty() &&
         problem.recipes[linear.ops[linear.recomputes[v].front()].recipe]
             .reads.empty();
}

/// Marks values whose recomputation costs more than `times` x (cost per byte of
/// the lower quartile, which runs at memory bandwidth). One flag per value.
std::vector<char> expensiveValues(const LinearProblem &linear, int32_t turn,
                                  double times) {
  auto perByte = [&](const LinearOp &op) {
    int64_t bytes = op.writtenBytes;
    for (ValueId v : op.reads)
      bytes += linear.bytes[v];
    return double(op.cost) / double(std::max<int64_t>(bytes, 1));
  };
  std::vector<double> all;
  for (int32_t k = 0; k < turn; ++k)
    if (const LinearOp &op = linear.ops[linear.stages[k].variants.front()];
        op.recipe != kNone)
      all.push_back(perByte(op));
  std::sort(all.begin(), all.end());
  std::vector<char> expensive(linear.bytes.size(), 0);
  if (all.empty())
    return expensive;
  for (ValueId v = 0; v < ValueId(expensive.size()); ++v)
    if (isForward(linear, v, turn) && !linear.recomputes[v].empty())
      expensive[v] = perByte(linear.ops[linear.recomputes[v].front()]) >
                     times * all[all.size() / 4];
  return expensive;
}

/// Holds all saved values. Other forward values that backward stages read are
/// computed once, with their missing inputs, where they are first read.
Schedule backward(const LinearProblem &linear, int32_t turn, int64_t limit,
                  const std::vector<char> &saved) {
  Schedule schedule(linear, limit);
  std::vector<char> there = saved;
  for (ValueId v = 0; v < ValueId(there.size()); ++v)
    there[v] |= !isForward(linear, v, turn) || linear.recomputes[v].empty();
  std::vector<ValueId> open;
  for (int32_t k = turn; k < int32_t(linear.stages.size()); ++k) {
    open = linear.ops[linear.stages[k].variants.front()].reads;
    while (!open.empty()) {
      ValueId v = open.back();
      open.pop_back();
      if (there[v])
        continue;
      OpId o = linear.recomputes[v].front();
      for (ValueId w : linear.ops[o].writes)
        there[w] = 1;
      if (!schedule.canInsert(o, k))
        continue; // Hold v instead.
      schedule.insert(o, k);
      for (ValueId u : linear.ops[o].reads)
        open.push_back(u);
    }
  }
  return schedule;
}

} // namespace

std::vector<char> tmc::planning::minimumCut(const Problem &problem,
                                            const LinearProblem &linear,
                                            int32_t turn,
                                            const std::vector<char> &banned) {
  int32_t n = int32_t(linear.bytes.size()), source = 2 * n, sink = 2 * n + 1;
  Network network(size_t(n) * 2 + 2);
  for (ValueId v = 0; v < n; ++v) {
    if (!isForward(linear, v, turn))
      continue;
    network.add(2 * v, 2 * v + 1, linear.bytes[v]);
    if (banned[v] || linear.recomputes[v].empty() ||
        isInput(problem, linear, v)) {
      network.add(source, 2 * v, kInfinite);
      continue;
    }
    for (ValueId u : linear.ops[linear.recomputes[v].front()].reads)
      if (isForward(linear, u, turn))
        network.add(2 * u + 1, 2 * v, kInfinite);
  }
  std::vector<char> read(linear.bytes.size(), 0);
  for (size_t k = size_t(turn); k < linear.stages.size(); ++k)
    for (ValueId v : linear.ops[linear.stages[k].variants.front()].reads)
      read[v] = 1;
  for (ValueId v = 0; v < n; ++v)
    if (read[v] && isForward(linear, v, turn))
      network.add(2 * v + 1, sink, kInfinite);
  network.saturate(source, sink);
  std::vector<char> saved(linear.bytes.size(), 0);
  for (ValueId v = 0; v < n; ++v)
    saved[v] = isForward(linear, v, turn) && network.isReached(2 * v) &&
               !network.isReached(2 * v + 1);
  return saved;
}

std::vector<char> tmc::planning::knapsack(const std::vector<int64_t> &sizes,
                                          const std::vector<int64_t> &worth,
                                          int64_t capacity) {
  size_t n = sizes.size();
  std::vector<char> taken(n, 0);
  if (n > kExactItems) {
    std::vector<size_t> order(n);
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
      return double(worth[a]) * double(sizes[b]) >
             double(worth[b]) * double(sizes[a]);
    });
    for (size_t i : order)
      if (sizes[i] <= capacity) {
        taken[i] = 1;
        capacity -= sizes[i];
      }
    return taken;
  }
  // best[u]: the largest worth in u units with the items so far.
  auto units = [&](size_t i) {
    return capacity <= 0 ? (sizes[i] > 0 ? kKnapsackUnits + 1.0 : 0.0)
                         : double(sizes[i]) / double(capacity) * kKnapsackUnits;
  };
  std::vector<int64_t> best(kKnapsackUnits + 1, 0);
  std::vector<std::vector<char>> with(n);
  auto whole = [&](size_t i) {
    double exact = std::min(units(i), kKnapsackUnits + 1.0);
    int32_t down = int32_t(exact);
    return down + (exact > down);
  };
  for (size_t i = 0; i < n; ++i) {
    with[i].assign(kKnapsackUnits + 1, 0);
    int32_t size = whole(i);
    for (int32_t u = kKnapsackUnits; u >= size; --u)
      if (best[u - size] + worth[i] > best[u]) {
        best[u] = best[u - size] + worth[i];
        with[i][u] = 1;
      }
  }
  int32_t left = kKnapsackUnits;
  for (size_t i = n; i-- > 0;)
    if (with[i][left]) {
      taken[i] = 1;
      left -= whole(i);
    }
  return taken;
}

absl::StatusOr<Solution> tmc::planning::planMinCut(const Problem &problem,
                                                   const PlanRequest &request) {
  LinearProblem linear = linearize(problem);
  int32_t turn = turningPoint(crossing(linear));
  int64_t limit = liveLimit(problem, linear, request.budgetBytes);
  int32_t ratios = int32_t(std::clamp<int64_t>(
      100'000 / int64_t(linear.stages.size() + 1), kFewestRatios, kMostRatios));
  std::optional<Schedule> best;
  auto offer = [&](const std::vector<char> &saved) {
    Schedule schedule = backward(linear, turn, limit, saved);
    auto rank = [](const Schedule &s) {
      return s.excess() == 0 ? std::tuple<int, int64_t, int64_t>(0, s.cost(), 0)
                             : std::tuple<int, int64_t, int64_t>(
                                   1, s.peakBytes(), s.cost());
    };
    if (!best || rank(schedule) < rank(*best))
      best.emplace(std::move(schedule));
  };
  for (double times : kExpensive) {
    std::vector<char> expensive = expensiveValues(linear, turn, times);
    std::vector<char> saved = minimumCut(problem, linear, turn, expensive);
    offer(saved);
    std::vector<ValueId> items;
    std::vector<int64_t> sizes, worth;
    int64_t room = 0; // Bytes the cut saves, inputs left out.
    for (ValueId v = 0; v < ValueId(expensive.size()); ++v) {
      room += saved[v] && !isInput(problem, linear, v) ? linear.bytes[v] : 0;
      if (expensive[v] && !isInput(problem, linear, v)) {
        items.push_back(v);
        sizes.push_back(linear.bytes[v]);
        worth.push_back(linear.ops[linear.recomputes[v].front()].cost);
      }
    }
    std::vector<char> before = expensive;
    for (int32_t i = 1; i < ratios; ++i) {
      double ratio = 1 - double(i) / (ratios - 1);
      std::vector<char> taken =
          knapsack(sizes, worth, int64_t(ratio * double(room)));
      std::vector<char> banned(expensive.size(), 0);
      for (size_t j = 0; j < items.size(); ++j)
        banned[items[j]] = taken[j];
      if (banned != before)
        offer(minimumCut(problem, linear, turn, banned));
      before = std::move(banned);
    }
  }
  return best->toSolution(problem);
}
