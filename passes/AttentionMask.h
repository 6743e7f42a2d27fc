// AttentionMask.h - what an exporter does to scores, as nn.attention's mask.
//
// Masks arrive as numbers added to the scores, or as scores replaced where a
// condition holds; as constants, comparisons of positions, conjunctions with a
// padding mask. This sorts them: what forbids exactly the keys after a query is
// the causal flag, what forbids nothing is dropped, the rest is one operand,
// with the dimensions along which it is constant left out.
//
// A large negative number isn't minus infinity: a row that has it everywhere
// attends to every key alike, where a row of minus infinities attends to none.
// So a number becomes a condition only where no row can be without a key, which
// is certain of a constant mask that stands alone.

#ifndef TMC_PASSES_ATTENTIONMASK_H
#define TMC_PASSES_ATTENTIONMASK_H

#include "passes/ViewMap.h"

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

  /// For scores of `shape` [B, H, T, S], whatever shape they have in the IR.
  AttentionMask(llvm::ArrayRef<int64_t> shape, Cache &cache)
      : shape(llvm::to_vector(shape)), cache(&cache) {}

  /// Scores plus `value` times `factor`. Where that can't be said by a mask,
  /// returns false and says why.
  bool add(mlir::Value value, double factor, std::string &why);
  /// Scores where `condition` is `keep`, else `fill`.
  bool select(mlir::Value condition, bool keep, double fill, std::string &why);
  /// Decides; to be called once, after all parts of the mask.
  bool finish(std::string &why);

  bool isCausal() const { return causal; }
  /// What the causal flag doesn't say, or null.
  mlir::Value build(mlir::OpBuilder &b, mlir::Location loc,
                    mlir::Type elementType) const;

private:
  /// An i1 that must be `keep` for a key to be seen.
  struct Condition {
    ViewMap view;
    bool keep;
  };
  /// A number added to the score: `view` times `factor`; or, with `fill`, zero
  /// where the i1 `view` is `keep` and `fill` elsewhere.
  struct Summand {
    ViewMap view;
    double factor = 1;
    std::optional<double> fill = std::nullopt;
    bool keep = true;
  };
  enum class Kind { Nothing, Causal, EveryRowSees, Other };
  /// Conditions that numbers stand for, and those numbers.
  struct Soft {
    Kind kind;
    Condition condition; // If EveryRowSees.
    Summand number;
  };

  ViewMap viewOf(mlir::Value value, double *factor = nullptr) const;
  ViewMap viewThrough(mlir::Value operand, const ViewMap &outer,
                      double *factor = nullptr) const;
  void conjuncts(const ViewMap &view, bool keep,
                 std::vector<Condition> &out) const;
  Kind classify(const Condition &condition) const;
  Kind classifyComparison(const Condition &condition) const;
  /// `sees` says whether element i of `constant` allows a key, if that is what
  /// it says at all; `meaning` tells apart different readings of one constant.
  Kind
  classifyConstant(ViewMap view, mlir::Attribute constant, double meaning,
                   llvm::function_ref<std::optional<bool>(int64_t)> sees) const;
  bool addView(const ViewMap &view, double factor, std::string &why);
  bool addCondition(const ViewMap &view, bool keep, double fill,
                    const Summand &number, std::string &why);

  llvm::SmallVector<int64_t> shape;
  bool causal = false;
  std::vector<Condition> conditions;
  std::vector<Summand> summands;
  std::vector<Soft> softs;
  Cache *cache;
};

struct AttentionMask::Cache {
  std::map<std::tuple<const void *, double, std::vector<int64_t>>, Kind> kinds;
};

} // namespace tmc

#endif // TMC_PASSES_ATTENTIONMASK_H
