//===- Depthwise.h - the filter gradient of depthwise windows ---*- C++ -*-===//
//
// Where each channel has a filter of its own, a filter gradient is a sum over
// pixels for each channel and window position, with the channels innermost in
// memory: vectors of channels, no product of matrices. oneDNN has this for
// narrow windows only and unfolds the image into scratch for others.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_CPU_DEPTHWISE_H
#define TMC_RUNTIME_CPU_DEPTHWISE_H

#include "runtime/kernels/Conv.h"

namespace tmc::cpu {

/// dfilter [channels, kernelHeight, kernelWidth] of x and dy (NHWC), or += it.
/// `scratch` holds packedFilterBytes(p) for each of convParts(p).
/// Pixels are summed row by row, rows in order, parts of the batch in order.
void depthwiseGradFilter(Stream &stream, const ConvParams &p, const float *x,
                         const float *dy, float *out, char *scratch,
                         bool accumulate);

} // namespace tmc::cpu

#endif // TMC_RUNTIME_CPU_DEPTHWISE_H
