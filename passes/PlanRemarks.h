// PlanRemarks.h - every decision of a plan as a remark with its numbers.
//
// Category `plan`; `tmc-opt --remarks-filter=plan` prints them, with
// `--remark-format=yaml --remarks-output-file=FILE` as YAML. Bytes are those of
// the value, times picoseconds, launches count from 0 in the planned step.
//
//     Peak         where the most bytes are alive
//     Kept         a gap between two uses of a value, held: what making it
//                  again costs at least, what its bytes are worth there
//     Recomputed   a gap that isn't held: what was paid
//     Recipe       a recomputation by something else than the value's kernel: a
//                  part of a fused one, from kept results of it
//     InPlace      a result in the storage of an operand that dies there
//     EarlyUpdate  an update with forward or backward work behind it, and the
//                  gradient bytes that it frees early

#ifndef TMC_PASSES_PLANREMARKS_H
#define TMC_PASSES_PLANREMARKS_H

#include "compiler/analysis/StepProblem.h"
#include "compiler/planning/driver/Solve.h"

namespace tmc {

/// Emits the remarks of `plan` where somebody listens. Call before the step is
/// rewritten.
void emitPlanRemarks(train::StepOp step, const StepProblem &stated,
                     const planning::Problem &problem,
                     const planning::Plan &plan);

} // namespace tmc

#endif // TMC_PASSES_PLANREMARKS_H
