// Bundles.h - the parts of a forward function that tensor parallelism cuts.
//
// Tensor parallelism deals heads and hidden columns to ranks. No op or model is
// named here: ops list how they may be cut (CutOpInterface), and everything
// follows from these lists.
//
// A product with a parameter that sums over a dimension may be cut along it:
// each rank then has a part of the sum. Both factors are cut there, so their
// makers are cut, too, and so are all readers of what these make. This goes on
// until nothing new is cut. The result is a *bundle*:
//
//     x ---- product w1 ---- gelu ---- product w2 ---- y
//         entry   columns     columns      sum     exit
//
//     x ---- product wq ---- heads -.
//      +---- product wk ---- heads --+- attention ---- product wo ---- y
//      '---- product wv ---- heads -'                     sum     exit
//
// A value that a bundle takes whole is an *entry*, and a sum that leaves it is
// an *exit*. There is no bundle, but a reason, if
//
//   - an op on the way has no such cut: a norm over the columns;
//   - a value would be cut in two ways;
//   - it reaches the batch, a state that steps change, or a result of the
//   function;
//   - the ranks don't divide a size: two heads of keys for four ranks;
//   - it holds no parameter.
//
// A table of queries, keys and values has three runs of columns, of each of
// which a rank has a piece (Parts.h). Constants with one value for all elements
// are made anew for each reader.

#ifndef TMC_PASSES_BUNDLES_H
#define TMC_PASSES_BUNDLES_H

#include "passes/Parts.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/MapVector.h"

#include <string>
#include <vector>

namespace tmc {

/// An op of a bundle: a rank runs it with these pieces.
struct CutPiece {
  /// Part::Whole: each rank takes all of it.
  llvm::SmallVector<Part> operands;
  /// Concat, Sum or Whole.
  llvm::SmallVector<Part> results;
  /// The operand that is added to the sum, and the one with the numbers of
  /// samples (OpCut::kOnFirst, kNumbered); -1: there is none.
  int64_t onFirst = -1, numbered = -1;
};

struct Bundle {
  /// In no order.
  llvm::MapVector<mlir::Operation *, CutPiece> ops;
  /// The values of which each rank has a piece.
  llvm::MapVector<mlir::Value, Part> values;
};

/// A product that can't be cut along its sum, and the reason.
struct NoBundle {
  mlir::Operation *product;
  std::string why;
};

struct Bundles {
  std::vector<Bundle> found;
  std::vector<NoBundle> refused;
};

/// The bundles of `forward` for `ranks` ranks.
Bundles findBundles(mlir::func::FuncOp forward, int64_t ranks);

} // namespace tmc

#endif // TMC_PASSES_BUNDLES_H
