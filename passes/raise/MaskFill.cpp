// MaskFill.cpp - queries all of whose keys are hidden by a finite number.
//
// With minus infinity such a query has no probabilities. With a finite number
// it has the softmax of the filled scores: equal probabilities if the number
// replaces the scores, or the softmax of the scores alone if the number is
// added to them. nn.attention supports one such number (`fill`), added or in
// the scores' place. If the graph hides keys several times, one hiding becomes
// the op's flags and condition, and the others are added as the graph adds
// them.

#include "passes/raise/MaskParts.h"

#include "passes/raise/Matchers.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"

#include <cmath>

using namespace mlir;
using namespace tmc;
using namespace tmc::nn;

/// Numbers of at most this hide a key.
constexpr double kLargestFill = -1e4;

static bool isFinite(double fill) { return !std::isinf(fill); }

/// True if a shape hides keys at all.
static bool hides(const MaskShape &shape) {
  return shape.kind == MaskShape::Prefixed || shape.band.hasLow() ||
         shape.band.hasHigh() || !shape.groups.empty();
}

/// True if some of the numbers may hide a key.
static bool mayHide(Value numbers, double factor) {
  DenseElementsAttr attr;
  if (!matchPattern(numbers, m_Constant(&attr)) ||
      !isa<FloatType>(attr.getElementType()))
    return true;
  return llvm::any_of(attr.getValues<APFloat>(), [&](const APFloat &number) {
    return number.convertToDouble() * factor <= kLargestFill;
  });
}

void MaskParts::beginHiding(Hiding hiding) {
  if (hiding.whole)
    hiding.whole->order = hidings.size();
  hidings.push_back(std::move(hiding));
}

void MaskParts::addSummand(Summand summand) {
  summand.order = hidings.size();
  summands.push_back(std::move(summand));
}

void MaskParts::takeShape(const MaskShape &found,
                          std::optional<Condition> condition,
                          std::optional<Summand> summand,
                          std::optional<Summand> rest) {
  shapes.push_back({found, std::move(condition), std::move(summand),
                    std::move(rest), hidings.size() - 1});
}

/// Shapes leave each query its own key, if it has one. Conditions may hide all
/// keys, and so may added numbers.
bool MaskParts::mayHideRow(ArrayRef<int64_t> shape) const {
  if (!conditions.empty() || shape[2] > shape[3])
    return true;
  for (const Shaped &part : shapes)
    if (part.found.kind != MaskShape::Prefixed &&
        (part.found.band.low > 0 || part.found.band.high < 0))
      return true;
  return llvm::any_of(summands, [](const Summand &summand) {
    return !summand.trained && !summand.growsWithKey && !summand.row &&
           mayHide(summand.view.getSource(), summand.factor);
  });
}

bool MaskParts::isUsed(size_t hiding) const {
  auto isOf = [&](const Condition &c) { return c.hiding == hiding; };
  return llvm::any_of(conditions, isOf) ||
         (groups && isOf(groups->condition)) ||
         (prefix && isOf(prefix->condition)) ||
         llvm::any_of(shapes, [&](const Shaped &part) {
           return part.hiding == hiding && hides(part.found);
         });
}

bool MaskParts::addInstead(size_t hiding, std::string &why) {
  if (!hidings[hiding].whole && !hidings[hiding].isAddedAnyway) {
    why =
        "queries may see no key, and its masks together say more of them than "
        "one fill does";
    return false;
  }
  auto isOf = [&](const Condition &c) { return c.hiding == hiding; };
  llvm::erase_if(conditions, isOf);
  llvm::erase_if(shapes,
                 [&](const Shaped &part) { return part.hiding == hiding; });
  if (groups && isOf(groups->condition))
    groups.reset();
  if (prefix && isOf(prefix->condition))
    prefix.reset();
  if (hidings[hiding].whole)
    summands.push_back(*hidings[hiding].whole);
  return true;
}

/// A number in the scores' place becomes the op's fill; all other numbers are
/// added.
static bool settleReplacing(MaskParts &parts, AttentionFill &fill,
                            std::string &why) {
  SmallVector<size_t> kept;
  for (size_t i = 0; i < parts.hidings.size(); ++i) {
    if (!parts.isUsed(i))
      continue;
    if (parts.hidings[i].replaces && isFinite(parts.hidings[i].fill))
      kept.push_back(i);
    else if (!parts.addInstead(i, why))
      return false;
  }
  fill.number = parts.hidings[kept.front()].fill;
  // Hidings below a summand's order come after it: they replace the sum.
  bool anyInside = false, anyOutside = false;
  for (size_t i : kept) {
    if (parts.hidings[i].fill != fill.number) {
      why = "scores are replaced by different numbers, and queries may see no "
            "key";
      return false;
    }
    for (const MaskParts::Summand &summand : parts.summands)
      (summand.order > i ? anyInside : anyOutside) = true;
  }
  if (anyInside && anyOutside) {
    why = "numbers are added to scores before and after they are replaced, and "
          "queries may see no key";
    return false;
  }
  fill.kind = anyOutside ? FillKind::ReplacesScore : FillKind::ReplacesAll;
  // Both need the op's mask.
  if (!parts.conditions.empty() && parts.hasNumbers()) {
    why = "numbers are added to scores that a condition replaces, and queries "
          "may see no key";
    return false;
  }
  return true;
}

/// One hiding becomes the op's fill, preferably one that flags express. If
/// another hiding uses minus infinity, no hiding becomes the fill.
static bool settleAdding(MaskParts &parts, AttentionFill &fill,
                         std::string &why) {
  std::optional<size_t> kept;
  bool isPlain = true;
  auto hasShape = [&](size_t hiding) {
    return llvm::any_of(parts.shapes, [&](const MaskParts::Shaped &part) {
      return part.hiding == hiding && hides(part.found);
    });
  };
  for (size_t i = 0; i < parts.hidings.size(); ++i) {
    if (!parts.isUsed(i))
      continue;
    isPlain &= isFinite(parts.hidings[i].fill);
    // A fill in the place of a bias would take the bias's gradient.
    bool canBeFill =
        parts.hidings[i].whole && !std::isnan(parts.hidings[i].fill);
    if (canBeFill && (!kept || (hasShape(i) && !hasShape(*kept))))
      kept = i;
  }
  for (size_t i = 0; i < parts.hidings.size(); ++i)
    if (parts.isUsed(i) && isFinite(parts.hidings[i].fill) &&
        !(isPlain && kept == i) && !parts.addInstead(i, why))
      return false;
  if (!isPlain || !kept)
    return true;
  // A condition and numbers would both need the op's mask.
  if (!parts.conditions.empty() && parts.hasNumbers())
    return parts.addInstead(*kept, why);
  fill = {parts.hidings[*kept].fill, FillKind::Adds};
  return true;
}

bool tmc::settleFill(MaskParts &parts, ArrayRef<int64_t> shape,
                     AttentionFill &fill, std::string &why) {
  bool anyFinite = false, anyReplaces = false;
  for (size_t i = 0; i < parts.hidings.size(); ++i)
    if (parts.isUsed(i) && isFinite(parts.hidings[i].fill)) {
      anyFinite = true;
      anyReplaces |= parts.hidings[i].replaces;
    }
  if (!anyFinite || !parts.mayHideRow(shape))
    return true;
  return anyReplaces ? settleReplacing(parts, fill, why)
                     : settleAdding(parts, fill, why);
}
