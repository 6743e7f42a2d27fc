//===- ConvProduct.h - convolutions as products of matrices -----*- C++ -*-===//
//
// The forward pass, the input gradient and the filter gradient of a convolution
// are three products of matrices, none of which is in memory as a matrix:
//
//   y  [pixel, o] = sum_(tap, c) x [pixel's window: (tap, c)] f [(tap, c), o]
//   dx [pixel, c] = sum_(tap, o) dy [pixel's viewers: (tap, o)] f [(tap, o), c]
//   df [o, (tap, c)] = sum_pixel dy [pixel, o] x [pixel's window: (tap, c)]
//
// (per group; ConvWindow.h defines windows and viewers.) They run on the
// register-blocked kernels of runtime/cpu/Gemm.h. Packing gathers the windows,
// so at most a tile of them exists at any time.
//
// Forward and input gradient:
//
//     pack the filter into panels of kPanelN columns       once, in parallel
//     tiles of kTileRows pixels by tileColumns, in parallel:
//       the sum in steps of kGemmDepth:                    (add up in y, in
//         gather the pixels' windows, row after row         order)
//         panels of columns: panels of rows: inner kernel
//
// Gathered rows are copies of contiguous channels, which costs a few percent.
// The inner kernel reads them unpacked, a fixed distance apart.
//
// Filter gradient:
//
//     units: slabRows of o by all taps of rangeChannels of c by a part of the
//     pixels, in parallel:
//       blocks of kGemmDepth pixels:                       (add up in order)
//         pack dy's slab
//         panels of (tap, c): gather the block's windows
//           panels of o: inner kernel
//       put the sums in the filter's order, or add them there
//
// Pixels are cut into parts only if o and c make too few units. Then each unit
// has its own sums, and the sums of the parts are added in order.
//
// The bits. Every element is a sum in one order, which depends on the shape
// alone: fused multiply-adds along a step of kGemmDepth, from zero; then the
// steps' sums; then the parts' sums. The number of threads and the width of the
// registers don't change that order, so all machines with fused multiply-adds
// give the same bits. Chains are short: an element's error is at most
// (kGemmDepth + steps + parts) units of 2^-24 of the sum of the absolute values
// of its products (Higham, Accuracy and Stability of Numerical Algorithms, 2nd
// edition, section 4.2).
//
// Types. Images are widened when they are gathered, the filter when it is
// packed; a narrow result is rounded once, from a tile's sums in scratch.
//
// Padding is multiplied as zeros. An infinite filter or gradient gives NaN
// there, as in any product.
//
// Scratch, with the sizes of runtime/kernels/Conv.h, equal for every machine:
// the packed filter and per worker kGatherBytes and a tile's sums; or per
// worker a packed slab of dy and a panel of windows, and the sums of one unit
// (with parts: of all units).
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_CPU_CONVPRODUCT_H
#define TMC_RUNTIME_CPU_CONVPRODUCT_H

#include "runtime/cpu/ConvWindow.h"

namespace tmc {

class Stream;

namespace conv {

/// The forward pass (`from` x, `to` y) or, if gradInput, the input gradient
/// (`from` dy, `to` dx); `windows` are those of the pass. T is the storage type
/// of p.type. scratch: scratchCap of Conv or ConvGradInput.
template <typename T>
void product(Stream &stream, const ConvParams &p, bool gradInput,
             const Windows &windows, const T *from, const void *filter, T *to,
             char *scratch);

/// The filter gradient, OIHW, in f32; `grid` is that of the forward pass.
/// scratch: scratchCap of ConvGradFilter, minus filterSumBytes().
template <typename T>
void filterGradient(Stream &stream, const ConvParams &p, const Grid &grid,
                    const T *x, const T *dy, float *out, char *scratch,
                    bool accumulate);

} // namespace conv
} // namespace tmc

#endif // TMC_RUNTIME_CPU_CONVPRODUCT_H
