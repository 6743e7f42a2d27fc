// AttentionMask.cpp - what an exporter does to scores, as nn.attention's mask.

#include "passes/raise/AttentionMask.h"

#include "passes/raise/Matchers.h"

#include "dialects/nn/Builders.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"

#include <cmath>

using namespace mlir;
using namespace tmc;
using namespace tmc::nn;

/// What forbids a key is at most this.
constexpr double forbids = -1e4;

ViewMap AttentionMask::viewOf(Value value, double *factor) const {
  double found = 1;
  ViewMap view = ViewMap::of(value, factor ? &found : nullptr);
  if (view.reshape(shape)) {
    if (factor)
      *factor *= found;
    return view;
  }
  view = ViewMap::identity(value);
  view.reshape(shape);
  return view;
}

ViewMap AttentionMask::viewThrough(Value operand, const ViewMap &outer,
                                   double *factor) const {
  double found = 1;
  ViewMap view = ViewMap::of(operand, factor ? &found : nullptr);
  for (Operation *op : outer.getOps())
    if (!view.apply(op)) {
      view = ViewMap::identity(operand);
      found = 1;
      for (Operation *again : outer.getOps())
        view.apply(again);
      break;
    }
  view.reshape(shape);
  if (factor)
    *factor *= found;
  return view;
}

void AttentionMask::addCondition(const ViewMap &view, bool keep) {
  Operation *op = view.getSource().getDefiningOp();
  if (op && (keep ? isa<arith::AndIOp>(op) : isa<arith::OrIOp>(op))) {
    for (Value operand : op->getOperands())
      addCondition(viewThrough(operand, view), keep);
    return;
  }
  for (auto [x, ones] : bothWays<arith::XOrIOp>(view.getSource()))
    if (constantNumber(ones) == 1)
      return addCondition(viewThrough(x, view), !keep);
  Kind kind = classify({view, keep});
  causal |= kind == Kind::Causal;
  if (kind == Kind::Other)
    conditions.push_back({view, keep});
}

/// The offsets in the source of each index along a dimension.
static SmallVector<int64_t>
offsetsOf(ArrayRef<std::pair<int64_t, int64_t>> atoms) {
  SmallVector<int64_t> offsets = {0};
  for (auto [size, stride] : atoms) {
    SmallVector<int64_t> finer;
    for (int64_t offset : offsets)
      for (int64_t i = 0; i < size; ++i)
        finer.push_back(offset + i * stride);
    offsets = std::move(finer);
  }
  return offsets;
}

AttentionMask::Kind AttentionMask::classifyConstant(
    ViewMap view, Attribute constant, double meaning,
    llvm::function_ref<std::optional<bool>(int64_t)> sees) const {
  for (unsigned dim = 0; dim < 4; ++dim)
    if (view.isConstantAlong(dim))
      view.dropDim(dim);
  auto strides = view.getStrides();
  SmallVector<int64_t> offsets[4];
  for (unsigned dim = 0; dim < 4; ++dim)
    offsets[dim] = offsetsOf(strides[dim]);
  std::vector<int64_t> reading(shape.begin(), shape.end());
  for (auto &dim : strides)
    for (auto [size, stride] : dim)
      reading.insert(reading.end(), {size, stride});
  auto [known, isNew] = cache->kinds.try_emplace(
      {constant.getAsOpaquePointer(), meaning, reading}, Kind::Other);
  if (!isNew)
    return known->second;
  bool nothing = true;
  bool diagonal = int64_t(offsets[2].size()) == shape[2] &&
                  int64_t(offsets[3].size()) == shape[3];
  int64_t last = shape[3] - shape[2]; // Of the keys that query 0 sees.
  for (int64_t b : offsets[0])
    for (int64_t h : offsets[1])
      for (auto [t, row] : llvm::enumerate(offsets[2])) {
        for (auto [s, column] : llvm::enumerate(offsets[3])) {
          std::optional<bool> seen = sees(b + h + row + column);
          if (!seen)
            return Kind::Other;
          nothing &= *seen;
          diagonal &= *seen == (int64_t(s) <= int64_t(t) + last);
        }
      }
  return known->second = nothing    ? Kind::Nothing
                         : diagonal ? Kind::Causal
                                    : Kind::Other;
}

namespace {
/// A whole number that is `base` plus `steps[i]` for each step along dimension
/// i.
struct Affine {
  int64_t base = 0;
  SmallVector<int64_t> steps;
};
} // namespace

