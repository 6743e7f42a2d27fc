// Optimizers.h - optimizer rules: which states a param needs, and its update.
//
// A rule has a name and parameters, in the text of `--optimizer`:
//
//     adamw(beta1=0.9,beta2=0.999,eps=1e-8,weight_decay=0.01,
//           decay=all|matrices,no_decay=GLOB|GLOB,clip=1.0)
//     adamw8bit(the same, min_size=4096)
//     adamw4bit(the same, min_size=4096)
//     adafactor(beta2_decay=-0.8,eps1=1.19e-7,eps2=1e-3,d=1,weight_decay=0,
//               ...)
//     lion(beta1=0.9,beta2=0.99,weight_decay=0,...)
//     sgd(momentum=0.9,dampening=0,nesterov=0,weight_decay=0,...)
//
// All rules accept `master=f32|none`: parameters are kept in f32, as masters of
// a narrower step, or in bf16 alone; adamw, lion and sgd accept
// `moments=f32|bf16`, too. Values kept in bf16 are rounded stochastically
// (runtime/kernels/Stochastic.h).
//
// Defaults are PyTorch's; lion's are its authors'. `decay=matrices` exempts
// tensors of fewer than two dimensions from weight decay, `no_decay` those
// whose names match a glob. `clip` bounds the global norm of the gradients.
// `adamw8bit` keeps moments in 8 bits. Exceptions are params of fewer than
// min_size elements, and tables from which rows are gathered, since most of
// their gradients are zeros: these use `adamw`. `adamw4bit` is torchao's, which
// keeps moments in 4 bits, except for params of fewer than min_size elements or
// of a number not divisible by 128. `adafactor` keeps a second moment for each
// row and each column, or for each element of a one-dimensional param. New
// rules register beside these; a rule defines the names, types and shapes of
// its states, and the type of its params.

#ifndef TMC_PASSES_OPTIMIZERS_H
#define TMC_PASSES_OPTIMIZERS_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"
#include "llvm/Support/Error.h"

#include <memory>
#include <string>
#include <vector>

namespace tmc {

/// A param that is trained.
struct TrainedParam {
  mlir::RankedTensorType type; // The stored type.
  bool isGathered = false;     // A table: rows of it are looked up.
};

/// A param of the model by its name.
struct NamedParam {
  llvm::StringRef name;
  mlir::RankedTensorType type;
};

/// A state tensor that a rule keeps beside each param.
struct OptimizerSlot {
  std::string suffix; // "exp_avg": the state is named "<param>.exp_avg".
  mlir::RankedTensorType type;
};

/// Inputs of one update.
struct UpdateInputs {
  llvm::StringRef name; // The param's name, for masks.
  TrainedParam trained;
  mlir::Value param, grad;
  llvm::SmallVector<mlir::Value> slots;
  mlir::Value lr, step;
  mlir::Value clip; // Null: no clipping.
  /// The number of the random stream for stochastic rounding to 16 bits; the
  /// rule decides whether to use it.
  int64_t stream;
};

/// Results of one update.
struct UpdateOutputs {
  mlir::Value param;
  llvm::SmallVector<mlir::Value> slots;
  mlir::Value square; // Sum of squares of the gradient.
};

class OptimizerRule {
public:
  virtual ~OptimizerRule() = default;

  /// The stored type of a trained param whose type in the model is `type`.
  mlir::RankedTensorType storedType(mlir::RankedTensorType type) const;
  virtual std::vector<OptimizerSlot>
  slotsOf(const TrainedParam &param) const = 0;
  virtual UpdateOutputs build(mlir::OpBuilder &b, mlir::Location loc,
                              const UpdateInputs &in) const = 0;

  /// True if two params that stand one after another in one tensor, along their
  /// first dimension, would be updated as each alone.
  bool mayJoin(NamedParam first, NamedParam second) const;

  /// True if updates of a rank's piece of a param, of whose elements `chunk`
  /// lie side by side in `whole`, are those of the whole.
  bool mayCut(const TrainedParam &whole, const TrainedParam &piece,
              int64_t chunk) const;

  /// The bound of the global gradient norm; 0: none.
  double clipNorm() const { return clip; }
  /// The weight decay of a param.
  double decayOf(llvm::StringRef name, mlir::RankedTensorType type) const;

  /// The rule of `text`, or a message that explains the error.
  static llvm::Expected<std::unique_ptr<OptimizerRule>>
  create(llvm::StringRef text);

protected:
  /// Elements of a param, one after another, whose update depends on each
  /// other; 0: all of them.
  virtual int64_t sharedElements(const TrainedParam &param) const { return 1; }

  /// The stored type of a moment of `param`.
  mlir::RankedTensorType momentType(const TrainedParam &param) const;

  double clip = 0, weightDecay = 0;
  bool hasMaster = true, hasNarrowMoments = false;
  bool matricesOnly = false;
  std::vector<std::string> noDecay; // Globs.
};

} // namespace tmc

#endif // TMC_PASSES_OPTIMIZERS_H
