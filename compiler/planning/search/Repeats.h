// Repeats.h - the parts of a step that repeat each other, found by their
// structure.
//
// Two stages are *isomorphic* if they run by operations of equal cost and
// workspace, and what these read and write is of equal size and comes from and
// goes to stages that are isomorphic as well, up to a few steps away: one
// 64-bit hash per stage, refined round by round, in O(rounds * edges). Names
// play no part, and neither does where a stage stands: the k-th kernel of one
// layer is like the k-th of the next, and only the first and the last layers,
// whose neighbours differ, are like none.
//
// The search uses this to copy what it has found out about one layer to another
// (`translate`). A wrong guess costs it one refused move, so equal hashes are
// taken at their word.

#ifndef TMC_COMPILER_PLANNING_SEARCH_REPEATS_H
#define TMC_COMPILER_PLANNING_SEARCH_REPEATS_H

#include "compiler/planning/search/Schedule.h"

namespace tmc::planning {

class Repeats {
public:
  explicit Repeats(const LinearProblem &linear);

  /// Stages that are like another one.
  int64_t count() const { return repeated; }
  bool areIsomorphic(int32_t a, int32_t b) const {
    return group[a] == group[b];
  }
  /// The stages like `stage`, itself included, ascending.
  std::span<const int32_t> like(int32_t stage) const {
    return std::span(members).subspan(
        begin[group[stage]], begin[group[stage] + 1] - begin[group[stage]]);
  }

  /// What the recomputations of the stages `from` to `to` would be in those
  /// `shift` stages further on: of the values that stand in the same places.
  /// Those read only beyond `to` are left out. False: the two aren't
  /// isomorphic.
  bool translate(const Schedule &schedule, int32_t from, int32_t to,
                 int32_t shift, std::vector<Schedule::Clone> &out);

private:
  bool match(const LinearOp &a, const LinearOp &b);

  const LinearProblem &linear;
  int64_t repeated = 0;
  std::vector<int32_t> group;   // Of each stage.
  std::vector<int32_t> members; // Group by group.
  std::vector<int32_t> begin;   // Of each group in `members`, and the end.
  // The value in the place of another, of the translation at hand.
  struct Counterpart {
    uint32_t translation = 0;
    ValueId value = kNone;
  };
  std::vector<Counterpart> counterparts;
  uint32_t translation = 0;
};

} // namespace tmc::planning

#endif // TMC_COMPILER_PLANNING_SEARCH_REPEATS_H