/// Reads a constant as affine: a range that was folded at import.
static std::optional<Affine> affineConstant(Value value) {
  DenseElementsAttr attr;
  RankedTensorType type = tensorType(value);
  if (!matchPattern(value, m_Constant(&attr)) ||
      !attr.getElementType().isIntOrFloat() || type.getNumElements() == 0)
    return std::nullopt;
  bool isFloat = isa<FloatType>(attr.getElementType());
  auto at = [&](int64_t i) {
    return isFloat
               ? int64_t((*(attr.value_begin<APFloat>() + i)).convertToDouble())
               : (*(attr.value_begin<APInt>() + i)).getSExtValue();
  };
  Affine result{at(0), SmallVector<int64_t>(type.getRank(), 0)};
  int64_t stride = 1;
  for (int64_t dim = type.getRank() - 1; dim >= 0; --dim) {
    if (type.getDimSize(dim) > 1)
      result.steps[dim] = at(stride) - at(0);
    stride *= type.getDimSize(dim);
  }
  for (int64_t i = 0; i < type.getNumElements(); ++i) {
    int64_t expected = result.base, rest = i;
    for (int64_t dim = type.getRank() - 1; dim >= 0; --dim) {
      expected += result.steps[dim] * (rest % type.getDimSize(dim));
      rest /= type.getDimSize(dim);
    }
    if (at(i) != expected)
      return std::nullopt;
  }
  return result;
}

static std::optional<Affine> affineOf(Value value, int depth = 12) {
  RankedTensorType type = tensorType(value);
  Affine result{0, SmallVector<int64_t>(type.getRank(), 0)};
  Operation *op = value.getDefiningOp();
  if (!op || depth == 0)
    return std::nullopt;
  if (auto iota = dyn_cast<IotaOp>(op)) {
    result.steps[iota.getDim()] = 1;
    return result;
  }
  if (isa<arith::ConstantOp>(op))
    return affineConstant(value);
  if (op->getNumOperands() == 0)
    return std::nullopt;
  auto x = affineOf(op->getOperand(0), depth - 1);
  if (!x)
    return std::nullopt;
  if (isa<arith::ExtSIOp, arith::TruncIOp, arith::SIToFPOp, arith::FPToSIOp,
          arith::ExtFOp, arith::TruncFOp>(op))
    return x;
  if (isa<ReshapeOp, TransposeOp, BroadcastOp>(op)) {
    ViewMap view = ViewMap::identity(op->getOperand(0));
    if (!view.apply(op))
      return std::nullopt;
    result.base = x->base;
    for (auto [from, step] : llvm::enumerate(x->steps)) {
      if (step == 0)
        continue;
      std::optional<unsigned> to;
      for (unsigned dim = 0; dim < view.getRank(); ++dim)
        if (view.isDimOfSource(dim, from))
          to = dim;
      if (!to)
        return std::nullopt;
      result.steps[*to] = step;
    }
    return result;
  }
  if (op->getNumOperands() != 2)
    return std::nullopt;
  auto y = affineOf(op->getOperand(1), depth - 1);
  if (!y)
    return std::nullopt;
  auto constant = [](const Affine &a) {
    return llvm::all_of(a.steps, [](int64_t step) { return step == 0; });
  };
  auto combine = [&](int64_t fx, int64_t fy) {
    result.base = fx * x->base + fy * y->base;
    for (auto [i, step] : llvm::enumerate(result.steps))
      step = fx * x->steps[i] + fy * y->steps[i];
    return result;
  };
  if (isa<arith::AddIOp, arith::AddFOp>(op))
    return combine(1, 1);
  if (isa<arith::SubIOp, arith::SubFOp>(op))
    return combine(1, -1);
  if (isa<arith::MulIOp, arith::MulFOp>(op)) {
    int64_t fx = x->base, fy = y->base;
    if (constant(*y)) {
      y->base = 0;
      return combine(fy, 0);
    }
    if (constant(*x)) {
      x->base = 0;
      return combine(0, fx);
    }
  }
  return std::nullopt;
}

