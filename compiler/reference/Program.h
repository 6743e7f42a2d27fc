// Program.h - runs a lowered program, byte by byte.
//
// A `mem.program` computes the same as the planned step if its buffers, their
// offsets, the order of its launches and its loops are right. This interpreter
// runs the program on bytes: one array for the arena once buffers are placed,
// one per buffer before.
//
//     LaunchMeaning meaning = *meaningOf(planned, program);
//     auto tensors = interpretProgram(program, meaning, inputs);
//
// Bytes start as 0xff (NaNs as floats, -1 as integers), as does a kernel's
// scratch. A result's bytes become 0xff before the operands are read, unless
// the kernel may overwrite them. So a missing fill, a lifetime that ends too
// early and an output on top of an operand all show in the results. Values are
// rounded to their element types, as bytes hold them: the results have the bits
// of interpreting the step with `Rounding::ToType`.

#ifndef TMC_COMPILER_REFERENCE_PROGRAM_H
#define TMC_COMPILER_REFERENCE_PROGRAM_H

#include "compiler/reference/Interpreter.h"
#include "dialects/mem/Mem.h"
#include "dialects/train/Train.h"

namespace tmc::reference {

/// The op of the planned step that each launch executes. Launches of generated
/// kernels run the kernel's own text and need the op only to know which
/// operands may be overwritten.
using LaunchMeaning = llvm::DenseMap<mlir::Operation *, mlir::Operation *>;

/// Pairs the kernels of `planned` with the launches of the program that it was
/// lowered to, in order. Fails, with a diagnostic, if names or numbers differ.
/// `planned` must outlive the answer.
mlir::FailureOr<LaunchMeaning> meaningOf(train::StepOp planned,
                                         mem::ProgramOp program);

/// Runs `program` on `inputs`, by `train.name`, and returns the final contents
/// of the named buffers. Fails, with a diagnostic, if a buffer lies outside the
/// arena or a launch fails.
mlir::FailureOr<llvm::StringMap<Tensor>>
interpretProgram(mem::ProgramOp program, const LaunchMeaning &meaning,
                 const llvm::StringMap<Tensor> &inputs);

} // namespace tmc::reference

#endif // TMC_COMPILER_REFERENCE_PROGRAM_H
