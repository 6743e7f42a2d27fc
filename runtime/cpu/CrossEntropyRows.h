//===- CrossEntropyRows.h - rows of a classifier ----------------*- C++ -*-===//
//
// What the plain and the chunked cross-entropy share.
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

/// Which labels count.
struct LabelRule {
  DType type;
  int64_t vocabulary, ignoreIndex;
};

/// log of the sum of the exponentials of `count` floats; -inf if all are -inf.
float rowLogSumExp(const float *row, int64_t count);

/// out[i] = scale * exp(row[i] - lse); out may be row.
void rowSoftmaxGrad(const float *row, float *out, int64_t count, float lse,
                    float scale);

/// False for the ignored label, and for one outside the vocabulary, which
/// becomes the stream's fault.
bool labelCounts(Stream &stream, const LabelRule &rule, int64_t row,
                 int64_t label);

/// weight * the sum of the rows' losses, over the labels that count.
float weightedLoss(Stream &stream, const LabelRule &rule, const void *labels,
                   int64_t rows, const float *losses, float weight);

} // namespace cpu
} // namespace tmc

#endif // TMC_RUNTIME_CPU_CROSSENTROPYROWS_H
