// Sample.h - reads images between their elements, at positions that a step may
// compute.
//
// Each position reads the elements around it, by index, and sums them with
// weights that depend on the position:
//
//        i     x   i + 1         linear: (1 - t) v[i] + t v[i + 1]
//        o-----+-----o           t = x - i
//
// Gradients flow to the image through the lookups, and to the positions through
// the weights; the indices are step functions and pass none.

#ifndef TMC_FRONTENDS_COMMON_OPS_SAMPLE_H
#define TMC_FRONTENDS_COMMON_OPS_SAMPLE_H

#include "frontends/common/ops/Spatial.h"

namespace tmc::frontend {

struct Sampling {
  enum Mode { Nearest, Linear, Cubic } mode = Linear;
  /// The content beyond the image: zeros, its outermost elements, or its mirror
  /// image.
  enum Beyond { Zeros, Border, Reflection } beyond = Zeros;
  /// If true, -1 and 1 are the centres of the outermost elements, not their far
  /// ends.
  bool alignCorners = false;
};

/// `x` [N, C, spatial...] at `grid` [N, out..., k] of k coordinates each, the
/// innermost dimension's first, from -1 to 1 over the image: [N, C, out...].
mlir::FailureOr<Val> sampleGrid(Site &s, const Val &x, const Val &grid,
                                const Sampling &how);

/// The positions of an image [spatial...] under the maps `theta` [N, k, k + 1],
/// in the form of `sampleGrid`: [N, spatial..., k].
mlir::FailureOr<Val> affineGrid(Site &s, const Val &theta,
                                llvm::ArrayRef<int64_t> spatial,
                                bool alignCorners);

/// Boxes of images, each divided into a grid of [height, width] bins. A bin is
/// the mean or the largest of `samples` x `samples` points read in it.
struct BoxPool {
  Val x;     ///< [N, C, H, W]
  Val boxes; ///< [R, 4]: left, top, right, bottom.
  Val image; ///< [R]: the index of each box's image.
  int64_t height = 1, width = 1, samples = 1;
  double scale = 1;    ///< From the boxes' units to elements.
  bool aligned = true; ///< Elements are points at halves, not at whole numbers.
  /// The largest of the weighted elements, as in ONNX, not of the points.
  bool largest = false;
};
mlir::FailureOr<Val> poolBoxes(Site &s, const BoxPool &pool);

/// A convolution in which an offset moves each element of a window.
struct DeformedConv {
  Val x, w;       ///< [N, C, H, W] and [O, C / groups, KH, KW]
  Val offsets;    ///< [N, offsetGroups * KH * KW * 2, OH, OW]: down, right.
  Val bias, mask; ///< [O] and [N, offsetGroups * KH * KW, OH, OW], or absent.
  WindowSpec spec;
  int64_t groups = 1, offsetGroups = 1;
};
mlir::FailureOr<Val> convolveDeformed(Site &s, const DeformedConv &conv);

} // namespace tmc::frontend

#endif // TMC_FRONTENDS_COMMON_OPS_SAMPLE_H
