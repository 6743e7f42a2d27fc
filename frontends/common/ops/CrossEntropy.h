// CrossEntropy.h - losses of scores and labels.

#ifndef TMC_FRONTENDS_COMMON_OPS_CROSSENTROPY_H
#define TMC_FRONTENDS_COMMON_OPS_CROSSENTROPY_H

#include "frontends/common/Losses.h"
#include "frontends/common/Site.h"

namespace tmc::frontend {

enum class Reduction { None, Sum, Mean };

/// Scores [N, V, ...] and labels [N, ...].
struct LabelLoss {
  Val scores, labels;
  Val weights; ///< One number per class, or absent.
  int64_t ignored = kIgnoredLabel;
  Reduction reduction = Reduction::Mean;
  double smoothing = 0;
};

/// Cross-entropy of logits: a scalar, or [N, ...] without a reduction.
mlir::FailureOr<Val> crossEntropy(Site &s, const LabelLoss &loss);

/// The logarithms of the softmax of the scores, in their shape.
mlir::FailureOr<Val> logSoftmaxOf(Site &s, const LabelLoss &loss);

/// Minus the scores of the labels. For log-softmax scores this is the
/// cross-entropy.
mlir::FailureOr<Val> negativeLogLikelihood(Site &s, const LabelLoss &loss);

} // namespace tmc::frontend

#endif // TMC_FRONTENDS_COMMON_OPS_CROSSENTROPY_H
