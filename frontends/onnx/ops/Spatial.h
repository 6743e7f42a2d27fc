// Spatial.h - windows over images: what convolutions and pools share.
//
// One-dimensional ones are two-dimensional ones of height 1.

#ifndef TMC_FRONTENDS_ONNX_OPS_SPATIAL_H
#define TMC_FRONTENDS_ONNX_OPS_SPATIAL_H

#include "frontends/onnx/Node.h"

namespace tmc::onnx_import {

struct Window {
  Dims size, strides, dilations; ///< [h, w]
  Dims padding;                  ///< [top, left, bottom, right]
};

/// The node's window over an input [N, C, spatial...]; `kernel` is the spatial
/// part of a filter, or empty where the attribute `kernel_shape` says it. Takes
/// the attributes auto_pad, pads, strides, dilations and ceil_mode.
mlir::FailureOr<Window> windowOf(Node &n, const Val &input,
                                 llvm::ArrayRef<int64_t> kernel);

/// [N, C, W] as [N, C, 1, W]; [N, C, H, W] as it is.
mlir::FailureOr<mlir::Value> asImage(Node &n, int i);
Dims asImageDims(llvm::ArrayRef<int64_t> dims);

/// The size of the result along a dimension; negative if the window doesn't
/// fit.
int64_t windowCount(int64_t size, int64_t low, int64_t high, int64_t window,
                    int64_t stride, int64_t dilation);

} // namespace tmc::onnx_import

#endif // TMC_FRONTENDS_ONNX_OPS_SPATIAL_H
