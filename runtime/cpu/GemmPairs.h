//===- GemmPairs.h - products of bf16 factors, two at a time ----*- C++ -*-===//
//
//     VDPBF16PS    sum += a.odd * b.odd;  sum += a.even * b.even
//
// AVX512-BF16's instruction rounds to nearest after each addition, and treats
// denormals as zeros, in operands and results. So packed elements hold two
// numbers along k, the first one in the odd place:
//
//     bits 31..16  a(i, 2 q)        bits 15..0  a(i, 2 q + 1)
//
// and sums have the same bits as consecutive f32 multiply-adds that flush
// denormals, as `Problem::flushesDenormals` requires. A number without a
// neighbour is paired with -0 on the left, which adds -0 and so changes
// nothing.
//
// Per number, some processors run it at twice the rate of the f32 multiply-add,
// and some at half the rate. The first product measures it.
//
// Source: Intel's and AMD's manuals of their instruction sets.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_CPU_GEMMPAIRS_H
#define TMC_RUNTIME_CPU_GEMMPAIRS_H

#include "runtime/cpu/Gemm.h"

namespace tmc::gemm {

/// Whether this library was compiled with the instruction.
bool knowsPairs();
/// Whether it is faster on this processor: both inner kernels are timed once,
/// for a few microseconds.
bool pairsAreFaster();

/// Gemm.h's run(), in pairs and in floats. The elements of both factors are
/// bf16. runPairs() requires `knowsPairs()`.
void runPairs(Stream &stream, const Problem &problem, void *scratch);
void runSingles(Stream &stream, const Problem &problem, void *scratch);

} // namespace tmc::gemm

#endif // TMC_RUNTIME_CPU_GEMMPAIRS_H
