// SpaceMachine.h - the optimum of a small problem, found by a machine that runs
// instead of a list that is laid out.
//
// Its state is what is in memory, what is under way and how much longer each
// engine is busy; its steps are to run a kernel, to start work, to be done with
// it, and to cross the border of a segment. Values are dropped where there is
// no room for what begins. A* over all states: any number of moves and
// recomputations, no rule about lists, lives or instances.
//
// A segment of several trips runs one list. So the machine runs its trips side
// by side, in *lanes* that take the same steps:
//
//     lane     begins with                       ends with
//     first    what is outside, nothing carried  what crosses the border
//     middle   what crosses the border           what crosses the border
//     last     what crosses the border           what is read behind the loop
//
// What crosses is guessed when a loop begins. Lanes differ in what they drop:
// the last keeps nothing for another trip.

#ifndef TMC_TEST_UNIT_PLANNING_SPACEMACHINE_H
#define TMC_TEST_UNIT_PLANNING_SPACEMACHINE_H

#include "compiler/planning/model/Problem.h"

#include <algorithm>
#include <optional>
#include <queue>
#include <set>
#include <string>
#include <unordered_set>
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
        mostStates(mostStates), heir(p.values.size(), kNone),
        madeIn(p.values.size(), kNone), carriedBy(p.values.size(), kNone) {
    std::vector<SegmentId> contentIn(p.values.size(), kNone);
    for (const Instruction &i : p.instructions)
      for (ValueId v : p.recipes[i.recipes[0]].writes)
        contentIn[p.contentOf(v)] = madeIn[v] = i.segment;
    for (size_t v = 0; v < p.values.size(); ++v) {
      if (p.values[v].updates != kNone)
        heir[p.values[v].updates] = ValueId(v);
      if (p.values[v].kind == ValueKind::Carried)
        carriedBy[v] = contentIn[p.contentOf(p.values[v].carriedFrom)];
    }
    findRemaining();
  }

  std::optional<Optimum> run() {
    std::vector<int8_t> has(p.values.size(), Absent);
    for (size_t v = 0; v < p.values.size(); ++v)
      if (isHome(v) && p.values[v].kind == ValueKind::Persistent &&
          p.values[v].updates == kNone)
        has[v] = Present;
    enter({}, 0, has);
    while (!queue.empty()) {
      auto [cost, state] = queue.top();
      queue.pop();
      if (cost.ended)
        return Optimum{cost.time, cost.extras};
      if (!settled.insert(keyOf(state)).second)
        continue;
      gaveUp = settled.size() > mostStates;
      if (gaveUp)
        return std::nullopt;
      if (state.next == p.segments[state.segment].instructions.size() &&
          state.work.empty())
        leave(cost, state);
      step(cost, state);
    }
    return std::nullopt;
  }

  /// Whether the last run ended without an answer.
  bool gaveUp = false;
  /// What moves bring in a loop is for its trips alone, as in the plans that
  /// are searched: nothing behind it finds it.
  bool forgetsMoves = false;

