//===- AttentionHidden.h - queries without visible keys ---------*- C++ -*-===//
//
// A model may hide keys by a large finite number, which is added to a score or
// replaces it. Beside a visible key, the probability of a hidden key is zero,
// and the kernels leave it out. If all keys of a query are hidden, its
// probabilities are those of the filled scores, for instance 1 / keys each. The
// kernels here work row by row and run after the tiled kernels, which mark such
// a query by an lse of -infinity and write zeros for it.
//
// The functions for one score are shared by both backends.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_KERNELS_ATTENTIONHIDDEN_H
#define TMC_RUNTIME_KERNELS_ATTENTIONHIDDEN_H

#include "runtime/kernels/Attention.h"
#include "runtime/kernels/Math.h"
#include "runtime/kernels/Philox.h"

namespace tmc {

/// Whether causality, the window and the groups let `query` see `key`.
TMC_HD inline bool isSeen(const AttentionParams &p,
                          const AttentionExtras &extras, int64_t batch,
                          int64_t query, int64_t key) {
  const int64_t at = query + p.keys - p.queries;
  const int64_t prefix =
      extras.prefix ? extras.prefix[batch * p.prefixBatchStride] : 0;
  if (p.causal && key > at && key >= prefix)
    return false;
  if (p.window > 0 && (key - at >= p.window || at - key >= p.window))
    return false;
  if (!extras.groups)
    return true;
  const int64_t *groups = extras.groups + batch * p.groupsBatchStride;
  return groups[key] == groups[at];
}

/// The stored lse of a query whose lse over the visible keys is `lse`.
TMC_HD inline float markHidden(const AttentionParams &p, float lse) {
  return mayHideRows(p) && lse <= kHiddenScore ? -__builtin_inff() : lse;
}

/// A score of a query that sees no key.
struct FilledScore {
  float score;
  float slope;  // its derivative by scale * product
  float onBias; // and by the bias
};

TMC_HD inline FilledScore filledScore(const AttentionParams &p,
                                      const AttentionExtras &extras,
                                      int64_t batch, int64_t head,
                                      int64_t query, int64_t key,
                                      float product) {
  FilledScore f{product * float(p.scale), 1, 1};
  if (p.softcap > 0) {
    const float t = math::tanh(f.score * float(1 / p.softcap));
    f.score = float(p.softcap) * t;
    f.slope = 1.0f - t * t;
  }
  const int64_t onMask = batch * p.maskBatchStride + head * p.maskHeadStride +
                         query * p.maskQueryStride + key;
  bool isHidden = !isSeen(p, extras, batch, query, key);
  if (p.mask == MaskKind::Boolean)
    isHidden |= !static_cast<const unsigned char *>(extras.mask)[onMask];
  if (isHidden && (p.fill == 0 || p.fillKind == FillKind::ReplacesAll))
    return {p.fill == 0 ? -__builtin_inff() : float(p.fill), 0, 0};
  if (isHidden && p.fillKind == FillKind::ReplacesScore) {
    f.score = float(p.fill);
    f.slope = 0;
  } else if (isHidden) {
    f.score += float(p.fill);
  }
  if (p.mask == MaskKind::Additive)
    f.score += static_cast<const float *>(extras.mask)[onMask];
  if (p.bias)
    f.score += extras.bias[batch * p.biasBatchStride + head * p.biasHeadStride +
                           query * p.biasQueryStride + key];
  return f;
}

/// The factor by which dropout multiplies a probability.
TMC_HD inline float keptFactor(const AttentionParams &p,
                               const AttentionExtras &extras, int64_t batch,
                               int64_t head, int64_t query, int64_t key) {
  if (!(p.dropout > 0))
    return 1;
  const uint64_t rows = p.rowsPerSample > 1 ? uint64_t(p.rowsPerSample) : 1;
  const uint64_t sample =
      uint64_t(extras.samples[uint64_t(batch) / rows]) * rows +
      uint64_t(batch) % rows;
  const uint64_t row =
      (sample * uint64_t(p.heads) + uint64_t(head)) * uint64_t(p.queries) +
      uint64_t(query);
  const uint32_t word = Philox(extras.seed, p.stream)
                            .word(row * uint64_t(p.keys) + uint64_t(key));
  return (word >> 8) >= philoxThreshold(p.dropout) ? float(1 / (1 - p.dropout))
                                                   : 0.0f;
}

/// The softmax of a query's filled scores: exp(score - top) / sum. If top is
/// -infinity, every probability is 0.
struct FilledRow {
  float top, sum;

  TMC_HD float probability(float score) const {
    return top == -__builtin_inff() ? 0.0f : math::exp(score - top) / sum;
  }
};

} // namespace tmc

#endif // TMC_RUNTIME_KERNELS_ATTENTIONHIDDEN_H
