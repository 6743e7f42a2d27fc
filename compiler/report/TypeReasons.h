// TypeReasons.h - the type of each tensor of a step, and why, for reports.
//
// A reason is derived from the step that is planned: the maker and the readers
// of a tensor. `--precision` narrows the factors and results of products, so
// these facts are the reason. No extra attribute is kept, because fusion and
// expansion would have to keep it true.
//
//     bf16    factor of h.3.mlp.c_fc's product
//     bf16    result of h.3.mlp.c_fc's product
//     f32     sum of a gradient
//     f32     result of lm_head's product, exception lm_head=f32
//
// One fact can't be derived: the exception that decided a product's type,
// because exceptions match names that products lose. The pass therefore leaves
// the exception on the product as `train.precision`
// (train::TrainDialect::kPrecision).

#ifndef TMC_COMPILER_REPORT_TYPEREASONS_H
#define TMC_COMPILER_REPORT_TYPEREASONS_H

#include "dialects/train/Train.h"

#include <map>
#include <string>

namespace tmc {

/// "bf16": the element type of `value`; "" if it is no tensor.
std::string elementTypeOf(mlir::Value value);

class TypeReasons {
public:
  /// The kernels of `step` are chosen, and it isn't planned yet: every op once.
  explicit TypeReasons(train::StepOp step);

  /// The reason for the type of the tensor with storage `root`: a phrase
  /// without the type. "" if no float type of the step is narrower than f32, or
  /// if the type isn't numeric.
  std::string whyOf(mlir::Value root) const;

  /// The number of products that multiply each type. Attention and losses by
  /// chunks count as products; gradients count separately.
  std::map<std::string, int64_t> products;
  /// The number of products that each exception decided.
  std::map<std::string, int64_t> exceptions;

private:
  /// The products that have `root` as a factor, directly or through moves.
  llvm::SmallVector<mlir::Operation *, 4> multiplying(mlir::Value root) const;

  train::StepOp step;
  bool allWide = true;
};

} // namespace tmc

#endif // TMC_COMPILER_REPORT_TYPEREASONS_H
