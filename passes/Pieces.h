// Pieces.h - a step in micro-batches, from the functions of the split pass:
//
//     facts = @prologue(whole batch)
//     sums = loop over equal pieces: sums + @forward(piece, facts)
//     sums = sums + @rest(the last, smaller piece, facts)     if there is one
//
// The loss and the gradients are sums. The change of a state is a sum, too, if
// each piece changes the state in turn. With a factor d for the old value, n
// pieces that add a_1, ..., a_n change a state s to d^n s + c_n, with c_k = d
// c_(k-1) + a_k; c begins as zeros, as a loop's sums do. An output that is kept
// is a sum, too: each piece adds its rows to those of the whole.

#ifndef TMC_PASSES_PIECES_H
#define TMC_PASSES_PIECES_H

#include "dialects/train/Train.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

#include <string>

namespace tmc {

class Pieces {
public:
  /// The pieces of `forward` in `module`, which may be the whole batch.
  Pieces(mlir::ModuleOp module, mlir::func::FuncOp forward);

  bool isSplit() const { return count > 1 || rest; }
  bool hasRest() const { return bool(rest); }
  /// The number of the forward function's last arguments that aren't the
  /// step's.
  unsigned factCount() const;
  /// The type of batch argument `index` for the whole batch.
  mlir::RankedTensorType batchType(unsigned index) const;
  /// Erases the functions beside `forward`.
  void eraseOthers();

  /// Receives the number of a parameter and the gradient by it.
  using OnGradient = llvm::function_ref<void(unsigned, mlir::Value)>;
  /// Clones a function onto inputs and differentiates it by the parameters.
  /// Appends the function's results to `returned`.
  using Body = llvm::function_ref<mlir::LogicalResult(
      mlir::OpBuilder &, mlir::func::FuncOp, llvm::ArrayRef<mlir::Value> inputs,
      llvm::SmallVector<mlir::Value> &returned, OnGradient)>;

  struct Request {
    mlir::Location loc;
    /// For the forward function's arguments: values of the whole batch.
    llvm::ArrayRef<mlir::Value> args;
    llvm::ArrayRef<unsigned> params;
    unsigned loss; // The number of its result.
    llvm::ArrayRef<std::string> outputs;
    Body body;
    /// Receives the whole gradients, as soon as they are known.
    OnGradient onGradient;
  };
  /// Fills `returned` with the whole batch's value of each result of the
  /// forward function; null for results that aren't requested.
  mlir::LogicalResult build(mlir::OpBuilder &b, const Request &request,
                            llvm::SmallVector<mlir::Value> &returned);

private:
  /// Values that the loop carries beside gradients.
  struct Sum {
    enum Kind { Loss, State, Output } kind;
    unsigned result; // Number of the forward function's result.
    mlir::RankedTensorType type;
  };

  llvm::SmallVector<mlir::Value> buildFacts(mlir::OpBuilder &b,
                                            llvm::ArrayRef<mlir::Value> args);
  mlir::LogicalResult listSums(const Request &request);
  mlir::LogicalResult refuseOutput(llvm::StringRef name,
                                   const llvm::Twine &why);
  mlir::RankedTensorType wholeOf(mlir::Type equal, mlir::Type last) const;
  /// Adds one piece to `totals`: the sums, then the gradients. `places`: for
  /// outputs, the positions of the piece's rows in the whole.
  mlir::LogicalResult addPiece(mlir::OpBuilder &b, mlir::func::FuncOp function,
                               llvm::SmallVector<mlir::Value> inputs,
                               llvm::ArrayRef<mlir::Value> places,
                               llvm::SmallVector<mlir::Value> &totals,
                               const Request &request, OnGradient onGradient);

  mlir::func::FuncOp forward, rest, prologue;
  int64_t count = 1; // The number of equal pieces.
  llvm::SmallVector<Sum> sums;
};

} // namespace tmc

#endif // TMC_PASSES_PIECES_H
