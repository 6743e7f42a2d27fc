// Attention.h - attention where a model names it as one operator.

#ifndef TMC_FRONTENDS_COMMON_OPS_ATTENTION_H
#define TMC_FRONTENDS_COMMON_OPS_ATTENTION_H

#include "frontends/common/Site.h"

namespace tmc::frontend {

/// softmax(scale * q * transposed k, masked) * v for each head, with fewer
/// heads of keys and values where those are grouped.
struct Attention {
  mlir::Value query, key, value; ///< [B, T, H, D]
  /// Of booleans (true: attends) or of numbers that are added; broadcasts to
  /// [B, H, T, S]. May be absent.
  Val mask;
  /// Query t stands at key t + offset. It sees the keys from `left` before that
  /// to `right` behind it; nothing where there is no bound. `causal` is a right
  /// of 0.
  int64_t offset = 0;
  bool causal = false;
  std::optional<int64_t> left, right;
  double softcap = 0;          ///< cap * tanh(score / cap); 0: none.
  std::optional<double> scale; ///< 1 / sqrt(D) if there is none.
  /// [B]: how many keys each sample has, or absent. The last query then stands
  /// at the last of them, whatever `offset` says.
  Val lengths;
  double dropout = 0; ///< The share of probabilities that are dropped.
};

/// The result [B, T, H, D of the values]. Where the mask is trained, or heads
/// of values have another size than those of keys, attention is built in
/// pieces.
mlir::FailureOr<mlir::Value> attend(Site &s, const Attention &attention);

/// The scores [B, H, T, S] at a stage of the way, for models that show them: as
/// products, under the cap, with mask and bias, or as shares of a row.
enum class Scores { Raw, Capped, Biased, Shares };
mlir::FailureOr<Val> scoresOf(Site &s, const Attention &attention,
                              Scores stage);

/// Keys or values of groups, [B, G, S, D], as `heads` of queries see them.
mlir::FailureOr<Val> repeatHeads(Site &s, const Val &x, int64_t heads);

/// [B, H, T, D] as [B, T, H, D], and back.
mlir::Value swapHeads(Site &s, mlir::Value x);

} // namespace tmc::frontend

#endif // TMC_FRONTENDS_COMMON_OPS_ATTENTION_H
