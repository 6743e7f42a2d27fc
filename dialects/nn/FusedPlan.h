// FusedPlan.h - the plan of the kernel of an nn.fused.
//
// The sizes of a region's dimensions are cut into *atoms*: factors that every
// value of the region has completely or not at all. Pointwise ops equate the
// dimensions of their operands, broadcasts and reductions some of them,
// reshapes the products. For instance, with x reshaped from 4x64x768 to
// 256x768, the atoms are 4, 64, 768; a bias has the last, a row's mean the
// first two.
//
// The kernel runs over rows x cols: the leading atoms are rows, the trailing
// ones columns. A reduction over the columns is computed row by row, in passes
// over the row. A reduction over the rows is accumulated, and complete after
// all rows; values that depend on it belong to the *finish*, which walks the
// columns once.
//
//      atoms  4  64 | 768          x         4 64 768   element of (row, col)
//             rows  | cols         bias           768   of col
//                                  mean      4 64       of row
//                                  position    64 768   of (row % 64, col)
//
// A slice of an operand has the atoms of its own shape, and lies in the operand
// with the operand's strides. So do the parts of a concatenation that the
// region yields, in the result. The operand and the result have no atoms.
//
// A region that doesn't have this form is refused, with the reason.

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

/// The kind of a reduction in the kernel.
enum class Reduction {
  Row,    // over the columns: one number per row
  Column, // over the rows: one number per column
  Total,  // over everything
};

/// A set of atoms, bit i for atom i.
using AtomSet = uint64_t;

/// The elements of an operand or a result that a value stands for.
struct FusedAccess {
  mlir::Value value;
  unsigned number = 0; // The operand's or result's.
  int64_t offset = 0;  // In elements.
  /// By the atoms of the value's place.
  llvm::SmallVector<int64_t> strides;

  bool isSameElements(const FusedAccess &other) const {
    return offset == other.offset && strides == other.strides;
  }
};

struct FusedPlan {
  FusedShape shape;
  /// Outermost first; the product of the first `rowAtoms` is the number of
  /// rows, of the others the number of columns.
  llvm::SmallVector<int64_t> atoms;
  unsigned rowAtoms = 0;

  /// The atoms of a value's type, in the value's own row-major order.
  llvm::DenseMap<mlir::Value, llvm::SmallVector<unsigned>> place;
  /// One for each argument, or for each slice of one.
  llvm::DenseMap<mlir::Value, FusedAccess> loads;
  /// One for each result, or for each part of a result that is a concatenation.
  llvm::SmallVector<FusedAccess> stores;
  /// The atoms along which a value really varies: fewer than its type's atoms
  /// if it is broadcast.
  llvm::DenseMap<mlir::Value, AtomSet> varies;
  /// The number of row reductions that must be complete before the value is
  /// known.
  llvm::DenseMap<mlir::Value, unsigned> level;
  llvm::DenseMap<mlir::Operation *, Reduction> reductions;
  /// Values that are known only after all rows.
  llvm::DenseSet<mlir::Value> late;
  /// Values kept from the first pass that computes them to the last pass that
  /// needs them, in the order of their slots.
  llvm::SmallVector<mlir::Value> kept;
  /// Passes over a row; the last one stores.
  unsigned passes = 1;

  AtomSet rowMask() const { return (AtomSet(1) << rowAtoms) - 1; }
  AtomSet allMask() const { return (AtomSet(1) << atoms.size()) - 1; }
  AtomSet colMask() const { return allMask() & ~rowMask(); }
  AtomSet typeAtoms(mlir::Value value) const;

  bool variesByCol(mlir::Value v) const { return varies.lookup(v) & colMask(); }
  bool variesByRow(mlir::Value v) const { return varies.lookup(v) & rowMask(); }

  /// True if the finish stores a result (by its type).
  bool isFinished(mlir::Value yielded) const {
    return late.contains(yielded) ||
           (shape.rows > 1 && !(typeAtoms(yielded) & rowMask()));
  }
  /// True if a value's own order of elements has the columns as a run, or as a
  /// single element.
  bool isContiguous(mlir::Value value) const;
  /// The same of the elements in memory.
  bool isContiguous(const FusedAccess &access) const;
};

/// Plans the kernel of `block`; the operands of its terminator are the results.
/// If no kernel can do it, returns nothing and sets `why`.
std::optional<FusedPlan> planFused(mlir::Block &block,
                                   std::string *why = nullptr);

/// Chooses the values that are kept between the passes of a planned kernel.
void chooseKept(FusedPlan &plan, mlir::Block &block);

/// Pairs of argument and result numbers that may share bytes: each element of
/// the argument is read before that element of the result is written, and not
/// afterwards.
llvm::SmallVector<std::pair<unsigned, unsigned>>
overwritesOf(mlir::Block &block, const FusedPlan &plan);

/// True if an op is allowed in a fused region.
bool isFusible(mlir::Operation *op);

} // namespace tmc::nn

#endif // TMC_DIALECTS_NN_FUSEDPLAN_H
