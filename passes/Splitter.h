// Splitter.h - the function of a piece of a batch, made of the whole's.
//
// Values are followed from the batch arguments: each op says how its results on
// the pieces make up the result on the whole (BatchSplitOpInterface). Three
// kinds come about, besides values that don't depend on the batch:
//
//   concat  pieces side by side along a dimension, which is made shorter
//   sum     pieces that add up: the loss, and all that leads to it linearly
//   fact    a number of the whole batch that isn't linear in sums, such as one
//           over the count of labels: @prologue computes it once, the body
//           takes it as an argument
//
// A value that is the same for every sample (a table, a mask, a constant) may
// have the batch in its shape; then its piece is made instead. One that counts
// samples has a shift (passes/Parts.h).

#ifndef TMC_PASSES_SPLITTER_H
#define TMC_PASSES_SPLITTER_H

#include "dialects/interfaces/Interfaces.h"
#include "dialects/nn/NN.h"
#include "dialects/train/Batch.h"
#include "dialects/train/Train.h"
#include "passes/Parts.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/IRMapping.h"

#include <optional>
#include <string>

namespace tmc {

/// On a result of a piece's function that lies side by side in the pieces:
/// along which dimension.
constexpr llvm::StringLiteral kConcat = "train.concat";
/// On the new value of a state that each piece moves in turn: what of the old
/// one is left in it, a factor; what is added depends on the piece.
constexpr llvm::StringLiteral kDecay = "train.decay";

/// How a batch is cut: into `count` pieces of `rows` samples and, if that isn't
/// all, one of `rest`.
struct Cut {
  int64_t batch, count, rows, rest;

  /// As few samples in a piece as `pieces` allow: the last one is shorter, and
  /// where the others already hold all, there are fewer.
  static Cut of(int64_t batch, int64_t pieces) {
    int64_t rows = llvm::divideCeil(batch, pieces);
    return {batch, batch / rows, rows, batch % rows};
  }
  int64_t pieces() const { return count + (rest > 0); }
};

/// Makes the function of a piece of `mine` samples.
class Splitter {
public:
  /// `ownStatistics`: batch norms take those of the piece.
  Splitter(mlir::func::FuncOp whole, llvm::StringRef name, const Cut &cut,
           int64_t mine, bool ownStatistics,
           llvm::SmallVector<mlir::Value> &facts)
      : whole(whole), name(name), shares(cut), mine(mine),
        ownStatistics(ownStatistics), facts(facts), b(whole.getContext()) {}

  /// Makes its body, and adds to the facts what that takes.
  mlir::LogicalResult run();
  /// Makes it a function, once all facts are known.
  void close();
  void erase() { body.erase(); }
  mlir::func::FuncOp function() { return body; }

private:
  void declare();
  mlir::LogicalResult visit(mlir::Operation *op);
  mlir::LogicalResult visitLinear(mlir::Operation *op, bool &done);
  mlir::LogicalResult visitPlain(mlir::Operation *op);
  mlir::LogicalResult visitBatchNorm(nn::BatchNormOp op);
  /// How much of state `index` is left in `value`, a running statistic, by what
  /// a piece adds to it; nothing if it isn't one.
  std::optional<double> decayOf(mlir::Value value, unsigned index);
  mlir::LogicalResult gatherResults();
  void addFact(mlir::Value fact);

  Samples samples() const { return {mine, shares.batch}; }
  /// A value in the body, and how it lies in the whole's. Null: there is none.
  struct Piece {
    mlir::Value value;
    Part part;
  };
  /// `op` on pieces; null if the op can't be cut so. Fills how the results
  /// rejoin.
  mlir::Operation *cloneCut(mlir::Operation *op, llvm::ArrayRef<Piece> operands,
                            llvm::SmallVector<Part> &rejoins);
  /// Tries `op` with operands as they are, then with those that are the same
  /// for the whole batch cut too. With `wanted`, the result must lie so.
  mlir::Operation *tryCut(mlir::Operation *op, std::optional<Part> wanted,
                          llvm::SmallVector<Part> &rejoins);
  /// One piece of `value`, which doesn't depend on the batch and whose pieces,
  /// lying as `wanted` says, are all equal but for a shift; null if they aren't
  /// known to be.
  Piece cut(mlir::Value value, const Part &wanted);
  Piece cutConstant(mlir::arith::ConstantOp op, const Part &wanted);

  Part partOf(mlir::Value value) const { return parts.lookup(value); }
  /// The value in the body: the piece, or the argument that holds the fact.
  mlir::Value inBody(mlir::Value value);
  bool dependsOnParameter(mlir::Value value);
  mlir::LogicalResult refuse(mlir::Operation *op, const llvm::Twine &why);

  mlir::func::FuncOp whole, body;
  llvm::StringRef name;
  const Cut &shares;
  int64_t mine;
  bool ownStatistics;
  /// Values of the whole, in the order of arguments.
  llvm::SmallVector<mlir::Value> &facts;
  mlir::OpBuilder b;
  mlir::IRMapping map;
  llvm::DenseMap<mlir::Value, Part> parts;
  llvm::SmallVector<mlir::Value> results;
  llvm::SmallVector<mlir::Attribute> resultAttrs;
  /// By the value, the dimension and the runs.
  llvm::DenseMap<std::pair<mlir::Value, std::pair<int64_t, int64_t>>, Piece>
      cuts;
  llvm::DenseMap<mlir::Value, bool> fromParameter;
  std::string why; // The last refusal.
};

} // namespace tmc

#endif // TMC_PASSES_SPLITTER_H
