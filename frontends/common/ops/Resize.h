// Resize.h - images in another size.

#ifndef TMC_FRONTENDS_COMMON_OPS_RESIZE_H
#define TMC_FRONTENDS_COMMON_OPS_RESIZE_H

#include "frontends/common/Site.h"

namespace tmc::frontend {

/// How elements of the result are made of those around their place.
struct ResizeRule {
  enum Mode { Nearest, Linear, Cubic } mode = Nearest;
  /// Where element i of `out` lies among `in` elements, by scale = out / in:
  enum Place {
    HalfPixel,      ///< (i + 0.5) / scale - 0.5
    TorchHalfPixel, ///< The same, or 0 where the result is one element.
    AlignCorners,   ///< i (in - 1) / (out - 1)
    Asymmetric,     ///< i / scale
    /// HalfPixel about the middle, where in * scale is no whole number.
    Symmetric,
    HalfPixelUp, ///< (i + 0.5) / scale
    /// i (to - from) (in - 1) / (out - 1) + from (in - 1), of a crop.
    Crop,
  } place = HalfPixel;
  /// What is nearest to a place.
  enum Rounding { PreferFloor, PreferCeil, Floor, Ceil } rounding = PreferFloor;
  double cubic = -0.75; ///< The coefficient of Keys' convolution.
  bool excludeOutside = false;
  /// Shrinking takes the mean over all elements that fall into one.
  bool antialias = false;
  /// A dimension that keeps its size is copied, whatever the factor: what
  /// PyTorch does by linear modes, of antialiased images, and in two dimensions
  /// by the nearest element.
  bool copiesEqual = false;
  /// For Crop: where it begins and ends along each axis, as shares of it, and
  /// what stands where it leaves the image.
  std::vector<std::pair<double, double>> crop;
  double extrapolation = 0;
};

/// PyTorch's antialiased resizing with aligned corners: the filter has the
/// width of the spacing between corners, and the places stay those of half
/// pixels.
void stretchFilter(ResizeRule &rule, llvm::ArrayRef<int64_t> in,
                   llvm::ArrayRef<double> sizes, std::vector<double> &scales);

/// `x` with dimension axes[i] of the size sizes[i]; scales[i] is what the
/// places are computed by.
mlir::FailureOr<Val> resize(Site &s, const Val &x, llvm::ArrayRef<int64_t> axes,
                            llvm::ArrayRef<double> scales,
                            llvm::ArrayRef<double> sizes,
                            const ResizeRule &rule);

} // namespace tmc::frontend

#endif // TMC_FRONTENDS_COMMON_OPS_RESIZE_H
