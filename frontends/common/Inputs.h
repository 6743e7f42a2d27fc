// Inputs.h - marks inputs that belong to every sample.

#ifndef TMC_FRONTENDS_COMMON_INPUTS_H
#define TMC_FRONTENDS_COMMON_INPUTS_H

#include "frontends/common/Importer.h"

namespace tmc::frontend {

/// If the file states which dimension counts samples: marks the arguments of
/// inputs that don't begin with a symbolic dimension (dialects/train/Batch.h).
void markUncut(mlir::func::FuncOp function, llvm::ArrayRef<Declared> inputs);

} // namespace tmc::frontend

#endif // TMC_FRONTENDS_COMMON_INPUTS_H
