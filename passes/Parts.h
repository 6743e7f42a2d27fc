// Parts.h - where the batch is in a value, and what an op makes of that.
//
// The samples of a batch lie side by side along a dimension. Two things may
// come between, both of which a reshape or a sum of places brings about:
//
//   runs    [L, B, E] read as [L * B, E] has the batch L times along dimension
//           0: pieces are those of each run, put together run by run
//   shift   places count over the whole batch: sample b adds b * shift to what
//           it would say alone. An iota along the batch has a shift, a lookup
//           of such places in a table of as many rows a sample takes it away
//
// An op that gives each sample its own result doesn't ask for the order of
// samples, so that `getSplit` (BatchSplitOpInterface) answers for any number of
// runs. Reshapes are what begins and ends runs.

#ifndef TMC_PASSES_PARTS_H
#define TMC_PASSES_PARTS_H

#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Operation.h"

#include <string>

namespace tmc {

/// What becomes of a value of the whole batch. `Own`: each piece has one of its
/// own, of which nothing can be made that the whole has.
struct Part {
  enum Kind { Whole, Concat, Sum, Fact, Own } kind = Whole;
  // Of Concat:
  int64_t dim = -1;
  int64_t runs = 1;
  int64_t shift = 0; // Of integers.

  static Part along(int64_t dim, int64_t runs = 1, int64_t shift = 0) {
    return {Concat, dim, runs, shift};
  }
  bool isCut() const { return kind == Concat; }
  /// Whether samples lie in their order along the dimension, as they are.
  bool isPlain() const { return runs == 1 && shift == 0; }
  bool liesAs(const Part &other) const {
    return dim == other.dim && runs == other.runs;
  }
};

/// How many samples a piece has, and all have.
struct Samples {
  int64_t mine, all;
};

/// The type of a piece of a value; null where its samples don't fill the
/// dimension evenly.
mlir::RankedTensorType pieceType(mlir::Type type, const Part &part,
                                 Samples samples);

/// How the results of an op on pieces make up those on the whole, or why they
/// don't.
struct Rejoined {
  llvm::SmallVector<Part> results;
  std::string refusal;
};
Rejoined rejoin(mlir::Operation *op, llvm::ArrayRef<Part> operands,
                Samples samples);

/// Where `part` of a tensor of shape `from` is when its elements are read as
/// `to`; one that isn't cut, if no dimension holds it.
Part reshaped(const Part &part, llvm::ArrayRef<int64_t> from,
              llvm::ArrayRef<int64_t> to);

} // namespace tmc

#endif // TMC_PASSES_PARTS_H
