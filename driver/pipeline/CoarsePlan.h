// CoarsePlan.h - a quick estimate of a step's time and memory.
//
// A coarse plan serves to compare a program with others. It uses recomputation
// and order alone. Where these cost time and values may move, a second plan
// uses the moves, too. No code is written and nothing is packed; a part of each
// budget stays free for the losses of packing:
//
//     kPackingPart    1/128 of the device's budget

#ifndef TMC_DRIVER_PIPELINE_COARSEPLAN_H
#define TMC_DRIVER_PIPELINE_COARSEPLAN_H

#include "compiler/support/Failure.h"

#include <cmath>
#include <cstdint>

namespace tmc {

struct PlanRequest;
struct StepForm;

/// One part in so many of the device's budget stays free for packing.
inline constexpr int64_t kPackingPart = 128;

struct CoarsePlan {
  bool fits = false;
  double seconds = -1; // The fastest plan found; -1: none.
  /// By recomputation and order alone; -1: no plan was found.
  double stayingSeconds = -1;
  /// Time of all kernels once: no plan without updates on the host is faster.
  double baseSeconds = -1;
  /// The peak in the program's own order, without the reserved bytes.
  int64_t baseBytes = -1;
  bool moves = false; // The fastest plan moves values.
  /// The approximate need of the step on the device, reserved bytes included:
  /// the peak of the best plan that stays there, or, where values may leave,
  /// the peak of the step without a budget.
  int64_t neededBytes = -1;
  /// No plan fits a smaller budget of the device.
  int64_t impossibleBelowBytes = -1;
  /// No plan was sought, because none takes less than `provenSeconds`, which is
  /// no less than the caller's `useless`.
  bool isLeftOut = false;
  double provenSeconds = -1;
};

/// The coarse plan of a shaped step: the better one of the plans of its forms,
/// `form` and, if it has a module, `other`. Each form gets its own plan as its
/// `coarse`; the modules stay as they are. If no plan takes less than `useless`
/// seconds, none is sought. Errors: those of `planForms`, without OverBudget.
Expected<CoarsePlan> planCoarsely(StepForm &form, StepForm &other,
                                  const PlanRequest &request,
                                  double useless = HUGE_VAL);

/// True if a coarse plan of a shaped step that moves nothing misses the budget
/// by far. If values may move, no full plan without moves is worth its time
/// then.
bool isFarFromFitting(mlir::ModuleOp module, const PlanRequest &request);

} // namespace tmc

#endif // TMC_DRIVER_PIPELINE_COARSEPLAN_H
