// MaskParts.h - the parts of a mask, and the ops of the graph that they are of.
//
// A graph may hide keys several times: each op that does so is a hiding, and
// each condition or shape belongs to one. AttentionMask.h collects the parts;
// MaskFill.cpp decides how the hidings are expressed.

#ifndef TMC_PASSES_RAISE_MASKPARTS_H
#define TMC_PASSES_RAISE_MASKPARTS_H

#include "dialects/nn/AttentionFill.h"
#include "passes/raise/MaskShape.h"
#include "passes/raise/ViewMap.h"

#include <optional>
#include <string>
#include <vector>

namespace tmc {

struct MaskParts {
  /// An i1 that must be `keep` for a visible key, and the hiding to which it
  /// belongs.
  struct Condition {
    ViewMap view;
    bool keep;
    size_t hiding = 0;
  };
  /// A number added to the score: `view` times `factor`, and times the key's
  /// index if `growsWithKey`; or a constant [B or 1, H or 1, 1, S].
  struct Summand {
    ViewMap view;
    double factor;
    bool growsWithKey = false;
    mlir::DenseElementsAttr row = {};
    bool trained = false; // Needs a gradient.
    size_t order = 0;     // The number of hidings after it in the graph.
  };
  /// An op of the graph that hides keys; the last one comes first.
  struct Hiding {
    /// The number added to a score or put in its place; NaN: several numbers.
    double fill;
    bool replaces = false;
    /// The addition of the numbers, if the graph adds nothing else there.
    std::optional<Summand> whole = std::nullopt;
    /// The numbers are added in any case: a shape only describes their
    /// positions.
    bool isAddedAnyway = false;
  };
  /// The class of a constant or a comparison, and the same as a part of the
  /// table, in case the op can't express it.
  struct Shaped {
    MaskShape found;
    std::optional<Condition> condition;
    std::optional<Summand> summand;
    /// The part that must still be added if the op can express the shape.
    std::optional<Summand> rest;
    size_t hiding = 0;
  };
  /// A value for each sample, and the condition that it replaces.
  struct Given {
    ViewMap view;
    Condition condition;
  };

  /// All parts until the next call belong to `hiding`.
  void beginHiding(Hiding hiding);
  void addSummand(Summand summand);
  void takeShape(const MaskShape &found, std::optional<Condition> condition,
                 std::optional<Summand> summand = std::nullopt,
                 std::optional<Summand> rest = std::nullopt);
  /// True if numbers are added that aren't trained.
  bool hasNumbers() const {
    return !llvm::all_of(summands, [](const Summand &s) { return s.trained; });
  }
  /// True if a query of scores of `shape` may see no key.
  bool mayHideRow(llvm::ArrayRef<int64_t> shape) const;
  bool isUsed(size_t hiding) const;
  /// Removes the conditions and shapes of `hiding`; its numbers are added
  /// instead.
  bool addInstead(size_t hiding, std::string &why);

  std::vector<Hiding> hidings;
  std::vector<Shaped> shapes;
  std::optional<Given> groups, prefix;
  std::vector<Condition> conditions;
  std::vector<Summand> summands;
};

/// Decides how the numbers that hide keys in scores of `shape` are expressed:
/// some become `fill`, the others are added. Returns false and sets `why` if
/// the op can't express them.
bool settleFill(MaskParts &parts, llvm::ArrayRef<int64_t> shape,
                nn::AttentionFill &fill, std::string &why);

} // namespace tmc

#endif // TMC_PASSES_RAISE_MASKPARTS_H
