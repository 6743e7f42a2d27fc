// AnyOrderWalk.h - the checker's own view of what runs before and behind a
// moment in every plan.
//
// It knows the same rules as `AnyOrderGraph.h`, in other terms: *points* lead
// to points, segments are compared by number, and each walk starts at one
// moment.

#ifndef TMC_COMPILER_PLANNING_BOUND_ANYORDERWALK_H
#define TMC_COMPILER_PLANNING_BOUND_ANYORDERWALK_H

#include "compiler/planning/model/Problem.h"

#include <map>
#include <set>

namespace tmc::planning {

/// A point of a plan: the event of an instruction, or a value's first writing
/// where that isn't its maker's event.
struct EventPoint {
  enum Kind { Event, Writing } kind = Event;
  int32_t index = kNone;
  bool operator<(const EventPoint &o) const {
    return std::pair(kind, index) < std::pair(o.kind, o.index);
  }
};

/// All points on one side of a moment.
struct EventSide {
  std::set<InstructionId> events;
  std::set<ValueId> writings;
  bool holds(EventPoint x) const {
    return x.kind == EventPoint::Event ? events.count(x.index) > 0
                                       : writings.count(x.index) > 0;
  }
  bool add(EventPoint x) {
    return x.kind == EventPoint::Event ? events.insert(x.index).second
                                       : writings.insert(x.index).second;
  }
};

class EventWalk {
public:
  explicit EventWalk(const Problem &problem);

  /// All points that surely lie behind the event of k, or before it.
  EventSide walk(InstructionId k, bool down) const;

  int64_t trips(SegmentId s) const { return p.segments[s].trips; }
  SegmentId segmentOf(InstructionId i) const {
    return p.instructions[i].segment;
  }
  /// The only segment where a point may lie; kNone: it isn't certain.
  SegmentId segmentOf(EventPoint x) const;
  /// In a segment of one trip a carried value is what it begins as.
  ValueId aliasOf(ValueId v, SegmentId s) const;
  std::set<ValueId> readsBy(RecipeId r, SegmentId s) const;
  /// Only for values whose first writing is certain.
  EventPoint firstOf(ValueId v) const;
  /// All recipes that may write v: its maker's, and those that recompute it.
  std::vector<RecipeId> writersOf(ValueId v) const;

  /// Unknown: not certain. Event: its maker's. Apart: a point of its own.
  enum class First { Unknown, Event, Apart };

  const Problem &p;
  std::vector<InstructionId> maker;         // By value.
  std::vector<std::vector<RecipeId>> extra; // By value: what may write it.
  std::vector<First> first;                 // By value.
  std::vector<std::set<ValueId>> sure;      // By instruction: what it reads.
  std::map<ValueId, std::vector<EventPoint>> readers; // Sure ones.

private:
  /// Several sets, to find what each of them holds.
  using Sets = std::vector<std::set<ValueId>>;
  static std::set<ValueId> common(const Sets &sets);

  bool isSure(ValueId v, SegmentId reader) const;
  void findWriters();
  void findReads();
  void findUpdates();
  void put(EventPoint from, EventPoint to) {
    later[from].push_back(to);
    earlier[to].push_back(from);
  }

  std::map<EventPoint, std::vector<EventPoint>> later, earlier;
};

} // namespace tmc::planning

#endif // TMC_COMPILER_PLANNING_BOUND_ANYORDERWALK_H
