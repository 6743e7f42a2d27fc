// Codes.h - products of codes of 8 bits and scales.
//
// Factors of products are quantized once: a value has one `nn.quantize` for
// each kind of codes, for all products that read it.
//
//     one scale, of the source of views:
//       %x  -> nn.quantize -> codes, scale;  nn.reshape (codes) -> nn.matmul
//
//     blocks along the summed dimension, of the factor itself:
//       %x  -> nn.reshape -> nn.quantize -> nn.matmul
//
// GPUs need codes and scales in certain orders: LayOutCodes.cpp.
//
// Codes are E4M3. With one scale, codes of gradients are E5M2, which has a
// wider range. A factor is a gradient if neither the loss nor another output of
// the step depends on it.
//
// Delayed scaling takes the scale from a history of the largest magnitudes, a
// state of the step for each quantized value; a step overwrites the oldest
// entry. Over micro-batches the entry is the largest of all of them. A state
// counts the numbers that saturate over all steps: `saturations`.
//
// Source: Micikevicius et al., FP8 Formats for Deep Learning (2022); delayed
// scaling is Transformer Engine's, with its 1024 steps; blocks are those of
// DeepSeek-V3 (2024).

#ifndef TMC_PASSES_CODES_H
#define TMC_PASSES_CODES_H

#include "passes/Precision.h"

#include "dialects/interfaces/Interfaces.h"
#include "dialects/nn/NN.h"
#include "dialects/train/Train.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/StringSet.h"

#include <map>

namespace tmc {

/// An op that only moves its operand's elements: a cast may stand before or
/// after it.
bool movesOnly(mlir::Operation *op);
/// True if `op` does that, or puts zeros around the elements.
bool movesOrPads(mlir::Operation *op);

/// The parameter of `step` from which `value` comes by moves and casts only.
std::optional<unsigned> parameterOf(train::StepOp step, mlir::Value value);

/// Steps that a delayed scale looks back.
constexpr int64_t kAmaxHistory = 1024;

/// Quantizes the factors of a step's products, one product after another.
class Quantizer {
public:
  /// Expects the step before any value is narrowed.
  explicit Quantizer(train::StepOp step);

  /// Makes `op`, which accepts codes, multiply codes. `name` is a parameter
  /// that the op multiplies, or the op's own name; the histories get this name.
  void quantize(PrecisionOpInterface op, Scaling scaling, llvm::StringRef name);
  /// Gives the histories their new values. Call it once, after all products.
  void updateHistories();

private:
  /// Codes of 8 bits and their scale.
  struct Codes {
    mlir::Value codes, scale;
  };
  /// A history, and the op that quantizes with it.
  struct History {
    mlir::BlockArgument state;
    nn::QuantizeOp op;
  };

  Codes codesOf(PrecisionOpInterface op, unsigned factor, Scaling scaling,
                llvm::StringRef name);
  Codes wholeCodesOf(mlir::Value value, mlir::Type element,
                     const std::string &history);
  Codes blockCodesOf(mlir::Value value, bool isParam, bool sumsOverRows);
  mlir::BlockArgument addHistory(const std::string &name);
  mlir::Value isThisStep(mlir::Location loc);
  /// Results of a step for a history: the newest amax, and the number of
  /// saturated elements.
  struct Found {
    mlir::Value amax, saturated;
  };
  /// The maximum of the amax and the sum of the counts over the loop's trips
  /// for `histories`, as new results of the loop.
  llvm::SmallVector<Found> carryOut(train::MicroBatchOp loop,
                                    llvm::ArrayRef<History> histories);
  /// A state of the step that begins as zeros.
  mlir::BlockArgument addState(llvm::StringRef name,
                               mlir::RankedTensorType type);

  train::StepOp step;
  mlir::OpBuilder b;
  /// Key: the value, the type of the codes (of the scales, with blocks), and
  /// whether the scale is delayed.
  llvm::DenseMap<std::tuple<mlir::Value, mlir::Type, unsigned>, Codes> made;
  llvm::DenseSet<mlir::OpOperand *> gradients;
  llvm::SmallVector<History> histories;
  llvm::StringSet<> names;
  /// The number of histories of a name in a block, and the state of each: a
  /// loop's body and the code for the last piece of the batch after the loop
  /// have the same histories.
  std::map<std::pair<mlir::Block *, std::string>, unsigned> counts;
  std::map<std::pair<std::string, unsigned>, mlir::BlockArgument> states;
};

} // namespace tmc

#endif // TMC_PASSES_CODES_H
