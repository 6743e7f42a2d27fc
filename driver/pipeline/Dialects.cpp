#include "driver/pipeline/Dialects.h"

#include "dialects/interfaces/Interfaces.h"
#include "dialects/mem/Mem.h"
#include "dialects/nn/NN.h"
#include "dialects/train/Train.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/DialectRegistry.h"

void tmc::registerAllDialects(mlir::DialectRegistry &registry) {
  registry.insert<mlir::arith::ArithDialect, mlir::func::FuncDialect,
                  mlir::math::MathDialect, tmc::mem::MemDialect,
                  tmc::nn::NNDialect, tmc::train::TrainDialect>();
  registerArithModels(registry);
  registerMathModels(registry);
}
