// ShardHomes.h - parameters that a rank keeps whole beside others' shards.
//
// With shards of all parameters a step begins with a gather that nothing hides,
// in each trip of its micro-batches. With whole parameters none is gathered
// again, and a rank has room for them, or doesn't. Between the two are steps
// that keep the first parameters that they read whole, `whole=N`:
//
//     zero=3            every parameter is a shard
//     zero=3 whole=1    but the first that the step reads: the embedding's
//     zero=3 whole=2    but the first two
//     ...
//     zero=2            none
//
// The two ends are planned in full (StepForms.h). If kernels wait in the faster
// one, coarse plans of N = 1, 2, 4, ... show if some N is faster within the
// budget. The fastest is planned in full, too, and the fastest full plan is the
// step's: it is never slower than both ends.
//
// Over micro-batches ranks add up whole gradients, or shards of them, which
// take fewer bytes and more messages. If tmc chooses, the two ends have one of
// each, and coarse plans of the other pairs show if one is faster.

#ifndef TMC_DRIVER_PIPELINE_SHARDHOMES_H
#define TMC_DRIVER_PIPELINE_SHARDHOMES_H

#include "driver/pipeline/Candidate.h"

namespace tmc {

/// True if tmc chooses the sums that ranks carry over micro-batches.
bool mayAddShards(const Candidate &candidate);

/// Replaces the planned `candidate.form`, which fits, by one that adds up other
/// sums or keeps other shards, if that is faster. The form that adds whole sums
/// and keeps whole parameters was planned, and the one that adds and keeps
/// shards. Errors: those of `planForms`, without OverBudget.
Expected<void> tryOtherSums(Candidate &candidate, const PlanRequest &request);

/// Replaces the planned `candidate.form`, which fits, by one that keeps some
/// parameters whole, if that is faster. Errors: those of `planForms`, without
/// OverBudget.
Expected<void> keepSomeWhole(Candidate &candidate, const PlanRequest &request);

} // namespace tmc

#endif // TMC_DRIVER_PIPELINE_SHARDHOMES_H