/// The sign and slack with which `op` is sign * (lhs - rhs) + slack <= 0, with
/// the outcome negated unless `keep`.
static std::optional<std::pair<int64_t, int64_t>> asAtMostZero(Operation *op,
                                                               bool keep) {
  enum { Lt, Le, Gt, Ge, None } kind = None;
  if (auto cmp = dyn_cast_or_null<arith::CmpIOp>(op)) {
    switch (cmp.getPredicate()) {
    case arith::CmpIPredicate::slt:
      kind = Lt;
      break;
    case arith::CmpIPredicate::sle:
      kind = Le;
      break;
    case arith::CmpIPredicate::sgt:
      kind = Gt;
      break;
    case arith::CmpIPredicate::sge:
      kind = Ge;
      break;
    default:
      break;
    }
  } else if (auto cmp = dyn_cast_or_null<arith::CmpFOp>(op)) {
    switch (cmp.getPredicate()) { // Whole numbers: never unordered.
    case arith::CmpFPredicate::OLT:
    case arith::CmpFPredicate::ULT:
      kind = Lt;
      break;
    case arith::CmpFPredicate::OLE:
    case arith::CmpFPredicate::ULE:
      kind = Le;
      break;
    case arith::CmpFPredicate::OGT:
    case arith::CmpFPredicate::UGT:
      kind = Gt;
      break;
    case arith::CmpFPredicate::OGE:
    case arith::CmpFPredicate::UGE:
      kind = Ge;
      break;
    default:
      break;
    }
  }
  if (kind == None)
    return std::nullopt;
  bool less = kind == Lt || kind == Le, strict = kind == Lt || kind == Gt;
  if (!keep) {
    less = !less;
    strict = !strict;
  }
  return std::pair<int64_t, int64_t>(less ? 1 : -1, strict ? 1 : 0);
}

AttentionMask::Kind
AttentionMask::classifyComparison(const Condition &condition) const {
  Operation *op = condition.view.getSource().getDefiningOp();
  auto form = asAtMostZero(op, condition.keep);
  if (!form)
    return Kind::Other;
  auto lhs = affineOf(op->getOperand(0)), rhs = affineOf(op->getOperand(1));
  if (!lhs || !rhs)
    return Kind::Other;
  auto [sign, slack] = *form;
  // base + sum of step[dim] * index[dim] <= 0, over the scores' dimensions.
  int64_t base = sign * (lhs->base - rhs->base) + slack;
  int64_t step[4] = {0, 0, 0, 0};
  for (size_t from = 0; from < lhs->steps.size(); ++from) {
    int64_t value = sign * (lhs->steps[from] - rhs->steps[from]);
    if (value == 0)
      continue;
    std::optional<unsigned> to;
    for (unsigned dim = 0; dim < 4; ++dim)
      if (condition.view.isDimOfSource(dim, from))
        to = dim;
    if (!to)
      return Kind::Other;
    step[*to] = value;
  }
  int64_t largest = base;
  for (unsigned dim = 0; dim < 4; ++dim)
    largest += std::max<int64_t>(step[dim], 0) * (shape[dim] - 1);
  if (largest <= 0)
    return Kind::Nothing;
  // s <= t + S - T.
  if (step[0] == 0 && step[1] == 0 && step[2] == -1 && step[3] == 1 &&
      base == shape[2] - shape[3])
    return Kind::Causal;
  return Kind::Other;
}

AttentionMask::Kind AttentionMask::classify(const Condition &condition) const {
  DenseElementsAttr attr;
  if (!matchPattern(condition.view.getSource(), m_Constant(&attr)))
    return classifyComparison(condition);
  auto values = attr.getValues<bool>();
  return classifyConstant(condition.view, attr, condition.keep,
                          [&](int64_t i) -> std::optional<bool> {
                            return values[i] == condition.keep;
                          });
}

/// Takes in a constant; false if it stays a number to be added.
bool AttentionMask::addConstant(const ViewMap &view, double factor,
                                DenseElementsAttr attr) {
  if (!attr.getElementType().isF32())
    return false;
  auto values = attr.getValues<float>();
  Kind kind = classifyConstant(
      view, attr, factor, [&](int64_t i) -> std::optional<bool> {
        if (values[i] * factor <= forbids)
          return false;
        return values[i] == 0 ? std::optional<bool>(true) : std::nullopt;
      });
  causal |= kind == Kind::Causal;
  if (kind != Kind::Other)
    return true;
  // Numbers of their own for the keys that aren't forbidden, as for distances.
  // The factor is positive; its negative marks another reading.
  kind = classifyConstant(view, attr, -factor,
                          [&](int64_t i) -> std::optional<bool> {
                            return values[i] * factor > forbids;
                          });
  causal |= kind == Kind::Causal;
  return false;
}

