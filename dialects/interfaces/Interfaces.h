// Interfaces.h - the queries of passes about ops.
//
// A pass never switches over op names: it queries an interface. Ops of the nn
// dialect implement the interfaces in their td records; upstream's arith and
// math ops do so by the external models in ArithModels.cpp and MathModels.cpp.

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
/// i1 takes a byte.
int64_t sizeInBytes(mlir::Type type);

/// Bytes of all tensor operands and results of `op`.
int64_t sumOfTensorBytes(mlir::Operation *op);

/// How the results of the parts of a batch form a result of the whole.
struct Rejoin {
  enum Kind {
    Whole,  ///< Doesn't depend on the batch: each part gives the whole result.
    Concat, ///< Parts are adjacent along `dim`.
    Sum,    ///< Parts are added up.
  };
  Kind kind = Whole;
  int64_t dim = -1;

  static Rejoin whole() { return {}; }
  static Rejoin concat(int64_t dim) { return {Concat, dim}; }
  static Rejoin sum() { return {Sum, -1}; }
};

/// The result of `getSplit`: one rejoin per result, or the reason for a
/// refusal.
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
  /// The op's operands and results in the kernel's order, -1 for an absent
  /// optional operand. Empty: all of them, in order.
  llvm::SmallVector<int64_t> ins, outs;
  /// Scratch bytes of the kernel: the cap that the kernel's header states. The
  /// runtime doesn't start if a library needs more.
  int64_t scratchBytes = 0;
  /// The factor type of its matrix products, if it has any: a device's rate for
  /// products depends on it.
  std::optional<DType> products;
  /// Operations of this backend's kernel if it does more than the op requires
  /// (it may recompute a value instead of keeping it), or less; -1: as many.
  int64_t flops = -1;
  /// Whether the kernel supports the op's element types, by the `takes` of its
  /// class.
  bool supported;

  KernelCall(mlir::MLIRContext *context, std::string symbol, bool supported)
      : symbol(std::move(symbol)), supported(supported), context(context) {}
  KernelCall &type(llvm::StringRef name, mlir::Type elementOrShaped);
  KernelCall &integer(llvm::StringRef name, int64_t value);
  KernelCall &flag(llvm::StringRef name, bool value);
  KernelCall &real(llvm::StringRef name, double value);
  KernelCall &list(llvm::StringRef name, llvm::ArrayRef<int64_t> values);
  /// A word of the runtime, printed unchanged: an enumerator.
  KernelCall &word(llvm::StringRef name, llvm::StringRef text);

private:
  mlir::MLIRContext *context;
};

/// The names of the operands in a pointwise op's expression.
struct OperandText {
  /// Operand i as a value of all lanes.
  llvm::function_ref<std::string(unsigned)> lanes;
  /// The same or a literal, for places where a scalar may be beside a vector.
  llvm::function_ref<std::string(unsigned)> mixed;
};

/// The runtime's name of an element type.
DType runtimeType(mlir::Type elementOrShaped);
/// The element type in which `op` multiplies its operands `factors`: the
/// narrowest of their types, or TF32 if the op has the attribute `tf32`.
mlir::Type productTypeOf(mlir::Operation *op, llvm::ArrayRef<unsigned> factors);

/// Marks an op that has no derivative.
template <typename ConcreteOp>
class NotDifferentiable
    : public mlir::OpTrait::TraitBase<ConcreteOp, NotDifferentiable> {};

/// Attaches tmc's interfaces to the `arith` and `math` ops that tmc accepts.
void registerArithModels(mlir::DialectRegistry &registry);
void registerMathModels(mlir::DialectRegistry &registry);
} // namespace tmc

#include "dialects/interfaces/Interfaces.h.inc"

#endif // TMC_DIALECTS_INTERFACES_INTERFACES_H
