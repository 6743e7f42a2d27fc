// AttentionMask.cpp - classifies the masks of an exporter's scores.

#include "passes/raise/AttentionMask.h"

#include "passes/raise/Affine.h"
#include "passes/raise/Matchers.h"

#include "dialects/nn/Builders.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"

#include <cmath>
#include <limits>

using namespace mlir;
using namespace tmc;
using namespace tmc::nn;

/// Numbers of at most this forbid a key.
constexpr double forbids = -1e4;

/// `value`, times `factor`, as scores of `shape`.
static ViewMap viewOf(ArrayRef<int64_t> shape, Value value,
                      double *factor = nullptr) {
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

/// `operand` of the op behind `outer`, in the shape that `outer` gives its
/// result.
static ViewMap viewThrough(ArrayRef<int64_t> shape, Value operand,
                           const ViewMap &outer, double *factor = nullptr) {
  double found = 1;
  ViewMap view = ViewMap::of(operand, factor ? &found : nullptr);
  for (Operation *op : outer.getOps())
    if (!apply(view, op)) {
      view = ViewMap::identity(operand);
      found = 1;
      for (Operation *again : outer.getOps())
        apply(view, again);
      break;
    }
  view.addOps(outer.getOps());
  view.reshape(shape);
  if (factor)
    *factor *= found;
  return view;
}

namespace {
/// `yes` if a condition is true, else `no`: for example a triangle of ones.
struct Choice {
  Value condition;
  double yes, no;
};
} // namespace

static std::optional<Choice> choiceOf(Value value) {
  Operation *op = value.getDefiningOp();
  if (auto select = dyn_cast_or_null<arith::SelectOp>(op)) {
    auto yes = constantNumber(select.getTrueValue());
    auto no = constantNumber(select.getFalseValue());
    if (yes && no)
      return Choice{select.getCondition(), *yes, *no};
  }
  if (isa_and_nonnull<arith::ExtUIOp, arith::UIToFPOp>(op) &&
      tensorType(op->getOperand(0)).getElementType().isInteger(1))
    return Choice{op->getOperand(0), 1, 0};
  if (isa_and_nonnull<arith::ExtSIOp, arith::SIToFPOp, arith::ExtFOp>(op) &&
      !tensorType(op->getOperand(0)).getElementType().isInteger(1))
    return choiceOf(op->getOperand(0));
  return std::nullopt;
}

/// The result of the comparison `op` for two numbers; none if `op` is no
/// comparison, or an unsigned one.
static std::optional<bool> compare(Operation *op, double lhs, double rhs) {
  if (auto cmp = dyn_cast<arith::CmpIOp>(op))
    switch (cmp.getPredicate()) {
    case arith::CmpIPredicate::eq:
      return lhs == rhs;
    case arith::CmpIPredicate::ne:
      return lhs != rhs;
    case arith::CmpIPredicate::slt:
      return lhs < rhs;
    case arith::CmpIPredicate::sle:
      return lhs <= rhs;
    case arith::CmpIPredicate::sgt:
      return lhs > rhs;
    case arith::CmpIPredicate::sge:
      return lhs >= rhs;
    default:
      return std::nullopt;
    }
  auto cmp = dyn_cast<arith::CmpFOp>(op);
  if (!cmp || std::isnan(lhs) || std::isnan(rhs))
    return std::nullopt;
  return arith::applyCmpPredicate(cmp.getPredicate(), llvm::APFloat(lhs),
                                  llvm::APFloat(rhs));
}

void AttentionMask::addCondition(const ViewMap &view, bool keep) {
  Operation *op = view.getSource().getDefiningOp();
  if (op && (keep ? isa<arith::AndIOp>(op) : isa<arith::OrIOp>(op))) {
    for (Value operand : op->getOperands())
      addCondition(viewThrough(shape, operand, view), keep);
    return;
  }
  for (auto [x, ones] : bothWays<arith::XOrIOp>(view.getSource()))
    if (constantNumber(ones) == 1)
      return addCondition(viewThrough(shape, x, view), !keep);
  // A choice between two numbers, compared with a third, is its own condition.
  if (isa_and_nonnull<arith::CmpIOp, arith::CmpFOp>(op))
    for (bool swapped : {false, true}) {
      auto choice = choiceOf(op->getOperand(swapped));
      auto third = constantNumber(op->getOperand(!swapped));
      if (!choice || !third)
        continue;
      auto holds = [&](double number) {
        return swapped ? compare(op, *third, number)
                       : compare(op, number, *third);
      };
      auto yes = holds(choice->yes), no = holds(choice->no);
      if (yes && no && *yes != *no)
        return addCondition(viewThrough(shape, choice->condition, view),
                            keep == *yes);
    }
  Condition condition{view, keep, parts.hidings.size() - 1};
  if (takePrefix(condition) || takeGroups(condition))
    return;
  MaskShape found = classify(condition);
  if (found.kind == MaskShape::Other)
    parts.conditions.push_back(condition);
  else
    parts.takeShape(found, condition);
}

/// True if the view depends only on the sample and on dimension `kept`.
static bool isPerSample(const ViewMap &view, unsigned kept) {
  for (unsigned dim = 1; dim < 4; ++dim)
    if (dim != kept && !view.isConstantAlong(dim))
      return false;
  return true;
}

/// s < n or s <= p, with a number n for each sample: the prefix of a causal
/// mask.
bool AttentionMask::takePrefix(const Condition &condition) {
  auto either = condition.view.getSource().getDefiningOp<arith::OrIOp>();
  if (!either || !condition.keep || parts.prefix)
    return false;
  for (bool swapped : {false, true}) {
    Value first = either->getOperand(swapped),
          second = either->getOperand(!swapped);
    MaskShape causal =
        classify({viewThrough(shape, first, condition.view), condition.keep});
    auto cmp = second.getDefiningOp<arith::CmpIOp>();
    if (causal.kind != MaskShape::Banded || causal.band.high != 0 ||
        causal.band.hasLow() || !causal.groups.empty() || !cmp)
      continue;
    Value key = cmp.getLhs(), bound = cmp.getRhs();
    if (cmp.getPredicate() == arith::CmpIPredicate::sgt)
      std::swap(key, bound);
    else if (cmp.getPredicate() != arith::CmpIPredicate::slt)
      continue;
    auto steps = affineOf(key);
    ViewMap view = viewThrough(shape, second, condition.view);
    ViewMap limit = viewThrough(shape, bound, view);
    if (!steps || steps->base != 0 || !isPerSample(limit, 0))
      continue;
    bool countsKeys = true;
    for (auto [from, step] : llvm::enumerate(steps->steps))
      countsKeys &= view.isDimOfSource(3, from) ? step == 1 : step == 0;
    bool hasKeys = llvm::any_of(steps->steps, [](int64_t x) { return x == 1; });
    if (!countsKeys || !hasKeys)
      continue;
    parts.prefix = {limit, condition};
    return true;
  }
  return false;
}

/// g[t] = g[s], with a number for each position of a sample.
bool AttentionMask::takeGroups(const Condition &condition) {
  auto cmp = condition.view.getSource().getDefiningOp<arith::CmpIOp>();
  if (!cmp || parts.groups || shape[2] != shape[3] ||
      cmp.getPredicate() != (condition.keep ? arith::CmpIPredicate::eq
                                            : arith::CmpIPredicate::ne))
    return false;
  ViewMap rows = viewThrough(shape, cmp.getLhs(), condition.view);
  ViewMap columns = viewThrough(shape, cmp.getRhs(), condition.view);
  if (!isPerSample(rows, 2))
    std::swap(rows, columns);
  if (!isPerSample(rows, 2) || !isPerSample(columns, 3) ||
      rows.getSource() != columns.getSource())
    return false;
  auto along = rows.getStrides(), across = columns.getStrides();
  if (along[0] != across[0] || along[2] != across[3])
    return false;
  parts.groups = {columns, condition};
  return true;
}

/// The offset in the source of each index along a dimension.
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

MaskShape AttentionMask::classifyConstant(
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
  auto [known, isNew] = cache->shapes.try_emplace(
      {constant.getAsOpaquePointer(), meaning, reading}, MaskShape());
  if (!isNew)
    return known->second;
  auto at = [](ArrayRef<int64_t> list, int64_t i) {
    return list.size() == 1 ? list[0] : list[i];
  };
  // The mask must be the same for all samples and heads.
  int64_t one = offsets[0][0] + offsets[1][0];
  for (int64_t b : offsets[0])
    for (int64_t h : offsets[1])
      for (int64_t row : offsets[2])
        for (int64_t column : offsets[3]) {
          std::optional<bool> seen = sees(b + h + row + column);
          if (!seen || seen != sees(one + row + column))
            return MaskShape();
        }
  return known->second =
             shapeOfMask(shape[2], shape[3], [&](int64_t t, int64_t s) {
               return *sees(one + at(offsets[2], t) + at(offsets[3], s));
             });
}

static MaskShape classifyComparison(ArrayRef<int64_t> shape,
                                    const MaskParts::Condition &condition) {
  MaskShape other;
  Operation *op = condition.view.getSource().getDefiningOp();
  auto form = asAtMostZero(op, condition.keep);
  if (!form)
    return other;
  auto lhs = affineOf(op->getOperand(0)), rhs = affineOf(op->getOperand(1));
  if (!lhs || !rhs)
    return other;
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
      return other;
    step[*to] = value;
  }
  MaskShape found;
  found.kind = MaskShape::Banded;
  int64_t largest = base;
  for (unsigned dim = 0; dim < 4; ++dim)
    largest += std::max<int64_t>(step[dim], 0) * (shape[dim] - 1);
  if (largest <= 0)
    return found; // Every key is visible.
  if (step[0] != 0 || step[1] != 0 || step[2] + step[3] != 0 ||
      std::abs(step[3]) != 1)
    return other;
  // With p = t + S - T: base + s - t <= 0 is s - p <= -base - (S - T).
  int64_t shift = shape[3] - shape[2];
  if (step[3] == 1)
    found.band.high = -base - shift;
  else
    found.band.low = base - shift;
  found.band = withoutIdleBounds(found.band, shape[2], shape[3]);
  return found;
}

