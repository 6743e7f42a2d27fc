//===- GemmPairs.h - products of bf16 factors, two at a time ----*- C++ -*-===//
//
//     VDPBF16PS    sum += a.odd * b.odd;  sum += a.even * b.even
//
// AVX512-BF16's instruction rounds after each addition, to nearest, and takes
// denormals for zeros, as operands and as results. So packed elements hold
// two numbers along k, the first one in the odd place:
//
//     bits 31..16  a(i, 2 q)        bits 15..0  a(i, 2 q + 1)
//
// and sums have the bits of f32's multiply-adds one after the other where these
// flush denormals, which `Problem::flushesDenormals` makes them do. What has no
// neighbour is paired with -0 on the left, which adds -0: nothing.
//
// Some processors run it at twice the rate of f32's multiply-add, per number,
// and some at half of it. The first product finds out.
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
/// Whether it is the faster one on this processor: both inner kernels are timed
/// once, for some microseconds.
bool pairsAreFaster();

/// Gemm.h's run(), in pairs and in floats. Both factors' elements are bf16's.
/// runPairs() only where `knowsPairs()`.
void runPairs(Stream &stream, const Problem &problem, void *scratch);
void runSingles(Stream &stream, const Problem &problem, void *scratch);

} // namespace tmc::gemm

#endif // TMC_RUNTIME_CPU_GEMMPAIRS_H
