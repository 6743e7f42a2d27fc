// Activation.h - activation functions, in terms of arith and math.
//
// They apply to values of a step; constants are folded only by relu and clamp.

#ifndef TMC_FRONTENDS_COMMON_OPS_ACTIVATION_H
#define TMC_FRONTENDS_COMMON_OPS_ACTIVATION_H

#include "frontends/common/Site.h"

namespace tmc::frontend {

mlir::FailureOr<Val> relu(Site &s, const Val &x);
mlir::FailureOr<Val> sigmoid(Site &s, const Val &x);
/// x * sigmoid(alpha * x): SiLU if `alpha` is 1.
mlir::FailureOr<Val> swish(Site &s, const Val &x, double alpha);
mlir::FailureOr<Val> gelu(Site &s, const Val &x, bool tanh);
mlir::FailureOr<Val> leakyRelu(Site &s, const Val &x, double slope);
/// `slope` broadcasts to the shape of `x`.
mlir::FailureOr<Val> prelu(Site &s, const Val &x, const Val &slope);
/// scale * (x > 0 ? x : alpha * (exp(x) - 1)).
mlir::FailureOr<Val> exponentialUnit(Site &s, const Val &x, double alpha,
                                     double scale);
mlir::FailureOr<Val> softplus(Site &s, const Val &x);
mlir::FailureOr<Val> mish(Site &s, const Val &x);
mlir::FailureOr<Val> softsign(Site &s, const Val &x);
/// min(max(alpha * x + beta, 0), 1).
mlir::FailureOr<Val> hardSigmoid(Site &s, const Val &x, double alpha,
                                 double beta);
mlir::FailureOr<Val> hardSwish(Site &s, const Val &x);
/// `x` between the given bounds; constants are folded.
mlir::FailureOr<Val> clamp(Site &s, const Val &x, std::optional<double> low,
                           std::optional<double> high);

} // namespace tmc::frontend

#endif // TMC_FRONTENDS_COMMON_OPS_ACTIVATION_H
