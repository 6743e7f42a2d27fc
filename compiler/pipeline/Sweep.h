// Sweep.h - the curve of a planned compilation: how predicted time falls as
// memory grows.
//
// A sweep plans for each of a row of budgets, which takes several times as long
// as one plan does. All plans come from one cache, so a plan that is found for
// one budget serves every larger one for which nothing better is found: the
// curve never rises.

#ifndef TMC_COMPILER_PIPELINE_SWEEP_H
#define TMC_COMPILER_PIPELINE_SWEEP_H

#include "compiler/pipeline/Pipeline.h"
#include "compiler/report/Curve.h"

namespace tmc {

/// The plans that are in the cache as it is: no work, and few points.
Curve knownCurve(Compilation &compilation);

/// About `count` budgets for a compilation that has been planned. Empty where
/// no plan is known.
Curve sweep(Compilation &compilation, int count = 16);

/// The same for a step whose levers are free, or whose values may leave the
/// device, by coarse plans: of each budget the quickest setting of the levers.
/// Errors: those of an import, and of a model that no setting suits.
Expected<Curve> sweepLevers(const CompileOptions &options, int count = 16);

} // namespace tmc

#endif // TMC_COMPILER_PIPELINE_SWEEP_H
