//===- ConvWindow.h - the windows of a convolution as rows ------*- C++ -*-===//
//
// A convolution is a product of matrices whose left one isn't in memory: each
// row holds the elements that a pixel's window sees, tap after tap, the
// channels of a tap together. This file says which pixels and taps there are,
// and gathers pieces of those rows.
//
//   forward         a row per pixel of the result; taps in the window's order
//   input gradient  a row per pixel of the input: the pixels of dy that saw it.
//                   With a stride, which taps did depends on the pixel's
//                   residue modulo the stride: each residue is a grid of its
//                   own, dense, with its own taps (or none: zeros). Every tap
//                   is in one residue's grid.
//
// NHWC makes a tap's channels contiguous, and without dilation and groups those
// of neighbouring taps as well: they are gathered as one run. What is gathered
// is floats, widened on the way where images are of 16 bits.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_CPU_CONVWINDOW_H
#define TMC_RUNTIME_CPU_CONVWINDOW_H

#include "runtime/kernels/Conv.h"

#include <vector>

namespace tmc::conv {

/// An element of the window: where it looks, from a row's origin, and its place
/// in the filter.
struct Tap {
  int64_t h, w;
  int64_t index; // kernelWidth * i + j
};

/// Pixels that are computed alike: (firstH + y * stepH, firstW + x * stepW) for
/// y < height, x < width, in each image of the batch. The window of such a
/// pixel begins at source pixel (y * strideH, x * strideW).
struct Grid {
  int64_t firstH, firstW, stepH, stepW;
  int64_t height, width;
  int64_t strideH, strideW;
  std::vector<Tap> taps; // by h, then by w
};

/// Which of a pass's taps an element of the window is: tap `number` of `taps`
/// of a grid, before which `before` elements stand in other grids.
struct Place {
  int64_t before, taps, number;
};

/// What a pass computes, made once. The forward pass has one grid.
struct Windows {
  std::vector<Grid> grids;
  std::vector<Place> places; // of each element of the window

  Windows(const ConvParams &p, bool gradInput);
};

/// The images that windows look at, [batch, height, width, stride], of which
/// `channels` channels count. T: float, bf16 or f16.
template <typename T> struct Source {
  const T *data; // at the first of these channels
  int64_t height, width, stride, channels;
};

/// Rows whose windows begin side by side in one line of an image: at (h, w) and
/// each the grid's strideW further right.
template <typename T> struct Segment {
  const T *image;
  int64_t h, w, rows;
};

/// Cuts `count` rows of the grid, from row `first` on, into segments; row
/// numbers run over images, then y, then x. Returns how many there are, at most
/// `count`.
template <typename T>
int64_t segments(const Grid &grid, const Source<T> &source, int64_t first,
                 int64_t count, Segment<T> *to);

/// Copies elements [from, to) of each row to result + row * stride; zeros where
/// a window leaves the image.
template <typename T>
void gather(const Grid &grid, const Source<T> &source,
            const Segment<T> *segments, int64_t count, int64_t from, int64_t to,
            float *result, int64_t stride);

} // namespace tmc::conv

#endif // TMC_RUNTIME_CPU_CONVWINDOW_H
