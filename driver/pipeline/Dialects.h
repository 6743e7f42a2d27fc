// Dialects.h - every dialect that tmc's IR may use, with the external models of
// upstream's ops.

#ifndef TMC_DRIVER_PIPELINE_DIALECTS_H
#define TMC_DRIVER_PIPELINE_DIALECTS_H

namespace mlir {
class DialectRegistry;
} // namespace mlir

namespace tmc {
void registerAllDialects(mlir::DialectRegistry &registry);
} // namespace tmc

#endif // TMC_DRIVER_PIPELINE_DIALECTS_H
