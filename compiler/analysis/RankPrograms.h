// RankPrograms.h - the lists of all ranks, read from placed programs.
//
// A module has a `mem.program` for each stage of a pipeline, in order: one for
// data parallelism alone, which all ranks run. With `mem.ranks` on each of
// them, a program is that of these ranks of the world:
//
//     mem.program @first attributes {mem.ranks = array<i64: 0, 2>} ...
//     mem.program @second attributes {mem.ranks = array<i64: 1, 3>} ...
//
// A loop of one program for all ranks shows its first trip, a middle one and
// the last. Those of several programs are unrolled to the end, since their
// ranks may be in different trips when they meet.

#ifndef TMC_COMPILER_ANALYSIS_RANKPROGRAMS_H
#define TMC_COMPILER_ANALYSIS_RANKPROGRAMS_H

#include "compiler/analysis/RankCheck.h"

#include "dialects/mem/Mem.h"

#include "mlir/IR/BuiltinOps.h"

namespace tmc {

/// The ranks that run a program: an array of i64 on it.
constexpr llvm::StringLiteral kProgramRanks = "mem.ranks";

/// The most entries of a program with its loops unrolled.
constexpr int64_t kMostRankEntries = int64_t(1) << 22;

/// The world of the programs of `module`. Sizes of `mesh` that are 0 are read
/// from it: the ranks that a call over the axis names, and for the pipeline the
/// number of programs. An error names a program that can't be read.
mlir::FailureOr<RankWorld> ranksOf(mlir::ModuleOp module, Mesh mesh);

} // namespace tmc

#endif // TMC_COMPILER_ANALYSIS_RANKPROGRAMS_H
