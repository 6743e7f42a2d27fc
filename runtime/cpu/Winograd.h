//===- Winograd.h - 3 x 3 windows with fewer products -----------*- C++ -*-===//
//
// Neighbouring 3 x 3 windows with stride 1 share most of their elements. Four
// neighbouring results y [2, 2] of one channel need 36 products of the filter g
// [3, 3] with a patch d [4, 4]. The minimal algorithm F(2 x 2, 3 x 3) needs 16
// (S. Winograd, Arithmetic Complexity of Computations, 1980; A. Lavin and S.
// Gray, Fast Algorithms for Convolutional Neural Networks, CVPR 2016):
//
//     y = A' [ (G g G') * (B' d B) ] A          * point by point, ' transposed
//
//          [ 1  0 -1  0 ]        [  1    0    0  ]
//     B' = [ 0  1  1  0 ]    G = [ 1/2  1/2  1/2 ]   A' = [ 1  1  1  0 ]
//          [ 0 -1  1  0 ]        [ 1/2 -1/2  1/2 ]        [ 0  1 -1 -1 ]
//          [ 0  1  0 -1 ]        [  0    0    1  ]
//
// Sums over channels (and, for the filter's gradient, over patches) are
// computed at each of the 16 points, so they are 16 products of matrices:
//
//   forward          points [tile, o] =
//                        sum_c patches of x [tile, c] filters [c, o]
//   input gradient   the same of dy, with the filter turned by 180 degrees
//   filter gradient  points [o, c] =
//                        sum_tile tiles of dy [tile, o] patches of x [tile, c]
//
// The last is F(3 x 3, 2 x 2) on the same points: the filter's gradient [3, 3]
// is the result of a "filter" of 2 x 2 pixels of dy on a patch, with G = [1 0;
// 1/2 1/2; 1/2 -1/2; 0 1] and A' = [1 1 1 0; 0 1 -1 0; 0 1 1 -1].
//
// Transforming patches costs only additions in registers; filters are
// transformed once a run. Results beyond an odd edge are dropped.
//
// Images are widened when patches are taken, filters when they are packed; a
// narrow result is rounded once, when it leaves its points.
//
// The bits depend on the shape alone, as in ConvProduct.h: sums are chains of
// fused multiply-adds, of kWinogradDepth channels or kWinogradSide tiles each,
// and transforms add in one order.
//
// Error. A result is a sum of points that are larger than it. With |M| for a
// matrix of absolute values, the error is at most (chain + sums + 10) units of
// 2^-24 of |A'| [(|G| |g| |G'|) * (|B'| |d| |B|)] |A|, summed over channels.
// The chains are nine times shorter than those of the plain sum; for normal
// random numbers (64 and 256 channels) the root mean square of the error is
// 0.75 to 1.25 times that of ConvProduct.h. If a sum at a point overflows, the
// tile's other results are NaN too.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_CPU_WINOGRAD_H
#define TMC_RUNTIME_CPU_WINOGRAD_H

#include "runtime/kernels/Conv.h"

namespace tmc {

class Stream;

namespace conv {

/// As product() of ConvProduct.h, if isWinograd(p, gradInput).
template <typename T>
void winograd(Stream &stream, const ConvParams &p, bool gradInput,
              const T *from, const void *filter, T *to, char *scratch);

/// As filterGradient() of ConvProduct.h, if isWinogradFilter(p).
template <typename T>
void winogradFilterGradient(Stream &stream, const ConvParams &p, const T *x,
                            const T *dy, float *out, char *scratch,
                            bool accumulate);

} // namespace conv
} // namespace tmc

#endif // TMC_RUNTIME_CPU_WINOGRAD_H
