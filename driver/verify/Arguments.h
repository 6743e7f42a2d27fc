// Arguments.h - values to verify a step with.
//
// Every argument of a step gets random numbers that exercise it: weights about
// as wide as training makes them, biases away from zero and norms away from one
// (so that each term has an effect), integers in the step's range, masks that
// leave some elements visible. The same seed and number give the same values.

#ifndef TMC_DRIVER_VERIFY_ARGUMENTS_H
#define TMC_DRIVER_VERIFY_ARGUMENTS_H

#include "compiler/reference/Tensor.h"
#include "dialects/train/Train.h"

#include <map>
#include <string>
#include <vector>

namespace tmc {

/// The learning rate that the runtime and the interpreter both use.
constexpr float kVerifyRate = 1e-3f;
/// The largest loss scale of a compared step: overflown gradients can't be
/// compared.
constexpr double kVerifyScale = 256;

struct ArgumentDraw {
  uint64_t seed = 0;
  /// The number of the step, counted from 1 as in the runtime.
  int64_t number = 1;
  /// Root mean square of each optimizer state, by argument; missing ones start
  /// as zeros, as in a fresh run.
  std::map<unsigned, double> slotScale;
  /// Values that aren't drawn, by name: those of a weights file.
  const std::map<std::string, std::vector<char>> *given = nullptr;
  /// The rank's number among those that share the batch: it has samples of its
  /// own.
  int64_t rank = 0;
  /// Its number among those that share heads and columns.
  int64_t tensorPlace = 0;
};

/// One tensor per argument of `step`, rounded to its element type; copies equal
/// their rounded originals.
llvm::SmallVector<reference::Tensor> drawArguments(train::StepOp step,
                                                   const ArgumentDraw &draw);

/// Puts numbers of up to `largest` into the batch and the parameters of
/// `arguments`, and rows of equal elements into the batch: large numbers
/// saturate gates, and equal elements leave a norm only their mean.
void drawEdges(train::StepOp step,
               llvm::MutableArrayRef<reference::Tensor> arguments,
               uint64_t seed, double largest);

/// Recomputes the copies among a step's arguments from their originals, rounded
/// to nearest.
void roundCopies(train::StepOp step,
                 llvm::MutableArrayRef<reference::Tensor> arguments);

/// True for an argument that the runtime itself sets before a step.
bool isFed(train::StepOp step, unsigned argument);

} // namespace tmc

#endif // TMC_DRIVER_VERIFY_ARGUMENTS_H
