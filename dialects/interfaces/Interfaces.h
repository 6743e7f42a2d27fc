// Interfaces.h - the questions that passes ask of ops.
//
// A pass never switches over op names: it asks an interface. Ops of the nn
// dialect answer in their td records; upstream's arith and math ops answer by
// the external models in ArithModels.cpp and MathModels.cpp.

#ifndef TMC_DIALECTS_INTERFACES_INTERFACES_H
#define TMC_DIALECTS_INTERFACES_INTERFACES_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/OpDefinition.h"

#include <string>

namespace mlir {
class DialectRegistry;
} // namespace mlir

namespace tmc {
/// Size of `type` in bytes; `type` is a statically shaped tensor or memref. An
/// i1 occupies a byte.
int64_t sizeInBytes(mlir::Type type);

/// Bytes of all tensor operands and results of `op`.
int64_t sumOfTensorBytes(mlir::Operation *op);

/// How the results of the pieces of a batch make up a result of the whole.
struct Rejoin {
  enum Kind {
    Whole,  ///< Doesn't depend on the batch: any piece's result is it.
    Concat, ///< Pieces lie side by side along `dim`.
    Sum,    ///< Pieces add up.
  };
  Kind kind = Whole;
  int64_t dim = -1;

  static Rejoin whole() { return {}; }
  static Rejoin concat(int64_t dim) { return {Concat, dim}; }
  static Rejoin sum() { return {Sum, -1}; }
};

/// An answer to `getSplit`: one rejoin per result, or a refusal in words.
struct BatchSplit {
  llvm::SmallVector<Rejoin> results;
  std::string refusal;

  static BatchSplit refuse(std::string why) { return {{}, std::move(why)}; }
  explicit operator bool() const { return refusal.empty(); }
};

/// One runtime kernel with its parameters, as the emitter prints it:
/// `symbol name{{.param = value, ..., .scratchBytes = scratchBytes}};`
struct KernelCall {
  std::string symbol;
  /// Integers (i1 as bool), floats (as double), dense i64 arrays, and types (as
  /// tmc::DType), in the order in which the kernel declares them.
  llvm::SmallVector<std::pair<std::string, mlir::Attribute>> params;
  /// What the kernel may use beside its operands. The runtime refuses to start
  /// if a library wants more.
  int64_t scratchBytes = 0;
};

/// Marks an op that has no derivative.
template <typename ConcreteOp>
class NotDifferentiable
    : public mlir::OpTrait::TraitBase<ConcreteOp, NotDifferentiable> {};

/// Teaches the `arith` and `math` ops that tmc accepts to answer tmc's
/// interfaces.
void registerArithModels(mlir::DialectRegistry &registry);
void registerMathModels(mlir::DialectRegistry &registry);
} // namespace tmc

#include "dialects/interfaces/Interfaces.h.inc"

#endif // TMC_DIALECTS_INTERFACES_INTERFACES_H
