// Splitter.h - builds the function of a piece of a batch from the whole's.
//
// Values are followed from the batch arguments: each op gives the relation of
// its results on the pieces to the result on the whole (CutOpInterface).
// There are three kinds, besides values that don't depend on the batch:
//
//   concat  pieces side by side along a dimension, which is made shorter
//   sum     pieces that add up: the loss, and all that leads to it linearly
//   fact    a number of the whole batch that isn't linear in sums, such as one
//           over the count of labels: @prologue computes it once, the body
//           takes it as an argument
//
// Pieces that ranks compute at the same time have no prologue: a fact is made
// in the body, of sums over the ranks.
//
// A value that is the same for every sample (a table, a mask, a constant) may
// have the batch in its shape; then its piece is built instead. A value that
// counts samples has a shift (passes/Parts.h).

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

/// Attribute of a result of a piece's function that is a concatenation of the
/// pieces: the dimension.
constexpr llvm::StringLiteral kConcat = "train.concat";
/// Attribute of the new value of a state that each piece changes in turn: the
/// factor of the old value; the added term depends on the piece.
constexpr llvm::StringLiteral kDecay = "train.decay";

/// The cut of a batch: `count` pieces of `rows` samples and, if samples are
/// left, one of `rest`.
struct Cut {
  int64_t batch, count, rows, rest;

  /// The smallest `rows` that needs at most `pieces` pieces: the last one may
  /// be smaller, and there may be fewer than `pieces`.
  static Cut of(int64_t batch, int64_t pieces) {
    int64_t rows = llvm::divideCeil(batch, pieces);
    return {batch, batch / rows, rows, batch % rows};
  }
  int64_t pieces() const { return count + (rest > 0); }
};

/// The way in which the pieces of a batch are computed.
enum class PiecesRun {
  InTurn,  // By one device: micro-batches.
  OnRanks, // Each by a rank of the axis dp.
};

/// Builds the function of a piece of `mine` samples.
class Splitter {
public:
  /// `ownStatistics`: batch norms take the statistics of the piece.
  Splitter(mlir::func::FuncOp whole, llvm::StringRef name, const Cut &cut,
           int64_t mine, bool ownStatistics,
           llvm::SmallVector<mlir::Value> &facts,
           PiecesRun run = PiecesRun::InTurn)
      : whole(whole), name(name), shares(cut), mine(mine),
        ownStatistics(ownStatistics), onRanks(run == PiecesRun::OnRanks),
        facts(facts), b(whole.getContext()) {}

  /// Builds the body, and adds the facts that it needs to `facts`.
  mlir::LogicalResult run();
  /// Makes the body a function, after all facts are known.
  void close();
  void erase() { body.erase(); }
  mlir::func::FuncOp function() { return body; }

private:
  void declare();
  mlir::LogicalResult visit(mlir::Operation *op);
  mlir::LogicalResult visitLinear(mlir::Operation *op, bool &done);
  mlir::LogicalResult visitPlain(mlir::Operation *op);
  mlir::LogicalResult visitBatchNorm(nn::BatchNormOp op);
  /// The factor of state `index` in `value`, a running statistic, after an
  /// update by a piece; nothing if `value` isn't a running statistic.
  std::optional<double> decayOf(mlir::Value value, unsigned index);
  mlir::LogicalResult gatherResults();
  void addFact(mlir::Value fact);
  /// The sum of `sum` over the ranks.
  mlir::Value overRanks(mlir::Value sum);
  /// `op` on the facts and sums that it reads.
  void cloneFact(mlir::Operation *op);

  Samples samples() const { return {mine, shares.batch}; }
  /// A value in the body, and its relation to the whole's. Null: none.
  struct Piece {
    mlir::Value value;
    Part part;
  };
  /// `op` on pieces; null if the op can't be cut so. Fills the relations of its
  /// results.
  mlir::Operation *cloneCut(mlir::Operation *op, llvm::ArrayRef<Piece> operands,
                            llvm::SmallVector<Part> &rejoins);
  /// Tries `op` with operands as they are, then also with pieces of operands
  /// that are the same for the whole batch. With `wanted`, the result must have
  /// this part.
  mlir::Operation *tryCut(mlir::Operation *op, std::optional<Part> wanted,
                          llvm::SmallVector<Part> &rejoins);
  /// One piece of `value`, which doesn't depend on the batch and whose pieces,
  /// cut as in `wanted`, are all equal except for a shift; null if that isn't
  /// known.
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
  bool ownStatistics, onRanks;
  /// Sums of the whole's values over the ranks, in the body.
  llvm::DenseMap<mlir::Value, mlir::Value> rankSums;
  /// Values of the whole, in the order of arguments.
  llvm::SmallVector<mlir::Value> &facts;
  mlir::OpBuilder b;
  mlir::IRMapping map;
  llvm::DenseMap<mlir::Value, Part> parts;
  llvm::SmallVector<mlir::Value> results;
  llvm::SmallVector<mlir::Attribute> resultAttrs;
  /// Key: the value, the dimension and the runs.
  llvm::DenseMap<std::pair<mlir::Value, std::pair<int64_t, int64_t>>, Piece>
      cuts;
  llvm::DenseMap<mlir::Value, bool> fromParameter;
  std::string why; // The last refusal.
};

} // namespace tmc

#endif // TMC_PASSES_SPLITTER_H
