// MaskOperands.cpp - nn.attention's operands for a classified mask.

#include "passes/raise/AttentionMask.h"
#include "passes/raise/Matchers.h"

#include "dialects/nn/Builders.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

#include <numeric>

using namespace mlir;
using namespace tmc;
using namespace tmc::nn;

/// Whether the elements of `value` at index 0 of `dim` equal those at all other
/// indices.
static bool isConstantAlong(Value value, unsigned dim, int depth = 6) {
  if (constantNumber(value) || ViewMap::of(value).isConstantAlong(dim))
    return true;
  Operation *op = value.getDefiningOp();
  return depth > 0 && isPointwise(op) &&
         llvm::all_of(op->getOperands(), [&](Value operand) {
           return isConstantAlong(operand, dim, depth - 1);
         });
}

/// `value` with `dim`, along which it is constant, one element long.
static Value narrow(OpBuilder &b, Value value, unsigned dim) {
  RankedTensorType type = tensorType(value);
  SmallVector<int64_t> shape(type.getShape());
  shape[dim] = 1;
  if (auto number = constantNumber(value))
    return splat(b, value.getLoc(),
                 RankedTensorType::get(shape, type.getElementType()), *number);
  ViewMap view = ViewMap::of(value);
  if (view.isConstantAlong(dim)) {
    view.dropDim(dim);
    return view.build(b, value.getLoc());
  }
  SmallVector<Value> operands;
  for (Value operand : value.getDefiningOp()->getOperands())
    operands.push_back(narrow(b, operand, dim));
  return clonePointwise(b, value.getDefiningOp(), operands);
}

/// The dimension of `view`'s source that is exactly its dimension `dim`, if the
/// operands of pointwise ops show that the source is constant along it.
static std::optional<unsigned> constantInSource(const ViewMap &view,
                                                unsigned dim) {
  Value source = view.getSource();
  for (int64_t from = 0; from < tensorType(source).getRank(); ++from)
    if (view.getDim(dim) > 1 && view.isDimOfSource(dim, from) &&
        isConstantAlong(source, from))
      return from;
  return std::nullopt;
}

/// `view` with one element along each dimension where it is constant, also if
/// broadcasts before the pointwise ops of its source make it constant.
static Value buildNarrow(OpBuilder &b, Location loc, ViewMap view) {
  for (unsigned dim = 0; dim < 3; ++dim)
    if (view.isConstantAlong(dim))
      view.dropDim(dim);
  for (unsigned dim = 0; dim < 3; ++dim)
    if (auto from = constantInSource(view, dim)) {
      Value source = narrow(b, view.getSource(), *from);
      view.dropDim(dim);
      view.narrowSource(source, *from);
    }
  return view.build(b, loc);
}

Value tmc::narrowTable(OpBuilder &b, Value table) {
  ViewMap view = ViewMap::of(table);
  for (unsigned dim = 0; dim < 3; ++dim)
    if (view.getDim(dim) > 1 &&
        (view.isConstantAlong(dim) || constantInSource(view, dim)))
      return buildNarrow(b, table.getLoc(), view);
  return {};
}

/// `value` repeated to `shape` along dimensions of size one.
static Value stretch(OpBuilder &b, Location loc, Value value,
                     ArrayRef<int64_t> shape) {
  RankedTensorType type = tensorType(value);
  if (type.getShape() == shape)
    return value;
  SmallVector<int64_t> kept, dims;
  for (auto [dim, size] : llvm::enumerate(type.getShape()))
    if (size == shape[dim]) {
      kept.push_back(size);
      dims.push_back(dim);
    }
  value = nn::reshapeTo(b, loc, value, kept);
  return BroadcastOp::create(
      b, loc, RankedTensorType::get(shape, type.getElementType()), value, dims);
}

/// Integers as i64.
static Value widened(OpBuilder &b, Location loc, Value value) {
  auto type = tensorType(value);
  auto wide = RankedTensorType::get(type.getShape(), b.getI64Type());
  return type == wide ? value
                      : Value(arith::ExtSIOp::create(b, loc, wide, value));
}

/// All `values`, repeated to their common shape and joined in pairs.
static Value join(OpBuilder &b, Location loc, ArrayRef<Value> values,
                  llvm::function_ref<Value(Value, Value)> joinTwo) {
  Value result;
  for (Value value : values) {
    if (!result) {
      result = value;
      continue;
    }
    SmallVector<int64_t> shape;
    for (auto [x, y] :
         llvm::zip(tensorType(result).getShape(), tensorType(value).getShape()))
      shape.push_back(std::max(x, y));
    value = stretch(b, loc, value, shape);
    result = joinTwo(stretch(b, loc, result, shape), value);
  }
  return result;
}

/// True if the band has equal distances on both sides, as the op's window
/// requires.
static bool isSymmetric(const Band &band) { return band.low == -band.high; }

