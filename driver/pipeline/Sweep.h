// Sweep.h - the curve of a planned step: how predicted time falls as
// memory grows.
//
// A sweep plans for a row of budgets, which takes several times as long as one
// plan. On the device alone all plans come from one cache, so a plan for one
// budget also serves every larger one without a better plan: the curve never
// rises. With free levers or moves each point is what `tmc plan` says for its
// budget.

#ifndef TMC_DRIVER_PIPELINE_SWEEP_H
#define TMC_DRIVER_PIPELINE_SWEEP_H

#include "compiler/report/Curve.h"
#include "driver/pipeline/Pipeline.h"

namespace tmc {

/// The curve of the plans already in the cache: no work, and few points.
Curve knownCurve(const Compiled &compiled);

/// Plans for about `count` budgets of a planned step. Empty if no plan is
/// known.
Curve sweep(const Compiled &compiled, int count = 16);

/// The curve of a step with free levers or moves: a plan for each budget, from
/// the least at which a coarse plan is possible. Errors: those of a model that
/// supports no setting.
Expected<Curve> sweepLevers(const Forward &forward,
                            const CompileOptions &options, int count = 16);

} // namespace tmc

#endif // TMC_DRIVER_PIPELINE_SWEEP_H
