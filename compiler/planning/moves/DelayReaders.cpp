#include "compiler/planning/moves/DelayReaders.h"

#include <algorithm>
#include <limits>

using namespace tmc::planning;

namespace {

/// Instructions that compute may choose from, of those that aren't held back.
constexpr int kWindow = 256;
/// Little depends on a kernel if the longest chain behind it takes this part of
/// the segment's kernels, and networks in it take that part.
constexpr int64_t kShortPart = 20, kNoNetworkPart = 1000;

/// The contents that an instruction reads, and those that it makes or changes.
struct Touched {
  std::vector<ValueId> reads, changes;
};

class SegmentOrder {
public:
  SegmentOrder(const Problem &problem, const Segment &segment)
      : problem(problem), list(segment.instructions) {
    for (InstructionId i : list) {
      const Recipe &r = recipeOf(i);
      Touched &t = touched.emplace_back();
      for (ValueId v : r.reads)
        t.reads.push_back(problem.contentOf(v));
      for (ValueId v : r.writes) {
        t.changes.push_back(problem.contentOf(v));
        if (const ValueId old = problem.values[v].updates; old != kNone)
          t.changes.push_back(problem.contentOf(old));
      }
      for (const Overwrite &o : r.overwrites)
        if (o.must)
          t.changes.push_back(problem.contentOf(o.read));
      load += r.engine == 0 ? r.cost : 0;
    }
  }

  std::vector<InstructionId> run() {
    std::vector<char> held(list.size(), 0);
    const Made first = make(held);
    if (!holdBack(first, held))
      return first.order;
    const Made second = make(held);
    return second.ends < first.ends ? second.order : first.order;
  }

private:
  struct Made {
    std::vector<InstructionId> order;
    std::vector<size_t> indices; // The same, as indices of the list.
    int64_t ends = 0;
    /// A time for which compute stands still, and the number of instructions
    /// before the work that it waits for.
    struct Wait {
      int64_t time;
      size_t startedAt;
    };
    std::vector<Wait> waits;
  };

  const Recipe &recipeOf(InstructionId i) const {
    return problem.recipes[problem.instructions[i].recipes.front()];
  }

  static int64_t readyAtOf(const Recipe &r,
                           const std::vector<int64_t> &readyAt) {
    int64_t ready = 0;
    for (ValueId v : r.reads)
      ready = std::max(ready, readyAt[v]);
    return ready;
  }

  /// Marks kernels on which little depends: the last ones before the work for
  /// which compute stands still, as many as fill that time. Returns whether
  /// there is one.
  bool holdBack(const Made &made, std::vector<char> &held) const {
    std::vector<int64_t> tail(problem.values.size(), 0), network(tail);
    std::vector<char> isLate(list.size(), 0);
    for (size_t i = list.size(); i-- > 0;) {
      const Recipe &r = recipeOf(list[i]);
      int64_t behind = 0, over = 0;
      for (ValueId c : touched[i].changes) {
        behind = std::max(behind, tail[c]);
        over = std::max(over, network[c]);
      }
      isLate[i] = r.engine == 0 && behind <= load / kShortPart &&
                  over <= load / kNoNetworkPart;
      const int64_t overThis = over + (problem.isOnNetwork(r) ? r.cost : 0);
      for (ValueId c : touched[i].reads) {
        tail[c] = std::max(tail[c], behind + r.cost);
        network[c] = std::max(network[c], overThis);
      }
    }
    bool isAny = false;
    for (size_t w = made.waits.size(); w-- > 0;) {
      int64_t open = made.waits[w].time;
      for (size_t at = made.waits[w].startedAt; at-- > 0 && open > 0;)
        if (const size_t i = made.indices[at]; isLate[i] && !held[i]) {
          held[i] = isAny = true;
          open -= recipeOf(list[i]).cost;
        }
    }
    return isAny;
  }

