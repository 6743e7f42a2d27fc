// PlanRemarks.h - every decision of a plan as a remark with its numbers.
//
// Category `plan`; `tmc-opt --remarks-filter=plan` prints them, with
// `--remark-format=yaml --remarks-output-file=FILE` as YAML. Bytes are those of
// the value, times picoseconds, launches count from 0 in the planned step.
//
//     Peak         the moment with the most live bytes
//     Kept         a gap between two uses of a value, held: the least cost of
//                  recomputing the value, the worth of its bytes in the gap
//     Recomputed   a gap that isn't held: the cost of recomputation
//     Moved        a gap that the value spends in another space: the time of
//                  its moves
//     Recipe       a recomputation by another kernel than the value's: a part
//                  of a fused one, from its kept results
//     InPlace      a result in the storage of an operand that dies there
//     EarlyUpdate  an update with forward or backward work behind it, and the
//                  gradient bytes that it frees early

#ifndef TMC_PASSES_PLANREMARKS_H
#define TMC_PASSES_PLANREMARKS_H

#include "compiler/analysis/StepProblem.h"
#include "compiler/planning/driver/Solve.h"

namespace tmc {

/// Emits the remarks of `plan` if a listener exists. Call it before the step is
/// rewritten.
void emitPlanRemarks(train::StepOp step, const StepProblem &stated,
                     const planning::Problem &problem,
                     const planning::Plan &plan);

} // namespace tmc

#endif // TMC_PASSES_PLANREMARKS_H
