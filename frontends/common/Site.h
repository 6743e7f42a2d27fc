// Site.h - the place of one operator's import: the interface of its builder.
//
//   onnx  Node ──┐             ┌── convolve(site, x, filter, window, groups)
//                ├── is a Site ┤── softmax(site, x, axis, log)
//   torch Call ──┘             └── ...                     (ops/*.h)
//
// A frontend's node knows the format's spelling of inputs and attributes. One
// function on a Site and on values defines an operator's meaning for all file
// formats.
//
// Values at import are tensors of the IR, or constants (`Array`), which stay
// out of the IR until an op needs them: a builder that can compute on constants
// does so, and returns a constant. Sequences exist only here.
//
// A builder checks its operands: an op that doesn't verify would be our fault.
// A builder returns failure() after a message by `error` (the model contradicts
// itself) or `unsupported` (tmc lacks something; the import continues, so that
// all missing features are listed at once).

#ifndef TMC_FRONTENDS_COMMON_SITE_H
#define TMC_FRONTENDS_COMMON_SITE_H

#include "frontends/common/Array.h"

#include "dialects/nn/Builders.h"
#include "dialects/nn/NN.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/TypeUtilities.h"

namespace tmc::frontend {

class Importer;

/// A constant: elements in memory, or a stored tensor that hasn't been read.
struct Constant {
  std::optional<Array> array;
  int stored = -1; ///< Index of Importer's tensors.
};

/// The value of a name in the graph.
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
  template <typename Op>
  requires std::is_base_of_v<mlir::OpState, Op> Val(Op op)
      : Val(mlir::Value(op->getResult(0))) {}

  bool isConst() const { return kind == Const; }
  bool isTensor() const { return kind == Tensor; }
  bool isAbsent() const { return kind == Absent; }
  int64_t rank() const { return static_cast<int64_t>(dims.size()); }
};

class Site {
public:
  Site(Importer &importer, mlir::Location loc);
  virtual ~Site() = default;

  Importer &importer;
  mlir::OpBuilder &b;
  mlir::Location loc;

  // For messages.
  virtual std::string opName() const = 0;
  virtual std::string nodeName() const = 0;
  /// "Gemm 'node_linear'".
  std::string label() const { return opName() + " '" + nodeName() + "'"; }

  /// The elements of `v`, a constant.
  mlir::FailureOr<Array> arrayOf(const Val &v);
  /// True if `v` is constant and small enough to compute with.
  bool foldable(const Val &v) const;
  bool allFoldable(llvm::ArrayRef<Val> values) const;

  /// `axis`, which may count from the end, as an index in `rank` dimensions.
  mlir::FailureOr<int64_t> axis(int64_t axis, int64_t rank);
  /// The same for several axes; the result is ascending.
  mlir::FailureOr<Dims> axes(Dims list, int64_t rank);

  // Building. Shapes must fit: check with `broadcastShape` first.
  /// `v` in the IR, from any kind of value.
  mlir::FailureOr<mlir::Value> materialise(const Val &v);
  /// `v` in the IR, repeated to `dims` by NumPy's broadcasting rule.
  mlir::FailureOr<mlir::Value> broadcast(const Val &v,
                                         llvm::ArrayRef<int64_t> dims);
  /// `x` with `dims`; the number of elements must be the same.
  mlir::Value reshape(mlir::Value x, llvm::ArrayRef<int64_t> dims);
  mlir::RankedTensorType tensorType(llvm::ArrayRef<int64_t> dims,
                                    mlir::Type element) const;
  /// A tensor like `x` filled with `value`.
  mlir::Value like(mlir::Value x, double value);

  // Failure. Both return failure().
  mlir::LogicalResult error(const llvm::Twine &message);
  mlir::LogicalResult unsupported(const llvm::Twine &message);
};

/// Reports "unsupported" if `v` isn't a tensor of floats.
mlir::LogicalResult checkFloats(Site &s, const Val &v);

/// `x` with `dims`; a reshape of a reshape becomes one.
mlir::Value reshape(mlir::OpBuilder &b, mlir::Location loc, mlir::Value x,
                    llvm::ArrayRef<int64_t> dims);

/// The shortest decimal number that rounds to the same f32 as `value`: most
/// likely the number that the model's author wrote (0.1, not 0.10000000149).
double shortest(double value);

/// "[4, 64]".
std::string str(llvm::ArrayRef<int64_t> dims);

/// Declares a variable from a FailureOr, or returns failure().
#define TMC_CONCAT_(a, b) a##b
#define TMC_CONCAT(a, b) TMC_CONCAT_(a, b)
#define TMC_ASSIGN_(holder, variable, expression)                              \
  auto holder = expression;                                                    \
  if (failed(holder))                                                          \
    return ::mlir::failure();                                                  \
  variable = *holder
#define ASSIGN_OR_FAIL(variable, expression)                                   \
  TMC_ASSIGN_(TMC_CONCAT(orFailure, __LINE__), variable, expression)

} // namespace tmc::frontend

#endif // TMC_FRONTENDS_COMMON_SITE_H
