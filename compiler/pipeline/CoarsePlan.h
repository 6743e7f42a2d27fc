// CoarsePlan.h - what a step comes to, roughly and soon.
//
// Who compares programs plans each of them a little: by recomputation and order
// alone, then, where these cost time and values may move, with the moves. No
// code is written and nothing is packed; a part of each budget is kept free for
// what packing loses:
//
//     kPackingPart    1/128 of the device's budget

#ifndef TMC_COMPILER_PIPELINE_COARSEPLAN_H
#define TMC_COMPILER_PIPELINE_COARSEPLAN_H

#include "compiler/support/Failure.h"

#include <cmath>
#include <cstdint>

namespace tmc {

struct PlanRequest;
struct StepForm;

/// Of the device's budget, what packing may lose.
inline constexpr int64_t kPackingPart = 128;

struct CoarsePlan {
  bool fits = false;
  double seconds = -1; // Of a step, by the quickest plan found; -1: none.
  /// By recomputation and order alone; -1: that finds no plan.
  double stayingSeconds = -1;
  /// Of all kernels once: no plan without updates on the host is quicker.
  double baseSeconds = -1;
  /// What that takes, reserved left out: the peak in the program's own order.
  int64_t baseBytes = -1;
  bool moves = false; // The quickest plan's values do.
  /// About what the step needs of the device, reserved included: the peak of
  /// the best plan that stays there, or, where values may leave, what the step
  /// takes without a budget.
  int64_t neededBytes = -1;
  /// No plan fits a smaller budget of the device.
  int64_t impossibleBelowBytes = -1;
  /// Every plan was proved to be useless, so none was sought: none takes less
  /// than `provenSeconds`.
  bool isLeftOut = false;
  double provenSeconds = -1;
};

/// The coarse plan of a shaped step: the better one of those of its forms,
/// `form` and, where it has a module, `other`. Each gets its own as its
/// `coarse`; the modules stay as they are. Plans of `useless` seconds or more
/// aren't sought where no other can be. Errors: as `planForms` has, but for a
/// budget that isn't met.
Expected<CoarsePlan> planCoarsely(StepForm &form, StepForm &other,
                                  const PlanRequest &request,
                                  double useless = HUGE_VAL);

} // namespace tmc

#endif // TMC_COMPILER_PIPELINE_COARSEPLAN_H
