// Random.h - dropout, from counter-based random numbers.

#ifndef TMC_FRONTENDS_COMMON_OPS_RANDOM_H
#define TMC_FRONTENDS_COMMON_OPS_RANDOM_H

#include "frontends/common/Site.h"

namespace tmc::frontend {

/// Uniform random numbers of shape `dims`, keyed by sample.
mlir::FailureOr<mlir::Value> uniform(Site &s, llvm::ArrayRef<int64_t> dims);

/// Normal random numbers of mean 0 and variance 1, of shape `dims`: each from
/// two uniform ones, by Box and Muller.
mlir::FailureOr<mlir::Value> normal(Site &s, llvm::ArrayRef<int64_t> dims);

/// `x` with a share `p` of its elements dropped and the others scaled up, and
/// the mask of kept elements. With p = 0, nothing is dropped.
struct Dropout {
  Val y, kept;
};
mlir::FailureOr<Dropout> dropout(Site &s, const Val &x, double p);

} // namespace tmc::frontend

#endif // TMC_FRONTENDS_COMMON_OPS_RANDOM_H
