// Program.h - what a lowered program does, byte by byte.
//
// A `mem.program` computes what the planned step meant if its buffers, their
// offsets, the order of its launches and its loops are right. Here it runs on
// bytes: one array for the arena once buffers are placed, one per buffer
// before.
//
//     LaunchMeaning meaning = *meaningOf(planned, program);
//     auto tensors = interpretProgram(program, meaning, inputs);
//
// Bytes begin as NaNs and large numbers, as does a kernel's scratch, and a
// result's bytes become NaNs before the operands are read unless the kernel may
// overwrite them: a missing fill, a lifetime cut short and an output on top of
// an operand all show in the results. Values are rounded to their element
// types, as bytes hold them: the same as interpreting the step with
// `Rounding::ToType`, bit for bit.

#ifndef TMC_COMPILER_REFERENCE_PROGRAM_H
#define TMC_COMPILER_REFERENCE_PROGRAM_H

#include "compiler/reference/Interpreter.h"
#include "dialects/mem/Mem.h"
#include "dialects/train/Train.h"

namespace tmc::reference {

/// The op of the planned step that each launch executes. Launches of generated
/// kernels are run by their own text and need the op for what may be
/// overwritten alone.
using LaunchMeaning = llvm::DenseMap<mlir::Operation *, mlir::Operation *>;

/// Pairs the kernels of `planned` with the launches of the program it was
/// lowered to, in order. Fails, with a diagnostic, where names or numbers
/// differ. `planned` must outlive the answer.
mlir::FailureOr<LaunchMeaning> meaningOf(train::StepOp planned,
                                         mem::ProgramOp program);

/// Runs `program` on `inputs`, by `train.name`, and returns what the named
/// buffers hold in the end. Fails, with a diagnostic, where a buffer lies
/// outside the arena or a launch fails.
mlir::FailureOr<llvm::StringMap<Tensor>>
interpretProgram(mem::ProgramOp program, const LaunchMeaning &meaning,
                 const llvm::StringMap<Tensor> &inputs);

} // namespace tmc::reference

#endif // TMC_COMPILER_REFERENCE_PROGRAM_H
