// AnyOrderGraph.h - what every plan runs before and after a moment.
//
// A recomputation may stand before the instruction's own execution. So "the
// maker runs before the reader" is about first executions, and it takes care:
//
//     plan        v by a pruned kernel    b reads v    v by its own kernel
//
// Nodes are events. There is one for each instruction: the first execution, in
// its segment, of any of its recipes. There is one for each *first writing* of
// a value that another recipe, or the same one in an earlier segment, may write
// before its maker's event. For all other values the first writing is the
// maker's event. Edges lead to what surely comes later:
//
//   - to an event, from the first writing of each value that all recipes of the
//     instruction read;
//   - to a first writing, from the first writing of each value that all recipes
//     that write it read, or that is surely written before such a read;
//   - to a maker's event, from the first writing of its value (they may be one
//     execution, but nothing between the two is used);
//   - to an in-place update, from all that surely reads the old content. Reads
//     that a recipe of the reader spares don't count. A temporary is in this
//     rule if nothing can write it again;
//   - from a segment to the next, through a node between them.
//
// *Loops.* All events of a loop's segment are those of one trip: the last of
// two, a middle one of more. In it a value of that segment is known only if
// each recipe that may write it is bound to the segment. Then it is forgotten
// when the next trip begins, and the trip's events are like those of a straight
// segment. Left out, because it isn't certain or needs further rules:
//
//   - values that a recipe may write outside of the loop that makes them;
//   - values from outside that the loop reads, behind their last read of the
//     trip. Before it they count, and their first gap of the trip and the gap
//     from outside are one gap;
//   - values of the loop that only instructions behind it read, within it.
//
// A carried value that nothing writes is held to its last certain read of the
// trip. With three trips and more, its source is held to the end of the trip.
// If no recipe may write the source again, one of the two is there all trip.

#ifndef TMC_COMPILER_PLANNING_BOUND_ANYORDERGRAPH_H
#define TMC_COMPILER_PLANNING_BOUND_ANYORDERGRAPH_H

#include "compiler/planning/bound/ValueFacts.h"

namespace tmc::planning {

class AnyOrderGraph {
public:
  /// A value that is surely there at a moment, or is written behind it.
  struct Held {
    ValueId value = kNone;
    /// It is made by a loop, and this moment stands behind the loop.
    bool isBehindLoop = false;
  };
  struct Row {
    InstructionId moment = kNone;
    int64_t liveBytes = 0;      // With all values of `held`.
    std::vector<Held> held;     // That some execution may write again.
    std::vector<bool> isBefore; // By instruction: in A(moment).
    std::vector<bool> isBehind; // In D(moment).
    /// By value: in `liveBytes`, or touched by a recipe of the moment.
    std::vector<char> isCounted;
  };

  /// A value's first writing, and what may write it again.
  struct Fact {
    InstructionId maker = kNone;
    int32_t node = kNone;    // Its first writing; kNone: not certain.
    bool isKnown = false;    // In the trip of the loop that makes it.
    bool isWritable = false; // By a recipe outside own executions.
    bool isHeldOn = false;   // To the end of the trip, for the next one.
    /// The least cost of an execution that writes it outside the instructions'
    /// own executions, and of one that may stand behind the loop that makes it;
    /// -1: no recipe can.
    int64_t cost = -1, costBehind = -1;
    std::vector<int32_t> readers; // Nodes that surely read it.
    std::vector<RecipeId> again;  // Recipes that may write it.
  };
  explicit AnyOrderGraph(const Problem &problem);

  /// All that is certain at the event of `moment`. O(size of the problem).
  Row rowOf(InstructionId moment) const;

  const Fact &factOf(ValueId v) const { return facts[v]; }
  /// Instructions that surely read v, in program order. If a loop makes v,
  /// those of the loop.
  std::vector<InstructionId> chainReaders(ValueId v) const;
  /// Values that surely are read by each execution that writes v, which is
  /// known.
  std::vector<ValueId> inputsOf(ValueId v) const {
    return certainInputs(v, false);
  }
  SegmentId segmentOf(InstructionId i) const {
    return problem.instructions[i].segment;
  }
  int64_t tripsOf(SegmentId s) const { return problem.segments[s].trips; }
  bool isLoopMade(ValueId v) const {
    return facts[v].maker != kNone && tripsOf(segmentOf(facts[v].maker)) > 1;
  }
  /// The number of edges and of reads.
  int64_t size() const { return numEdges; }

  const Problem &problem;

private:
  /// A carried value and its source.
  struct Carry {
    ValueId value = kNone, source = kNone;
    SegmentId segment = kNone;
    bool isAlwaysThere = false; // One of the two.
  };

  ValueId named(ValueId v, const Recipe &r, SegmentId s) const {
    return namedIn(problem, v, r.segment == kNone ? s : r.segment);
  }
  std::vector<ValueId> readsOf(const Recipe &r, SegmentId s) const;
  std::vector<ValueId> certainReads(InstructionId i) const;
  std::vector<ValueId> certainInputs(ValueId v, bool isWide) const;
  void findMakers();
  void addNodes();
  void addReads();
  void addUpdates();
  void addUpdate(InstructionId i, ValueId old);
  void addBarriers();
  void findCarries();
  int64_t operandBytes(InstructionId i) const;
  void addEdge(int32_t from, int32_t to) {
    behind[from].push_back(to);
    before[to].push_back(from);
    ++numEdges;
  }
  bool isOrdered(ValueId v, SegmentId reader) const;
  bool isReadIn(ValueId v, SegmentId s) const;
  bool isReadBehind(ValueId v, InstructionId k,
                    const std::vector<char> &isBehind) const;

  const ValueFacts values;
  std::vector<Fact> facts;   // By value.
  std::vector<ValueId> made; // Temporaries with bytes.
  std::vector<Carry> carries;
  std::vector<SegmentId> segments; // By node; kNone: any.
  std::vector<std::vector<int32_t>> before, behind;
  std::vector<std::vector<ValueId>> direct; // By instruction: certain reads.
  std::vector<int64_t> operands;            // By instruction: least bytes.
  std::vector<int32_t> place;               // By instruction: in the program.
  int64_t numEdges = 0;
};

} // namespace tmc::planning

#endif // TMC_COMPILER_PLANNING_BOUND_ANYORDERGRAPH_H