MaskShape AttentionMask::classify(const Condition &condition) const {
  DenseElementsAttr attr;
  if (!matchPattern(condition.view.getSource(), m_Constant(&attr)))
    return classifyComparison(shape, condition);
  auto values = attr.getValues<bool>();
  return classifyConstant(condition.view, attr, condition.keep,
                          [&](int64_t i) -> std::optional<bool> {
                            return values[i] == condition.keep;
                          });
}

/// The number by which a constant forbids keys; NaN if there are several.
static double fillOf(DenseElementsAttr attr, double factor) {
  std::optional<double> fill;
  for (float value : attr.getValues<float>())
    if (value * factor <= forbids) {
      if (fill && *fill != value * factor)
        return std::numeric_limits<double>::quiet_NaN();
      fill = value * factor;
    }
  return fill.value_or(-std::numeric_limits<double>::infinity());
}

/// The row of a constant that equals a row of numbers for the keys plus one
/// number for each query, to which a softmax is invariant.
static std::optional<MaskParts::Summand>
rowOf(ArrayRef<int64_t> shape, Type elementType, const ViewMap &view,
      double factor, DenseElementsAttr attr) {
  if (!elementType.isF32() || view.isConstantAlong(2))
    return std::nullopt;
  ViewMap narrow = view;
  for (unsigned dim = 0; dim < 2; ++dim)
    if (narrow.isConstantAlong(dim))
      narrow.dropDim(dim);
  auto strides = narrow.getStrides();
  SmallVector<int64_t> offsets[4];
  for (unsigned dim = 0; dim < 4; ++dim)
    offsets[dim] = offsetsOf(strides[dim]);
  auto values = attr.getValues<float>();
  int64_t keys = shape[3];
  std::vector<float> row;
  for (int64_t b : offsets[0])
    for (int64_t h : offsets[1]) {
      auto at = [&](int64_t t, int64_t s) {
        return values[b + h + offsets[2][t] + offsets[3][s]] * factor;
      };
      // The last query sees the most keys.
      int64_t last = shape[2] - 1;
      double largest = 0;
      for (int64_t s = 0; s < keys; ++s) {
        double value = at(last, s);
        largest = std::max(largest, std::abs(value));
        row.push_back(static_cast<float>(value));
      }
      if (!(largest < -forbids))
        return std::nullopt;
      ArrayRef<float> whole = ArrayRef<float>(row).take_back(keys);
      for (int64_t t = 0; t < shape[2]; ++t) {
        std::optional<int64_t> first;
        for (int64_t s = 0; s < keys; ++s) {
          if (at(t, s) <= forbids)
            continue;
          if (!first)
            first = s;
          double here = at(t, s) - at(t, *first);
          // The numbers are rounded, so differences are compared with a
          // tolerance.
          if (std::abs(here - (whole[s] - whole[*first])) > 1e-6 * largest)
            return std::nullopt;
        }
      }
    }
  auto type = RankedTensorType::get(
      {int64_t(offsets[0].size()), int64_t(offsets[1].size()), 1, keys},
      elementType);
  return MaskParts::Summand{view, 1, false,
                            DenseElementsAttr::get(type, ArrayRef<float>(row))};
}

