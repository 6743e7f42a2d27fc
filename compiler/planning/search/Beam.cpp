#include "compiler/planning/search/Beam.h"

#include "compiler/planning/search/CostToGo.h"

#include <algorithm>
#include <queue>
#include <tuple>
#include <unordered_map>

using namespace tmc::planning;

static bool isIn(const std::vector<ValueId> &list, ValueId v) {
  return std::find(list.begin(), list.end(), v) != list.end();
}

namespace {

/// States followed by the first beam, and the factor of the next beam's width.
constexpr size_t kFirstWidth = 16, kWider = 4;
/// Widths followed in a stage where the stage's own instruction can't run yet.
constexpr size_t kMostWidths = 40;
/// Most sets of evicted values that are looked at.
constexpr int kMostPicks = 500;
/// Counted work of a new state, and states between two looks at the work.
constexpr int64_t kStateWork = 40;
constexpr size_t kLookEvery = 64;
/// Costs are integers: a plan must be cheaper by one, less rounding of doubles.
constexpr double kLess = 0.5;

class Beam {
public:
  Beam(const LinearProblem &linear, int64_t limit, CostToGo &costToGo,
       const BeamOptions &options, size_t width, int64_t cheapest)
      : linear(linear), limit(limit), costToGo(costToGo), options(options),
        width(width), cheapest(cheapest), words(costToGo.words),
        scratch(words) {}

  /// Whether a plan was found.
  bool run(RematPlan &plan);
  /// Whether the beam left out states, so that a wider one may find more.
  bool narrow = false;

private:
  struct Node {
    int32_t parent; // Index into `trail`.
    OpId op;        // The operation that led here.
    int64_t cost;
    int64_t bytes;
    double total; // With the bound on the future cost.
  };
  struct Layer {
    std::vector<Node> nodes;
    std::vector<Word> sets;
    std::unordered_multimap<uint64_t, int32_t> byHash;
    void clear() {
      nodes.clear();
      sets.clear();
      byHash.clear();
    }
  };
  struct Step {
    int32_t parent;
    OpId op;
    int32_t stage;
  };
  struct EvictionSet { // One way to make room.
    double loss;
    std::vector<ValueId> leaving;
  };

  uint64_t hashOf(const Word *set) const {
    uint64_t h = 0;
    for (size_t i = 0; i < words; ++i) {
      h = (h ^ set[i]) * 0x9e3779b97f4a7c15;
      h ^= h >> 32;
    }
    return h;
  }
  /// Index of the new or improved node, or -1.
  int32_t put(Layer &layer, const Word *set, const Node &node);
  void expand(int32_t step, int32_t stage);
  void tryOp(OpId op, int32_t step, int32_t stage, bool own);
  void findEvictions(const LinearOp &op, int32_t stage, bool own, int64_t need);
  void pick(size_t from, int64_t need, double loss);
  bool isDominated(const Word *set, int64_t cost);
  RematPlan planOf(int32_t step);

