// Copies.h - the 16-bit copies of parameters that a step keeps.

#ifndef TMC_PASSES_COPIES_H
#define TMC_PASSES_COPIES_H

#include "dialects/train/Train.h"

namespace tmc {

/// A new state of the step, of type `type`: a copy of the parameter that
/// argument `param` is, named for example "fc.weight.bf16".
mlir::BlockArgument addCopy(train::StepOp step, unsigned param,
                            mlir::Type type);

} // namespace tmc

#endif // TMC_PASSES_COPIES_H
