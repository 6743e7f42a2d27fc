// Gamma.h - the gamma function's logarithm and its derivative, and the
// complement of the error function.
//
// Relative errors are below 2e-7 unless the results are near 0.

#ifndef TMC_FRONTENDS_COMMON_OPS_GAMMA_H
#define TMC_FRONTENDS_COMMON_OPS_GAMMA_H

#include "frontends/common/Site.h"

namespace tmc::frontend {

/// log(|gamma(x)|), whose gradient is the digamma function.
mlir::FailureOr<Val> logGamma(Site &s, const Val &x);

/// The derivative of log(gamma(x)).
mlir::FailureOr<Val> digamma(Site &s, const Val &x);

/// 1 - erf(x), accurate also for small results.
mlir::FailureOr<Val> complementaryError(Site &s, const Val &x);

} // namespace tmc::frontend

#endif // TMC_FRONTENDS_COMMON_OPS_GAMMA_H
