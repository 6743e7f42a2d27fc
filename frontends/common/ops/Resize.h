// Resize.h - resizes images.

#ifndef TMC_FRONTENDS_COMMON_OPS_RESIZE_H
#define TMC_FRONTENDS_COMMON_OPS_RESIZE_H

#include "frontends/common/Site.h"

namespace tmc::frontend {

/// The rule by which input elements form an element of the result.
struct ResizeRule {
  enum Mode { Nearest, Linear, Cubic } mode = Nearest;
  /// The position of element i of `out` among `in` elements, with scale = out /
  /// in:
  enum Place {
    HalfPixel,      ///< (i + 0.5) / scale - 0.5
    TorchHalfPixel, ///< The same, or 0 if the result is one element.
    AlignCorners,   ///< i (in - 1) / (out - 1)
    Asymmetric,     ///< i / scale
    /// HalfPixel about the middle, if in * scale isn't a whole number.
    Symmetric,
    HalfPixelUp, ///< (i + 0.5) / scale
    /// i (to - from) (in - 1) / (out - 1) + from (in - 1), of a crop.
    Crop,
  } place = HalfPixel;
  /// The element that is nearest to a position.
  enum Rounding { PreferFloor, PreferCeil, Floor, Ceil } rounding = PreferFloor;
  double cubic = -0.75; ///< The coefficient of Keys' convolution.
  bool excludeOutside = false;
  /// When shrinking, averages all elements that fall into one.
  bool antialias = false;
  /// A dimension that keeps its size is copied for any scale. PyTorch does so
  /// in linear modes, for antialiased images, and in two dimensions for the
  /// nearest element.
  bool copiesEqual = false;
  /// For Crop: its begin and end along each axis, as shares of the axis, and
  /// the number that stands outside the image.
  std::vector<std::pair<double, double>> crop;
  double extrapolation = 0;
};

/// PyTorch's antialiased resizing with aligned corners: the filter has the
/// width of the spacing between corners, and the positions stay those of half
/// pixels.
void stretchFilter(ResizeRule &rule, llvm::ArrayRef<int64_t> in,
                   llvm::ArrayRef<double> sizes, std::vector<double> &scales);

/// `x` with dimension axes[i] of the size sizes[i]; scales[i] determines the
/// positions.
mlir::FailureOr<Val> resize(Site &s, const Val &x, llvm::ArrayRef<int64_t> axes,
                            llvm::ArrayRef<double> scales,
                            llvm::ArrayRef<double> sizes,
                            const ResizeRule &rule);

} // namespace tmc::frontend

#endif // TMC_FRONTENDS_COMMON_OPS_RESIZE_H
