// AttentionMask.h - what an exporter does to scores, as nn.attention's mask.
//
// Masks arrive as numbers added to the scores, or as scores replaced where a
// condition holds; as constants, comparisons of positions, conjunctions with a
// padding mask. This sorts them. What the op can say without a table becomes
// that: keys after a query are the causal flag, keys too far from it the
// window, keys of other parts of a block or packed sequence the groups, keys
// that all see the prefix. What forbids nothing is dropped; the rest is one
// operand, with the dimensions along which it is constant left out. Numbers
// that depend on a trained parameter are another, the bias: it alone has a
// gradient, and what masks some samples doesn't make it a table for each of
// them.
//
// A number of at most -10000, added to a score or in its place, forbids the key
// as minus infinity does: beside any score that a model trains with, its
// exponential is zero. Only of a query that sees no key at all do the pieces
// make something else, the mean of all values, say. Where there may be such a
// query, the op is told the number (MaskFill.cpp), or adds it as the graph
// does.

#ifndef TMC_PASSES_RAISE_ATTENTIONMASK_H
#define TMC_PASSES_RAISE_ATTENTIONMASK_H

#include "dialects/nn/AttentionFill.h"
#include "passes/raise/MaskShape.h"
#include "passes/raise/ViewMap.h"

#include <map>
#include <string>
#include <tuple>
#include <vector>

namespace tmc {

class AttentionMask {
public:
  /// What constants were found to be: all layers of a model share their masks,
  /// which may have millions of elements.
  struct Cache;

  /// For scores of `shape` [B, H, T, S], whatever shape they have in the IR,
  /// and products of `elementType`.
  AttentionMask(llvm::ArrayRef<int64_t> shape, mlir::Type elementType,
                Cache &cache)
      : shape(llvm::to_vector(shape)), elementType(elementType), cache(&cache) {
  }

  /// Scores plus `value` times `factor`. Where that can't be said by a mask,
  /// returns false and says why.
  bool add(mlir::Value value, double factor, std::string &why);
  /// Scores where `condition` is `keep`, else `fill`.
  bool select(mlir::Value condition, bool keep, double fill, std::string &why);

  /// All of a mask of the op, of the shape that this was made for.
  bool addWhole(mlir::Value mask, std::string &why);
  /// The op is causal already.
  void addCausal();

  /// Decides what the flags say; nothing is added after it. Where the op can't
  /// say what a query that sees nothing means, returns false and says why.
  bool settle(std::string &why);
  nn::AttentionFill getFill() const { return fill; }
  bool isCausal() const { return causal; }
  int64_t getWindow() const { return window; }
  bool isPrefixed() const { return prefix || constantPrefix; }
  /// True if something is said without a table that `wasCausal` didn't.
  bool saysMore(bool wasCausal) const {
    return causal > wasCausal || window || groups || !constantGroups.empty() ||
           isPrefixed() || (conditions.empty() && summands.empty());
  }
  /// True if something is said that isn't numbers that are trained, beside what
  /// `wasCausal` did.
  bool hasUntrained(bool wasCausal) const {
    return causal > wasCausal || window || groups || !constantGroups.empty() ||
           isPrefixed() || !conditions.empty() || hasNumbers();
  }
  /// True if something is added that isn't trained.
  bool hasNumbers() const {
    return !llvm::all_of(summands, [](const Summand &s) { return s.trained; });
  }
  bool hasTrained() const {
    return llvm::any_of(summands, [](const Summand &s) { return s.trained; });
  }
  /// The operands of the op, each null where there is none: what the flags,
  /// groups and prefix don't say and isn't trained, what is trained, ...
  mlir::Value build(mlir::OpBuilder &b, mlir::Location loc) const;
  mlir::Value buildBias(mlir::OpBuilder &b, mlir::Location loc) const;
  /// ... [B or 1, S], and [B or 1].
  mlir::Value buildGroups(mlir::OpBuilder &b, mlir::Location loc) const;
  mlir::Value buildPrefix(mlir::OpBuilder &b, mlir::Location loc) const;

private:
  /// An i1 that must be `keep` for a key to be seen; and the hiding that it is
  /// a part of.
  struct Condition {
    ViewMap view;
    bool keep;
    size_t hiding = 0;
  };
  /// A number added to the score: `view` times `factor`, and times the number
  /// of the key if `growsWithKey`; or a constant [B or 1, H or 1, 1, S].
  struct Summand {
    ViewMap view;
    double factor;
    bool growsWithKey = false;
    mlir::DenseElementsAttr row = {};
    bool trained = false; // A gradient is wanted.
    size_t order = 0;     // How many hidings stand behind it in the graph.
  };
  /// An operation of the graph that hides keys, the last one first.
  struct Hiding {
    /// What is added to a score or stands in its place; NaN: several numbers.
    double fill;
    bool replaces = false;
    /// What adds the numbers, where something does and the graph adds nothing
    /// else there.
    std::optional<Summand> whole = std::nullopt;
    /// The numbers are added in any case: a shape only says where they are.
    bool isAddedAnyway = false;
  };
  /// What a constant or a comparison was found to be, and that again as a part
  /// of the table, for where the op can't say it.
  struct Shaped {
    MaskShape found;
    std::optional<Condition> condition;
    std::optional<Summand> summand;
    /// What is still to be added where the op can say the shape.
    std::optional<Summand> rest;
    size_t hiding = 0;
  };
  /// A value for each sample, and the condition that it stands for.
  struct Given {
    ViewMap view;
    Condition condition;
  };

