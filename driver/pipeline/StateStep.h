// StateStep.h - the planning problem of a shaped step, and the claims that hold
// for it without a plan.
//
// A claim about all plans holds for the problem that the flags allow. Where
// values may leave the device, that is the problem with moves, whether or not
// the plan in hand moves anything:
//
//     --offload         impossible below            proven at least
//     none              recomputation, any order    recomputation, this order
//     anything else     moves, any order            moves, the program's order
//
// One step may have two forms (StepForms.h). A claim about the step holds for
// both of them.

#ifndef TMC_DRIVER_PIPELINE_STATESTEP_H
#define TMC_DRIVER_PIPELINE_STATESTEP_H

#include "compiler/analysis/StepProblem.h"
#include "compiler/support/Failure.h"
#include "passes/Offload.h"

#include "mlir/IR/BuiltinOps.h"

namespace tmc {

struct PlanRequest;
struct StepForm;

/// The problem in which all values stay on the device. Sinks the updates of
/// `module`, a shaped step that the result refers to. Errors: the step is too
/// large to plan, or its problem is malformed, a defect.
Expected<StepProblem> stateStep(mlir::ModuleOp module,
                                const PlanRequest &request);

/// The problem in which values may leave the device as the request's flags
/// allow, within `budgets`. Peels the loops of `module`, too. Errors: as above.
Expected<StepProblem> stateWithMoves(mlir::ModuleOp module,
                                     const PlanRequest &request,
                                     const PerSpace<int64_t> &budgets);

/// Lower bounds that hold for every plan of a step.
struct PlanClaims {
  /// No plan fits a smaller budget of the device, reserved included.
  int64_t impossibleBelowBytes = -1;
  /// No plan within the budgets takes less; -1: not asked for.
  int64_t atLeastPs = -1;
  /// The kernels that every plan has, whatever the memory; -1: not asked for.
  /// Both are the largest number if no plan exists.
  int64_t loadPs = -1;
};

enum class Claims { Bytes, BytesAndSeconds };

/// The claims about the form of a step in `module`, which stays as it is, with
/// the request's flags and budgets. Nothing is planned. Without moves
/// `atLeastPs` is the time of all kernels once. Errors: as above.
Expected<PlanClaims> claimsOf(mlir::ModuleOp module, const PlanRequest &request,
                              Claims wanted);

/// No plan of the step in `module`, in any order, takes less within the
/// request's budget of the device if nothing leaves it. Picoseconds; checked.
/// `module` stays as it is. -1: unknown, of several ranks. Errors: as above.
Expected<int64_t> leastInAnyOrder(mlir::ModuleOp module,
                                  const PlanRequest &request);

/// The budget of the device below which no plan of a step exists in `form` or,
/// where it has a module, `other`. Errors: as above.
Expected<int64_t> impossibleBelow(const StepForm &form, const StepForm &other,
                                  const PlanRequest &request);

} // namespace tmc

#endif // TMC_DRIVER_PIPELINE_STATESTEP_H
