#include "passes/OnTarget.h"

#include "passes/Plan.h"

using namespace tmc;

void tmc::registerPasses(const FindTarget &find) {
  const PassTarget target(find);
  // Of passes with the same name the first registered one counts.
  mlir::registerPass([=] { return createPrecision({}, target); });
  mlir::registerPass([=] { return createRoundAsRead({}, target); });
  mlir::registerPass([=] { return createChooseAttention({}, target); });
  mlir::registerPass([=] { return createVerifyKernels({}, target); });
  mlir::registerPass([=] { return createPlan({}, target, {}); });
  mlir::registerPass([=] { return createLower({}, target); });
  registerTmcPasses();
}