private:
  /// Nothing: a carried value of a first trip, or a copy of one.
  enum Has : int8_t { Absent, Present, Coming, Leaving, Nothing };
  /// Beneath: an instance from outside crosses, and the trip has written a
  /// newer one.
  enum Border : int8_t { Stays, Crosses, Beneath };
  struct Work {
    RecipeId recipe = kNone;
    std::vector<ValueId> gives; // Values whose places it takes.
  };
  /// A trip that stands for `times` of them.
  struct Lane {
    int64_t times = 1;
    std::vector<int8_t> has;     // Of each value.
    std::vector<int64_t> idleIn; // Of each engine, after compute is idle.
    int64_t completeIn = 0;      // All work whose Done has been.
    std::vector<int64_t> endsIn; // Of each work; kIdle: it moves nothing.
  };
  static constexpr int64_t kIdle = -1;
  struct State {
    SegmentId segment = 0;
    size_t next = 0; // Into the segment's instructions.
    std::vector<Lane> lanes;
    std::vector<int8_t> crosses; // Of each value: `Border`.
    std::vector<Work> work;
  };
  struct Cost {
    int64_t bound = 0; // With all kernels that are left.
    int extras = 0;
    int64_t time = 0; // Until compute is idle, each lane so many times.
    bool ended = false;
    auto operator<=>(const Cost &) const = default;
  };

  static std::string keyOf(const State &s) {
    std::string key;
    auto add = [&](int64_t x) {
      for (int byte = 0; byte < 4; ++byte)
        key += char(x >> (8 * byte));
    };
    add(s.segment), add(int64_t(s.next));
    key.append(s.crosses.begin(), s.crosses.end());
    for (const Work &w : s.work) {
      add(w.recipe), add(int64_t(w.gives.size()));
      for (ValueId v : w.gives)
        add(v);
    }
    for (const Lane &lane : s.lanes) {
      key.append(lane.has.begin(), lane.has.end());
      for (int64_t in : lane.idleIn)
        add(in);
      add(lane.completeIn);
      for (int64_t in : lane.endsIn)
        add(in);
    }
    return key;
  }

  bool isHome(size_t v) const { return home[v] == ValueId(v); }
  bool isHomeOfPersistent(size_t v) const {
    return isHome(v) && p.values[v].kind == ValueKind::Persistent;
  }
  bool isNothing(const Lane &lane, const Recipe &r) const {
    return p.isCopy(r) && lane.has[r.reads[0]] == Nothing;
  }
  bool inUse(const State &s, ValueId v) const {
    for (const Work &w : s.work)
      for (const std::vector<ValueId> *list :
           {&p.recipes[w.recipe].reads, &p.recipes[w.recipe].writes, &w.gives})
        if (std::count(list->begin(), list->end(), v))
          return true;
    return false;
  }

  /// What the kernels from each place on take at the least.
  void findRemaining() {
    int64_t left = 0;
    remaining.resize(p.segments.size());
    for (size_t s = p.segments.size(); s-- > 0;) {
      const Segment &segment = p.segments[s];
      remaining[s].assign(segment.instructions.size() + 1, left);
      for (size_t i = segment.instructions.size(); i-- > 0;) {
        int64_t least = INT64_MAX;
        for (RecipeId r : p.instructions[segment.instructions[i]].recipes)
          least = std::min(least, p.recipes[r].engine ? 0 : p.recipes[r].cost);
        remaining[s][i] = left += segment.trips * least;
      }
    }
  }

  void push(Cost cost, State state) {
    int64_t end = cost.time;
    for (Lane &lane : state.lanes) {
      for (int64_t &in : lane.idleIn)
        in = std::max<int64_t>(in, 0);
      lane.completeIn = std::max<int64_t>(lane.completeIn, 0);
      for (int64_t &in : lane.endsIn)
        in = in == kIdle ? kIdle : std::max<int64_t>(in, 0);
      // All that has begun has to end.
      end += lane.times *
             *std::max_element(lane.idleIn.begin(), lane.idleIn.end());
    }
    cost.bound = cost.time + remaining[state.segment][state.next];
    if (std::max(end, cost.bound) <= limit && !settled.count(keyOf(state)))
      queue.push({cost, std::move(state)});
  }

  //===--------------------------------------------------------------------===//
  // Segments
  //===--------------------------------------------------------------------===//

  void enter(Cost cost, SegmentId segment, const std::vector<int8_t> &has) {
    State first;
    first.segment = segment;
    first.crosses.assign(p.values.size(), 0);
    const int64_t trips = p.segments[segment].trips;
    Lane lane;
    lane.has = has;
    lane.idleIn.assign(p.engines.size(), 0);
    first.lanes.assign(size_t(std::min<int64_t>(trips, 3)), lane);
    if (trips == 1) {
      push(cost, first);
      return;
    }
    if (trips > 2)
      first.lanes[1].times = trips - 2;
    // What is made outside may cross or be dropped, what is carried may cross.
    std::vector<ValueId> choices;
    for (size_t v = 0; v < p.values.size(); ++v)
      if (carriedBy[v] == segment ||
          (has[v] == Present && !isHomeOfPersistent(v)))
        choices.push_back(ValueId(v));
      else
        first.crosses[v] = has[v] == Present;
    for (uint32_t set = 0; set < 1u << choices.size(); ++set) {
      State guess = first;
      for (size_t i = 0; i < choices.size(); ++i) {
        const bool isKept = set >> i & 1;
        guess.crosses[choices[i]] = isKept;
        for (Lane &l : guess.lanes)
          l.has[choices[i]] = isKept ? Present : Absent;
        if (isKept && carriedBy[choices[i]] == segment)
          guess.lanes[0].has[choices[i]] = Nothing;
      }
      bool fits = true;
      for (const Lane &l : guess.lanes)
        fits &= fullSpace(guess, l, {}, {}) == kNone;
      if (fits)
        push(cost, guess);
    }
  }

  void leave(Cost cost, const State &s) {
    for (size_t l = 0; l + 1 < s.lanes.size(); ++l)
      for (size_t v = 0; v < p.values.size(); ++v) {
        const ValueId from =
            carriedBy[v] == s.segment ? p.values[v].carriedFrom : ValueId(v);
        if (s.crosses[v] == Crosses && s.lanes[l].has[from] != Present)
          return;
      }
    for (const Lane &lane : s.lanes)
      cost.time += lane.times *
                   *std::max_element(lane.idleIn.begin(), lane.idleIn.end());
    std::vector<int8_t> has = s.lanes.back().has;
    for (size_t v = 0; v < p.values.size(); ++v)
      if (carriedBy[v] == s.segment ||
          (forgetsMoves && s.lanes.size() > 1 && s.crosses[v] == Stays &&
           madeIn[v] != s.segment))
        has[v] = Absent;
    if (size_t(s.segment) + 1 < p.segments.size()) {
      enter(cost, s.segment + 1, has);
      return;
    }
    for (size_t v = 0; v < p.values.size(); ++v)
      if (isHome(v) &&
          (p.values[v].kind == ValueKind::Persistent || p.values[v].liveOut) &&
          (heir[v] == kNone) != (has[v] == Present))
        return;
    cost.bound = cost.time;
    cost.ended = true;
    if (cost.time <= limit)
      queue.push({cost, s});
  }

  //===--------------------------------------------------------------------===//
  // Steps
  //===--------------------------------------------------------------------===//

  void step(Cost cost, const State &s) {
    std::set<EngineId> engines;
    for (size_t i = 0; i < s.work.size(); ++i)
      if (engines.insert(p.recipes[s.work[i].recipe].engine).second)
        finish(cost, s, i);
    const std::vector<InstructionId> &own = p.segments[s.segment].instructions;
    if (s.next < own.size())
      for (RecipeId r : p.instructions[own[s.next]].recipes)
        begin(cost, s, r, true);
    for (size_t r = 0; r < p.recipes.size(); ++r)
      if (p.recipes[r].recomputable &&
          (p.recipes[r].segment == kNone || p.recipes[r].segment == s.segment))
        begin(cost, s, RecipeId(r), false);
  }

  /// Compute is idle `by` later than it was.
  static void pass(Cost &cost, Lane &lane, int64_t by) {
    cost.time += lane.times * by;
    for (int64_t &in : lane.idleIn)
      in -= by;
    lane.completeIn -= by;
    for (int64_t &in : lane.endsIn)
      if (in != kIdle)
        in = std::max<int64_t>(in - by, 0);
  }

  void finish(Cost cost, const State &s, size_t i) {
    State now = s;
    const Work work = now.work[i];
    const Recipe &r = p.recipes[work.recipe];
    now.work.erase(now.work.begin() + i);
    for (Lane &lane : now.lanes) {
      const int64_t endsIn = lane.endsIn[i];
      lane.endsIn.erase(lane.endsIn.begin() + i);
      for (ValueId v : work.gives)
        lane.has[v] = Absent;
      if (endsIn == kIdle)
        continue;
      for (ValueId w : r.writes)
        lane.has[w] = Present;
      lane.completeIn = std::max(lane.completeIn, endsIn);
      if (p.touchesDevice(r))
        pass(cost, lane, endsIn);
    }
    push(cost, std::move(now));
  }

  bool canBegin(const State &s, const Recipe &r) const {
    for (const Lane &lane : s.lanes)
      for (ValueId v : r.reads)
        if (lane.has[v] == Absent || lane.has[v] == Leaving ||
            (lane.has[v] == Coming && r.engine == 0))
          return false;
    const bool isLoop = s.lanes.size() > 1;
    for (ValueId w : r.writes) {
      if (inUse(s, w) || p.values[w].pinned)
        return false;
      if (isHomeOfPersistent(w) && (p.values[w].updates == kNone || isLoop ||
                                    s.lanes[0].has[w] != Absent))
        return false;
    }
    return true;
  }

  /// Whether all that the recipe writes is there: it would gain nothing.
  static bool isThere(const State &s, const Recipe &r) {
    for (const Lane &lane : s.lanes)
      for (ValueId w : r.writes)
        if (lane.has[w] != Present && lane.has[w] != Nothing)
          return false;
    return true;
  }

  void begin(Cost cost, const State &s, RecipeId id, bool own) {
    const Recipe &r = p.recipes[id];
    if (!canBegin(s, r) || (!own && isThere(s, r)))
      return;
    // Each subset of the declared overwrites.
    for (uint32_t set = 0; set < 1u << r.overwrites.size(); ++set)
      beginTaking(cost, s, id, own, set);
  }

  void beginTaking(Cost cost, const State &s, RecipeId id, bool own,
                   uint32_t set) {
    const Recipe &r = p.recipes[id];
    Work work{id, {}};
    std::vector<ValueId> takers;
    auto take = [&](ValueId v, ValueId w) {
      for (const Lane &lane : s.lanes)
        if (lane.has[v] != Present && lane.has[v] != Nothing)
          return false;
      if (inUse(s, v) || std::count(work.gives.begin(), work.gives.end(), v) ||
          std::count(takers.begin(), takers.end(), w))
        return false;
      // A home gives its place to its heir alone.
      if (isHomeOfPersistent(v) && p.values[w].updates != v)
        return false;
      work.gives.push_back(v);
      takers.push_back(w);
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
    State now = s;
    // An older instance of what is written is gone, unless it gives its place,
    // or is what crosses the border.
    for (ValueId w : r.writes) {
      for (Lane &lane : now.lanes)
        lane.has[w] = Absent;
      if (isOutside(s, w))
        now.crosses[w] = Beneath;
    }
    now.next += own;
    cost.extras += !own;
    makeRoom(cost, now, work, takers);
  }

  /// Begins `work` where it fits; else drops a value of the first lane and
  /// space that lack room: in all lanes, in the last one, or in all others.
  void makeRoom(Cost cost, const State &s, const Work &work,
                const std::vector<ValueId> &takers) {
    for (size_t l = 0; l < s.lanes.size(); ++l) {
      const SpaceId space = fullSpace(s, s.lanes[l], work, takers);
      if (space == kNone)
        continue;
      const bool isLast = l + 1 == s.lanes.size();
      for (size_t v = 0; v < p.values.size(); ++v)
        if (s.lanes[l].has[v] == Present && p.values[v].space == space &&
            canDrop(s, work, v)) {
          if (isOutside(s, v)) { // In the last trip alone.
            if (isLast)
              drop(cost, s, v, l, l + 1, work, takers);
            continue;
          }
          drop(cost, s, v, 0, s.lanes.size(), work, takers);
          if (s.lanes.size() > 1)
            drop(cost, s, v, isLast ? l : 0,
                 isLast ? l + 1 : s.lanes.size() - 1, work, takers);
        }
      return;
    }
    State now = s;
    if (p.recipes[work.recipe].engine == 0)
      run(cost, now, work);
    else
      start(now, work);
    push(cost, std::move(now));
  }
  bool canDrop(const State &s, const Work &work, size_t v) const {
    const std::vector<ValueId> &reads = p.recipes[work.recipe].reads;
    return !inUse(s, ValueId(v)) && !isHomeOfPersistent(v) &&
           !std::count(reads.begin(), reads.end(), ValueId(v)) &&
           !std::count(work.gives.begin(), work.gives.end(), ValueId(v));
  }
  /// Whether it was made outside the loop and crosses the borders of its trips.
  bool isOutside(const State &s, size_t v) const {
    return s.crosses[v] == Crosses && carriedBy[v] != s.segment;
  }
  void drop(Cost cost, const State &s, size_t v, size_t firstLane,
            size_t endLane, const Work &work,
            const std::vector<ValueId> &takers) {
    State now = s;
    for (size_t l = firstLane; l < endLane; ++l)
      now.lanes[l].has[v] = Absent;
    makeRoom(cost, now, work, takers);
  }

  void run(Cost &cost, State &now, const Work &work) {
    const Recipe &r = p.recipes[work.recipe];
    for (Lane &lane : now.lanes) {
      const bool nothing = isNothing(lane, r);
      pass(cost, lane, r.cost);
      for (ValueId w : r.writes)
        lane.has[w] = nothing ? Nothing : Present;
      for (ValueId v : work.gives)
        lane.has[v] = Absent;
    }
  }

  void start(State &now, const Work &work) {
    const Recipe &r = p.recipes[work.recipe];
    for (Lane &lane : now.lanes) {
      if (isNothing(lane, r)) {
        lane.has[r.writes[0]] = Nothing;
        lane.endsIn.push_back(kIdle);
        continue;
      }
      int64_t ready = std::max(lane.idleIn[r.engine], lane.completeIn);
      for (size_t i = 0; i < now.work.size(); ++i)
        for (ValueId w : p.recipes[now.work[i].recipe].writes)
          if (std::count(r.reads.begin(), r.reads.end(), w))
            ready = std::max(ready, lane.endsIn[i]);
      lane.idleIn[r.engine] = std::max<int64_t>(ready, 0) + r.cost;
      lane.endsIn.push_back(lane.idleIn[r.engine]);
      for (ValueId w : r.writes)
        lane.has[w] = Coming;
      for (ValueId v : work.gives)
        lane.has[v] = Leaving;
    }
    now.work.push_back(work);
  }

  /// A space whose budget is less than what is there, what is under way and the
  /// new piece's writes and scratch; or kNone. `begun` may be none; its
  /// `takers` have the places of what it gives.
  SpaceId fullSpace(const State &s, const Lane &lane, const Work &begun,
                    const std::vector<ValueId> &takers) const {
    std::vector<int64_t> bytes(p.spaces.size(), 0);
    for (size_t v = 0; v < p.values.size(); ++v)
      if (lane.has[v] != Absent && lane.has[v] != Nothing)
        bytes[p.values[v].space] += p.values[v].bytes;
    for (size_t v = 0; v < p.values.size() && &lane != &s.lanes.back(); ++v)
      if (s.crosses[v] == Beneath)
        bytes[p.values[v].space] += p.values[v].bytes;
    if (begun.recipe != kNone && !isNothing(lane, p.recipes[begun.recipe])) {
      const Recipe &r = p.recipes[begun.recipe];
      for (ValueId w : r.writes)
        bytes[p.values[w].space] += p.values[w].bytes;
      bytes[r.workspaceSpace] += r.workspaceBytes;
      for (size_t i = 0; i < takers.size(); ++i)
        if (ValueId v = begun.gives[i]; lane.has[v] == Present)
          bytes[p.values[v].space] -=
              std::min(p.values[v].bytes, p.values[takers[i]].bytes);
    }
    for (size_t i = 0; i < s.work.size(); ++i) {
      const Recipe &r = p.recipes[s.work[i].recipe];
      if (lane.endsIn[i] != kIdle)
        bytes[r.workspaceSpace] += r.workspaceBytes;
      // Of equal sizes wherever work takes a place in these problems.
      for (ValueId v : s.work[i].gives)
        if (lane.has[v] == Leaving)
          bytes[p.values[v].space] -= p.values[v].bytes;
    }
    for (size_t i = 0; i < bytes.size(); ++i)
      if (budgets[i] >= 0 && bytes[i] > budgets[i])
        return SpaceId(i);
    return kNone;
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
  std::vector<ValueId> heir;
  std::vector<SegmentId> madeIn;    // By a kernel's first recipe.
  std::vector<SegmentId> carriedBy; // The segment that carries a value.
  std::vector<std::vector<int64_t>> remaining; // Of each place of a segment.
  std::unordered_set<std::string> settled;
  std::priority_queue<std::pair<Cost, State>,
                      std::vector<std::pair<Cost, State>>, Later>
      queue;
};

} // namespace tmc::planning

#endif // TMC_TEST_UNIT_PLANNING_SPACEMACHINE_H