  /// Compute's order, if kernels that are `held` run where others would wait.
  Made make(const std::vector<char> &held) {
    const size_t n = list.size();
    std::vector<size_t> next(n + 1); // The pending ones; n is before the first.
    for (size_t i = 0; i < n; ++i)
      next[i] = i + 1;
    next[n] = 0;
    std::vector<int64_t> readyAt(problem.values.size(), 0);
    std::vector<int64_t> idle(problem.engines.size(), 0);
    isMade.assign(problem.values.size(), 0);
    std::vector<size_t> startedAt(problem.values.size(), 0);
    auto startOf = [&](size_t waits) {
      size_t at = 0;
      for (ValueId v : recipeOf(list[waits]).reads)
        at = std::max(at, startedAt[v]);
      return at;
    };
    Made made;
    int64_t now = 0;
    while (made.order.size() < n) {
      const Pick pick = choose(next, held, readyAt, now);
      if (pick.before == kNothing) { // The first one waits.
        made.waits.push_back({pick.wakes - now, startOf(pick.waits)});
        now = pick.wakes;
        continue;
      }
      const size_t i = next[pick.before];
      next[pick.before] = next[i];
      made.order.push_back(list[i]);
      made.indices.push_back(i);
      const Recipe &r = recipeOf(list[i]);
      if (r.engine == 0) {
        now += r.cost;
        for (ValueId w : r.writes)
          readyAt[w] = 0, isMade[problem.contentOf(w)] = 1;
      } else if (problem.isOnNetwork(r)) {
        int64_t &ends = idle[size_t(r.engine)];
        ends = std::max(ends, now);
        ends = std::max(ends, readyAtOf(r, readyAt)) + r.cost;
        for (ValueId w : r.writes)
          readyAt[w] = ends, startedAt[w] = made.order.size();
      }
    }
    made.ends = std::max(now, *std::max_element(idle.begin(), idle.end()));
    return made;
  }

  static constexpr size_t kNothing = std::numeric_limits<size_t>::max();
  struct Pick {
    size_t before = kNothing; // The pending one is `next[before]`.
    int64_t wakes = 0;        // Without one: when the first network is done.
    size_t waits = 0;         // The kernel that waits for it.
  };

  /// True if a network takes what a kernel of the segment made.
  bool isFed(const Recipe &r) const {
    return problem.isOnNetwork(r) &&
           std::any_of(r.reads.begin(), r.reads.end(), [&](ValueId v) {
             return isMade[problem.contentOf(v)] != 0;
           });
  }

  /// A network that has its operands, or else the first pending instruction
  /// that waits for nothing; a held one if there is no other.
  Pick choose(const std::vector<size_t> &next, const std::vector<char> &held,
              const std::vector<int64_t> &readyAt, int64_t now) {
    ++round;
    Pick first, heldBack;
    int64_t wakes = std::numeric_limits<int64_t>::max();
    size_t waits = 0;
    int seen = 0;
    for (size_t before = list.size();
         next[before] < list.size() && seen < kWindow; before = next[before]) {
      const size_t i = next[before];
      const Recipe &r = recipeOf(list[i]);
      seen += !held[i];
      if (!isBlocked(touched[i])) {
        if (isFed(r))
          return {before};
        const int64_t ready = r.engine == 0 ? readyAtOf(r, readyAt) : 0;
        Pick &pick = held[i] ? heldBack : first;
        if (ready > now && ready < wakes)
          wakes = ready, waits = i;
        else if (ready <= now && pick.before == kNothing)
          pick.before = before;
      }
      for (ValueId c : touched[i].reads)
        readBy[c] = round;
      for (ValueId c : touched[i].changes)
        changedBy[c] = round;
    }
    if (first.before == kNothing)
      first = heldBack;
    first.wakes = wakes, first.waits = waits;
    return first;
  }

  /// True if a pending instruction before it makes what it reads, or touches
  /// what it changes.
  bool isBlocked(const Touched &t) const {
    auto isChanged = [&](ValueId c) { return changedBy[c] == round; };
    return std::any_of(t.reads.begin(), t.reads.end(), isChanged) ||
           std::any_of(t.changes.begin(), t.changes.end(), [&](ValueId c) {
             return isChanged(c) || readBy[c] == round;
           });
  }

  const Problem &problem;
  const std::vector<InstructionId> &list;
  std::vector<Touched> touched; // Per instruction of the list.
  int64_t load = 0;             // The time of the segment's kernels.
  /// Per content: the last round in which a pending instruction read it, or
  /// made or changed it.
  int64_t round = 0;
  std::vector<int64_t> readBy = std::vector<int64_t>(problem.values.size(), 0);
  std::vector<int64_t> changedBy = readBy;
  std::vector<char> isMade; // Per content: by a kernel of the segment, so far.
};

} // namespace

Orders tmc::planning::delayReaders(const Problem &problem) {
  Orders orders;
  for (const Segment &segment : problem.segments)
    orders.push_back(SegmentOrder(problem, segment).run());
  return orders;
}
