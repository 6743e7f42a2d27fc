// TypeReasons.h - which type each tensor of a step has, and why, for reports.
//
// A reason is read off the step that is planned: who makes a tensor and who
// reads it. `--precision` narrows what products multiply and what comes of
// them, so these facts are the reason; nothing is carried beside them through
// fusion and expansion, which would have to keep it true.
//
//     bf16    factor of h.3.mlp.c_fc's product
//     bf16    result of h.3.mlp.c_fc's product
//     f32     sum of a gradient
//     f32     result of lm_head's product, exception lm_head=f32
//
// One fact can't be read off: which exception decided a product's type, since
// exceptions fit names that products lose. The pass therefore leaves it on the
// product as `train.precision` (train::TrainDialect::kPrecision).

#ifndef TMC_COMPILER_REPORT_TYPEREASONS_H
#define TMC_COMPILER_REPORT_TYPEREASONS_H

#include "dialects/train/Train.h"

#include <map>
#include <string>

namespace tmc {

/// "bf16": the element type of `value`; "" for what is no tensor.
std::string elementTypeOf(mlir::Value value);

class TypeReasons {
public:
  /// `step` has its kernels chosen, and isn't planned yet: every op once.
  explicit TypeReasons(train::StepOp step);

  /// Why the tensor of which `root` is the storage has its type: a phrase
  /// without the type. "" where all of the step is f32, or its type is no
  /// number's.
  std::string whyOf(mlir::Value root) const;

  /// How many products (attention and losses by chunks among them; gradients
  /// count by themselves) multiply each type.
  std::map<std::string, int64_t> products;
  /// How many products each exception decided.
  std::map<std::string, int64_t> exceptions;

private:
  /// The products that `root` is multiplied in, as it is or moved.
  llvm::SmallVector<mlir::Operation *, 4> multiplying(mlir::Value root) const;

  train::StepOp step;
  bool allWide = true;
};

} // namespace tmc

#endif // TMC_COMPILER_REPORT_TYPEREASONS_H
