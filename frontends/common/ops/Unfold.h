// Unfold.h - unfolds and folds windows, one dimension after the other.
//
//   unfolded along a dimension:  x [.., n, ..] -> k slices; slice i has
//                                the elements low + i * dilation + j * stride
//   folded:                      the adjoint, k slices added into one tensor
//
// For a window over several dimensions, the number of steps is the sum of its
// sizes, not their product.

#ifndef TMC_FRONTENDS_COMMON_OPS_UNFOLD_H
#define TMC_FRONTENDS_COMMON_OPS_UNFOLD_H

#include "frontends/common/ops/Spatial.h"

namespace tmc::frontend {

/// Reports "unsupported" if windows of these sizes have too many places.
mlir::LogicalResult checkApart(Site &s, llvm::ArrayRef<int64_t> sizes);

/// The number of windows `w` over `size` elements.
int64_t countOf(const AxisWindow &w, int64_t size);

/// The elements of `x` at each place of the window `w` along dimension `axis`;
/// `fill` for padding.
mlir::FailureOr<llvm::SmallVector<Val>>
unfolded(Site &s, const Val &x, int64_t axis, const AxisWindow &w, double fill);

/// `slices`, one for each place of the window, added into `size` elements along
/// `axis`.
mlir::FailureOr<Val> folded(Site &s, llvm::ArrayRef<Val> slices, int64_t axis,
                            const AxisWindow &w, int64_t size);

/// Columns [N, C * window, windows] added into images [N, C, spatial...].
/// `spec` has a size.
mlir::FailureOr<Val> foldColumns(Site &s, const Val &columns,
                                 llvm::ArrayRef<int64_t> spatial,
                                 const WindowSpec &spec);

/// The position in all of `x` [N, C, spatial...] of each window's largest
/// element; among equal ones, the first. `byColumns` counts columns first.
mlir::FailureOr<Val> placesOfMaxima(Site &s, const Val &x,
                                    const WindowSpec &spec, bool byColumns);

/// `x` at `places` in zeros [N, C, spatial...], with the numbering of
/// `placesOfMaxima`.
mlir::FailureOr<Val> unpool(Site &s, const Val &x, const Val &places,
                            llvm::ArrayRef<int64_t> dims);

} // namespace tmc::frontend

#endif // TMC_FRONTENDS_COMMON_OPS_UNFOLD_H
