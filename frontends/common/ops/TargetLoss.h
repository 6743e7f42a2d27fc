// TargetLoss.h - losses of scores and floating-point targets.
//
// The results aren't reduced unless a comment says so. A target broadcasts.

#ifndef TMC_FRONTENDS_COMMON_OPS_TARGETLOSS_H
#define TMC_FRONTENDS_COMMON_OPS_TARGETLOSS_H

#include "frontends/common/Site.h"

namespace tmc::frontend {

/// Minus target * log(sigmoid(x)) + (1 - target) * log(1 - sigmoid(x)), in a
/// form that can't overflow. `positive` weighs the first term, or is absent.
mlir::FailureOr<Val> binaryCrossEntropyOfLogits(Site &s, const Val &x,
                                                const Val &target,
                                                const Val &positive);

/// The same for probabilities; logarithms are at least -100, as in PyTorch.
mlir::FailureOr<Val> binaryCrossEntropy(Site &s, const Val &probability,
                                        const Val &target);

/// target * (log(target) - logs), 0 where the target is 0. If the targets are
/// logarithms themselves, exp(target) * (target - logs).
mlir::FailureOr<Val> divergence(Site &s, const Val &logs, const Val &target,
                                bool ofLogarithms);

/// Minus the sum over classes of shares * weights * log(softmax(x)), for `x`
/// and `shares` [N, V, ...]: [N, ...]. `weights` [V] may be absent; `smoothing`
/// spreads that part of each share evenly.
mlir::FailureOr<Val> softCrossEntropy(Site &s, const Val &x, const Val &shares,
                                      const Val &weights, double smoothing);

} // namespace tmc::frontend

#endif // TMC_FRONTENDS_COMMON_OPS_TARGETLOSS_H
