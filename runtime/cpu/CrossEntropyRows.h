//===- CrossEntropyRows.h - rows of a classifier ----------------*- C++ -*-===//
//
// The common part of the plain and the chunked cross-entropy.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_CPU_CROSSENTROPYROWS_H
#define TMC_RUNTIME_CPU_CROSSENTROPYROWS_H

#include "runtime/cpu/Simd.h"
#include "runtime/kernels/DType.h"

#include <cstdint>

namespace tmc {

class Stream;

namespace cpu {

/// The rule for counting labels.
struct LabelRule {
  DType type;
  int64_t vocabulary, ignoreIndex;
};

/// log of the sum of the exponentials of `count` numbers; -inf if all are -inf.
/// T: float, bf16 or f16, computed in f32.
template <typename T> float rowLogSumExp(const T *row, int64_t count);

/// out[i] = scale * exp(row[i] - lse), minus scale at the label, in f32 and
/// rounded once; out may be row.
template <typename T>
void rowGradient(const T *row, T *out, int64_t count, int64_t label, float lse,
                 float scale);

/// False for the ignored label, and for a label outside the vocabulary, which
/// becomes the stream's fault.
bool labelCounts(Stream &stream, const LabelRule &rule, int64_t row,
                 int64_t label);

/// weight * the sum of the rows' losses, over the labels that count.
float weightedLoss(Stream &stream, const LabelRule &rule, const void *labels,
                   int64_t rows, const float *losses, float weight);

} // namespace cpu
} // namespace tmc

#endif // TMC_RUNTIME_CPU_CROSSENTROPYROWS_H
