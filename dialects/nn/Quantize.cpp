// Quantize.cpp - nn.quantize.

#include "dialects/nn/Builders.h"
#include "dialects/nn/NN.h"
#include "dialects/nn/Scales.h"

#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace tmc;
using namespace tmc::nn;

std::optional<ScaleBlock> tmc::nn::scaleBlockOf(RankedTensorType codes,
                                                RankedTensorType scale) {
  if (scale.getRank() == 0)
    return ScaleBlock{};
  int64_t rank = codes.getRank();
  if (rank < 2 || scale.getRank() != rank ||
      codes.getShape().drop_back(2) != scale.getShape().drop_back(2))
    return std::nullopt;
  auto sizeAlong = [&](int64_t dim) -> int64_t {
    int64_t size = codes.getDimSize(dim), scales = scale.getDimSize(dim);
    if (scales == size)
      return 1;
    return scales == blocksIn(size, kScaleBlock) ? kScaleBlock : 0;
  };
  ScaleBlock block{sizeAlong(rank - 2), sizeAlong(rank - 1)};
  if (!block.rows || !block.columns)
    return std::nullopt;
  return block;
}

RankedTensorType tmc::nn::scaleTypeFor(RankedTensorType codes,
                                       ScaleBlock block) {
  SmallVector<int64_t> shape;
  if (!block.isWhole()) {
    shape.assign(codes.getShape().begin(), codes.getShape().end());
    shape.end()[-2] = blocksIn(shape.end()[-2], block.rows);
    shape.end()[-1] = blocksIn(shape.end()[-1], block.columns);
  }
  return RankedTensorType::get(shape, Float32Type::get(codes.getContext()));
}

void QuantizeOp::build(OpBuilder &builder, OperationState &state, Value input,
                       Type codeElement) {
  RankedTensorType codes = tensorType(input).clone(codeElement);
  build(builder, state, codes, scaleTypeFor(codes, {}), Type(), Type(), input,
        Value());
}

LogicalResult QuantizeOp::verify() {
  RankedTensorType input = tensorType(getInput()),
                   codes = tensorType(getCodes()),
                   scale = tensorType(getScale());
  if (input.getShape() != codes.getShape()) // C1
    return emitOpError("makes codes of type ") << codes << " of " << input;
  if (!scaleBlockOf(codes, scale)) // C2
    return emitOpError("makes scales of type ") << scale << " of " << input;
  if (bool(getHistory()) != bool(getAmax()) ||
      (getHistory() && scale.getRank())) // C3
    return emitOpError("a history goes with an amax, a count and one scale");
  return success();
}

int64_t QuantizeOp::getFlops() {
  return 2 * tensorType(getInput()).getNumElements();
}

/// The whole tensor is read twice; a block stays in the cache.
int64_t QuantizeOp::getBytesMoved() {
  int64_t bytes = sumOfTensorBytes(*this);
  return tensorType(getScale()).getRank()
             ? bytes
             : bytes + sizeInBytes(getInput().getType());
}

BatchSplit QuantizeOp::getSplit(ArrayRef<int64_t> batchDims) {
  int64_t dim = batchDims[0];
  if (getHistory())
    return BatchSplit::refuse("its scale is the step's");
  if (dim < 0)
    return {{Rejoin::whole(), Rejoin::whole()}, ""};
  RankedTensorType scale = tensorType(getScale());
  if (!scale.getRank() ||
      scale.getDimSize(dim) != tensorType(getInput()).getDimSize(dim))
    return BatchSplit::refuse("what shares a scale goes across the batch");
  return {{Rejoin::concat(dim), Rejoin::concat(dim)}, ""};
}

KernelCall QuantizeOp::getKernel(ArrayRef<MemRefType> inputs, Backend backend) {
  RankedTensorType codes = tensorType(getCodes());
  ScaleBlock block = *scaleBlockOf(codes, tensorType(getScale()));
  bool isMatrix = codes.getRank() >= 2;
  Quantize::Params p{
      .in = runtimeType(getInput().getType()),
      .codes = runtimeType(codes),
      .batch = isMatrix ? llvm::product_of(codes.getShape().drop_back(2)) : 1,
      .rows = isMatrix ? codes.getShape().drop_back().back() : 1,
      .columns = isMatrix ? codes.getShape().back() : codes.getNumElements(),
      .blockRows = block.rows,
      .blockColumns = block.columns,
      .history = getHistory() ? tensorType(getHistory()).getDimSize(0) : 0};
  KernelCall call(getContext(), "Quantize",
                  Quantize::takes(p.in, p.codes, backend));
  call.type("in", getInput().getType())
      .type("codes", codes)
      .integer("batch", p.batch)
      .integer("rows", p.rows)
      .integer("columns", p.columns)
      .integer("blockRows", p.blockRows)
      .integer("blockColumns", p.blockColumns);
  if (p.history)
    call.integer("history", p.history);
  call.scratchBytes = Quantize::scratchCap(p, backend);
  return call;
}
