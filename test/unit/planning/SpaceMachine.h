// SpaceMachine.h - the optimum of a small problem without loops, found by a
// machine that runs instead of a list that is laid out.
//
// Its state is what is in memory, what is under way and how much longer each
// engine is busy; its steps are to run a kernel, to start work, to be done with
// it, and to drop a value. Dijkstra's algorithm over all states: any number of
// moves and recomputations, no rule about lists, lives or instances.

#ifndef TMC_TEST_UNIT_PLANNING_SPACEMACHINE_H
#define TMC_TEST_UNIT_PLANNING_SPACEMACHINE_H

#include "compiler/planning/model/Problem.h"

#include <algorithm>
#include <map>
#include <optional>
#include <queue>
#include <set>
#include <vector>

namespace tmc::planning {

class SpaceMachine {
public:
  struct Optimum {
    int64_t makespan = 0;
    int extras = 0; // The fewest executions beyond the instructions' own.
  };

  /// Budgets of each space (-1: none), reserved left out; the order of the
  /// segments' instructions is kept. Nothing that takes longer than `limit` is
  /// looked at; after `mostStates` it gives up.
  SpaceMachine(const Problem &p, std::vector<ValueId> home,
               std::vector<int64_t> budgets, int64_t limit,
               size_t mostStates = SIZE_MAX)
      : p(p), home(std::move(home)), budgets(std::move(budgets)), limit(limit),
        mostStates(mostStates) {
    for (const Segment &s : p.segments)
      order.insert(order.end(), s.instructions.begin(), s.instructions.end());
    heir.assign(p.values.size(), kNone);
    for (size_t v = 0; v < p.values.size(); ++v)
      if (p.values[v].updates != kNone)
        heir[p.values[v].updates] = ValueId(v);
  }

  std::optional<Optimum> run() {
    State first;
    first.has.assign(p.values.size(), Absent);
    first.idleIn.assign(p.engines.size(), 0);
    for (size_t v = 0; v < p.values.size(); ++v)
      if (isHome(v) && p.values[v].kind == ValueKind::Persistent &&
          p.values[v].updates == kNone)
        first.has[v] = Present;
    push({0, 0, false}, first);
    while (!queue.empty()) {
      auto [cost, state] = queue.top();
      queue.pop();
      if (cost.ended)
        return Optimum{cost.time, cost.extras};
      if (!settled.insert(state).second)
        continue;
      gaveUp = settled.size() > mostStates;
      if (gaveUp)
        return std::nullopt;
      if (isEnd(state)) {
        int64_t tail =
            *std::max_element(state.idleIn.begin(), state.idleIn.end());
        queue.push({{cost.time + tail, cost.extras, true}, state});
      }
      step(cost, state);
    }
    return std::nullopt;
  }

  /// Whether the last run ended without an answer.
  bool gaveUp = false;

private:
  enum Has : int8_t { Absent, Present, Coming, Leaving };
  struct Work {
    RecipeId recipe = kNone;
    int64_t endsIn = 0;
    std::vector<ValueId> gives; // Values whose places it takes.
    auto operator<=>(const Work &) const = default;
  };
  struct State {
    size_t next = 0;
    std::vector<int8_t> has;     // Of each value.
    std::vector<int64_t> idleIn; // Of each engine, after compute is idle.
    int64_t completeIn = 0;      // All work whose Done has been.
    std::vector<Work> work;
    auto operator<=>(const State &) const = default;
  };
  struct Cost {
    int64_t time = 0; // Until compute is idle.
    int extras = 0;
    bool ended = false;
    auto operator<=>(const Cost &) const = default;
  };

