// Unroll.h - the execution list of a solution with its loops laid out, and the
// instances that it makes.
//
// Of a segment with several trips the first, a middle one and the last are laid
// out: what is alive in a trip depends on the trip before and on whether
// another follows, so every moment of the rest is one of those shown.

#ifndef TMC_COMPILER_PLANNING_MODEL_UNROLL_H
#define TMC_COMPILER_PLANNING_MODEL_UNROLL_H

#include "compiler/planning/model/Problem.h"

namespace tmc::planning {

struct Unrolled {
  std::vector<Profile::Moment> moments;
  /// Instances in order of `begin`; `storageOf` is set by the overwrites that
  /// the solution takes.
  std::vector<Instance> instances;
  /// Of moment t, the instances its recipe reads and writes, in the recipe's
  /// order: `refs[refBegin[t] ...]`. kNone: the nothing of a first trip.
  std::vector<int32_t> refs;
  std::vector<int32_t> refBegin;

  /// The instance of `value` that `recipe`, running at moment t, reads.
  int32_t readInstance(const Recipe &recipe, size_t t, ValueId value) const;
  int32_t writtenInstance(const Recipe &recipe, size_t t, ValueId value) const;
};

/// Lays out `solution`; an error names the first rule of Problem.h it breaks
/// (R4 is `simulate`'s).
absl::StatusOr<Unrolled> unroll(const Problem &problem,
                                const Solution &solution);

} // namespace tmc::planning

#endif // TMC_COMPILER_PLANNING_MODEL_UNROLL_H
