//===- AttentionHidden.h - queries that see nothing, on cuda ----*- C++ -*-===//
#ifndef TMC_RUNTIME_CUDA_ATTENTIONHIDDEN_H
#define TMC_RUNTIME_CUDA_ATTENTIONHIDDEN_H

#include "runtime/cuda/TensorAttention.h"

namespace tmc::cuda {

/// Writes the outputs of the queries that see nothing, once the others and lse
/// are there.
void attendHidden(Queue &queue, const AttentionParams &p, const void *q,
                  const void *k, const void *v, const AttentionExtras &extras,
                  const float *lse, void *out);

/// Adds what those queries give to dq, dk, dv and dbias, once the others are
/// there. `scratch` has attentionHiddenBytes.
void addHiddenGradients(Queue &queue, const AttentionParams &p,
                        const GradOperands &operands, void *scratch);

} // namespace tmc::cuda

#endif // TMC_RUNTIME_CUDA_ATTENTIONHIDDEN_H
