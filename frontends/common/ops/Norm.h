// Norm.h - normalizations and softmax.

#ifndef TMC_FRONTENDS_COMMON_OPS_NORM_H
#define TMC_FRONTENDS_COMMON_OPS_NORM_H

#include "frontends/common/Site.h"

namespace tmc::frontend {

/// Softmax over one dimension, or its logarithm.
mlir::FailureOr<Val> softmax(Site &s, const Val &x, int64_t axis, bool log);

/// Layer normalization over the dimensions from `axis` on; `scale` and `shift`
/// broadcast to those, and may be absent.
mlir::FailureOr<Val> layerNorm(Site &s, const Val &x, int64_t axis,
                               const Val &scale, const Val &shift,
                               double epsilon);
/// The same with the root mean square.
mlir::FailureOr<Val> rmsNorm(Site &s, const Val &x, int64_t axis,
                             const Val &scale, double epsilon);

/// The normalized groups of channels of `x` [N, C, ...], times `scale` plus
/// `shift`, which are vectors of channels or of groups, or absent.
mlir::FailureOr<Val> groupNorm(Site &s, const Val &x, int64_t groups,
                               const Val &scale, const Val &shift,
                               double epsilon);

/// Normalization of the channels of [N, C, ...] over the batch.
struct BatchNorm {
  Val x, scale, shift, mean, variance; ///< `x`, and vectors of channels.
  double epsilon = 1e-5;
  double momentum = 0.1; ///< The weight of the new statistics, as in PyTorch.
};
/// Uses given statistics: running ones of a module that doesn't train, or
/// values that the graph computes. Stored ones become states that don't change.
mlir::FailureOr<Val> batchNormByStatistics(Site &s, const BatchNorm &norm);
/// Uses the batch's own statistics; stored running statistics become states,
/// with their new values. The new variance is the sample variance (n - 1).
struct BatchNormResults {
  mlir::Value y, newMean, newVariance, mean;
};
mlir::FailureOr<BatchNormResults> batchNormByBatch(Site &s,
                                                   const BatchNorm &norm);

} // namespace tmc::frontend

#endif // TMC_FRONTENDS_COMMON_OPS_NORM_H
