// AttentionMask.h - what an exporter does to scores, as nn.attention's mask.
//
// Masks arrive as numbers added to the scores, or as scores replaced where a
// condition holds; as constants, comparisons of positions, conjunctions with a
// padding mask. This sorts them: what forbids exactly the keys after a query is
// the causal flag, what forbids nothing is dropped, the rest is one operand,
// with the dimensions along which it is constant left out.
//
// A number of at most -10000, added to a score or in its place, forbids the key
// as minus infinity does: beside any score that a model trains with, its
// exponential is zero. Only of a query that may see no key at all do the pieces
// make something else, the mean of all values, where nn.attention gives zeros.

#ifndef TMC_PASSES_RAISE_ATTENTIONMASK_H
#define TMC_PASSES_RAISE_ATTENTIONMASK_H

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

  bool isCausal() const { return causal; }
  /// What the causal flag doesn't say, or null.
  mlir::Value build(mlir::OpBuilder &b, mlir::Location loc) const;

private:
  /// An i1 that must be `keep` for a key to be seen.
  struct Condition {
    ViewMap view;
    bool keep;
  };
  /// A number added to the score: `view` times `factor`.
  struct Summand {
    ViewMap view;
    double factor;
  };
  enum class Kind { Nothing, Causal, Other };

  ViewMap viewOf(mlir::Value value, double *factor = nullptr) const;
  ViewMap viewThrough(mlir::Value operand, const ViewMap &outer,
                      double *factor = nullptr) const;
  /// Takes in an i1 that must be `keep` for a key to be seen.
  void addCondition(const ViewMap &view, bool keep);
  bool addView(const ViewMap &view, double factor, std::string &why);
  bool addConstant(const ViewMap &view, double factor,
                   mlir::DenseElementsAttr attr);
  Kind classify(const Condition &condition) const;
  Kind classifyComparison(const Condition &condition) const;
  /// `sees` says whether element i of `constant` allows a key, if that is what
  /// it says at all; `meaning` tells apart different readings of one constant.
  Kind
  classifyConstant(ViewMap view, mlir::Attribute constant, double meaning,
                   llvm::function_ref<std::optional<bool>(int64_t)> sees) const;

  llvm::SmallVector<int64_t> shape;
  mlir::Type elementType;
  bool causal = false;
  std::vector<Condition> conditions;
  std::vector<Summand> summands;
  Cache *cache;
};

struct AttentionMask::Cache {
  std::map<std::tuple<const void *, double, std::vector<int64_t>>, Kind> kinds;
};

} // namespace tmc

#endif // TMC_PASSES_RAISE_ATTENTIONMASK_H
