// Complex.h - helpers of operators on complex numbers.

#ifndef TMC_FRONTENDS_TORCH_OPS_COMPLEX_H
#define TMC_FRONTENDS_TORCH_OPS_COMPLEX_H

#include "frontends/torch/ops/Pointwise.h"

namespace tmc::torch_import {

/// The parts of complex elements; the imaginary part of a real number is 0.
struct Parts {
  Expression real, imaginary;
};

/// The real parts of pairs (0), or the imaginary ones (1).
mlir::FailureOr<Val> halfOf(Call &c, const Val &z, int64_t which);

/// Both parts of the argument `name`.
mlir::FailureOr<Parts> partsOf(Call &c, const char *name);

/// Sets the result to the pairs of two values, which broadcast.
mlir::LogicalResult setParts(Call &c, const Expression &real,
                             const Expression &imaginary);

} // namespace tmc::torch_import

#endif // TMC_FRONTENDS_TORCH_OPS_COMPLEX_H
