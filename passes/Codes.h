// Codes.h - products of codes of 8 bits and scales.
//
// What a product multiplies is quantized once: a value has one `nn.quantize`
// for each kind of codes that products read of it, however many they are.
//
//     %x  -> nn.quantize -> codes, scale          one scale: of what the value
//            nn.reshape (codes) -> nn.matmul      is a view of; codes are moved
//
//     %x  -> nn.reshape -> nn.quantize            blocks: of what is read,
//     along
//                          -> nn.matmul           what the product sums over
//
// Cards want codes and scales in orders of their own: LayOutCodes.cpp.
//
// Codes are E4M3. With one scale, those of gradients are E5M2, whose range is
// wider: a gradient is what neither the loss nor another output of the step is
// made of.
//
// Delayed scaling takes the scale from a history of the largest magnitudes, a
// state of the step for each quantized value, in which a step overwrites the
// oldest one. Over micro-batches that is the largest of all of them. Numbers
// that saturate are counted, in a state of all steps so far: `saturations`.
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

/// An op that only moves its operand's elements: a cast may stand before it or
/// behind it.
bool movesOnly(mlir::Operation *op);

/// The parameter of `step` that `value` is, perhaps moved or cast.
std::optional<unsigned> parameterOf(train::StepOp step, mlir::Value value);

/// Steps that a delayed scale looks back.
constexpr int64_t kAmaxHistory = 1024;

/// Quantizes the factors of a step's products, one product after another.
class Quantizer {
public:
  /// Looks at the step as it is before anything is narrowed.
  explicit Quantizer(train::StepOp step);

  /// Makes `op`, which takes codes, multiply them. `name` is a parameter that
  /// it multiplies, or its own: histories are called by it.
  void quantize(PrecisionOpInterface op, Scaling scaling, llvm::StringRef name);
  /// Gives the histories their new values. Once, after all products.
  void updateHistories();

private:
  /// Codes of 8 bits and their scale.
  struct Codes {
    mlir::Value codes, scale;
  };
  /// A history, and what quantizes with it.
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
  /// What a step finds for a history: the newest amax, and how many numbers
  /// saturate.
  struct Found {
    mlir::Value amax, saturated;
  };
  /// The largest and the sum of what the loop's runs find for `histories`,
  /// behind it.
  llvm::SmallVector<Found> carryOut(train::MicroBatchOp loop,
                                    llvm::ArrayRef<History> histories);
  /// A state of the step that begins as zeros.
  mlir::BlockArgument addState(llvm::StringRef name,
                               mlir::RankedTensorType type);

  train::StepOp step;
  mlir::OpBuilder b;
  /// By the type of the codes, or in blocks by that of the scales; delayed ones
  /// apart.
  llvm::DenseMap<std::tuple<mlir::Value, mlir::Type, unsigned>, Codes> made;
  llvm::DenseSet<mlir::OpOperand *> gradients;
  llvm::SmallVector<History> histories;
  llvm::StringSet<> names;
  /// How many histories of a name a block has, and the state of each: a loop's
  /// body and what follows it on the last piece of the batch have them alike.
  std::map<std::pair<mlir::Block *, std::string>, unsigned> counts;
  std::map<std::pair<std::string, unsigned>, mlir::BlockArgument> states;
};

} // namespace tmc

#endif // TMC_PASSES_CODES_H
