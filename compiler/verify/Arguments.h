// Arguments.h - values to verify a step with.
//
// Every argument of a step gets random numbers that exercise it: weights about
// as wide as training makes them, biases off zero and norms off one (so that no
// term is invisible), integers in the range that the step says, masks that
// leave something to see. The same seed and number give the same values.

#ifndef TMC_COMPILER_VERIFY_ARGUMENTS_H
#define TMC_COMPILER_VERIFY_ARGUMENTS_H

#include "compiler/reference/Tensor.h"
#include "dialects/train/Train.h"

#include <map>
#include <string>
#include <vector>

namespace tmc {

/// What the runtime feeds and the interpreter must be given alike.
constexpr float kVerifyRate = 1e-3f;
/// The largest loss scale of a step that is compared: where gradients overflow
/// there is nothing to compare.
constexpr double kVerifyScale = 256;

struct ArgumentDraw {
  uint64_t seed = 0;
  /// The number of the step, from 1 as the runtime counts them.
  int64_t number = 1;
  /// Root mean square of each optimizer state, by argument; those that are
  /// absent begin as zeros, as in a fresh run.
  std::map<unsigned, double> slotScale;
  /// Values that aren't drawn, by name: of a weights file.
  const std::map<std::string, std::vector<char>> *given = nullptr;
};

/// One tensor per argument of `step`, rounded to its element type; copies are
/// those of what they copy.
llvm::SmallVector<reference::Tensor> drawArguments(train::StepOp step,
                                                   const ArgumentDraw &draw);

/// Puts numbers of up to `largest` into the batch and the parameters of
/// `arguments`, and rows of equal elements: gates saturate there, and norms see
/// nothing but a mean.
void drawEdges(train::StepOp step,
               llvm::MutableArrayRef<reference::Tensor> arguments,
               uint64_t seed, double largest);

/// Makes the copies among a step's arguments anew from what they copy, rounded
/// to nearest.
void roundCopies(train::StepOp step,
                 llvm::MutableArrayRef<reference::Tensor> arguments);

/// True for what the runtime fills by itself before a step.
bool isFed(train::StepOp step, unsigned argument);

} // namespace tmc

#endif // TMC_COMPILER_VERIFY_ARGUMENTS_H
