#include "frontends/common/Losses.h"

#include "dialects/nn/Builders.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace tmc;

Value tmc::frontend::countLabels(OpBuilder &b, Location loc, Value labels,
                                 int64_t ignored, Type element) {
  auto type = nn::tensorType(labels);
  Value none = nn::splat(b, loc, type, ignored);
  Value counts =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne, labels, none);
  Value ones = arith::UIToFPOp::create(
      b, loc, RankedTensorType::get(type.getShape(), element), counts);
  return nn::reduceSum(b, loc, ones, nn::firstDims(type.getRank()));
}

Value tmc::frontend::meanCrossEntropy(OpBuilder &b, Location loc, Value logits,
                                      Value labels, int64_t ignored) {
  Type element = nn::accumulationType(nn::tensorType(logits).getElementType());
  Value count = countLabels(b, loc, labels, ignored, element);
  Value one = nn::splat(b, loc, RankedTensorType::get({}, element), 1);
  Value weight = nn::div(b, loc, one, count);
  return nn::CrossEntropyOp::create(b, loc, logits, labels, weight,
                                    b.getI64IntegerAttr(ignored),
                                    /*vocabulary=*/nullptr)
      .getLoss();
}

Value tmc::frontend::meanSquaredError(OpBuilder &b, Location loc, Value x,
                                      Value y) {
  auto type = nn::tensorType(x);
  Value d = nn::sub(b, loc, x, y);
  Value sum = nn::reduceSum(b, loc, nn::mul(b, loc, d, d),
                            nn::firstDims(type.getRank()));
  return nn::scale(b, loc, sum, 1.0 / type.getNumElements());
}
