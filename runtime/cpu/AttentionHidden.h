//===- AttentionHidden.h - queries that see nothing, on cpu -----*- C++ -*-===//
#ifndef TMC_RUNTIME_CPU_ATTENTIONHIDDEN_H
#define TMC_RUNTIME_CPU_ATTENTIONHIDDEN_H

#include "runtime/kernels/Attention.h"

namespace tmc::cpu {

/// Writes the outputs of the queries that see nothing, once the others and lse
/// are there. `ins` and `outs` are those of Attention.
void attendHidden(Stream &stream, const AttentionParams &p, In ins, Out outs);

/// Adds what those queries give to dq, dk, dv and dbias, once the others are
/// there. `ins` and `outs` are those of AttentionGrad; `scratch` has
/// attentionHiddenBytes.
void addHiddenGradients(Stream &stream, const AttentionParams &p, In ins,
                        Out outs, void *scratch);

} // namespace tmc::cpu

#endif // TMC_RUNTIME_CPU_ATTENTIONHIDDEN_H