  bool isHome(size_t v) const { return home[v] == ValueId(v); }
  /// In memory at the end of the step, by whatever rule.
  bool stays(size_t v) const {
    return isHome(v) &&
           (p.values[v].kind == ValueKind::Persistent || p.values[v].liveOut);
  }
  bool isEnd(const State &s) const {
    if (s.next < order.size() || !s.work.empty())
      return false;
    for (size_t v = 0; v < p.values.size(); ++v)
      if (stays(v) && (heir[v] == kNone) != (s.has[v] == Present))
        return false;
    return true;
  }
  bool inUse(const State &s, ValueId v) const {
    for (const Work &w : s.work)
      for (const std::vector<ValueId> *list :
           {&p.recipes[w.recipe].reads, &p.recipes[w.recipe].writes, &w.gives})
        if (std::count(list->begin(), list->end(), v))
          return true;
    return false;
  }
  void push(Cost cost, State state) {
    for (int64_t &in : state.idleIn)
      in = std::max<int64_t>(in, 0);
    state.completeIn = std::max<int64_t>(state.completeIn, 0);
    for (Work &w : state.work)
      w.endsIn = std::max<int64_t>(w.endsIn, 0);
    // All that has begun has to end.
    int64_t end =
        cost.time + *std::max_element(state.idleIn.begin(), state.idleIn.end());
    if (end <= limit && !settled.count(state))
      queue.push({cost, std::move(state)});
  }
  /// Compute is idle `by` later than it was.
  static void pass(Cost &cost, State &state, int64_t by) {
    cost.time += by;
    for (int64_t &in : state.idleIn)
      in -= by;
    state.completeIn -= by;
    for (Work &w : state.work)
      w.endsIn -= by;
  }

  void step(Cost cost, const State &s) {
    for (size_t v = 0; v < p.values.size(); ++v)
      if (s.has[v] == Present && !inUse(s, ValueId(v)) &&
          !(isHome(v) && p.values[v].kind == ValueKind::Persistent)) {
        State now = s;
        now.has[v] = Absent;
        push(cost, now);
      }
    std::set<EngineId> engines;
    for (size_t i = 0; i < s.work.size(); ++i)
      if (engines.insert(p.recipes[s.work[i].recipe].engine).second)
        finish(cost, s, i);
    if (s.next < order.size())
      for (RecipeId r : p.instructions[order[s.next]].recipes)
        begin(cost, s, r, true);
    for (size_t r = 0; r < p.recipes.size(); ++r)
      if (p.recipes[r].recomputable)
        begin(cost, s, RecipeId(r), false);
  }

  void finish(Cost cost, const State &s, size_t i) {
    State now = s;
    Work work = now.work[i];
    const Recipe &r = p.recipes[work.recipe];
    now.work.erase(now.work.begin() + i);
    for (ValueId w : r.writes)
      now.has[w] = Present;
    for (ValueId v : work.gives)
      now.has[v] = Absent;
    now.completeIn = std::max(now.completeIn, work.endsIn);
    bool device = false;
    for (const std::vector<ValueId> *list : {&r.reads, &r.writes})
      for (ValueId v : *list)
        device |= p.values[v].space == 0;
    if (device)
      pass(cost, now, work.endsIn);
    push(cost, now);
  }

  void begin(Cost cost, const State &s, RecipeId id, bool own) {
    const Recipe &r = p.recipes[id];
    for (ValueId v : r.reads)
      if (s.has[v] == Absent || s.has[v] == Leaving ||
          (s.has[v] == Coming && r.engine == 0))
        return;
    for (ValueId w : r.writes)
      if (inUse(s, w) || p.values[w].pinned ||
          (isHome(w) && p.values[w].kind == ValueKind::Persistent &&
           (p.values[w].updates == kNone || s.has[w] != Absent)))
        return;
    // Each subset of the declared overwrites.
    for (uint32_t set = 0; set < 1u << r.overwrites.size(); ++set)
      beginTaking(cost, s, id, own, set);
  }