/// Adds a constant; false if it stays a number to be added.
bool AttentionMask::addConstant(const ViewMap &view, double factor,
                                DenseElementsAttr attr) {
  if (!attr.getElementType().isF32())
    return false;
  auto values = attr.getValues<float>();
  MaskShape found = classifyConstant(
      view, attr, factor, [&](int64_t i) -> std::optional<bool> {
        if (values[i] * factor <= forbids)
          return false;
        return values[i] == 0 ? std::optional<bool>(true) : std::nullopt;
      });
  if (found.kind != MaskShape::Other) {
    parts.beginHiding({fillOf(attr, factor), false, Summand{view, factor}});
    parts.takeShape(found, std::nullopt, Summand{view, factor});
    return true;
  }
  // The visible keys may have different numbers, as for distances. The factor
  // is positive; its negative marks this second meaning of the constant in the
  // cache.
  found = classifyConstant(view, attr, -factor,
                           [&](int64_t i) -> std::optional<bool> {
                             return values[i] * factor > forbids;
                           });
  if (found.kind != MaskShape::Banded || !found.groups.empty())
    return false;
  const double several = std::numeric_limits<double>::quiet_NaN();
  if (auto row = rowOf(shape, elementType, view, factor, attr)) {
    parts.beginHiding({several, false, Summand{view, factor}});
    parts.takeShape(found, std::nullopt, Summand{view, factor}, row);
    return true;
  }
  parts.beginHiding({several, false, std::nullopt, /*isAddedAnyway=*/true});
  parts.takeShape(found, std::nullopt);
  return false;
}

