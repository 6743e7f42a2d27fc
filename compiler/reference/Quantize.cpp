// Quantize.cpp - codes of 8 bits and their scales.

#include "compiler/reference/Interpreter.h"
#include "compiler/reference/PackedScales.h"
#include "dialects/nn/NN.h"

#include <cmath>

using namespace mlir;
using namespace tmc::nn;
using namespace tmc::reference;

/// The scale for elements of largest magnitude `amax`; `most` is the largest
/// number of the codes.
static double scaleOf(double amax, double most, bool isBlock) {
  if (!std::isfinite(amax))
    return std::numeric_limits<double>::quiet_NaN();
  if (amax == 0)
    return 1;
  double scale;
  if (isBlock) {
    // most = 1.75 * 2^e: the quotient is a power of two only if amax is 1.75
    // times one.
    int exponent;
    double part = std::frexp(amax / most, &exponent);
    scale = std::ldexp(1.0, part == 0.5 ? exponent - 1 : exponent);
  } else {
    scale = roundTo(Element::F32, amax / most);
  }
  return std::max(scale, std::ldexp(1.0, -126));
}

template <typename Op> static LogicalResult quantize(Op op, OpCall &call) {
  const Tensor &x = call.in(op.getInput());
  Tensor &codes = call.out(0), &scale = call.out(1);
  auto resultOf = [&](Value result) -> Tensor & {
    return call.out(cast<OpResult>(result).getResultNumber());
  };
  const bool isBlock = scale.rank() > 0;
  const double most = roundTo(codes.element, 1e30);

  // The position in `scale` of the scale of the element at `index`.
  SmallVector<int64_t> strides = stridesOf(scale.shape);
  auto scaleAt = [&](ArrayRef<int64_t> index) {
    int64_t at = 0;
    for (int64_t i = 0; i < scale.rank(); ++i)
      at += strides[i] *
            (scale.shape[i] == x.shape[i] ? index[i] : index[i] / 128);
    return at;
  };
  std::vector<double> amax(scale.size(), 0);
  forEachIndex(x.shape, [&](ArrayRef<int64_t> index, int64_t i) {
    double &top = amax[scaleAt(index)];
    double value = std::fabs(roundTo(Element::F32, x.floats[i]));
    if (!(value <= top))
      top = std::isnan(top) ? top : value;
  });
  if (const Tensor *history = call.inOrNull(op.getHistory())) {
    resultOf(op.getAmax()).floats[0] = std::isfinite(amax[0]) ? amax[0] : 0;
    amax[0] = 0;
    for (double before : history->floats)
      if (!(std::fabs(before) <= amax[0])) // A NaN stays one.
        amax[0] = std::isnan(amax[0]) ? amax[0] : std::fabs(before);
  }
  int64_t saturated = 0;
  for (int64_t i = 0; i < scale.size(); ++i)
    scale.floats[i] = scaleOf(amax[i], most, isBlock);
  forEachIndex(x.shape, [&](ArrayRef<int64_t> index, int64_t i) {
    const double factor =
        roundTo(Element::F32, 1 / scale.floats[scaleAt(index)]);
    const double value = roundTo(Element::F32, x.floats[i]);
    saturated += std::isfinite(value) &&
                 std::fabs(roundTo(Element::F32, value * factor)) > most;
    codes.floats[i] = std::isfinite(value)
                          ? roundTo(codes.element, value * factor)
                          : std::numeric_limits<double>::quiet_NaN();
  });
  if (op.getSaturated())
    resultOf(op.getSaturated()).ints[0] = saturated;
  return success();
}

static LogicalResult quantizeBoth(QuantizeBothOp op, OpCall &call) {
  if (failed(quantize(op, call)))
    return failure();
  const Tensor &codes = call.out(0);
  Tensor &turned = call.out(2);
  const int64_t rows = codes.shape.end()[-2], columns = codes.shape.end()[-1];
  for (int64_t i = 0; i < codes.size(); ++i) {
    const int64_t row = i / columns % rows, column = i % columns;
    turned.floats[i - row * columns - column + column * rows + row] =
        codes.floats[i];
  }
  return success();
}

/// Codes and packed scales of a matrix, which is read transposed if `isTurned`.
static void quantizePacked(const Tensor &x, bool isTurned, Tensor &codes,
                           Tensor &scale) {
  const double most = roundTo(codes.element, 1e30);
  std::vector<double> amax(scale.size(), 0);
  auto each = [&](auto body) {
    forEachIndex(codes.shape, [&](ArrayRef<int64_t> index, int64_t i) {
      const int64_t from = isTurned ? index[1] * x.shape[1] + index[0] : i;
      body(i, roundTo(Element::F32, x.floats[from]),
           packedScaleAt(codes.shape, scale.size(), index[0], index[1]));
    });
  };
  each([&](int64_t, double value, int64_t at) {
    if (!(std::fabs(value) <= amax[at])) // A NaN stays one.
      amax[at] = std::isnan(amax[at]) ? amax[at] : std::fabs(value);
  });
  // Zeros between squares' scales belong to no element.
  std::fill(scale.floats.begin(), scale.floats.end(), 0);
  each([&](int64_t i, double value, int64_t at) {
    scale.floats[at] = scaleOf(amax[at], most, /*isBlock=*/true);
    codes.floats[i] = std::isfinite(value)
                          ? roundTo(codes.element, value / scale.floats[at])
                          : std::numeric_limits<double>::quiet_NaN();
  });
}

static LogicalResult quantizeBlocks(QuantizeBlocksOp op, OpCall &call) {
  const Tensor &x = call.in(op.getInput());
  quantizePacked(x, /*isTurned=*/false, call.out(0), call.out(1));
  quantizePacked(x, /*isTurned=*/true, call.out(2), call.out(3));
  return success();
}

void tmc::reference::addQuantize(OpTable &table) {
  table.add<QuantizeOp>(quantize<QuantizeOp>);
  table.add<QuantizeBothOp>(quantizeBoth);
  table.add<QuantizeBlocksOp>(quantizeBlocks);
}
