// Evaluation.h - the part of a placed program that makes the loss.
//
// A step's own launches up to the loss, in their order and at their offsets,
// are a program that evaluates a batch. It needs no byte that the step doesn't
// have: a buffer is alive in it at the moments at which it is alive in the
// step, or at fewer of them.
//
//     step        embed, head, loss + grad, head.grad, embed.grad, updates
//     evaluation  embed, head, loss + grad
//
// Found backwards from the loss: a launch is needed if it writes a buffer that
// is read later. A buffer that a launch overwrites as a whole is not needed
// before it. Buffers that pass from one trip of the loop to the next are needed
// at its end, too.
//
// Masks of dropout keep everything: generated kernels compare with a
// probability of 0 and multiply by 1, and Attention gets a dropout of 0. So a
// mask is drawn, and changes no bit.
//
// Some launches change what is kept between steps: running statistics, counts.
// The runtime saves those tensors before an evaluation, and restores them.

#ifndef TMC_COMPILER_EMIT_EVALUATION_H
#define TMC_COMPILER_EMIT_EVALUATION_H

#include "dialects/mem/Mem.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/IRMapping.h"

#include <string>
#include <vector>

namespace tmc {

struct Evaluation {
  /// The second program in the module; null if there is none.
  mem::ProgramOp program;
  /// The reason why there is none.
  std::string why;
  /// The step's persistent buffers that it changes, but for outputs.
  std::vector<mem::BufferOp> changed;
};

/// Adds the evaluation of `step`, its program, and its kernels to `module`.
Evaluation addEvaluation(mlir::ModuleOp module, mem::ProgramOp step);

} // namespace tmc

#endif // TMC_COMPILER_EMIT_EVALUATION_H
