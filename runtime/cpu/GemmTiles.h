//===- GemmTiles.h - products of bf16 factors on AMX's tiles ----*- C++ -*-===//
//
//     TDPBF16PS    c (i, j) += even + odd, over 16 pairs of numbers along k:
//                  even = sum of a (i, 2 q) b (2 q, j),
//                  odd = sum of a (i, 2 q + 1) b (2 q + 1, j)
//
// AMX's instruction multiplies 16 rows by 16 columns of sums. Both chains begin
// with zero and consist of fused multiply-adds in the order of q. All results
// are rounded to nearest, and denormals are treated as zeros. This order
// differs from the consecutive multiply-adds of the other instruction sets
// (GemmPairs.h), so a step for cpu:v4-amx has its own bits. Its chains are
// shorter, so errors aren't larger.
//
//     even += a0 b0, a2 b2, ... a30 b30  |
//                                        |  c += even + odd, every 32 numbers
//     odd  += a1 b1, a3 b3, ... a31 b31  |
//
// As in the other kernels, sums run over kGemmDepth numbers and are then added
// to memory. If k ends within 32 numbers, zeros follow.
//
// Four tiles hold 32 rows by 32 columns of sums, two each of the factors:
//
//             b: 2 tiles of 16 pairs x 16 columns
//     a: 2    c  c
//     tiles   c  c
//
// A slab of a is packed as consecutive blocks of 32 rows of 32 numbers, in a
// cache that all threads share. Each thread packs its panel of b, as pairs:
//
//     a  [depth / 32][rows / 32][32 rows][16 pairs]
//     b  [depth / 2 pairs][32 columns]
//
// Source: Intel's manual of its instruction set, TDPBF16PS.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_CPU_GEMMTILES_H
#define TMC_RUNTIME_CPU_GEMMTILES_H

#include "runtime/cpu/Gemm.h"

namespace tmc::gemm {

/// Whether this library was compiled with the instruction.
bool knowsTiles();

/// Gemm.h's run(). The elements of both factors are bf16. Requires
/// `knowsTiles()`, and a process that may use tiles (runtime/step/Processor.h).
void runTiles(Stream &stream, const Problem &problem, void *scratch);

} // namespace tmc::gemm

#endif // TMC_RUNTIME_CPU_GEMMTILES_H
