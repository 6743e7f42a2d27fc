// Quantize.cpp - nn.quantize, nn.quantize_both and nn.quantize_blocks.

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
  if (arePacked(scale)) {
    for (int64_t rows : {int64_t(1), kScaleBlock})
      if (codes.getRank() == 2 && codes.getDimSize(0) % kPackedRows == 0 &&
          scale == packedScaleTypeFor(codes, {rows, kScaleBlock}))
        return ScaleBlock{rows, kScaleBlock};
    return std::nullopt;
  }
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

RankedTensorType tmc::nn::packedScaleTypeFor(RankedTensorType codes,
                                             ScaleBlock block) {
  PackedScales place{codes.getDimSize(0), codes.getDimSize(1),
                     /*areSquares=*/block.rows > 1};
  return RankedTensorType::get({place.count()},
                               Float32Type::get(codes.getContext()));
}

std::optional<int64_t> tmc::nn::scaleCutBy(RankedTensorType codes,
                                           RankedTensorType scale,
                                           int64_t dim) {
  if (dim < 0 || scale.getRank() == 0)
    return OpCut::kWhole;
  if (arePacked(scale))
    return std::nullopt;
  int64_t size = codes.getDimSize(dim);
  if (scale.getDimSize(dim) != size && size % kScaleBlock)
    return std::nullopt; // The last block is smaller than the others.
  return dim;
}

void QuantizeOp::build(OpBuilder &builder, OperationState &state, Value input,
                       Type codeElement) {
  RankedTensorType codes = tensorType(input).clone(codeElement);
  build(builder, state, codes, scaleTypeFor(codes, {}), Type(), Type(), input,
        Value());
}

template <typename Op> static LogicalResult verifyQuantize(Op op) {
  RankedTensorType input = tensorType(op.getInput()),
                   codes = tensorType(op.getCodes()),
                   scale = tensorType(op.getScale());
  if (input.getShape() != codes.getShape()) // C1
    return op.emitOpError("makes codes of type ") << codes << " of " << input;
  if (!scaleBlockOf(codes, scale) || arePacked(scale)) // C2
    return op.emitOpError("makes scales of type ") << scale << " of " << input;
  if (bool(op.getHistory()) != bool(op.getAmax()) ||
      (op.getHistory() && scale.getRank())) // C3
    return op.emitOpError("a history goes with an amax, a count and one scale");
  return success();
}

LogicalResult QuantizeOp::verify() { return verifyQuantize(*this); }

LogicalResult QuantizeBothOp::verify() {
  if (failed(verifyQuantize(*this)))
    return failure();
  RankedTensorType codes = tensorType(getCodes());
  if (codes.getRank() < 2) // C1
    return emitOpError("has no two orders of ") << codes;
  if (getTurned().getType() != turnedType(codes)) // C4
    return emitOpError("turns ") << codes << " into " << getTurned().getType();
  return success();
}

LogicalResult QuantizeBlocksOp::verify() {
  RankedTensorType input = tensorType(getInput()),
                   codes = tensorType(getCodes());
  if (input.getRank() != 2 || input.getShape() != codes.getShape() ||
      getTurned().getType() != turnedType(codes)) // C1
    return emitOpError("makes codes of types ")
           << codes << " and " << getTurned().getType() << " of " << input;
  std::optional<ScaleBlock> straight =
                                scaleBlockOf(codes, tensorType(getScale())),
                            turned = scaleBlockOf(tensorType(getTurned()),
                                                  tensorType(getTurnedScale()));
  if (!straight || !turned || straight->rows != turned->rows ||
      !arePacked(tensorType(getScale())) ||
      !arePacked(tensorType(getTurnedScale()))) // C2
    return emitOpError("makes scales of types ")
           << getScale().getType() << " and " << getTurnedScale().getType()
           << " of " << input;
  for (int64_t first : getUnread().value_or(ArrayRef<int64_t>())) // C3
    if (first != 0 && first != 2)
      return emitOpError("doesn't leave out result ") << first;
  return success();
}

void QuantizeBlocksOp::build(OpBuilder &builder, OperationState &state,
                             Value input, Type codeElement, bool areSquares) {
  RankedTensorType codes = tensorType(input).clone(codeElement);
  RankedTensorType turned = turnedType(codes);
  ScaleBlock block{areSquares ? kScaleBlock : 1, kScaleBlock};
  build(builder, state, codes, packedScaleTypeFor(codes, block), turned,
        packedScaleTypeFor(turned, block), input, /*unread=*/nullptr);
}