  void beginTaking(Cost cost, const State &s, RecipeId id, bool own,
                   uint32_t set) {
    const Recipe &r = p.recipes[id];
    Work work{id, 0, {}};
    State now = s;
    std::vector<int64_t> shared(p.spaces.size(), 0);
    std::vector<ValueId> takers;
    auto take = [&](ValueId v, ValueId w) {
      if (s.has[v] != Present || inUse(s, v) ||
          std::count(work.gives.begin(), work.gives.end(), v) ||
          std::count(takers.begin(), takers.end(), w))
        return false;
      // A home gives its place to its heir alone.
      if (isHome(v) && p.values[v].kind == ValueKind::Persistent &&
          p.values[w].updates != v)
        return false;
      work.gives.push_back(v);
      takers.push_back(w);
      shared[p.values[v].space] +=
          std::min(p.values[v].bytes, p.values[w].bytes);
      return true;
    };
    for (size_t o = 0; o < r.overwrites.size(); ++o) {
      if (set >> o & 1) {
        if (!take(r.overwrites[o].read, r.overwrites[o].written))
          return;
      } else if (r.overwrites[o].must) {
        return;
      }
    }
    for (ValueId w : r.writes) {
      ValueId old = p.values[w].updates;
      if (old == kNone || !isHome(w))
        continue;
      bool took = std::count(work.gives.begin(), work.gives.end(), old);
      bool reads = std::count(r.reads.begin(), r.reads.end(), old);
      if (!took && (reads || !take(old, w)))
        return;
    }
    // An older instance of what is written is gone, unless it gives its place.
    for (ValueId w : r.writes)
      now.has[w] = Absent;
    if (!fits(now, r, shared))
      return;
    if (own)
      ++now.next;
    else
      ++cost.extras;
    if (r.engine == 0) {
      pass(cost, now, r.cost);
      for (ValueId w : r.writes)
        now.has[w] = Present;
      for (ValueId v : work.gives)
        now.has[v] = Absent;
      push(cost, now);
      return;
    }
    int64_t ready = std::max(now.idleIn[r.engine], now.completeIn);
    for (const Work &other : s.work)
      for (ValueId w : p.recipes[other.recipe].writes)
        if (std::count(r.reads.begin(), r.reads.end(), w))
          ready = std::max(ready, other.endsIn);
    work.endsIn = std::max<int64_t>(ready, 0) + r.cost;
    now.idleIn[r.engine] = work.endsIn;
    for (ValueId w : r.writes)
      now.has[w] = Coming;
    for (ValueId v : work.gives)
      now.has[v] = Leaving;
    now.work.push_back(work);
    push(cost, now);
  }

  /// Whether all that is there, what is under way and the new piece's writes
  /// and scratch are within the budgets.
  bool fits(const State &s, const Recipe &begun,
            std::vector<int64_t> shared) const {
    std::vector<int64_t> bytes(p.spaces.size(), 0);
    for (size_t v = 0; v < p.values.size(); ++v)
      if (s.has[v] != Absent)
        bytes[p.values[v].space] += p.values[v].bytes;
    for (ValueId w : begun.writes)
      bytes[p.values[w].space] += p.values[w].bytes;
    bytes[begun.workspaceSpace] += begun.workspaceBytes;
    for (const Work &w : s.work) {
      const Recipe &r = p.recipes[w.recipe];
      bytes[r.workspaceSpace] += r.workspaceBytes;
      // Of equal sizes wherever work takes a place in these problems.
      for (ValueId v : w.gives)
        bytes[p.values[v].space] -= p.values[v].bytes;
    }
    for (size_t i = 0; i < bytes.size(); ++i)
      if (budgets[i] >= 0 && bytes[i] - shared[i] > budgets[i])
        return false;
    return true;
  }

  struct Later {
    bool operator()(const std::pair<Cost, State> &a,
                    const std::pair<Cost, State> &b) const {
      return a.first > b.first;
    }
  };
  const Problem &p;
  std::vector<ValueId> home;
  std::vector<int64_t> budgets;
  int64_t limit;
  size_t mostStates;
  std::vector<InstructionId> order;
  std::vector<ValueId> heir;
  std::set<State> settled;
  std::priority_queue<std::pair<Cost, State>,
                      std::vector<std::pair<Cost, State>>, Later>
      queue;
};

} // namespace tmc::planning

#endif // TMC_TEST_UNIT_PLANNING_SPACEMACHINE_H
