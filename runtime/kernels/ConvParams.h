//===- ConvParams.h - the shape of a convolution ----------------*- C++ -*-===//
//
// The parameters that a convolution (Conv.h) and its two gradients share.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_KERNELS_CONVPARAMS_H
#define TMC_RUNTIME_KERNELS_CONVPARAMS_H

#include "runtime/kernels/DType.h"
#include "runtime/kernels/Fields.h"

#include <cstdint>

namespace tmc {

/// The shape of a convolution and of its two gradients.
struct ConvParams {
  DType type;   // of activations and their gradients
  DType filter; // of the filter, or of its gradient
  int64_t batch, inHeight, inWidth, inChannels;
  int64_t outHeight, outWidth, outChannels;
  int64_t kernelHeight, kernelWidth;
  int64_t strideHeight, strideWidth;
  int64_t padTop, padLeft, padBottom, padRight;
  int64_t dilationHeight, dilationWidth; // 1: dense
  int64_t groups;
  int64_t scratchBytes = 0;

  TMC_FIELDS(type, filter, batch, inHeight, inWidth, inChannels, outHeight,
             outWidth, outChannels, kernelHeight, kernelWidth, strideHeight,
             strideWidth, padTop, padLeft, padBottom, padRight, dilationHeight,
             dilationWidth, groups)
};

/// The types that a convolution and its gradients take on either backend.
constexpr bool convTakes(const ConvParams &p) {
  return p.type == DType::F32
             ? p.filter == DType::F32
             : isHalf(p.type) && (p.filter == DType::F32 || p.filter == p.type);
}

/// True if each channel has one filter of its own.
inline bool isDepthwise(const ConvParams &p) {
  return p.groups > 1 && p.inChannels == p.groups && p.outChannels == p.groups;
}

namespace conv {

/// A 1 x 1 window with stride 1: x, dy and the filter are matrices in memory,
/// and each pass is a product of two of them.
inline bool isPointwise(const ConvParams &p) {
  return p.groups == 1 && p.kernelHeight == 1 && p.kernelWidth == 1 &&
         p.strideHeight == 1 && p.strideWidth == 1 && p.padTop == 0 &&
         p.padLeft == 0 && p.padBottom == 0 && p.padRight == 0;
}

} // namespace conv
} // namespace tmc

#endif // TMC_RUNTIME_KERNELS_CONVPARAMS_H