RankedTensorType tmc::nn::turnedType(RankedTensorType type) {
  SmallVector<int64_t> shape(type.getShape());
  std::swap(shape.end()[-1], shape.end()[-2]);
  return type.clone(shape);
}

static int64_t flopsOfQuantize(Value input) {
  return 2 * tensorType(input).getNumElements();
}
int64_t QuantizeOp::getFlops() { return flopsOfQuantize(getInput()); }
int64_t QuantizeBothOp::getFlops() { return flopsOfQuantize(getInput()); }
int64_t QuantizeBlocksOp::getFlops() { return flopsOfQuantize(getInput()); }

/// The whole tensor is read twice, except for a delayed scale; a block stays in
/// the cache.
template <typename Op> static int64_t bytesOfQuantize(Op op) {
  int64_t bytes = sumOfTensorBytes(op);
  return tensorType(op.getScale()).getRank() || op.getHistory()
             ? bytes
             : bytes + sizeInBytes(op.getInput().getType());
}
int64_t QuantizeOp::getBytesMoved() { return bytesOfQuantize(*this); }
int64_t QuantizeBothOp::getBytesMoved() { return bytesOfQuantize(*this); }

/// The input is read once.
int64_t QuantizeBlocksOp::getBytesMoved() {
  int64_t bytes = sumOfTensorBytes(*this);
  for (unsigned result : getDroppableResults())
    bytes -= sizeInBytes(getResult(result).getType());
  return bytes;
}

SmallVector<unsigned> QuantizeBlocksOp::getDroppableResults() {
  SmallVector<unsigned> results;
  for (int64_t first : getUnread().value_or(ArrayRef<int64_t>()))
    results.append({unsigned(first), unsigned(first) + 1});
  return results;
}

OpCuts QuantizeOp::getCuts() {
  OpCuts cuts(*this, getHistory()
                         ? "its scale is the step's"
                         : "what shares a scale goes across the batch");
  RankedTensorType input = tensorType(getInput()),
                   scale = tensorType(getScale());
  for (int64_t dim = 0; dim < scale.getRank(); ++dim)
    if (scaleCutBy(input, scale, dim))
      cuts.add(dim, {Rejoin::concat(dim), Rejoin::concat(dim)});
  return cuts;
}

OpCuts QuantizeBothOp::getCuts() { return {*this, "its scale is the step's"}; }

/// The order of packed scales is that of the whole matrix.
OpCuts QuantizeBlocksOp::getCuts() {
  return {*this, "what shares a scale goes across the batch"};
}

template <typename Op>
static KernelCall kernelOfQuantize(Op op, Value history, bool isTurned,
                                   Backend backend) {
  RankedTensorType codes = tensorType(op.getCodes());
  ScaleBlock block = *scaleBlockOf(codes, tensorType(op.getScale()));
  bool isMatrix = codes.getRank() >= 2;
  const Quantize::Params p{
      .in = runtimeType(op.getInput().getType()),
      .codes = runtimeType(codes),
      .batch = isMatrix ? llvm::product_of(codes.getShape().drop_back(2)) : 1,
      .rows = isMatrix ? codes.getShape().drop_back().back() : 1,
      .columns = isMatrix ? codes.getShape().back() : codes.getNumElements(),
      .blockRows = block.rows,
      .blockColumns = block.columns,
      .history = history ? tensorType(history).getDimSize(0) : 0,
      .turned = isTurned,
      .packed = arePacked(tensorType(op.getScale()))};
  return KernelCall::of<Quantize>(op.getContext(), p, backend);
}

KernelCall QuantizeOp::getKernel(ArrayRef<MemRefType>, Backend backend) {
  return kernelOfQuantize(*this, getHistory(), /*isTurned=*/false, backend);
}
KernelCall QuantizeBothOp::getKernel(ArrayRef<MemRefType>, Backend backend) {
  return kernelOfQuantize(*this, getHistory(), /*isTurned=*/true, backend);
}
KernelCall QuantizeBlocksOp::getKernel(ArrayRef<MemRefType>, Backend backend) {
  return kernelOfQuantize(*this, /*history=*/Value(), /*isTurned=*/false,
                          backend);
}
