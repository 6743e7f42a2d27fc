// ValueFacts.h - facts about values that hold in every order.

#ifndef TMC_COMPILER_PLANNING_BOUND_VALUEFACTS_H
#define TMC_COMPILER_PLANNING_BOUND_VALUEFACTS_H

#include "compiler/planning/model/Problem.h"

#include <span>

namespace tmc::planning {

struct ValueFacts {
  /// A recipe that may write a value outside the instructions' own runs.
  struct Maker {
    RecipeId recipe = kNone;
    EngineId engine = 0;
    SegmentId segment = kNone; // The only one where it may run; kNone: any.
    int64_t cost = 0;          // The value's share of one execution, by bytes.
    bool isFree = false; // It may be a copy of a first trip's nothing (R15).
  };

  explicit ValueFacts(const Problem &problem);

  std::span<const Maker> makersOf(ValueId v) const {
    return {makers.data() + makerBegin[v], makers.data() + makerBegin[v + 1]};
  }

  std::vector<ValueId> nextForm; // The content's, from the main one on.
  std::vector<ValueId> heir;     // The value that updates it.
  /// Values that never leave: of chains of updates in which every content has
  /// one possible home. And their bytes, by space.
  std::vector<char> resident;
  std::vector<int64_t> residentBytes;
  std::vector<char> ownWritten; // By some variant of an instruction.
  std::vector<int64_t> readers; // Executions of instructions that may read it.

private:
  void findForms(const Problem &problem);
  void findResident(const Problem &problem);
  void findMakers(const Problem &problem);
  void findUses(const Problem &problem);

  std::vector<int32_t> makerBegin; // By value, and the end.
  std::vector<Maker> makers;
};

/// In a segment of one trip a carried value goes by its first name; kNone: it
/// is nothing.
ValueId namedIn(const Problem &problem, ValueId v, SegmentId s);

bool isRead(const Recipe &recipe, ValueId v);

/// True if the recipe may be a copy of a first trip's nothing (R15).
bool mayBeFree(const Problem &problem, const Recipe &recipe);

} // namespace tmc::planning

#endif // TMC_COMPILER_PLANNING_BOUND_VALUEFACTS_H
