// Interfaces.h - the queries of passes about ops.
//
// A pass never switches over op names: it queries an interface. Ops of the nn
// dialect implement the interfaces in their td records; upstream's arith and
// math ops do so by the external models in ArithModels.cpp and MathModels.cpp.

#ifndef TMC_DIALECTS_INTERFACES_INTERFACES_H
#define TMC_DIALECTS_INTERFACES_INTERFACES_H

#include "dialects/interfaces/Cuts.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/OpDefinition.h"

#include "runtime/kernels/Kernel.h"
#include "llvm/ADT/STLFunctionalExtras.h"

#include <functional>
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

/// One runtime kernel with its parameters, as the emitter prints it:
/// `symbol name{{.param = value, ..., .scratchBytes = scratchBytes}};`
struct KernelCall {
  std::string symbol;
  /// The fields of the kernel's Params, in their order: integers (i1 as bool),
  /// floats (as double), dense i64 arrays, types (as tmc::DType), and words of
  /// the runtime (enumerators).
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
  /// On cuda: the kernels of the device that a run is, given its results (one
  /// if null), and the number of its products whose rows aren't multiples of 16
  /// bytes, if it multiplies matrices (Kernel.h).
  std::function<int64_t(Wanted)> deviceLaunches;
  std::optional<int64_t> unalignedProducts;
  /// On cuda: whether several runs side by side can be one launch, as those of
  /// updates can (Optimizer.h).
  bool isJoinable = false;
  /// Whether the kernel supports the op's element types, by the `takes` of its
  /// class.
  bool supported;

  explicit KernelCall(bool supported) : supported(supported) {}
  /// A call of the kernel class `K`, which also says symbol, scratch and
  /// support. Its `scratchBytes` is 0 in `params`.
  template <typename K>
  static KernelCall of(mlir::MLIRContext *context,
                       const typename K::Params &params, Backend backend);
};

/// The names of the operands in a pointwise op's expression.
struct OperandText {
  /// Operand i as a value of all lanes.
  llvm::function_ref<std::string(unsigned)> lanes;
  /// The same or a literal, for places where a scalar may be beside a vector.
  llvm::function_ref<std::string(unsigned)> mixed;
};

/// The runtime's name of an element type, and the element type of a name.
DType runtimeType(mlir::Type elementOrShaped);
mlir::Type elementType(mlir::MLIRContext *context, DType type);

/// A field of a kernel's parameters as an attribute of KernelCall::params.
template <typename T>
mlir::Attribute kernelParam(mlir::MLIRContext *context, const T &value) {
  mlir::Builder b(context);
  if constexpr (std::is_same_v<T, DType>)
    return mlir::TypeAttr::get(elementType(context, value));
  else if constexpr (std::is_enum_v<T>)
    return b.getStringAttr(llvm::StringRef(wordOf(value)));
  else if constexpr (std::is_same_v<T, bool>)
    return b.getBoolAttr(value);
  else if constexpr (std::is_integral_v<T>)
    return b.getI64IntegerAttr(value);
  else if constexpr (std::is_floating_point_v<T>)
    return b.getF64FloatAttr(value);
  else if constexpr (std::is_convertible_v<T, llvm::ArrayRef<int64_t>>)
    return b.getDenseI64ArrayAttr(value);
  else { // a struct of integers
    llvm::SmallVector<int64_t> list;
    value.visit([&](auto, int64_t number, bool) { list.push_back(number); });
    return b.getDenseI64ArrayAttr(list);
  }
}

template <typename K>
KernelCall KernelCall::of(mlir::MLIRContext *context,
                          const typename K::Params &params, Backend backend) {
  static_assert(listsEveryField<typename K::Params>(),
                "TMC_FIELDS lists all fields but scratchBytes, in their order");
  KernelCall call(K::takes(params, backend));
  call.symbol = K::kSymbol;
  params.visit([&](std::string_view name, const auto &value, bool isGiven) {
    if (isGiven)
      call.params.emplace_back(std::string(name), kernelParam(context, value));
  });
  call.scratchBytes = K::scratchCap(params, backend);
  if (backend != Backend::Cuda)
    return call;
  if constexpr (requires { K::cudaLaunches(params, Wanted(0)); })
    call.deviceLaunches = [params](Wanted wanted) {
      return K::cudaLaunches(params, wanted);
    };
  if constexpr (requires { K::unalignedProducts(params); })
    call.unalignedProducts = K::unalignedProducts(params);
  call.isJoinable = requires { &K::runJoined; };
  return call;
}

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
