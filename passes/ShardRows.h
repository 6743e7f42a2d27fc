// ShardRows.h - tables of which ranks exchange the rows that a batch reads.
//
// A lookup's gradient of a table is zero in all rows that the batch doesn't
// read. If the indices of all ranks are fewer than the table's rows, then ranks
// exchange rows instead of tables:
//
//   - The sum over ranks of `nn.embedding_grad` is that of the indices and rows
//     of all ranks, so they gather both. Each adds what lies in its shard, in
//     the order in which one device would. If the table is read elsewhere too,
//     as a tied head does, then the other part of the gradient is exchanged by
//     itself, where it is made.
//   - A rank that keeps a shard of the table looks up what the others need of
//     it. Nothing has to gather the table before the step's first kernels.
//
// Which tables these are is a matter of shapes alone. So it is the same for all
// that ranks may keep, and so are the bits.

#ifndef TMC_PASSES_SHARDROWS_H
#define TMC_PASSES_SHARDROWS_H

#include "dialects/nn/NN.h"

#include <optional>

namespace tmc {

/// The part of a gradient of a table that is of a lookup.
struct RowsGradient {
  nn::EmbeddingGradOp rows;
  mlir::Value rest; // The other part; null: there is none.
  /// The type to which the sum is rounded; null: it isn't.
  mlir::Type rounded;
};

class ShardRows {
public:
  explicit ShardRows(int64_t ranks) : ranks(ranks) {}

  /// True if ranks exchange the rows of `table` that `ids`, of one rank, name.
  bool areFew(mlir::Value ids, mlir::RankedTensorType table) const;
  /// The rows in a gradient that the ranks' sums are of, if they exchange them.
  std::optional<RowsGradient> rowsIn(mlir::Value gradient) const;
  /// This rank's shard of the sum of all ranks' `part`, of which `rest` is its
  /// shard of the other part's.
  mlir::Value sum(mlir::OpBuilder &b, RowsGradient part, mlir::Value rest);
  /// Lookups in tables that ranks gather read the shards instead.
  void lookUpInShards(mlir::Operation *step);

private:
  const int64_t ranks;
  /// The indices of all ranks, by a rank's own and the block that reads them.
  llvm::DenseMap<std::pair<mlir::Value, mlir::Block *>, mlir::Value> gathered;

  mlir::Value idsOfAll(mlir::OpBuilder &b, mlir::Value ids);
  mlir::Value valuesOfAll(mlir::OpBuilder &b, mlir::Value value) const;
  mlir::Value lookUp(mlir::OpBuilder &b, nn::EmbeddingOp lookup,
                     mlir::Value shard);
};

} // namespace tmc

#endif // TMC_PASSES_SHARDROWS_H
