// Spatial.h - windows over images: convolutions and pools.
//
// A one-dimensional window is a two-dimensional one of height 1. A
// three-dimensional convolution is a two-dimensional one over slices that are
// concatenated as channels; pools of more dimensions are successive pools of
// one or two of them.

#ifndef TMC_FRONTENDS_COMMON_OPS_SPATIAL_H
#define TMC_FRONTENDS_COMMON_OPS_SPATIAL_H

#include "frontends/common/Site.h"

namespace tmc::frontend {

/// A window as a file states it: one entry per spatial dimension, or empty if
/// the file leaves it out.
struct WindowSpec {
  Dims size, strides, dilations;
  Dims padding; ///< All before, then all after.
  enum Auto { Given, SameUpper, SameLower, Valid };
  Auto autoPad = Given;
  /// Adds one window if it begins within the input.
  bool ceil = false;
};

struct Window {
  Dims size, strides, dilations; ///< [h, w]
  Dims padding;                  ///< [top, left, bottom, right]
};

/// A window along one dimension.
struct AxisWindow {
  int64_t size = 1, stride = 1, dilation = 1, low = 0, high = 0;
  int64_t extra = 0; ///< Elements that ceil_mode appends to `high`.
};
using AxisWindows = llvm::SmallVector<AxisWindow>;
/// `spec` over an input [N, C, spatial...] of any rank, checked.
mlir::FailureOr<AxisWindows> windowsOf(Site &s, llvm::ArrayRef<int64_t> input,
                                       const WindowSpec &spec);
Window imageWindow(const AxisWindow &h, const AxisWindow &w);

/// The same over one or two dimensions.
mlir::FailureOr<Window> windowOf(Site &s, const Val &input,
                                 const WindowSpec &spec);

/// [N, C, W] as [N, C, 1, W]; [N, C, H, W] unchanged.
mlir::FailureOr<mlir::Value> asImage(Site &s, const Val &v);
Dims asImageDims(llvm::ArrayRef<int64_t> dims);

/// The size of the result along a dimension; negative if the window doesn't
/// fit.
int64_t windowCount(int64_t size, int64_t low, int64_t high, int64_t window,
                    int64_t stride, int64_t dilation);

/// The convolution of `x` [N, C, ...] with filters `w` [O, C / groups, ...],
/// plus a bias per channel. `spec` needs no size.
mlir::FailureOr<Val> convolve(Site &s, const Val &x, const Val &w,
                              const Val &bias, WindowSpec spec, int64_t groups);

/// The adjoint of a convolution, for `x` [N, C, ...] and filters `w` [C, O /
/// groups, ...]; `extra` elements are appended to each spatial dimension of the
/// result, or none if it is empty.
mlir::FailureOr<Val> convolveTransposed(Site &s, const Val &x, const Val &w,
                                        const Val &bias, WindowSpec spec,
                                        Dims extra, int64_t groups);

mlir::FailureOr<Val> maxPool(Site &s, const Val &x, const WindowSpec &spec);
/// The mean over each window: of all its elements, or only of those outside the
/// padding.
mlir::FailureOr<Val> averagePool(Site &s, const Val &x, const WindowSpec &spec,
                                 bool countPadding);
/// The sum over each window.
mlir::FailureOr<Val> sumPool(Site &s, const Val &x, const WindowSpec &spec);
/// The p-norm of each window.
mlir::FailureOr<Val> normPool(Site &s, const Val &x, const WindowSpec &spec,
                              int64_t p);
/// Over all positions of [N, C, ...]; the result is [N, C, 1, ...].
mlir::FailureOr<Val> globalPool(Site &s, const Val &x, nn::ReduceKind kind,
                                bool mean);

} // namespace tmc::frontend

#endif // TMC_FRONTENDS_COMMON_OPS_SPATIAL_H
