// PlantDefect.h - a pass that fails on purpose, to test the reports of defects.

#ifndef TMC_DRIVER_PIPELINE_PLANTDEFECT_H
#define TMC_DRIVER_PIPELINE_PLANTDEFECT_H

#include "mlir/Pass/Pass.h"

#include <memory>
#include <string>

namespace tmc {

/// `kind`: "error" emits an error, "silent" fails without one, "invalid" leaves
/// IR that doesn't verify, "crash" reads address 0, "fault" emits an error that
/// blames the input, "stranger" adds an op that no later phase knows.
std::unique_ptr<mlir::Pass> createPlantDefect(const std::string &kind);

/// -tmc-plant-defect, so that reproducers can be run.
void registerPlantDefect();

} // namespace tmc

#endif // TMC_DRIVER_PIPELINE_PLANTDEFECT_H
