// Random.cpp - nn.random.

#include "dialects/nn/Builders.h"
#include "dialects/nn/NN.h"

using namespace mlir;
using namespace tmc;
using namespace tmc::nn;

LogicalResult RandomOp::verify() {
  RankedTensorType seed = tensorType(getSeed()),
                   samples = tensorType(getSamples());
  RankedTensorType result = tensorType(getResult());
  if (seed.getShape() != ArrayRef<int64_t>{2}) // C1
    return emitOpError("wants a seed and a step, and has ") << seed;
  if (samples.getRank() != 1 || result.getRank() < 1 ||
      samples.getDimSize(0) == 0 ||
      result.getDimSize(0) % samples.getDimSize(0)) // C1
    return emitOpError("draws ")
           << result << " for the samples " << samples
           << ", whose number doesn't divide its first dimension";
  return success();
}

/// Ten rounds of Philox, two multiplications each, give four numbers.
static constexpr int64_t kFlopsPerDraw = 10;

int64_t RandomOp::getFlops() {
  return kFlopsPerDraw * tensorType(getResult()).getNumElements();
}

int64_t RandomOp::getBytesMoved() { return sizeInBytes(getResult().getType()); }

/// A number depends on its place in the sample, so only samples are cut.
OpCuts RandomOp::getCuts() {
  OpCuts cuts(*this, "its seed depends on the batch");
  cuts.add({OpCut::kWhole, 0}, Rejoin::concat(0));
  return cuts;
}
