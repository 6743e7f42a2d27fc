#include "frontends/common/Import.h"

#include "dialects/interfaces/Interfaces.h"
#include "dialects/nn/NN.h"
#include "dialects/train/Train.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/DialectRegistry.h"

void tmc::registerImportDialects(mlir::DialectRegistry &registry) {
  registry
      .insert<mlir::arith::ArithDialect, mlir::math::MathDialect,
              mlir::func::FuncDialect, nn::NNDialect, train::TrainDialect>();
  // A file may compute gradients itself.
  registerArithModels(registry);
  registerMathModels(registry);
}
