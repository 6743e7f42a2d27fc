// Import.h - from an ONNX file to the nn dialect.
//
//   model.onnx ──Wire──> stripped ──protobuf──> graph ──operators──> module
//       │                                                              │
//       └── tensors' bytes stay in the file <── Weights ── names ──────┘
//
// frontends/common/Import.h describes the module. Parameters are the float
// initializers with a differentiable path to the loss; if the file has the
// exporter's notes, these distinguish buffers from parameters. One initializer
// used twice (a tied embedding) is one argument.
//
// Operators are imported by functions that register themselves, one file per
// family in ops/; Node.h shows how to add one.

#ifndef TMC_FRONTENDS_ONNX_IMPORT_H
#define TMC_FRONTENDS_ONNX_IMPORT_H

#include "frontends/common/Import.h"

namespace tmc {

/// Imports the model at `path`.
Expected<ImportedModel> importOnnx(const std::string &path,
                                   const ImportOptions &options,
                                   mlir::MLIRContext &context);

/// Imports a serialized model; its external files lie in `directory`.
Expected<ImportedModel> importOnnxBytes(std::string bytes,
                                        const std::string &directory,
                                        const ImportOptions &options,
                                        mlir::MLIRContext &context);

} // namespace tmc

#endif // TMC_FRONTENDS_ONNX_IMPORT_H
