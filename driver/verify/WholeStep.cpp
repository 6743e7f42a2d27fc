#include "driver/verify/WholeStep.h"

#include "dialects/nn/Ranks.h"

using namespace mlir;
using namespace tmc;

void tmc::makeWhole(train::StepOp step, int64_t ranks) {
  Block &block = step.getBody().front();
  Operation *ret = block.getTerminator();
  OpBuilder b = OpBuilder::atBlockBegin(&block);
  for (OpOperand &returned : ret->getOpOperands()) {
    std::optional<unsigned> arg =
        train::updatedArg(step, returned.getOperandNumber());
    auto whole =
        arg ? step.getArgAttrOfType<TypeAttr>(*arg, train::TrainDialect::kWhole)
            : TypeAttr();
    if (!whole)
      continue;
    b.setInsertionPoint(ret);
    returned.set(nn::GatherOp::create(b, ret->getLoc(), whole.getValue(),
                                      returned.get(), nn::Axis::Data, ranks));
  }
  for (BlockArgument argument : block.getArguments()) {
    const unsigned index = argument.getArgNumber();
    auto whole =
        step.getArgAttrOfType<TypeAttr>(index, train::TrainDialect::kWhole);
    if (!whole)
      continue;
    step.removeArgAttr(index, train::TrainDialect::kWhole);
    // A state has an element for several of its parameter's: shards of both are
    // cut alike, and nn.shard_of would cut the state by itself.
    const Type shard = argument.getType();
    argument.setType(whole.getValue());
    b.setInsertionPointToStart(&block);
    auto cut = nn::ShardOfOp::create(b, argument.getLoc(), argument,
                                     nn::Axis::Data, ranks);
    cut.getResult().setType(cast<RankedTensorType>(shard));
    argument.replaceAllUsesExcept(cut, cut);
  }
  step.setFunctionType(FunctionType::get(
      step.getContext(), block.getArgumentTypes(), ret->getOperandTypes()));
}
