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
  bool causal = false;
  std::optional<double> scale; ///< 1 / sqrt(D) if there is none.
  double dropout = 0;          ///< The share of probabilities that are dropped.
};

/// The result [B, T, H, D]. Where the mask is trained, attention is built in
/// pieces: nn.attention has no gradient of it.
mlir::FailureOr<mlir::Value> attend(Site &s, const Attention &attention);

/// [B, H, T, D] as [B, T, H, D], and back.
mlir::Value swapHeads(Site &s, mlir::Value x);

} // namespace tmc::frontend

#endif // TMC_FRONTENDS_COMMON_OPS_ATTENTION_H