bool AttentionMask::addView(const ViewMap &view, double factor,
                            std::string &why) {
  Value source = view.getSource();
  Operation *op = source.getDefiningOp();
  if (auto number = constantNumber(source); number && std::isfinite(*number))
    return true; // The same for every key.
  if (DenseElementsAttr attr; matchPattern(source, m_Constant(&attr)))
    if (addConstant(view, factor, attr))
      return true;
  if (auto choice = dyn_cast_or_null<arith::SelectOp>(op)) {
    auto yes = constantNumber(choice.getTrueValue());
    auto no = constantNumber(choice.getFalseValue());
    if (yes && no && (*yes == 0 || *no == 0) &&
        std::min(*yes, *no) * factor <= forbids) {
      addCondition(viewThrough(choice.getCondition(), view), *yes == 0);
      return true;
    }
  }
  if (isa_and_nonnull<arith::AddFOp>(op)) {
    for (Value operand : op->getOperands()) {
      double own = factor;
      ViewMap part = viewThrough(operand, view, &own);
      if (!addView(part, own, why))
        return false;
    }
    return true;
  }
  if (dependsOnParameter(source)) {
    why = "its mask is trained, and nn.attention would give it no gradient";
    return false;
  }
  if (Type type = tensorType(source).getElementType(); type != elementType) {
    llvm::raw_string_ostream(why) << "its mask has elements of " << type
                                  << ", its products of " << elementType;
    return false;
  }
  summands.push_back({view, factor});
  return true;
}

bool AttentionMask::add(Value value, double factor, std::string &why) {
  if (!(factor > 0)) {
    why = "the masked scores are multiplied by a number that isn't positive";
    return false;
  }
  ViewMap view = viewOf(value, &factor);
  return addView(view, factor, why);
}

bool AttentionMask::select(Value condition, bool keep, double fill,
                           std::string &why) {
  if (!(fill <= forbids)) {
    why = "scores are replaced by " + std::to_string(fill) +
          ", which doesn't forbid a key";
    return false;
  }
  addCondition(viewOf(condition), keep);
  return true;
}

//===----------------------------------------------------------------------===//
// Building the operand
//===----------------------------------------------------------------------===//

/// Can the elements of `value` at index 0 of `dim` stand for all others?
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

/// `view` with one element along each dimension where it is constant, be it by
/// broadcasts before the pointwise ops that made its source.
static Value buildNarrow(OpBuilder &b, Location loc, ViewMap view) {
  for (unsigned dim = 0; dim < 3; ++dim)
    if (view.isConstantAlong(dim))
      view.dropDim(dim);
  Value source = view.getSource();
  for (unsigned dim = 0; dim < 3; ++dim)
    for (int64_t from = 0; from < tensorType(source).getRank(); ++from)
      if (view.getDim(dim) > 1 && view.isDimOfSource(dim, from) &&
          isConstantAlong(source, from)) {
        source = narrow(b, source, from);
        view.dropDim(dim);
        view.narrowSource(source, from);
      }
  return view.build(b, loc);
}

/// `value` repeated along dimensions of size one to `shape`.
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

/// All of `values`, repeated to their common shape and joined two by two.
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
    result =
        joinTwo(stretch(b, loc, result, shape), stretch(b, loc, value, shape));
  }
  return result;
}

Value AttentionMask::build(OpBuilder &b, Location loc) const {
  SmallVector<Value> allowed, added;
  for (const Condition &condition : conditions) {
    Value value = buildNarrow(b, loc, condition.view);
    if (!condition.keep)
      value = arith::XOrIOp::create(b, loc, value,
                                    splat(b, loc, value.getType(), 1));
    allowed.push_back(value);
  }
  for (const Summand &summand : summands) {
    Value value = buildNarrow(b, loc, summand.view);
    if (summand.factor != 1)
      value = nn::scale(b, loc, value, summand.factor);
    added.push_back(value);
  }
  Value condition = join(b, loc, allowed, [&](Value x, Value y) -> Value {
    return arith::AndIOp::create(b, loc, x, y);
  });
  if (added.empty())
    return condition;
  if (condition) {
    auto type =
        RankedTensorType::get(tensorType(condition).getShape(), elementType);
    added.push_back(arith::SelectOp::create(
        b, loc, condition, splat(b, loc, type, 0),
        splat(b, loc, type, -std::numeric_limits<double>::infinity())));
  }
  return join(b, loc, added,
              [&](Value x, Value y) { return nn::add(b, loc, x, y); });
}
