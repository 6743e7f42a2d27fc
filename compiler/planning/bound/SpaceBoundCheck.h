// SpaceBoundCheck.h - the checker of certificates of `SpaceBound.h`.
//
// Shares no code with the optimizer that finds and sums them: it runs the
// program's own list trip by trip, unrolled in full, keeps for every value the
// rent accrued at the last instruction that might touch it, and adds up the
// least cost of each instruction. Integers of 128 bits, each sum checked.

#ifndef TMC_COMPILER_PLANNING_BOUND_SPACEBOUNDCHECK_H
#define TMC_COMPILER_PLANNING_BOUND_SPACEBOUNDCHECK_H

#include "compiler/planning/bound/SpaceBound.h"

namespace tmc::planning {

/// The makespan that `certificate` proves for a problem that passes `check`, or
/// the first defect of the certificate. O(executions of the unrolled step).
absl::StatusOr<int64_t> checkSpaceBound(const Problem &problem,
                                        const SpaceCertificate &certificate);

} // namespace tmc::planning

#endif // TMC_COMPILER_PLANNING_BOUND_SPACEBOUNDCHECK_H
