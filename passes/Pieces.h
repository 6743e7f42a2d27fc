// Pieces.h - a step in micro-batches, of the functions that the split pass
// leaves:
//
//     facts = @prologue(whole batch)
//     sums = loop over equal pieces: sums + @forward(piece, facts)
//     sums = sums + @rest(the last, smaller piece, facts)     where there is
//     one
//
// Sums are the loss and the gradients. So is what a state is moved by, where
// each piece moves it in turn: with d left of the old value each time, a state
// s that n pieces move by a_1, ..., a_n becomes d^n s + c_n, c_k = d c_(k-1) +
// a_k, and c begins as zeros, as a loop's sums do. An output that is kept is a
// sum, too, to whose rows of a piece that piece's are added.

#ifndef TMC_PASSES_PIECES_H
#define TMC_PASSES_PIECES_H

#include "dialects/train/Train.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

#include <string>

namespace tmc {

class Pieces {
public:
  /// Of `forward` in `module`, which may be of the whole batch.
  Pieces(mlir::ModuleOp module, mlir::func::FuncOp forward);

  bool isSplit() const { return count > 1 || rest; }
  bool hasRest() const { return bool(rest); }
  /// The forward function's last arguments, which a step doesn't take.
  unsigned factCount() const;
  /// The type of batch argument `index` for the whole batch.
  mlir::RankedTensorType batchType(unsigned index) const;
  /// Erases the functions beside `forward`.
  void eraseOthers();

  /// Tells the gradient by a parameter, which goes by its number.
  using OnGradient = llvm::function_ref<void(unsigned, mlir::Value)>;
  /// Clones a function onto inputs and differentiates it by the parameters.
  /// Adds what it returns.
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
    /// Told the whole gradients, as soon as they are known.
    OnGradient onGradient;
  };
  /// Fills `returned` with the whole batch's value of each result of the
  /// forward function; null where none is asked for.
  mlir::LogicalResult build(mlir::OpBuilder &b, const Request &request,
                            llvm::SmallVector<mlir::Value> &returned);

private:
  /// What the loop carries beside gradients.
  struct Sum {
    enum Kind { Loss, State, Output } kind;
    unsigned result; // Of the forward function.
    mlir::RankedTensorType type;
  };

  llvm::SmallVector<mlir::Value> buildFacts(mlir::OpBuilder &b,
                                            llvm::ArrayRef<mlir::Value> args);
  mlir::LogicalResult listSums(const Request &request);
  mlir::LogicalResult refuseOutput(llvm::StringRef name,
                                   const llvm::Twine &why);
  mlir::RankedTensorType wholeOf(mlir::Type equal, mlir::Type last) const;
  /// Adds one piece to `totals`: the sums, then the gradients. `places`: of
  /// outputs, where in the whole the piece's rows are.
  mlir::LogicalResult addPiece(mlir::OpBuilder &b, mlir::func::FuncOp function,
                               llvm::SmallVector<mlir::Value> inputs,
                               llvm::ArrayRef<mlir::Value> places,
                               llvm::SmallVector<mlir::Value> &totals,
                               const Request &request, OnGradient onGradient);

  mlir::func::FuncOp forward, rest, prologue;
  int64_t count = 1; // Of equal pieces.
  llvm::SmallVector<Sum> sums;
};

} // namespace tmc

#endif // TMC_PASSES_PIECES_H
