// ForwardFile.h - a forward graph that is IR already: MODEL.mlir.
//
// For research and tests: the output of `tmc compile model.onnx --to import`
// (or a later phase before `split`) can be edited and compiled again.

#ifndef TMC_DRIVER_PIPELINE_FORWARDFILE_H
#define TMC_DRIVER_PIPELINE_FORWARDFILE_H

#include "compiler/support/Failure.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

#include <string>

namespace tmc {

/// True if `path` is taken for IR instead of ONNX: by its extension.
bool isForwardFile(const std::string &path);

/// The module of the file, which holds @forward with exactly one loss. Its
/// values have no weights.
Expected<mlir::OwningOpRef<mlir::ModuleOp>>
readForward(const std::string &path, mlir::MLIRContext &context);

} // namespace tmc

#endif // TMC_DRIVER_PIPELINE_FORWARDFILE_H