bool AttentionMask::settle(std::string &why) {
  if (!settleFill(parts, shape, fill, why))
    return false;
  Band band;
  for (const MaskParts::Shaped &part : parts.shapes) {
    if (part.found.kind == MaskShape::Prefixed)
      continue;
    band.low = std::max(band.low, part.found.band.low);
    band.high = std::min(band.high, part.found.band.high);
  }
  bool fits = band.high == 0 ? band.low <= 0
              : band.hasLow() && band.hasHigh()
                  ? isSymmetric(band) && band.high > 0
                  : !band.hasLow() && !band.hasHigh();
  causal = fits && band.high == 0;
  window = fits && band.hasLow() ? 1 - band.low : 0;
  bool hasPrefix = false;
  for (const MaskParts::Shaped &part : parts.shapes) {
    bool isSaid =
        part.found.kind == MaskShape::Prefixed
            ? !hasPrefix && !parts.prefix && !causal && window == 0 && fits
            : fits && (part.found.groups.empty() ||
                       (constantGroups.empty() && !parts.groups) ||
                       constantGroups == part.found.groups);
    if (!isSaid) {
      if (part.condition)
        parts.conditions.push_back(*part.condition);
      if (part.summand)
        parts.summands.push_back(*part.summand);
      continue;
    }
    if (part.rest)
      parts.summands.push_back(*part.rest);
    if (part.found.kind == MaskShape::Prefixed) {
      hasPrefix = true;
      constantPrefix = part.found.prefix;
    } else if (!part.found.groups.empty()) {
      constantGroups = part.found.groups;
    }
  }
  // A prefix shows keys that causality hides; no other flag may hide them.
  if (parts.prefix && (causal || !fits)) {
    parts.conditions.push_back(parts.prefix->condition);
    parts.prefix.reset();
  }
  causal |= hasPrefix || parts.prefix.has_value();
  parts.shapes.clear();
  return true;
}

Value AttentionMask::buildGroups(OpBuilder &b, Location loc) const {
  if (parts.groups) {
    ViewMap view = parts.groups->view;
    for (unsigned dim = 0; dim < 3; ++dim)
      if (view.isConstantAlong(dim))
        view.dropDim(dim);
    Value value = view.build(b, loc);
    RankedTensorType type = tensorType(value);
    value =
        nn::reshapeTo(b, loc, value, {type.getDimSize(0), type.getDimSize(3)});
    return widened(b, loc, value);
  }
  if (constantGroups.empty())
    return {};
  auto type = RankedTensorType::get({1, int64_t(constantGroups.size())},
                                    b.getI64Type());
  return arith::ConstantOp::create(
      b, loc, type,
      DenseElementsAttr::get(type, ArrayRef<int64_t>(constantGroups)));
}

Value AttentionMask::buildPrefix(OpBuilder &b, Location loc) const {
  if (parts.prefix) {
    ViewMap view = parts.prefix->view;
    for (unsigned dim = 0; dim < 4; ++dim)
      if (view.isConstantAlong(dim))
        view.dropDim(dim);
    Value value = view.build(b, loc);
    return widened(
        b, loc,
        nn::reshapeTo(b, loc, value, {tensorType(value).getDimSize(0)}));
  }
  if (!constantPrefix)
    return {};
  auto type = RankedTensorType::get({1}, b.getI64Type());
  return splat(b, loc, type, double(*constantPrefix));
}

/// [B, H, T, 1] times 0, 1, ... along `keys`.
static Value timesKeys(OpBuilder &b, Location loc, Value value, int64_t keys) {
  RankedTensorType type = tensorType(value);
  auto rowType = RankedTensorType::get({1, 1, 1, keys}, type.getElementType());
  std::vector<float> numbers(keys);
  std::iota(numbers.begin(), numbers.end(), 0.0f);
  Value row = arith::ConstantOp::create(
      b, loc, rowType,
      DenseElementsAttr::get(rowType, ArrayRef<float>(numbers)));
  SmallVector<int64_t> shape(type.getShape().drop_back());
  shape.push_back(keys);
  row = stretch(b, loc, row, shape);
  return nn::mul(b, loc, stretch(b, loc, value, shape), row);
}

/// The numbers of a summand for scores of `keys` keys.
static Value buildSummand(OpBuilder &b, Location loc,
                          const MaskParts::Summand &summand, int64_t keys) {
  if (summand.row)
    return arith::ConstantOp::create(b, loc, summand.row.getType(),
                                     summand.row);
  Value value = buildNarrow(b, loc, summand.view);
  if (summand.growsWithKey)
    value = timesKeys(b, loc, value, keys);
  return summand.factor == 1 ? value : nn::scale(b, loc, value, summand.factor);
}

Value AttentionMask::buildBias(OpBuilder &b, Location loc) const {
  SmallVector<Value> added;
  for (const Summand &summand : parts.summands)
    if (summand.trained)
      added.push_back(buildSummand(b, loc, summand, shape[3]));
  return join(b, loc, added,
              [&](Value x, Value y) { return nn::add(b, loc, x, y); });
}

Value AttentionMask::build(OpBuilder &b, Location loc) const {
  SmallVector<Value> allowed, added;
  for (const Condition &condition : parts.conditions) {
    Value value = buildNarrow(b, loc, condition.view);
    if (!condition.keep)
      value = arith::XOrIOp::create(b, loc, value,
                                    splat(b, loc, value.getType(), 1));
    allowed.push_back(value);
  }
  for (const Summand &summand : parts.summands)
    if (!summand.trained)
      added.push_back(buildSummand(b, loc, summand, shape[3]));
  Value condition = join(b, loc, allowed, [&](Value x, Value y) -> Value {
    return arith::AndIOp::create(b, loc, x, y);
  });
  if (added.empty())
    return condition;
  if (condition) {
    auto type =
        RankedTensorType::get(tensorType(condition).getShape(), elementType);
    Value hidden =
        splat(b, loc, type, -std::numeric_limits<double>::infinity());
    Value seen = splat(b, loc, type, 0);
    added.push_back(arith::SelectOp::create(b, loc, condition, seen, hidden));
  }
  return join(b, loc, added,
              [&](Value x, Value y) { return nn::add(b, loc, x, y); });
}
