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
    AlignCorners,   ///< i (in - 1) / (in scale - 1)
    Asymmetric,     ///< i / scale
    /// HalfPixel about the middle, where in * scale is no whole number.
    Symmetric,
    HalfPixelUp, ///< (i + 0.5) / scale
    /// i (to - from) (in - 1) / (in scale - 1) + from (in - 1), of a crop.
    Crop,
  } place = HalfPixel;
  /// What is nearest to a place.
  enum Rounding { PreferFloor, PreferCeil, Floor, Ceil } rounding = PreferFloor;
  double cubic = -0.75; ///< The coefficient of Keys' convolution.
  bool excludeOutside = false;
  /// Shrinking takes the mean over all elements that fall into one.
  bool antialias = false;
  /// For Crop: where it begins and ends along each axis, as shares of it, and
  /// what stands where it leaves the image.
  std::vector<std::pair<double, double>> crop;
  double extrapolation = 0;
};

/// `x` with dimension axes[i] of the size sizes[i]; scales[i] is what the
/// places are computed by.
mlir::FailureOr<Val> resize(Site &s, const Val &x, llvm::ArrayRef<int64_t> axes,
                            llvm::ArrayRef<double> scales,
                            llvm::ArrayRef<double> sizes,
                            const ResizeRule &rule);

} // namespace tmc::frontend

#endif // TMC_FRONTENDS_COMMON_OPS_RESIZE_H
