// Frozen.cpp - weights that aren't trained, from their codes.

#include "compiler/reference/DoubleProduct.h"
#include "compiler/reference/Interpreter.h"
#include "dialects/nn/NN.h"
#include "runtime/kernels/FrozenCodes.h"

using namespace mlir;
using namespace tmc::nn;
using namespace tmc::reference;

/// An i8 of a step as the byte that codes are in.
static int64_t byteOf(const Tensor &codes, int64_t i) {
  return codes.ints[i] & 0xff;
}

/// The format's roundings are part of its meaning: each product and sum is
/// rounded to f32.
template <typename Op> static void decode(Op op, OpCall &call, Tensor &out) {
  const Tensor &codes = call.in(op.getCodes()),
               &absmax = call.in(op.getAbsmax());
  const Tensor *nested = call.inOrNull(op.getNested());
  auto rounded = [](double value) { return roundTo(Element::F32, value); };
  if (op.isByRows()) {
    constexpr double kPerCode = tmc::frozen::kPerCode;
    for (int64_t i = 0; i < out.size(); ++i)
      out.floats[i] = rounded(
          rounded(double(codes.ints[i]) * absmax.floats[i / out.shape[1]]) *
          kPerCode);
    return;
  }
  const auto levels = tmc::frozen::levels();
  const auto map = tmc::frozen::dynamicMap();
  for (int64_t i = 0; i < out.size(); ++i) {
    const int64_t block = i / tmc::frozen::kBlock;
    const double most =
        nested
            ? rounded(
                  rounded(map.value[byteOf(absmax, block)] *
                          nested->floats[block / tmc::frozen::kNestedBlock]) +
                  nested->floats.back())
            : absmax.floats[block];
    const int64_t packed = byteOf(codes, i / 2);
    out.floats[i] =
        rounded(levels.value[i % 2 ? packed & 15 : packed >> 4] * most);
  }
}

static LogicalResult matmulCodes(MatmulCodesOp op, OpCall &call) {
  const Tensor &lhs = call.in(op.getLhs());
  const Tensor *bias = call.inOrNull(op.getBias());
  Tensor &out = call.out(0);
  const int64_t m = out.shape[0], n = out.shape[1], k = op.getDepth();
  Tensor weight(lhs.element, op.getTransposeRhs() ? ArrayRef<int64_t>{n, k}
                                                  : ArrayRef<int64_t>{k, n});
  decode(op, call, weight);
  weight.roundToElement();
  if (const Tensor *acc = call.inOrNull(op.getAcc()))
    out.floats = acc->floats;
  addProduct(out.floats.data(),
             MatrixView::of(lhs.floats.data(), m, k, op.getTransposeLhs()),
             MatrixView::of(weight.floats.data(), k, n, op.getTransposeRhs()),
             m, k, n);
  for (int64_t i = 0; bias && i < m; ++i)
    for (int64_t j = 0; j < n; ++j)
      out.floats[i * n + j] += bias->floats[j];
  return success();
}

void tmc::reference::addFrozen(OpTable &table) {
  table.add<DequantizeOp>([](DequantizeOp op, OpCall &call) {
    decode(op, call, call.out(0));
    return success();
  });
  table.add<MatmulCodesOp>(matmulCodes);
}
