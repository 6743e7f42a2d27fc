// Einsum.h - Einstein's summation.

#ifndef TMC_FRONTENDS_COMMON_OPS_EINSUM_H
#define TMC_FRONTENDS_COMMON_OPS_EINSUM_H

#include "frontends/common/Site.h"

namespace tmc::frontend {

/// The sum that `equation`, "bij,bjk->bik", defines, over floats of one type.
mlir::FailureOr<Val> einsum(Site &s, std::string equation,
                            llvm::ArrayRef<Val> operands);

} // namespace tmc::frontend

#endif // TMC_FRONTENDS_COMMON_OPS_EINSUM_H