  const LinearProblem &linear;
  int64_t limit;
  CostToGo &costToGo;
  const BeamOptions &options;
  size_t width;
  int64_t cheapest; // Cost of the cheapest known plan.
  size_t words;
  Layer now, next;
  std::vector<Step> trail;                 // Followed states.
  std::vector<Word> set, scratch, missing; // The current state.
  Node at;
  // States of this stage that were followed.
  std::vector<Word> followed;
  std::vector<int64_t> followedCost;
  struct EvictionCandidate {
    ValueId value;
    int64_t bytes;
    double loss, lossPerByte;
    int64_t left = 0; // Bytes of this candidate and all after it.
  };
  std::vector<EvictionCandidate> candidates;
  std::vector<size_t> picked;
  int64_t picksLeft = 0;
  std::vector<EvictionSet> evictions;
  std::vector<int32_t> fresh; // New nodes of this stage, not queued yet.
};

int32_t Beam::put(Layer &layer, const Word *set, const Node &node) {
  uint64_t hash = hashOf(set);
  auto [begin, end] = layer.byHash.equal_range(hash);
  for (auto it = begin; it != end; ++it)
    if (std::equal(set, set + words, &layer.sets[it->second * words])) {
      Node &old = layer.nodes[it->second];
      if (old.cost <= node.cost)
        return -1;
      old = node;
      return it->second;
    }
  int32_t index = int32_t(layer.nodes.size());
  layer.nodes.push_back(node);
  layer.sets.insert(layer.sets.end(), set, set + words);
  layer.byHash.insert({hash, index});
  return index;
}

bool Beam::isDominated(const Word *set, int64_t cost) {
  constexpr size_t kMostCompared = 400;
  size_t count = followedCost.size();
  for (size_t i = count; i-- > 0 && count - i <= kMostCompared;) {
    if (followedCost[i] > cost)
      continue;
    const Word *other = &followed[i * words];
    size_t w = 0;
    while (w < words && (set[w] & ~other[w]) == 0)
      ++w;
    costToGo.steps += 2;
    if (w == words)
      return true;
  }
  return false;
}

/// Adds values to `picked`, the cheapest per byte first, until `need` is met.
void Beam::pick(size_t from, int64_t need, double loss) {
  constexpr size_t kMostEvictions = 24;
  auto larger = [](const EvictionSet &a, const EvictionSet &b) {
    return a.loss < b.loss;
  };
  costToGo.steps += 2;
  --picksLeft;
  if (need <= 0) {
    for (size_t i : picked)
      if (candidates[i].bytes <= -need)
        return; // One value is superfluous.
    if (evictions.size() == kMostEvictions) {
      std::pop_heap(evictions.begin(), evictions.end(), larger);
      evictions.pop_back();
    }
    EvictionSet &room = evictions.emplace_back();
    room.loss = loss;
    for (size_t i : picked)
      room.leaving.push_back(candidates[i].value);
    std::push_heap(evictions.begin(), evictions.end(), larger);
    return;
  }
  for (size_t i = from; i < candidates.size() && candidates[i].left >= need;
       ++i) {
    // Each byte still needed costs at least this from here on.
    if (picksLeft <= 0 || (evictions.size() == kMostEvictions &&
                           loss + double(need) * candidates[i].lossPerByte >=
                               evictions.front().loss))
      return;
    picked.push_back(i);
    pick(i + 1, need - candidates[i].bytes, loss + candidates[i].loss);
    picked.pop_back();
  }
}

/// The cheapest ways to make room for `op` beside the current state.
void Beam::findEvictions(const LinearOp &op, int32_t stage, bool own,
                         int64_t need) {
  evictions.clear();
  if (need <= 0) {
    evictions.push_back({0, {}});
    return;
  }
  candidates.clear();
  double before = costToGo.bound(set.data(), stage);
  forEach(set.data(), words, [&](ValueId v) {
    int64_t bytes = linear.bytes[v];
    if (isIn(op.writes, v))
      return;
    if (isIn(op.reads, v)) { // It may still be overwritten.
      bytes = 0;
      for (const LinearOverwrite &o : op.overwrites)
        if (o.read == v && !(own && costToGo.useful[v] <= stage))
          bytes = std::min(linear.bytes[v], linear.bytes[o.written]);
    }
    if (bytes == 0)
      return;
    double loss = costToGo.loss(set.data(), v, stage, before);
    if (double(at.cost) + before + loss < double(cheapest) - kLess)
      candidates.push_back({v, bytes, loss, loss / double(bytes)});
  });
  std::sort(candidates.begin(), candidates.end(),
            [](const EvictionCandidate &a, const EvictionCandidate &b) {
              return std::tuple(a.lossPerByte, -a.bytes, a.value) <
                     std::tuple(b.lossPerByte, -b.bytes, b.value);
            });
  int64_t left = 0;
  for (size_t i = candidates.size(); i-- > 0;)
    candidates[i].left = left += candidates[i].bytes;
  picksLeft = kMostPicks;
  picked.clear();
  pick(0, need, 0);
}

void Beam::tryOp(OpId id, int32_t step, int32_t stage, bool own) {
  const LinearOp &op = linear.ops[id];
  int64_t bytes = at.bytes;
  for (ValueId v : op.reads)
    if (!contains(set.data(), v))
      return;
  for (ValueId v : op.writes)
    if (!contains(set.data(), v))
      bytes += linear.bytes[v];
  // Values without a later use may be overwritten here.
  auto isSpent = [&](ValueId v) { return own && costToGo.useful[v] <= stage; };
  int64_t need =
      bytes + op.workspaceBytes - savedByOverwrites(op, isSpent) - limit;
  findEvictions(op, stage, own, need);
  // The cost of an instruction is the cost of its recipe above the first one's.
  int64_t headroom =
      own ? linear.ops[linear.stages[stage].variants.front()].cost : int64_t(0);
  int64_t cost = at.cost + (op.cost - headroom) * linear.stages[stage].trips;
  for (const EvictionSet &room : evictions) {
    std::copy(set.begin(), set.end(), scratch.begin());
    Node node{step, id, cost, bytes, 0};
    for (ValueId v : room.leaving) {
      drop(scratch.data(), v);
      node.bytes -= linear.bytes[v];
    }
    auto leaves = [&](ValueId v) {
      return isSpent(v) || isIn(room.leaving, v);
    };
    if (!op.overwrites.empty() && need > 0) {
      int64_t alive = bytes + op.workspaceBytes - savedByOverwrites(op, leaves);
      for (ValueId v : room.leaving)
        if (!isIn(op.reads, v))
          alive -= linear.bytes[v];
      if (alive > limit)
        continue;
    }
    for (ValueId v : op.writes)
      add(scratch.data(), v);
    if (own)
      forEach(scratch.data(), words, [&](ValueId v) {
        if (costToGo.useful[v] <= stage) {
          drop(scratch.data(), v);
          node.bytes -= linear.bytes[v];
        }
      });
    node.total =
        double(cost) + costToGo.bound(scratch.data(), own ? stage + 1 : stage);
    if (node.total > double(cheapest) - kLess)
      continue;
    costToGo.steps += kStateWork;
    int32_t index = put(own ? next : now, scratch.data(), node);
    if (!own && index >= 0)
      fresh.push_back(index);
  }
}

/// Runs each operation that can run next in the current state.
void Beam::expand(int32_t step, int32_t stage) {
  fresh.clear();
  for (OpId o : linear.stages[stage].variants)
    tryOp(o, step, stage, true);
  // Values that the stage waits for, and the values that those wait for.
  std::vector<ValueId> wanted;
  std::vector<Word> seen(words, 0);
  auto want = [&](const std::vector<ValueId> &list) {
    for (ValueId v : list)
      if (!contains(set.data(), v) && !contains(seen.data(), v)) {
        add(seen.data(), v);
        wanted.push_back(v);
      }
  };
  for (OpId o : linear.stages[stage].variants)
    want(linear.ops[o].reads);
  for (size_t i = 0; i < wanted.size(); ++i)
    for (OpId o : linear.recomputes[wanted[i]])
      if (const LinearOp &op = linear.ops[o]; op.mayRecomputeAt(stage)) {
        want(op.reads);
        tryOp(o, step, stage, false);
      }
  // Values that can be made now from larger values held only for them.
  costToGo.bound(set.data(), stage, missing.data());
  forEach(missing.data(), words, [&](ValueId v) {
    if (contains(seen.data(), v))
      return;
    int32_t use = costToGo.nextUse(v, stage);
    for (OpId o : linear.recomputes[v]) {
      const LinearOp &op = linear.ops[o];
      if (!op.mayRecomputeAt(stage))
        continue;
      int64_t held = 0;
      for (ValueId u : op.reads)
        if (costToGo.nextUse(u, stage + 1) >= use)
          held += linear.bytes[u];
      if (held > linear.bytes[v])
        tryOp(o, step, stage, false);
    }
  });
}

bool Beam::run(RematPlan &plan) {
  int32_t n = costToGo.n;
  set.resize(words);
  missing.resize(words);
  next.clear();
  std::fill(scratch.begin(), scratch.end(), 0);
  put(next, scratch.data(), {-1, kNone, 0, 0, 0});
  for (int32_t stage = 0; stage < n; ++stage) {
    std::swap(now, next);
    next.clear();
    followed.clear();
    followedCost.clear();
    using Entry = std::tuple<double, int64_t, int32_t>;
    std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue;
    auto enqueue = [&](int32_t i) {
      queue.push({now.nodes[i].total, now.nodes[i].cost, i});
    };
    for (int32_t i = 0; i < int32_t(now.nodes.size()); ++i)
      enqueue(i);
    size_t count = 0;
    while (!queue.empty()) {
      // Follow more states while the stage's own instruction can't run yet.
      if (count >= width &&
          (next.nodes.size() >= width || count >= kMostWidths * width)) {
        narrow = true;
        break;
      }
      auto [total, cost, i] = queue.top();
      queue.pop();
      if (now.nodes[i].cost != cost)
        continue;
      at = now.nodes[i];
      std::copy_n(&now.sets[size_t(i) * words], words, set.begin());
      if (isDominated(set.data(), at.cost))
        continue;
      ++count;
      followed.insert(followed.end(), set.begin(), set.end());
      followedCost.push_back(at.cost);
      trail.push_back({at.parent, at.op, stage});
      expand(int32_t(trail.size()) - 1, stage);
      for (int32_t f : fresh)
        enqueue(f);
      if (count % kLookEvery == 0 &&
          (costToGo.steps > options.work || (options.stop && options.stop()))) {
        narrow = true;
        return false;
      }
    }
    if (next.nodes.empty())
      return false;
  }
  auto least = std::min_element(
      next.nodes.begin(), next.nodes.end(),
      [](const Node &a, const Node &b) { return a.cost < b.cost; });
  trail.push_back({least->parent, least->op, n});
  plan = planOf(int32_t(trail.size()) - 1);
  return true;
}

/// The executions that lead to a step, without those whose results aren't read.
RematPlan Beam::planOf(int32_t step) {
  RematPlan plan;
  plan.feasible = true;
  // Last execution first, with the values read later.
  std::vector<char> needed(linear.bytes.size(), 0);
  for (; step >= 0 && trail[step].op != kNone; step = trail[step].parent) {
    const LinearOp &op = linear.ops[trail[step].op];
    int32_t stage = trail[trail[step].parent].stage; // Where it ran.
    // An instruction's own execution leads to the stage after its own.
    bool own = stage != trail[step].stage;
    bool read = own;
    for (ValueId v : op.writes)
      read |= needed[v] != 0;
    if (!read)
      continue;
    for (ValueId v : op.writes)
      needed[v] = 0;
    for (ValueId v : op.reads)
      needed[v] = 1;
    const std::vector<OpId> &variants = linear.stages[stage].variants;
    int64_t trips = linear.stages[stage].trips;
    if (OpId o = trail[step].op; !own) {
      plan.sequence.push_back({o, stage});
      plan.cost += op.cost * trips;
    } else if (o != variants.front()) {
      plan.variants.push_back(
          {stage, int32_t(std::find(variants.begin(), variants.end(), o) -
                          variants.begin())});
      plan.cost += (op.cost - linear.ops[variants.front()].cost) * trips;
    }
  }
  std::reverse(plan.sequence.begin(), plan.sequence.end());
  std::reverse(plan.variants.begin(), plan.variants.end());
  return plan;
}

} // namespace

