//===- AttentionHidden.h - queries without visible keys, on cuda *- C++ -*-===//
#ifndef TMC_RUNTIME_CUDA_ATTENTIONHIDDEN_H
#define TMC_RUNTIME_CUDA_ATTENTIONHIDDEN_H

#include "runtime/cuda/TensorAttention.h"

namespace tmc::cuda {

/// Writes the outputs of the queries without visible keys. The other outputs
/// and lse must be complete.
void attendHidden(Queue &queue, const AttentionParams &p, const void *q,
                  const void *k, const void *v, const AttentionExtras &extras,
                  const float *lse, void *out);

/// Adds the contributions of those queries to dq, dk, dv and dbias. The other
/// contributions must be complete. `scratch` has attentionHiddenBytes.
void addHiddenGradients(Queue &queue, const AttentionParams &p,
                        const GradOperands &operands, void *scratch);

} // namespace tmc::cuda

#endif // TMC_RUNTIME_CUDA_ATTENTIONHIDDEN_H
