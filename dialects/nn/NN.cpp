// NN.cpp - the nn dialect and the functions of Builders.h; each family of ops
// has its own file.

#include "dialects/nn/NN.h"

#include "dialects/nn/Builders.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/DialectImplementation.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace tmc::nn;

#include "dialects/nn/NNDialect.cpp.inc"
#include "dialects/nn/NNEnums.cpp.inc"
#define GET_OP_CLASSES
#include "dialects/nn/NN.cpp.inc"

void NNDialect::initialize() {
  addOperations<
#define GET_OP_LIST
#include "dialects/nn/NN.cpp.inc"
      >();
}

Value tmc::nn::splat(OpBuilder &b, Location loc, Type type, double value) {
  auto tensor = cast<RankedTensorType>(type);
  Type element = tensor.getElementType();
  TypedAttr attr;
  if (isa<FloatType>(element))
    attr = DenseElementsAttr::get(tensor,
                                  Attribute(b.getFloatAttr(element, value)));
  else
    attr = DenseElementsAttr::get(
        tensor, Attribute(b.getIntegerAttr(element, int64_t(value))));
  return arith::ConstantOp::create(b, loc, attr);
}

Value tmc::nn::broadcastTo(OpBuilder &b, Location loc, Value x, Type type,
                           ArrayRef<int64_t> dims) {
  if (x.getType() == type)
    return x;
  return BroadcastOp::create(b, loc, type, x, dims);
}

SmallVector<int64_t> tmc::nn::firstDims(int64_t n) {
  return llvm::to_vector(llvm::seq<int64_t>(0, n));
}

Value tmc::nn::broadcastLeading(OpBuilder &b, Location loc, Value x,
                                Type type) {
  return broadcastTo(b, loc, x, type, firstDims(tensorType(x).getRank()));
}

Value tmc::nn::broadcastTrailing(OpBuilder &b, Location loc, Value x,
                                 Type type) {
  return broadcastTo(b, loc, x, type,
                     {cast<RankedTensorType>(type).getRank() - 1});
}

Value tmc::nn::convertTo(OpBuilder &b, Location loc, Value x, Type element) {
  RankedTensorType from = tensorType(x), to = from.clone(element);
  if (from == to)
    return x;
  if (from.getElementTypeBitWidth() < element.getIntOrFloatBitWidth())
    return arith::ExtFOp::create(b, loc, to, x);
  if (from.getElementTypeBitWidth() > element.getIntOrFloatBitWidth())
    return arith::TruncFOp::create(b, loc, to, x);
  // The types have the same width: converts through f32, which holds both.
  Value wide = convertTo(b, loc, x, b.getF32Type());
  return arith::TruncFOp::create(b, loc, to, wide);
}

Value tmc::nn::repeatedVector(Value x) {
  auto broadcast = x.getDefiningOp<BroadcastOp>();
  if (!broadcast || broadcast.getDims().size() != 1 ||
      broadcast.getDims()[0] != tensorType(x).getRank() - 1)
    return {};
  return broadcast.getInput();
}

Value tmc::nn::reduceSum(OpBuilder &b, Location loc, Value x,
                         ArrayRef<int64_t> dims) {
  if (dims.empty())
    return x;
  return ReduceOp::create(b, loc, x, ReduceKind::Sum, dims);
}

Value tmc::nn::reshapeTo(OpBuilder &b, Location loc, Value x,
                         ArrayRef<int64_t> shape) {
  RankedTensorType type = tensorType(x);
  if (type.getShape() == shape)
    return x;
  return ReshapeOp::create(
      b, loc, RankedTensorType::get(shape, type.getElementType()), x);
}

Value tmc::nn::add(OpBuilder &b, Location loc, Value x, Value y) {
  return arith::AddFOp::create(b, loc, x, y);
}
Value tmc::nn::sub(OpBuilder &b, Location loc, Value x, Value y) {
  return arith::SubFOp::create(b, loc, x, y);
}
Value tmc::nn::mul(OpBuilder &b, Location loc, Value x, Value y) {
  return arith::MulFOp::create(b, loc, x, y);
}
Value tmc::nn::div(OpBuilder &b, Location loc, Value x, Value y) {
  return arith::DivFOp::create(b, loc, x, y);
}
Value tmc::nn::scale(OpBuilder &b, Location loc, Value x, double factor) {
  return mul(b, loc, x, splat(b, loc, x.getType(), factor));
}

std::optional<double> tmc::nn::splatValue(Value x) {
  DenseElementsAttr attr;
  if (!matchPattern(x, m_Constant(&attr)) || !attr.isSplat())
    return std::nullopt;
  if (isa<FloatType>(attr.getElementType()))
    return attr.getSplatValue<APFloat>().convertToDouble();
  APInt value = attr.getSplatValue<APInt>();
  return attr.getElementType().isInteger(1) ? double(value.getZExtValue())
                                            : double(value.getSExtValue());
}

Type tmc::nn::accumulationType(Type element) {
  return element.isF64() ? element : Float32Type::get(element.getContext());
}