RematPlan tmc::planning::beam(const LinearProblem &linear, int64_t limitBytes,
                              const std::vector<double> &prices,
                              const BeamOptions &options, int64_t &work) {
  RematPlan out;
  CostToGo costToGo(linear, limitBytes, prices);
  int64_t cheapest = options.costBelow;
  for (size_t width = kFirstWidth; costToGo.steps < options.work;
       width *= kWider) {
    Beam search(linear, limitBytes, costToGo, options, width, cheapest);
    RematPlan found;
    if (search.run(found)) {
      cheapest = found.cost;
      out = std::move(found);
    }
    if (!search.narrow || (options.wantAny && out.feasible) ||
        (options.stop && options.stop()))
      break;
  }
  work += costToGo.steps;
  // A schedule has each recomputation at most once in a stage, ordered by rank.
  for (const Schedule::Clone &c : out.sequence)
    if (std::find(out.clones.begin(), out.clones.end(), c) == out.clones.end())
      out.clones.push_back(c);
  return out;
}

Solution tmc::planning::solutionOf(const Problem &problem,
                                   const LinearProblem &linear,
                                   const RematPlan &plan) {
  Solution solution;
  solution.segments.resize(problem.segments.size());
  size_t clone = 0, switched = 0;
  for (int32_t k = 0; k < int32_t(linear.stages.size()); ++k) {
    const LinearStage &stage = linear.stages[k];
    std::vector<Execution> &list = solution.segments[stage.segment];
    for (; clone < plan.sequence.size() && plan.sequence[clone].stage == k;
         ++clone)
      list.push_back({linear.ops[plan.sequence[clone].op].recipe, kNone, {}});
    OpId own = stage.variants.front();
    if (switched < plan.variants.size() && plan.variants[switched].first == k)
      own = stage.variants[size_t(plan.variants[switched++].second)];
    if (stage.instruction != kNone)
      list.push_back({linear.ops[own].recipe, stage.instruction, {}});
  }
  takeOverwrites(problem, solution);
  return solution;
}