  /// What follows until the next call is a part of `hiding`.
  void beginHiding(Hiding hiding);
  void addSummand(Summand summand);
  /// Decides what becomes of the numbers that hide keys.
  bool settleFill(std::string &why);
  bool settleReplacing(std::string &why);
  bool settleAdding(std::string &why);
  bool mayHideRow() const;
  bool isUsed(size_t hiding) const;
  /// Takes back what `hiding` was found to say; its numbers are added instead.
  bool addInstead(size_t hiding, std::string &why);

  mlir::Value buildSummand(mlir::OpBuilder &b, mlir::Location loc,
                           const Summand &summand) const;
  ViewMap viewOf(mlir::Value value, double *factor = nullptr) const;
  ViewMap viewThrough(mlir::Value operand, const ViewMap &outer,
                      double *factor = nullptr) const;
  /// Takes in an i1 that must be `keep` for a key to be seen.
  void addCondition(const ViewMap &view, bool keep);
  bool addView(const ViewMap &view, double factor, std::string &why);
  bool addConstant(const ViewMap &view, double factor,
                   mlir::DenseElementsAttr attr);
  bool takePrefix(const Condition &condition);
  bool takeGroups(const Condition &condition);
  void takeShape(const MaskShape &found, std::optional<Condition> condition,
                 std::optional<Summand> summand = std::nullopt,
                 std::optional<Summand> rest = std::nullopt);
  /// A constant that differs from a row of numbers for the keys by the same
  /// number for all keys of a query, which a softmax doesn't see.
  std::optional<Summand> rowOf(const ViewMap &view, double factor,
                               mlir::DenseElementsAttr attr) const;
  bool addDistances(const ViewMap &view, double factor);
  MaskShape classify(const Condition &condition) const;
  MaskShape classifyComparison(const Condition &condition) const;
  /// `sees` says whether element i of `constant` allows a key, if that is what
  /// it says at all; `meaning` tells apart different readings of one constant.
  MaskShape
  classifyConstant(ViewMap view, mlir::Attribute constant, double meaning,
                   llvm::function_ref<std::optional<bool>(int64_t)> sees) const;

  llvm::SmallVector<int64_t> shape;
  mlir::Type elementType;
  bool causal = false;
  int64_t window = 0;
  nn::AttentionFill fill;
  std::vector<Hiding> hidings;
  std::vector<Shaped> shapes;
  std::optional<Given> groups, prefix;
  std::vector<int64_t> constantGroups;
  std::optional<int64_t> constantPrefix;
  std::vector<Condition> conditions;
  std::vector<Summand> summands;
  Cache *cache;
};

struct AttentionMask::Cache {
  std::map<std::tuple<const void *, double, std::vector<int64_t>>, MaskShape>
      shapes;
};

/// A mask or bias with one element along each dimension but the last where it
/// is constant; null where it has no such dimension of more.
mlir::Value narrowTable(mlir::OpBuilder &b, mlir::Value table);

} // namespace tmc

#endif // TMC_PASSES_RAISE_ATTENTIONMASK_H
