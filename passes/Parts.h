// Parts.h - the place of the batch in a value, and its change by an op.
//
// The samples of a batch are adjacent along a dimension. A reshape or a sum of
// positions can change this in two ways:
//
//   runs    [L, B, E] read as [L * B, E] has the batch L times along dimension
//           0: a piece has its part of each run; pieces are joined run by run
//   shift   positions count over the whole batch: sample b adds b * shift to
//           its own value. An iota along the batch has a shift; a
//           lookup in a table with rows for each sample removes it
//
// An op that computes each sample's result separately doesn't depend on the
// order of samples, so `getSplit` (CutOpInterface) holds for any number
// of runs. Only reshapes begin and end runs.

#ifndef TMC_PASSES_PARTS_H
#define TMC_PASSES_PARTS_H

#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Operation.h"

#include <string>

namespace tmc {

/// The relation between a value of the whole batch and its pieces. `Own`: each
/// piece has its own value, from which the whole's can't be computed.
struct Part {
  enum Kind { Whole, Concat, Sum, Fact, Own } kind = Whole;
  // For Concat:
  int64_t dim = -1;
  int64_t runs = 1;
  int64_t shift = 0; // For integers.

  static Part along(int64_t dim, int64_t runs = 1, int64_t shift = 0) {
    return {Concat, dim, runs, shift};
  }
  bool isCut() const { return kind == Concat; }
  /// Whether samples are in order along the dimension, without a shift.
  bool isPlain() const { return runs == 1 && shift == 0; }
  bool liesAs(const Part &other) const {
    return dim == other.dim && runs == other.runs;
  }
};

/// Number of samples of a piece, and of the batch.
struct Samples {
  int64_t mine, all;
};

/// The type of a piece of a value; null if its samples don't divide the
/// dimension evenly.
mlir::RankedTensorType pieceType(mlir::Type type, const Part &part,
                                 Samples samples);

/// The relation between the results of an op on pieces and those on the whole,
/// or the reason for having none.
struct Rejoined {
  llvm::SmallVector<Part> results;
  std::string refusal;
};
Rejoined rejoin(mlir::Operation *op, llvm::ArrayRef<Part> operands,
                Samples samples);

/// `part` of a tensor of shape `from` after its elements are read as `to`; the
/// result isn't cut if no dimension holds the samples.
Part reshaped(const Part &part, llvm::ArrayRef<int64_t> from,
              llvm::ArrayRef<int64_t> to);

} // namespace tmc

#endif // TMC_PASSES_PARTS_H
