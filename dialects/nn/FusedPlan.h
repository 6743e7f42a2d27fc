// FusedPlan.h - how the region of an nn.fused becomes one kernel.
//
// The sizes of a region's dimensions are cut into *atoms*: factors that every
// value of the region has whole or not at all. Pointwise ops equate their
// operands' dimensions, broadcasts and reductions some of them, reshapes the
// products. For instance, with x reshaped from 4x64x768 to 256x768, the atoms
// are 4, 64, 768; a bias has the last, a row's mean the first two.
//
// The kernel runs over rows x cols: the leading atoms are rows, the trailing
// ones columns. A reduction over the columns is made row by row, in passes over
// the row; one over the rows is summed on the way and done when all rows are;
// what depends on it belongs to the *finish*, which walks the columns once.
//
//      atoms  4  64 | 768          x         4 64 768   element of (row, col)
//             rows  | cols         bias           768   of col
//                                  mean      4 64       of row
//                                  position    64 768   of (row % 64, col)
//
// A region that doesn't fit this is refused, with the reason.

#ifndef TMC_DIALECTS_NN_FUSEDPLAN_H
#define TMC_DIALECTS_NN_FUSEDPLAN_H

#include "mlir/IR/Block.h"
#include "mlir/IR/Value.h"
#include "runtime/kernels/FusedShape.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallVector.h"

#include <memory>
#include <string>

namespace tmc::nn {

/// What a reduction of the region is in the kernel.
enum class Reduction {
  Row,    // over the columns: one number per row
  Column, // over the rows: one number per column
  Total,  // over everything
};

/// A set of atoms, bit i for atom i.
using AtomSet = uint64_t;

struct FusedPlan {
  FusedShape shape;
  /// Outermost first; the product of the first `rowAtoms` is rows, of the rest
  /// cols.
  llvm::SmallVector<int64_t> atoms;
  unsigned rowAtoms = 0;

  /// The atoms of a value's type, in the value's own row-major order.
  llvm::DenseMap<mlir::Value, llvm::SmallVector<unsigned>> place;
  /// The atoms that a value really varies along: fewer than its type's where it
  /// is broadcast.
  llvm::DenseMap<mlir::Value, AtomSet> varies;
  /// The number of row reductions that must be done before the value is known.
  llvm::DenseMap<mlir::Value, unsigned> level;
  llvm::DenseMap<mlir::Operation *, Reduction> reductions;
  /// Values known only when all rows are done.
  llvm::DenseSet<mlir::Value> late;
  /// Values worth keeping from the first pass that makes them to the last that
  /// wants them, in the order of their slots.
  llvm::SmallVector<mlir::Value> kept;
  /// Passes over a row; the last one stores.
  unsigned passes = 1;

  AtomSet rowMask() const { return (AtomSet(1) << rowAtoms) - 1; }
  AtomSet allMask() const { return (AtomSet(1) << atoms.size()) - 1; }
  AtomSet colMask() const { return allMask() & ~rowMask(); }
  AtomSet typeAtoms(mlir::Value value) const;

  bool variesByCol(mlir::Value v) const { return varies.lookup(v) & colMask(); }
  bool variesByRow(mlir::Value v) const { return varies.lookup(v) & rowMask(); }

  /// True if a result (by its type) is stored by the finish.
  bool isFinished(mlir::Value yielded) const {
    return late.contains(yielded) ||
           (shape.rows > 1 && !(typeAtoms(yielded) & rowMask()));
  }
  /// True if the columns of a value are a run of memory, or a single element.
  bool isContiguous(mlir::Value value) const;
};

/// Plans the kernel of `block`, whose terminator's operands are the results.
/// Returns nothing, and says why in `why`, where no kernel can do it.
std::optional<FusedPlan> planFused(mlir::Block &block,
                                   std::string *why = nullptr);

/// Pairs of argument and result numbers that may share bytes: each element of
/// the argument is read before that element of the result is written, and not
/// afterwards.
llvm::SmallVector<std::pair<unsigned, unsigned>>
overwritesOf(mlir::Block &block, const FusedPlan &plan);

/// True if an op may stand in a fused region at all.
bool isFusible(mlir::Operation *op);

} // namespace tmc::nn

#endif // TMC_DIALECTS_NN_FUSEDPLAN_H
