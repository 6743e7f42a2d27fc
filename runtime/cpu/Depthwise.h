//===- Depthwise.h - convolutions of single channels ------------*- C++ -*-===//
//
// If each channel has its own filter, there is no product of matrices: every
// pass is a sum over taps or pixels for each channel. Channels are innermost in
// memory, so the code uses vectors of channels. The filter is first transposed
// in scratch to [window, channels] of floats. A channel's sums have one order,
// for any width of a vector and any number of threads.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_CPU_DEPTHWISE_H
#define TMC_RUNTIME_CPU_DEPTHWISE_H

#include "runtime/cpu/ConvWindow.h"

namespace tmc {

class Stream;

namespace conv {

/// The forward pass or, if gradInput, the input gradient: see product() in
/// ConvProduct.h. A result's taps are added in the order of its grid.
/// scratch: packedBytes(p, gradInput).
template <typename T>
void depthwise(Stream &stream, const ConvParams &p, bool gradInput,
               const Windows &windows, const T *from, const void *filter, T *to,
               char *scratch);

/// dfilter [channels, kernelHeight, kernelWidth] of x and dy, or += it.
/// Pixels are summed row by row, rows in order, parts of the batch in order.
/// scratch: packedBytes(p, false) for each of depthwiseParts(p).
template <typename T>
void depthwiseGradFilter(Stream &stream, const ConvParams &p, const T *x,
                         const T *dy, float *out, char *scratch,
                         bool accumulate);

} // namespace conv
} // namespace tmc

#endif // TMC_RUNTIME_CPU_DEPTHWISE_H
