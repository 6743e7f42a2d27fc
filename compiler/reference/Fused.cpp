// Fused.cpp - runs the region of nn.fused.

#include "compiler/reference/Interpreter.h"
#include "dialects/nn/NN.h"

using namespace mlir;
using namespace tmc::nn;
using namespace tmc::reference;

void tmc::reference::addFused(OpTable &table) {
  table.add<FusedOp>([](FusedOp op, OpCall &call) -> LogicalResult {
    SmallVector<Tensor> arguments;
    for (unsigned i = 0; i < call.getNumInputs(); ++i)
      arguments.push_back(call.in(i));
    FailureOr<SmallVector<Tensor>> results =
        call.run(op.getBody().front(), std::move(arguments));
    if (failed(results))
      return failure();
    for (auto [i, result] : llvm::enumerate(*results))
      call.out(i) = std::move(result);
    return success();
  });
}
