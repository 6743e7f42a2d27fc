// Optimizers.h - optimizer rules: which states a param needs, and its update.
//
// A rule is named and parameterised by a text, as `--optimizer` takes it:
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
// All of them take `master=f32|none`: parameters are kept in f32, the masters
// of what a narrower step computes with, or in bf16 alone; adamw, lion and sgd
// take `moments=f32|bf16`, too. What is kept in bf16 is rounded by chance
// (runtime/kernels/Stochastic.h).
//
// Defaults are PyTorch's, and lion's those of its authors. `decay=matrices`
// exempts tensors of fewer than two dimensions from weight decay, `no_decay`
// those whose names match a glob. `clip` bounds the global norm of the
// gradients. `adamw8bit` keeps moments in 8 bits, but those of params of fewer
// than min_size elements and of tables that rows are gathered from, whose
// gradients are mostly zeros: they are `adamw`'s. `adamw4bit` is torchao's,
// which keeps moments in 4 bits but for those of params of fewer than min_size
// elements or of a number that 128 doesn't divide. `adafactor` keeps a second
// moment for each row and each column, or element where there is one dimension.
// Further rules register beside these; a state's name, type and shape belong to
// the rule, and so does the type that a param is kept in.

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
  mlir::RankedTensorType type; // That it is kept in.
  bool isGathered = false;     // A table: rows of it are looked up.
};

/// A state tensor that a rule keeps beside each param.
struct OptimizerSlot {
  std::string suffix; // "exp_avg": the state is named "<param>.exp_avg".
  mlir::RankedTensorType type;
};

/// What one update reads.
struct UpdateInputs {
  llvm::StringRef name; // The param's, for masks.
  TrainedParam trained;
  mlir::Value param, grad;
  llvm::SmallVector<mlir::Value> slots;
  mlir::Value lr, step;
  mlir::Value clip; // Null: no clipping.
  /// The number of the draws that round what is kept in 16 bits; the rule says
  /// whether there is any.
  int64_t stream;
};

/// What it makes.
struct UpdateOutputs {
  mlir::Value param;
  llvm::SmallVector<mlir::Value> slots;
  mlir::Value square; // Sum of squares of the gradient.
};

class OptimizerRule {
public:
  virtual ~OptimizerRule() = default;

  /// The type that a trained param is kept in, which the model has as `type`.
  mlir::RankedTensorType storedType(mlir::RankedTensorType type) const;
  virtual std::vector<OptimizerSlot>
  slotsOf(const TrainedParam &param) const = 0;
  virtual UpdateOutputs build(mlir::OpBuilder &b, mlir::Location loc,
                              const UpdateInputs &in) const = 0;

  /// The bound of the global gradient norm; 0: none.
  double clipNorm() const { return clip; }
  /// The weight decay of a param.
  double decayOf(llvm::StringRef name, mlir::RankedTensorType type) const;

  /// The rule of `text`, or a message that names what is wrong.
  static llvm::Expected<std::unique_ptr<OptimizerRule>>
  create(llvm::StringRef text);

protected:
  /// The type that a moment of `param` is kept in.
  mlir::RankedTensorType momentType(const TrainedParam &param) const;

  double clip = 0, weightDecay = 0;
  bool hasMaster = true, hasNarrowMoments = false;
  bool matricesOnly = false;
  std::vector<std::string> noDecay; // Globs.
};

} // namespace tmc

#endif // TMC_PASSES_OPTIMIZERS_H
