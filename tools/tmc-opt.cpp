// tmc-opt - run tmc passes on textual IR; the tool behind every lit test.

#include "driver/pipeline/Dialects.h"
#include "driver/pipeline/PlantDefect.h"
#include "passes/OnTarget.h"

#include "mlir/IR/DialectRegistry.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "mlir/Transforms/Passes.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  tmc::registerAllDialects(registry);
  mlir::registerTransformsPasses();
  tmc::registerPasses(tmc::findTarget);
  tmc::registerPlantDefect();
  return mlir::asMainReturnCode(
      mlir::MlirOptMain(argc, argv, "tmc optimizer driver\n", registry));
}
