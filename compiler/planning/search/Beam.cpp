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

class Beam {
public:
  Beam(const Flat &flat, int64_t limit, Outlook &outlook,
       const BeamOptions &options, size_t width, int64_t cheapest)
      : flat(flat), limit(limit), outlook(outlook), options(options),
        width(width), cheapest(cheapest), words(outlook.words), scratch(words) {
  }

  /// Whether a plan was found.
  bool run(Plain &plan);
  /// Whether a wider beam would leave out less.
  bool narrow = false;

private:
  struct Node {
    int32_t parent; // In `trail`.
    OpId op;        // What ran to come here.
    int64_t cost;
    int64_t bytes;
    double total; // With the bound on what is yet to come.
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
  struct Room { // A way to make room.
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
  void findRoom(const FlatOp &op, int32_t stage, bool own, int64_t need);
  void pick(size_t from, int64_t need, double loss);
  bool isDominated(const Word *set, int64_t cost);
  Plain planOf(int32_t step);

  const Flat &flat;
  int64_t limit;
  Outlook &outlook;
  const BeamOptions &options;
  size_t width;
  int64_t cheapest; // Of plans that are known.
  size_t words;
  Layer now, next;
  std::vector<Step> trail;                 // Of states that were followed.
  std::vector<Word> set, scratch, missing; // Of the state at hand.
  Node at;
  // The states of this stage that were followed.
  std::vector<Word> followed;
  std::vector<int64_t> followedCost;
  struct Leaver {
    ValueId value;
    int64_t bytes;
    double loss, lossPerByte;
    int64_t left = 0; // Bytes of this one and all behind it.
  };
  std::vector<Leaver> leavers;
  std::vector<size_t> picked;
  int64_t picksLeft = 0;
  std::vector<Room> rooms;
  std::vector<int32_t> fresh; // Nodes of this stage to be queued.
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
    outlook.steps += 2;
    if (w == words)
      return true;
  }
  return false;
}

/// Adds values to `picked`, the cheapest per byte first, until `need` is met.
void Beam::pick(size_t from, int64_t need, double loss) {
  constexpr size_t kMostRooms = 24;
  auto larger = [](const Room &a, const Room &b) { return a.loss < b.loss; };
  outlook.steps += 2;
  --picksLeft;
  if (need <= 0) {
    for (size_t i : picked)
      if (leavers[i].bytes <= -need)
        return; // Superfluous.
    if (rooms.size() == kMostRooms) {
      std::pop_heap(rooms.begin(), rooms.end(), larger);
      rooms.pop_back();
    }
    Room &room = rooms.emplace_back();
    room.loss = loss;
    for (size_t i : picked)
      room.leaving.push_back(leavers[i].value);
    std::push_heap(rooms.begin(), rooms.end(), larger);
    return;
  }
  for (size_t i = from; i < leavers.size() && leavers[i].left >= need; ++i) {
    // What is still needed costs at least this per byte from here on.
    if (picksLeft <= 0 ||
        (rooms.size() == kMostRooms &&
         loss + double(need) * leavers[i].lossPerByte >= rooms.front().loss))
      return;
    picked.push_back(i);
    pick(i + 1, need - leavers[i].bytes, loss + leavers[i].loss);
    picked.pop_back();
  }
}

/// The cheapest ways to make room for `op` beside the state at hand.
void Beam::findRoom(const FlatOp &op, int32_t stage, bool own, int64_t need) {
  rooms.clear();
  if (need <= 0) {
    rooms.push_back({0, {}});
    return;
  }
  leavers.clear();
  double before = outlook.bound(set.data(), stage);
  forEach(set.data(), words, [&](ValueId v) {
    int64_t bytes = flat.bytes[v];
    if (isIn(op.writes, v))
      return;
    if (isIn(op.reads, v)) { // It may still be overwritten.
      bytes = 0;
      for (const FlatOverwrite &o : op.overwrites)
        if (o.read == v && !(own && outlook.useful[v] <= stage))
          bytes = std::min(flat.bytes[v], flat.bytes[o.written]);
    }
    if (bytes == 0)
      return;
    double loss = outlook.loss(set.data(), v, stage, before);
    if (double(at.cost) + before + loss < double(cheapest) - 0.5)
      leavers.push_back({v, bytes, loss, loss / double(bytes)});
  });
  std::sort(leavers.begin(), leavers.end(),
            [](const Leaver &a, const Leaver &b) {
              return std::tuple(a.lossPerByte, -a.bytes, a.value) <
                     std::tuple(b.lossPerByte, -b.bytes, b.value);
            });
  int64_t left = 0;
  for (size_t i = leavers.size(); i-- > 0;)
    leavers[i].left = left += leavers[i].bytes;
  picksLeft = 500;
  picked.clear();
  pick(0, need, 0);
}

void Beam::tryOp(OpId id, int32_t step, int32_t stage, bool own) {
  const FlatOp &op = flat.ops[id];
  int64_t bytes = at.bytes;
  for (ValueId v : op.reads)
    if (!contains(set.data(), v))
      return;
  for (ValueId v : op.writes)
    if (!contains(set.data(), v))
      bytes += flat.bytes[v];
  // What dies here for good may be overwritten.
  auto isSpent = [&](ValueId v) { return own && outlook.useful[v] <= stage; };
  int64_t need =
      bytes + op.workspaceBytes - savedByOverwrites(op, isSpent) - limit;
  findRoom(op, stage, own, need);
  // An instruction costs what its recipe does beyond the first one's.
  int64_t spared =
      own ? flat.ops[flat.stages[stage].mains.front()].cost : int64_t(0);
  int64_t cost = at.cost + (op.cost - spared) * flat.stages[stage].trips;
  for (const Room &room : rooms) {
    std::copy(set.begin(), set.end(), scratch.begin());
    Node node{step, id, cost, bytes, 0};
    for (ValueId v : room.leaving) {
      drop(scratch.data(), v);
      node.bytes -= flat.bytes[v];
    }
    auto leaves = [&](ValueId v) {
      return isSpent(v) || isIn(room.leaving, v);
    };
    if (!op.overwrites.empty() && need > 0) {
      int64_t alive = bytes + op.workspaceBytes - savedByOverwrites(op, leaves);
      for (ValueId v : room.leaving)
        if (!isIn(op.reads, v))
          alive -= flat.bytes[v];
      if (alive > limit)
        continue;
    }
    for (ValueId v : op.writes)
      add(scratch.data(), v);
    if (own)
      forEach(scratch.data(), words, [&](ValueId v) {
        if (outlook.useful[v] <= stage) {
          drop(scratch.data(), v);
          node.bytes -= flat.bytes[v];
        }
      });
    node.total =
        double(cost) + outlook.bound(scratch.data(), own ? stage + 1 : stage);
    if (node.total > double(cheapest) - 0.5)
      continue;
    outlook.steps += 40;
    int32_t index = put(own ? next : now, scratch.data(), node);
    if (!own && index >= 0)
      fresh.push_back(index);
  }
}

/// All that can run next in the state at hand.
void Beam::expand(int32_t step, int32_t stage) {
  fresh.clear();
  for (OpId o : flat.stages[stage].mains)
    tryOp(o, step, stage, true);
  // What the stage is waiting for, with what that is waiting for.
  std::vector<ValueId> wanted;
  std::vector<Word> seen(words, 0);
  auto want = [&](const std::vector<ValueId> &list) {
    for (ValueId v : list)
      if (!contains(set.data(), v) && !contains(seen.data(), v)) {
        add(seen.data(), v);
        wanted.push_back(v);
      }
  };
  for (OpId o : flat.stages[stage].mains)
    want(flat.ops[o].reads);
  for (size_t i = 0; i < wanted.size(); ++i)
    for (OpId o : flat.recomputes[wanted[i]])
      if (const FlatOp &op = flat.ops[o];
          stage >= op.firstStage && stage <= op.lastStage) {
        want(op.reads);
        tryOp(o, step, stage, false);
      }
  // What can be made now of larger values that are held for it alone.
  outlook.bound(set.data(), stage, missing.data());
  forEach(missing.data(), words, [&](ValueId v) {
    if (contains(seen.data(), v))
      return;
    int32_t use = outlook.nextUse(v, stage);
    for (OpId o : flat.recomputes[v]) {
      const FlatOp &op = flat.ops[o];
      if (stage < op.firstStage || stage > op.lastStage)
        continue;
      int64_t held = 0;
      for (ValueId u : op.reads)
        if (outlook.nextUse(u, stage + 1) >= use)
          held += flat.bytes[u];
      if (held > flat.bytes[v])
        tryOp(o, step, stage, false);
    }
  });
}

bool Beam::run(Plain &plan) {
  int32_t n = outlook.n;
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
      // More where the stage's own instruction can't run yet.
      if (count >= width &&
          (next.nodes.size() >= width || count >= 40 * width)) {
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
      if ((count & 63) == 0 &&
          (outlook.steps > options.work || (options.stop && options.stop()))) {
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

/// The executions that lead to a step, less those that nobody reads.
Plain Beam::planOf(int32_t step) {
  Plain plan;
  plan.feasible = true;
  // Last first, with what is read later.
  std::vector<char> needed(flat.bytes.size(), 0);
  for (; step >= 0 && trail[step].op != kNone; step = trail[step].parent) {
    const FlatOp &op = flat.ops[trail[step].op];
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
    const std::vector<OpId> &mains = flat.stages[stage].mains;
    int64_t trips = flat.stages[stage].trips;
    if (OpId o = trail[step].op; !own) {
      plan.sequence.push_back({o, stage});
      plan.cost += op.cost * trips;
    } else if (o != mains.front()) {
      plan.mains.push_back(
          {stage,
           int32_t(std::find(mains.begin(), mains.end(), o) - mains.begin())});
      plan.cost += (op.cost - flat.ops[mains.front()].cost) * trips;
    }
  }
  std::reverse(plan.sequence.begin(), plan.sequence.end());
  std::reverse(plan.mains.begin(), plan.mains.end());
  return plan;
}

} // namespace

Plain tmc::planning::beam(const Flat &flat, int64_t limitBytes,
                          const std::vector<double> &prices,
                          const BeamOptions &options, int64_t &work) {
  Plain out;
  Outlook outlook(flat, limitBytes, prices);
  int64_t cheapest = options.costBelow;
  for (size_t width = 16; outlook.steps < options.work; width *= 4) {
    Beam search(flat, limitBytes, outlook, options, width, cheapest);
    Plain found;
    if (search.run(found)) {
      cheapest = found.cost;
      out = std::move(found);
    }
    if (!search.narrow || (options.wantAny && out.feasible) ||
        (options.stop && options.stop()))
      break;
  }
  work += outlook.steps;
  // As a schedule says it: each recomputation once in a stage, by rank.
  for (const Schedule::Clone &c : out.sequence)
    if (std::find(out.clones.begin(), out.clones.end(), c) == out.clones.end())
      out.clones.push_back(c);
  return out;
}

Solution tmc::planning::solutionOf(const Problem &problem, const Flat &flat,
                                   const Plain &plain) {
  Solution solution;
  solution.segments.resize(problem.segments.size());
  size_t clone = 0, main = 0;
  for (int32_t k = 0; k < int32_t(flat.stages.size()); ++k) {
    const FlatStage &stage = flat.stages[k];
    std::vector<Execution> &list = solution.segments[stage.segment];
    for (; clone < plain.sequence.size() && plain.sequence[clone].stage == k;
         ++clone)
      list.push_back({flat.ops[plain.sequence[clone].op].recipe, kNone, {}});
    OpId own = stage.mains.front();
    if (main < plain.mains.size() && plain.mains[main].first == k)
      own = stage.mains[size_t(plain.mains[main++].second)];
    if (stage.instruction != kNone)
      list.push_back({flat.ops[own].recipe, stage.instruction, {}});
  }
  takeOverwrites(problem, solution);
  return solution;
}
