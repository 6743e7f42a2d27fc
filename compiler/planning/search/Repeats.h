// Repeats.h - the parts of a step that repeat, found by their structure.
//
// Two stages are *isomorphic* if their operations have equal cost and
// workspace, and if the values that they read and write have equal sizes and
// connect them to isomorphic stages, up to a few steps away. A 64-bit hash per
// stage, refined round by round in O(rounds * edges), tests this. Neither names
// nor the place of a stage count: the k-th kernel of one layer is like the k-th
// of the next. Only the first and the last layers, whose neighbours differ, are
// like no other.
//
// The search copies the recomputations of one layer to another (`translate`). A
// false match of hashes costs one refused move, so equal hashes count as
// isomorphic.

#ifndef TMC_COMPILER_PLANNING_SEARCH_REPEATS_H
#define TMC_COMPILER_PLANNING_SEARCH_REPEATS_H

#include "compiler/planning/search/Schedule.h"

namespace tmc::planning {

class Repeats {
public:
  explicit Repeats(const LinearProblem &linear);

  /// Number of stages that are isomorphic to another one.
  int64_t count() const { return repeated; }
  bool areIsomorphic(int32_t a, int32_t b) const {
    return group[a] == group[b];
  }
  /// The stages isomorphic to `stage`, itself included, ascending.
  std::span<const int32_t> like(int32_t stage) const {
    return std::span(members).subspan(
        begin[group[stage]], begin[group[stage] + 1] - begin[group[stage]]);
  }

  /// Translates the recomputations of the stages `from` to `to` into those of
  /// the stages `shift` further on: the same operations on the values in the
  /// same places. Recomputations read only after `to` are left out. False: the
  /// two stretches aren't isomorphic.
  bool translate(const Schedule &schedule, int32_t from, int32_t to,
                 int32_t shift, std::vector<Schedule::Clone> &out);

private:
  bool match(const LinearOp &a, const LinearOp &b);

  const LinearProblem &linear;
  int64_t repeated = 0;
  std::vector<int32_t> group;   // Per stage.
  std::vector<int32_t> members; // Group by group.
  std::vector<int32_t> begin;   // Per group, index into `members`, and the end.
  // The value in the place of another, in the current translation.
  struct Counterpart {
    uint32_t translation = 0;
    ValueId value = kNone;
  };
  std::vector<Counterpart> counterparts;
  uint32_t translation = 0;
};

} // namespace tmc::planning

#endif // TMC_COMPILER_PLANNING_SEARCH_REPEATS_H
