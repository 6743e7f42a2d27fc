// Node.h - what an operator's importer sees, and how operators register.
//
// An operator is one function and one line:
//
//   static LogicalResult importRelu(Node &n) {
//     ASSIGN_OR_FAIL(Value x, n.value(0));
//     return n.set(arith::MaximumFOp::create(n.b, n.loc, x, ...));
//   }
//   static Register relu("Relu", importRelu);
//
// Values at import are tensors of the IR, or constants (`Array`), which stay
// out of the IR until an op needs them: an importer that can compute on
// constants does so, and sets a constant. Sequences exist only here.
//
// An importer checks what it builds on: an op that doesn't verify would be our
// fault. It returns failure() after saying why by `error` (the model
// contradicts itself) or `unsupported` (tmc lacks something; importing goes on,
// so that all of it is listed at once).

#ifndef TMC_FRONTENDS_ONNX_NODE_H
#define TMC_FRONTENDS_ONNX_NODE_H

#include "frontends/onnx/Array.h"

#include "dialects/nn/Builders.h"
#include "dialects/nn/NN.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/TypeUtilities.h"

namespace onnx {
class AttributeProto;
class GraphProto;
class NodeProto;
} // namespace onnx

namespace tmc::onnx_import {

class Importer;

/// A constant: elements at hand, or an initializer that hasn't been read.
struct Constant {
  std::optional<Array> array;
  int initializer = -1;
};

/// What a name in the graph stands for.
struct Val {
  enum Kind { Absent, Poisoned, Tensor, Const, Sequence };
  Kind kind = Absent;
  ElementType type = ElementType::F32;
  Dims dims;
  mlir::Value value;                  // Tensor
  std::shared_ptr<Constant> constant; // Const
  std::vector<Val> elements;          // Sequence

  Val() = default;
  Val(mlir::Value value);
  Val(Array array);

  bool isConst() const { return kind == Const; }
  bool isTensor() const { return kind == Tensor; }
  int64_t rank() const { return static_cast<int64_t>(dims.size()); }
};

class Node {
public:
  Node(Importer &importer, const onnx::NodeProto &proto, mlir::Location loc,
       int64_t opset);

  Importer &importer;
  const onnx::NodeProto &proto;
  mlir::OpBuilder &b;
  mlir::Location loc;
  int64_t opset; ///< Of the node's domain.

  /// "Gemm 'node_linear'": for messages.
  std::string label() const;

  // Inputs. Absent optional ones have kind Absent.
  int numInputs() const;
  int numOutputs() const;
  bool has(int i) const { return input(i).kind != Val::Absent; }
  const Val &input(int i) const;
  /// True if something reads output `i`.
  bool isUsed(int i) const;

  /// Input `i` in the IR. Fails where it is absent or of a type the IR lacks.
  mlir::FailureOr<mlir::Value> value(int i);
  /// The elements of input `i`, which must be constant and small.
  mlir::FailureOr<Array> array(int i);
  /// The elements of `v`, a constant.
  mlir::FailureOr<Array> arrayOf(const Val &v);
  /// Those of input `i` as integers, in row-major order.
  mlir::FailureOr<Dims> ints(int i);
  /// True if input `i` is constant and small enough to compute with.
  bool foldable(int i);
  bool foldable(llvm::ArrayRef<int> indices);

  // Attributes.
  const onnx::AttributeProto *attribute(llvm::StringRef name) const;
  int64_t intAttr(llvm::StringRef name, int64_t otherwise) const;
  /// The shortest decimal number that the f32 attribute may have come from.
  double floatAttr(llvm::StringRef name, double otherwise) const;
  std::string stringAttr(llvm::StringRef name, llvm::StringRef otherwise) const;
  std::optional<Dims> intsAttr(llvm::StringRef name) const;

  /// `axis`, which may count from the end, of a tensor of `rank` dimensions.
  mlir::FailureOr<int64_t> axis(int64_t axis, int64_t rank);
  /// Several of them, ascending, from the attribute `axes` or input `i`;
  /// nothing if neither is there.
  mlir::FailureOr<std::optional<Dims>> axes(int i, int64_t rank);

  // Building. Shapes must fit: check with `broadcastShape` first.
  /// `v` in the IR, whatever it is.
  mlir::FailureOr<mlir::Value> materialise(const Val &v);
  /// `v` in the IR, repeated to `dims` by ONNX's broadcasting rule.
  mlir::FailureOr<mlir::Value> broadcast(const Val &v,
                                         llvm::ArrayRef<int64_t> dims);
  /// `x` with `dims`, which have as many elements.
  mlir::Value reshape(mlir::Value x, llvm::ArrayRef<int64_t> dims);
  mlir::RankedTensorType tensorType(llvm::ArrayRef<int64_t> dims,
                                    mlir::Type element) const;

  // Results.
  mlir::LogicalResult set(int i, Val v);
  mlir::LogicalResult set(Val v) { return set(0, std::move(v)); }
  template <typename Op>
  requires std::is_base_of_v<mlir::OpState, Op> mlir::LogicalResult set(Op op) {
    return set(0, Val(mlir::Value(op->getResult(0))));
  }

  // Failure. Both return failure().
  mlir::LogicalResult error(const llvm::Twine &message);
  mlir::LogicalResult unsupported(const llvm::Twine &message);
};

using ImportFn = mlir::LogicalResult (*)(Node &);

/// An entry of the table of operators.
struct Register {
  /// Operators of ONNX's own domain.
  Register(const char *name, ImportFn fn) : Register("", name, fn) {}
  Register(const char *domain, const char *name, ImportFn fn);
};

/// The importer of an operator, or null.
ImportFn findOperator(llvm::StringRef domain, llvm::StringRef name);

/// The names of all operators in the table, sorted.
std::vector<std::string> operatorNames();

/// `x` with `dims`; a reshape of a reshape is one.
mlir::Value reshape(mlir::OpBuilder &b, mlir::Location loc, mlir::Value x,
                    llvm::ArrayRef<int64_t> dims);

/// The shortest decimal number that rounds to the same f32 as `value`: what the
/// model's author wrote, most likely (0.1, not 0.10000000149).
double shortest(double value);

/// "[4, 64]".
std::string str(llvm::ArrayRef<int64_t> dims);

/// Declares a variable from a FailureOr, or returns failure().
#define TMC_CONCAT_(a, b) a##b
#define TMC_CONCAT(a, b) TMC_CONCAT_(a, b)
#define TMC_ASSIGN_(holder, variable, expression)                              \
  auto holder = expression;                                                    \
  if (failed(holder))                                                          \
    return failure();                                                          \
  variable = *holder
#define ASSIGN_OR_FAIL(variable, expression)                                   \
  TMC_ASSIGN_(TMC_CONCAT(orFailure, __LINE__), variable, expression)

} // namespace tmc::onnx_import

#endif // TMC_FRONTENDS_ONNX_NODE_H
