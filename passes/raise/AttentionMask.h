// AttentionMask.h - an exporter's masks as nn.attention's mask.
//
// Masks arrive as numbers added to the scores, or as scores replaced if a
// condition is true; as constants, comparisons of positions, or conjunctions
// with a padding mask. This class classifies them. A mask that the op can
// express without a table becomes an attribute or a small operand: keys after a
// query the causal flag, keys too far from it the window, keys of other parts
// of a block or packed sequence the groups, keys visible to all queries the
// prefix. A mask that forbids nothing is dropped. The rest is one operand,
// without the dimensions along which it is constant. Numbers that depend on a
// trained parameter are another operand, the bias: only the bias has a
// gradient, and a mask of some samples doesn't turn the bias into a table per
// sample.
//
// A number of at most -10000, added to a score or in its place, forbids the key
// like minus infinity: compared with any score of training, its exponential is
// zero. Only if a query sees no key at all is the result different, for example
// the mean of all values. If there may be such a query, the op gets the number
// as its fill (MaskFill.cpp), or adds the number as the graph does.

#ifndef TMC_PASSES_RAISE_ATTENTIONMASK_H
#define TMC_PASSES_RAISE_ATTENTIONMASK_H

#include "dialects/nn/AttentionFill.h"
#include "passes/raise/MaskParts.h"

#include <map>
#include <string>
#include <tuple>
#include <vector>

namespace tmc {

class AttentionMask {
public:
  /// The classified constants: all layers of a model share their masks, which
  /// may have millions of elements.
  struct Cache;

  /// For scores of `shape` [B, H, T, S], for any shape in the IR, and products
  /// of `elementType`.
  AttentionMask(llvm::ArrayRef<int64_t> shape, mlir::Type elementType,
                Cache &cache)
      : shape(llvm::to_vector(shape)), elementType(elementType), cache(&cache) {
  }

  /// Adds `value` times `factor` to the scores. If a mask can't express that,
  /// returns false and sets `why`.
  bool add(mlir::Value value, double factor, std::string &why);
  /// Keeps scores where `condition` is `keep`; the others become `fill`.
  bool select(mlir::Value condition, bool keep, double fill, std::string &why);

  /// Records that the op is already causal.
  void addCausal();

  /// Decides the flags; nothing may be added afterwards. If the op can't
  /// express the result of a query that sees no key, returns false and sets
  /// `why`.
  bool settle(std::string &why);
  nn::AttentionFill getFill() const { return fill; }
  bool isCausal() const { return causal; }
  int64_t getWindow() const { return window; }
  bool isPrefixed() const { return parts.prefix || constantPrefix; }
  /// True if flags, groups or a prefix express more than `wasCausal`, or no
  /// table is left.
  bool saysMore(bool wasCausal) const {
    return causal > wasCausal || window || parts.groups ||
           !constantGroups.empty() || isPrefixed() ||
           (parts.conditions.empty() && parts.summands.empty());
  }
  /// True if a part of the mask isn't trained, in addition to `wasCausal`.
  bool hasUntrained(bool wasCausal) const {
    return causal > wasCausal || window || parts.groups ||
           !constantGroups.empty() || isPrefixed() ||
           !parts.conditions.empty() || hasNumbers();
  }
  /// True if numbers are added that aren't trained.
  bool hasNumbers() const { return parts.hasNumbers(); }
  bool hasTrained() const {
    return llvm::any_of(parts.summands,
                        [](const Summand &s) { return s.trained; });
  }
  /// The operands of the op, null if absent: the untrained part that flags,
  /// groups and prefix don't express; the trained part;
  mlir::Value build(mlir::OpBuilder &b, mlir::Location loc) const;
  mlir::Value buildBias(mlir::OpBuilder &b, mlir::Location loc) const;
  /// the groups, [B or 1, S]; and the prefix, [B or 1].
  mlir::Value buildGroups(mlir::OpBuilder &b, mlir::Location loc) const;
  mlir::Value buildPrefix(mlir::OpBuilder &b, mlir::Location loc) const;

private:
  using Condition = MaskParts::Condition;
  using Summand = MaskParts::Summand;

  /// Adds an i1 that must be `keep` for a visible key.
  void addCondition(const ViewMap &view, bool keep);
  bool addView(const ViewMap &view, double factor, std::string &why);
  bool addConstant(const ViewMap &view, double factor,
                   mlir::DenseElementsAttr attr);
  bool takePrefix(const Condition &condition);
  bool takeGroups(const Condition &condition);
  bool addDistances(const ViewMap &view, double factor);
  MaskShape classify(const Condition &condition) const;
  /// `sees` returns whether element i of `constant` allows a key, or none if
  /// the element means something else; `meaning` distinguishes different
  /// meanings of one constant.
  MaskShape
  classifyConstant(ViewMap view, mlir::Attribute constant, double meaning,
                   llvm::function_ref<std::optional<bool>(int64_t)> sees) const;

  llvm::SmallVector<int64_t> shape;
  mlir::Type elementType;
  bool causal = false;
  int64_t window = 0;
  nn::AttentionFill fill;
  MaskParts parts;
  std::vector<int64_t> constantGroups;
  std::optional<int64_t> constantPrefix;
  Cache *cache;
};

struct AttentionMask::Cache {
  std::map<std::tuple<const void *, double, std::vector<int64_t>>, MaskShape>
      shapes;
};

/// Adds a complete mask of the op, with the shape given to the constructor.
bool addWhole(AttentionMask &mask, mlir::Value whole, std::string &why);

/// A mask or bias with one element along each dimension, except the last, where
/// it is constant; null if there is no such dimension of size above 1.
mlir::Value narrowTable(mlir::OpBuilder &b, mlir::Value table);

} // namespace tmc

#endif // TMC_PASSES_RAISE_ATTENTIONMASK_H
