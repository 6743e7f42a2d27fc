//===- CrossEntropyRows.h - launches of the losses on cuda ------*- C++ -*-===//
//
// Launches over rows of logits, for cross_entropy and for the chunks of
// linear_cross_entropy. A block takes a row. Rows of
// logits are contiguous; logits and their gradient are f32, bf16 or f16.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_CUDA_CROSSENTROPYROWS_H
#define TMC_RUNTIME_CUDA_CROSSENTROPYROWS_H

#include "runtime/cuda/Cuda.h"
#include "runtime/cuda/Stored.h"
#include "runtime/kernels/DType.h"

namespace tmc::cuda {

/// The rule for counting rows. `firstRow` is the number of row 0 in the whole
/// batch. A row of logits has `width` columns, of which the first are the
/// vocabulary.
struct LabelRule {
  const void *labels; // of the whole batch
  DType type;
  int64_t vocabulary, ignoreIndex, firstRow, width;
};

/// Rows of floats, `stride` elements from one to the next.
struct StoredRows {
  void *data;
  DType type;
  int64_t stride;
};

/// lse[r] and losses[r] = lse - logits[r, label] (0 if the row doesn't count),
/// for rows [firstRow, firstRow + rows). `logits` holds only these rows. A bad
/// label becomes the step's fault.
void rowLosses(Queue &queue, const LabelRule &rule, const StoredIn &logits,
               int64_t rows, float *lse, float *losses);

/// *loss (+)= weight * the sum of the losses, in f64.
void weightedLoss(Queue &queue, const float *losses, int64_t rows,
                  const float *weight, float *loss, bool accumulate);

/// dlogits = scale * (exp(logits - lse) - [label]), rounded once, 0 in rows
/// that don't count and behind the vocabulary. dlogits may be in the place of
/// the logits, and may be narrower: then each of its rows begins where the row
/// of the logits begins.
void rowGradients(Queue &queue, const LabelRule &rule, const StoredIn &logits,
                  int64_t rows, const float *lse, const float *scale,
                  const StoredRows &dlogits);

/// The losses and the gradients at once; the log-sum-exps aren't kept.
void rowLossesAndGradients(Queue &queue, const LabelRule &rule,
                           const StoredIn &logits, int64_t rows, float *losses,
                           const float *scale, const StoredRows &dlogits);

/// sums[v] (+)= values[0, v] + values[1, v] + ..., in this order.
void addRows(Queue &queue, const StoredRows &values, int64_t rows,
             int64_t columns, float *sums, bool accumulate);

} // namespace tmc::cuda

#endif // TMC_RUNTIME_CUDA_CROSSENTROPYROWS_H
