// SpaceModel.h - the terms of `SpaceBound.h`'s sum, found once and summed
// often.

#ifndef TMC_COMPILER_PLANNING_BOUND_SPACEMODEL_H
#define TMC_COMPILER_PLANNING_BOUND_SPACEMODEL_H

#include "compiler/planning/model/Problem.h"

#include <utility>

namespace tmc::planning {

struct SpaceModel {
  /// Moments [begin, end), in `copies` trips.
  struct Range {
    int32_t begin = 0, end = 0;
    int64_t copies = 1;
  };
  struct Gap {
    ValueId value = kNone;
    std::vector<Range> ranges;
    SegmentId from = 0, to = 0; // Segments where it can be broken, inclusive.
  };
  struct Variant {
    EngineId engine = 0;
    int64_t cost = 0;
    std::vector<std::pair<SpaceId, int64_t>> bytes; // Its operands'.
    std::vector<int32_t> gaps;
    std::vector<ValueId> inputs; // Forms that only moves make.
  };
  /// An instruction in `times` of its trips, which have the same gaps. Moment
  /// kNone: the end of the step, which reads the values alive there.
  struct Run {
    int32_t moment = kNone;
    SegmentId segment = 0;
    int64_t times = 1;
    std::vector<Variant> variants;
  };
  /// A recipe that may write a value outside the instructions' own runs.
  struct Breaker {
    EngineId engine = 0;
    SegmentId segment = kNone;
    int64_t cost = 0;
    int64_t shares = 1; // Number of values that it writes.
  };

  explicit SpaceModel(const Problem &problem);

  const Problem &problem;
  std::vector<InstructionId> order; // Per moment.
  std::vector<int32_t> begins;      // By segment, and the end.
  std::vector<Run> runs;
  std::vector<Gap> gaps;
  std::vector<std::vector<Breaker>> breakers; // Per value.
  std::vector<int64_t> readers;               // Executions that may read it.
  std::vector<char> resident;                 // Per value.
  std::vector<int64_t> residentBytes;         // Per space.

private:
  struct Place {
    SegmentId segment = kNone;
    int pass = 0;
    int32_t moment = kNone;
    bool known = false;
  };
  void findResident();
  void findWriters();
  void addRun(SegmentId segment, int pass, int32_t moment);
  void addTails();
  int32_t addGap(ValueId v, Place from, SegmentId segment, int pass,
                 int32_t moment);
  Variant variantOf(const Recipe &recipe) const;
  bool isInput(ValueId v) const;

  std::vector<std::vector<ValueId>> forms; // Per main form.
  std::vector<ValueId> heir;               // The value that updates it.
  std::vector<char> ownWritten;            // By some variant.
  std::vector<Place> last;
  std::vector<int32_t> firstGap; // From the start of the step.
};

/// Whether the recipe may be a copy of a first trip's nothing (R15).
bool mayBeFree(const Problem &problem, const Recipe &recipe);

} // namespace tmc::planning

#endif // TMC_COMPILER_PLANNING_BOUND_SPACEMODEL_H