/// Slopes, equal for all queries and keys, times distances. A softmax depends
/// only on the part of the distance that varies with the key.
bool AttentionMask::addDistances(const ViewMap &view, double factor) {
  for (auto [x, distance] : bothWays<arith::MulFOp>(view.getSource())) {
    ViewMap slopes = viewThrough(shape, x, view);
    if (!slopes.isConstantAlong(2) || !slopes.isConstantAlong(3) ||
        !elementType.isF32() ||
        tensorType(slopes.getSource()).getElementType() != elementType)
      continue;
    auto steps = affineOf(distance);
    if (!steps)
      continue;
    double perKey = 0;
    bool isDistance = true;
    for (auto [from, step] : llvm::enumerate(steps->steps)) {
      if (view.isDimOfSource(3, from))
        perKey = double(step);
      else
        isDistance &= step == 0 || view.isDimOfSource(2, from);
    }
    if (!isDistance)
      continue;
    if (perKey != 0)
      parts.addSummand({slopes,
                        factor * perKey,
                        true,
                        {},
                        dependsOnParameter(slopes.getSource())});
    return true;
  }
  return false;
}

bool AttentionMask::addView(const ViewMap &view, double factor,
                            std::string &why) {
  Value source = view.getSource();
  Operation *op = source.getDefiningOp();
  if (auto number = constantNumber(source); number && std::isfinite(*number))
    return true; // Equal for every key.
  if (DenseElementsAttr attr; matchPattern(source, m_Constant(&attr)))
    if (addConstant(view, factor, attr))
      return true;
  if (auto choice = dyn_cast_or_null<arith::SelectOp>(op)) {
    auto yes = constantNumber(choice.getTrueValue());
    auto no = constantNumber(choice.getFalseValue());
    if (yes && no && (*yes == 0 || *no == 0) &&
        std::min(*yes, *no) * factor <= forbids) {
      parts.beginHiding(
          {std::min(*yes, *no) * factor, false, Summand{view, factor}});
      addCondition(viewThrough(shape, choice.getCondition(), view), *yes == 0);
      return true;
    }
  }
  if (auto choice = dyn_cast_or_null<arith::SelectOp>(op);
      choice && dependsOnParameter(source))
    for (bool keep : {true, false}) {
      auto fill =
          constantNumber(keep ? choice.getFalseValue() : choice.getTrueValue());
      if (!fill || !(*fill * factor <= forbids))
        continue;
      parts.beginHiding({*fill * factor});
      addCondition(viewThrough(shape, choice.getCondition(), view), keep);
      double own = factor;
      ViewMap part = viewThrough(
          shape, keep ? choice.getTrueValue() : choice.getFalseValue(), view,
          &own);
      return addView(part, own, why);
    }
  if (isa_and_nonnull<arith::AddFOp>(op)) {
    for (Value operand : op->getOperands()) {
      double own = factor;
      ViewMap part = viewThrough(shape, operand, view, &own);
      if (!addView(part, own, why))
        return false;
    }
    return true;
  }
  DenseElementsAttr constant;
  if (view.isConstantAlong(3) && !matchPattern(source, m_Constant(&constant)))
    return true; // Equal for every key.
  if (addDistances(view, factor))
    return true;
  if (Type type = tensorType(source).getElementType(); type != elementType) {
    llvm::raw_string_ostream(why) << "its mask has elements of " << type
                                  << ", its products of " << elementType;
    return false;
  }
  parts.addSummand({view, factor, false, {}, dependsOnParameter(source)});
  return true;
}

bool AttentionMask::add(Value value, double factor, std::string &why) {
  if (!(factor > 0)) {
    why = "the masked scores are multiplied by a number that isn't positive";
    return false;
  }
  ViewMap view = viewOf(shape, value, &factor);
  return addView(view, factor, why);
}

bool tmc::addWhole(AttentionMask &mask, Value whole, std::string &why) {
  if (!tensorType(whole).getElementType().isInteger(1))
    return mask.add(whole, 1, why);
  return mask.select(whole, true, -std::numeric_limits<double>::infinity(),
                     why);
}

void AttentionMask::addCausal() {
  MaskShape found;
  found.kind = MaskShape::Banded;
  found.band.high = 0;
  parts.beginHiding({-std::numeric_limits<double>::infinity()});
  parts.takeShape(found, std::nullopt);
}

bool AttentionMask::select(Value condition, bool keep, double fill,
                           std::string &why) {
  if (!(fill <= forbids)) {
    why = "scores are replaced by " + std::to_string(fill) +
          ", which doesn't forbid a key";
    return false;
  }
  parts.beginHiding({fill, /*replaces=*/true});
  addCondition(viewOf(shape, condition), keep);
  return true;
}
