//===- AttentionHidden.h - queries without visible keys, on cpu -*- C++ -*-===//
#ifndef TMC_RUNTIME_CPU_ATTENTIONHIDDEN_H
#define TMC_RUNTIME_CPU_ATTENTIONHIDDEN_H

#include "runtime/kernels/Attention.h"

namespace tmc::cpu {

/// Writes the outputs of the queries without visible keys. The other outputs
/// and lse must be complete. `ins` and `outs` are those of Attention.
void attendHidden(Stream &stream, const AttentionParams &p, In ins, Out outs);

/// Adds the contributions of those queries to dq, dk, dv and dbias. The other
/// contributions must be complete. `ins` and `outs` are those of AttentionGrad;
/// `scratch` has attentionHiddenBytes.
void addHiddenGradients(Stream &stream, const AttentionParams &p, In ins,
                        Out outs, void *scratch);

} // namespace tmc::cpu

#endif // TMC_RUNTIME_CPU_ATTENTIONHIDDEN_H
