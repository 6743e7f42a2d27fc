// ViewMap.h - a value as the elements of another one, in another order.
//
// Exporters write one change of layout in many ways: K's two transposes
// separate or fused, a flattening around a transpose, heads repeated before or
// after it. A view map keeps only the result. It cuts the source's dimensions
// into atoms, and every dimension of the result is a product of atoms:
//
//   source  [4, 64, 768]            atoms  b=4  t=64  h=12  d=64
//   result  [4, 12, 64, 64]         groups [b] [h] [t] [d]
//
// An atom that isn't part of the source repeats: a broadcast made it.
// Dimensions of size one have no atoms.

#ifndef TMC_PASSES_RAISE_VIEWMAP_H
#define TMC_PASSES_RAISE_VIEWMAP_H

#include "dialects/nn/NN.h"

#include "mlir/IR/PatternMatch.h"

namespace tmc {

class ViewMap {
public:
  /// `value` as a view of itself.
  static ViewMap identity(mlir::Value value);

  /// `value` as a view of the farthest value from which reshapes, transposes
  /// and broadcasts lead to it. With `scale`, also sees through products with a
  /// splat constant, and multiplies `scale` by them.
  static ViewMap of(mlir::Value value, double *scale = nullptr);

  /// Appends a reshape. Returns false, without a change, if the result's
  /// dimensions aren't products of atoms.
  bool reshape(llvm::ArrayRef<int64_t> shape);
  void transpose(llvm::ArrayRef<int64_t> perm);
  void broadcast(llvm::ArrayRef<int64_t> dims, llvm::ArrayRef<int64_t> shape);

  mlir::Value getSource() const { return source; }
  /// The ops that `of` went through, from the source to the value.
  llvm::ArrayRef<mlir::Operation *> getOps() const { return ops; }
  /// Records ops that were applied after those.
  void addOps(llvm::ArrayRef<mlir::Operation *> more) {
    ops.append(more.begin(), more.end());
  }
  unsigned getRank() const { return groups.size(); }
  int64_t getDim(unsigned dim) const;
  llvm::SmallVector<int64_t> getShape() const;

  /// True if the source's atoms are in another order.
  bool needsTranspose() const;
  bool hasRepeats() const;
  /// True if no element depends on the index along `dim`.
  bool isConstantAlong(unsigned dim) const;
  /// True if dimension `dim` is exactly the source's dimension `sourceDim`.
  bool isDimOfSource(unsigned dim, unsigned sourceDim) const;

  /// Makes `dim` one element long; the view must be constant along it.
  void dropDim(unsigned dim) { groups[dim].clear(); }
  /// Replaces the source by `narrowed`, whose dimension `sourceDim` has one
  /// element; no dimension of the view may use that dimension any more.
  void narrowSource(mlir::Value narrowed, unsigned sourceDim);
  /// The factor by which the view repeats innermost within `dim`: query heads
  /// share a key like this.
  int64_t getInnerRepeats(unsigned dim) const;
  void dropInnerRepeats(unsigned dim);

  /// For each dimension of the result, its atoms as pairs of size and stride in
  /// elements of the source, outermost first; repeating atoms have stride 0.
  llvm::SmallVector<llvm::SmallVector<std::pair<int64_t, int64_t>>>
  getStrides() const;

  /// Builds the view with at most three reshapes, a transpose and a broadcast.
  mlir::Value build(mlir::OpBuilder &b, mlir::Location loc) const;

private:
  bool isRepeat(int atom) const { return !llvm::is_contained(order, atom); }
  int64_t sizeOf(llvm::ArrayRef<int> atoms) const;
  /// The source's atoms in the result's order.
  llvm::SmallVector<int> resultOrder() const;
  /// Cuts `atom` into `outer` and the rest; returns the atom of the rest.
  int split(int atom, int64_t outer);

  mlir::Value source;
  llvm::SmallVector<int64_t> sizes;                 // Of each atom.
  llvm::SmallVector<int> order;                     // The source's, in order.
  llvm::SmallVector<int> sourceDims;                // Dimension of each, or -1.
  llvm::SmallVector<llvm::SmallVector<int>> groups; // Atoms per dimension.
  llvm::SmallVector<mlir::Operation *> ops;
};

/// Appends `op` to `view`, if it is a reshape, a transpose or a broadcast;
/// other ops change nothing. Returns false, without a change, if the op cuts an
/// atom in the middle.
bool apply(ViewMap &view, mlir::Operation *op);

/// True if the result's elements in row-major order are those of the source.
bool isReshape(const ViewMap &view);
/// True if the result is the source.
bool isIdentity(const ViewMap &view);

/// Whether `value` can be computed with permuted dimensions without a
/// transpose, by cancelling an earlier one through pointwise ops, norms,
/// rotations, slices and concatenations.
bool canTransposeFreely(mlir::Value value, llvm::ArrayRef<int64_t> perm);
/// Builds that; the ops in between are recomputed on permuted values.
mlir::Value transposeFreely(mlir::OpBuilder &b, mlir::Value value,
                            llvm::ArrayRef<int64_t> perm);

/// Composes and cancels transposes along chains of views.
void populateViewPatterns(mlir::RewritePatternSet &patterns);

} // namespace tmc

#endif // TMC_PASSES_RAISE_VIEWMAP_H
