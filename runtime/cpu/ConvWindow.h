//===- ConvWindow.h - the windows of a convolution as rows ------*- C++ -*-===//
//
// A convolution is a product of matrices whose left one isn't in memory: each
// row holds the elements under a pixel's window, tap after tap, with the
// channels of a tap together. This file lists the pixels and taps, and gathers
// pieces of those rows.
//
//   forward         a row per pixel of the result; taps in the window's order
//   input gradient  a row per pixel of the input: the pixels of dy that use it.
//                   With a stride, the pixel's residue modulo the stride
//                   determines its taps: each residue is its own dense grid,
//                   with its own taps (or none: zeros). Every tap is in one
//                   residue's grid.
//
// In NHWC a tap's channels are contiguous, and without dilation and groups also
// those of neighbouring taps: they are gathered as one run. Gathered elements
// are floats; 16-bit images are widened.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_CPU_CONVWINDOW_H
#define TMC_RUNTIME_CPU_CONVWINDOW_H

#include "runtime/kernels/Conv.h"

#include <vector>

namespace tmc::conv {

/// An element of the window: its offset from a row's origin, and its place in
/// the filter.
struct Tap {
  int64_t h, w;
  int64_t index; // kernelWidth * i + j
};

/// Pixels with the same computation: (firstH + y * stepH, firstW + x * stepW)
/// for y < height, x < width, in each image of the batch. The window of such a
/// pixel begins at source pixel (y * strideH, x * strideW).
struct Grid {
  int64_t firstH, firstW, stepH, stepW;
  int64_t height, width;
  int64_t strideH, strideW;
  std::vector<Tap> taps; // by h, then by w
};

/// The tap of a window element within a pass: tap `number` of the `taps` taps
/// of a grid; `before` elements are in earlier grids.
struct Place {
  int64_t before, taps, number;
};

/// The pixels and taps of a pass, computed once. The forward pass has one grid.
struct Windows {
  std::vector<Grid> grids;
  std::vector<Place> places; // of each element of the window

  Windows(const ConvParams &p, bool gradInput);
};

/// The images under the windows, [batch, height, width, stride]; `channels` of
/// the channels are used. T: float, bf16 or f16.
template <typename T> struct Source {
  const T *data; // at the first of these channels
  int64_t height, width, stride, channels;
};

/// Rows whose windows begin side by side in one line of an image: at (h, w),
/// and each next one the grid's strideW further right.
template <typename T> struct Segment {
  const T *image;
  int64_t h, w, rows;
};

/// Cuts `count` rows of the grid, from row `first` on, into segments; row
/// numbers run over images, then y, then x. Returns the number of segments, at
/// most `count`.
template <typename T>
int64_t segments(const Grid &grid, const Source<T> &source, int64_t first,
                 int64_t count, Segment<T> *to);

/// Copies elements [from, to) of each row to result + row * stride, with zeros
/// for elements outside the image.
template <typename T>
void gather(const Grid &grid, const Source<T> &source,
            const Segment<T> *segments, int64_t count, int64_t from, int64_t to,
            float *result, int64_t stride);

} // namespace tmc::conv

#endif // TMC_RUNTIME_CPU_CONVWINDOW_H
