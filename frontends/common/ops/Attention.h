// Attention.h - attention that a model has as one operator.

#ifndef TMC_FRONTENDS_COMMON_OPS_ATTENTION_H
#define TMC_FRONTENDS_COMMON_OPS_ATTENTION_H

#include "frontends/common/Site.h"

namespace tmc::frontend {

/// softmax(scale * q * transposed k, masked) * v for each head. Keys and values
/// may have fewer heads, each of which serves a group of query heads.
struct Attention {
  mlir::Value query, key, value; ///< [B, T, H, D]
  /// Booleans (true: attends) or numbers that are added; broadcasts to [B, H,
  /// T, S]. May be absent.
  Val mask;
  /// The position of query t is key t + offset. The query sees the keys from
  /// `left` before its position to `right` after it; an absent bound means no
  /// limit. `causal` is a right of 0.
  int64_t offset = 0;
  bool causal = false;
  std::optional<int64_t> left, right;
  double softcap = 0;          ///< cap * tanh(score / cap); 0: none.
  std::optional<double> scale; ///< 1 / sqrt(D) if there is none.
  /// [B]: the number of keys of each sample, or absent. The position of the
  /// last query is then the last of these keys, independent of `offset`.
  Val lengths;
  double dropout = 0; ///< The probability of dropping a share.
};

/// The result [B, T, H, D of the values]. If the heads of keys and values have
/// different sizes, attention is built from separate ops. A trained mask
/// becomes a bias.
mlir::FailureOr<mlir::Value> attend(Site &s, const Attention &attention);

/// The scores [B, H, T, S] at a stage of the computation, for models that
/// return them: products, capped ones, with mask and bias, or the softmax of
/// each row.
enum class Scores { Raw, Capped, Biased, Shares };
mlir::FailureOr<Val> scoresOf(Site &s, const Attention &attention,
                              Scores stage);

/// Keys or values of groups, [B, G, S, D], repeated for `heads` of queries.
mlir::FailureOr<Val> repeatHeads(Site &s, const Val &x, int64_t heads);

/// [B, H, T, D] as [B, T, H, D], and back.
mlir::Value swapHeads(Site &s, mlir::Value x);

} // namespace tmc::frontend

#endif // TMC_FRONTENDS_COMMON_OPS_ATTENTION_H
