// Compile.h - `tmc compile`: everything from a model file to a directory.

#ifndef TMC_DRIVER_PIPELINE_COMPILE_H
#define TMC_DRIVER_PIPELINE_COMPILE_H

#include "driver/pipeline/Pipeline.h"

namespace tmc {

/// Compiles as `options` say; prints data (`--to`, `--emit mlir`) on standard
/// output and a summary on standard error.
Expected<void> compileModel(const CompileOptions &options);

} // namespace tmc

#endif // TMC_DRIVER_PIPELINE_COMPILE_H
