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

#include "runtime/kernels/Kernel.h"
#include "llvm/ADT/STLFunctionalExtras.h"

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
  /// The op's operands and results in the kernel's order, -1 where it takes an
  /// optional one that is absent. Empty: all of them, in order.
  llvm::SmallVector<int64_t> ins, outs;
  /// What the kernel may use beside its operands: the cap that the kernel's own
  /// header states. The runtime refuses to start if a library wants more.
  int64_t scratchBytes = 0;
  /// What its matrix products multiply, where it has any: the rate at which a
  /// device does them depends on it.
  std::optional<DType> products;
  /// Operations of this backend's kernel where it does more than the op asks
  /// for (it makes something again instead of keeping it), or less; -1: as
  /// many.
  int64_t flops = -1;
  /// Whether the kernel has code for the op's element types, as its class's
  /// `takes` says.
  bool supported;

  KernelCall(mlir::MLIRContext *context, std::string symbol, bool supported)
      : symbol(std::move(symbol)), supported(supported), context(context) {}
  KernelCall &type(llvm::StringRef name, mlir::Type elementOrShaped);
  KernelCall &integer(llvm::StringRef name, int64_t value);
  KernelCall &flag(llvm::StringRef name, bool value);
  KernelCall &real(llvm::StringRef name, double value);
  KernelCall &list(llvm::StringRef name, llvm::ArrayRef<int64_t> values);
  /// A word of the runtime's, printed as it is: an enumerator.
  KernelCall &word(llvm::StringRef name, llvm::StringRef text);

private:
  mlir::MLIRContext *context;
};

/// How a pointwise op's expression names its operands.
struct OperandText {
  /// Operand i as a value of all lanes.
  llvm::function_ref<std::string(unsigned)> lanes;
  /// The same or a literal, where a scalar may stand beside a vector.
  llvm::function_ref<std::string(unsigned)> mixed;
};

/// The runtime's name of an element type.
DType runtimeType(mlir::Type elementOrShaped);
/// The element type in which `op` multiplies its operands `factors`: the
/// narrowest of them, or with an attribute `tf32` that.
mlir::Type productTypeOf(mlir::Operation *op, llvm::ArrayRef<unsigned> factors);

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
