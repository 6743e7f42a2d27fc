//===- ConvFilter.cu - 16-bit filter gradients on cuda --------------------===//

#include "runtime/cuda/ConvFilter.h"

#include "runtime/cuda/Divisor.h"
#include "runtime/cuda/Launch.h"
#include "runtime/cuda/Vector.h"
#include "runtime/cuda/Window.h"

#include <algorithm>

namespace tmc::cuda {

namespace {

constexpr int kBlock = 256;

/// Columns that a thread copies: 16 bytes.
constexpr int kColumns = 8;
using Columns = Lanes<uint16_t, kColumns>;

/// The parameters for copying windows of a piece. Pixels are numbered from the
/// first one of image `image`.
struct Gathering {
  WindowOf<int> h, w;
  int64_t image;
  int channels, firstPixel;
  uint32_t count; // groups of kColumns columns, of all pixels
  Divisor perPixel, imageSize, rowSize; // groups; pixels
  Divisor perTap, tapsOfRow;            // groups, or channels; taps

  Gathering(const ConvParams &p, int64_t first, int64_t pixels, bool isWhole)
      : h(toInt(heightOf(p))), w(toInt(widthOf(p))),
        image(first / (p.outHeight * p.outWidth)), channels(int(p.inChannels)),
        firstPixel(int(first % (p.outHeight * p.outWidth))),
        count(uint32_t(pixels * (gatheredColumns(p) / kColumns))),
        perPixel(gatheredColumns(p) / kColumns),
        imageSize(p.outHeight * p.outWidth), rowSize(p.outWidth),
        perTap(isWhole ? p.inChannels / kColumns : p.inChannels),
        tapsOfRow(p.kernelWidth) {}

  static Window heightOf(const ConvParams &p) {
    return {p.inHeight,     p.outHeight, p.kernelHeight,
            p.strideHeight, p.padTop,    p.dilationHeight};
  }
  static Window widthOf(const ConvParams &p) {
    return {p.inWidth,     p.outWidth, p.kernelWidth,
            p.strideWidth, p.padLeft,  p.dilationWidth};
  }

  /// The place of element (r, s, c) of a pixel's window, or -1 in the padding.
  __device__ int64_t inputAt(int64_t n, int oh, int ow, int r, int s,
                             int c) const {
    const int ih = h.input(oh, r), iw = w.input(ow, s);
    return ih < 0 || iw < 0
               ? -1
               : ((n * h.inSize + ih) * w.inSize + iw) * channels + c;
  }
};

/// Copies 16-bit elements of any type. Whole: a thread's columns are channels
/// of one tap, at a multiple of 16 bytes.
template <bool Whole>
__global__ void __launch_bounds__(kBlock)
    gatherWindows(Gathering g, const uint16_t *__restrict__ x,
                  uint16_t *__restrict__ windows) {
  const uint32_t at = blockIdx.x * kBlock + threadIdx.x;
  if (at >= g.count)
    return;
  uint32_t group, pixel, ow, channel, s;
  pixel = g.perPixel.divide(at, group) + uint32_t(g.firstPixel);
  const int64_t n = g.image + g.imageSize.divide(pixel, pixel);
  const uint32_t oh = g.rowSize.divide(pixel, ow);
  const uint32_t tap =
      g.perTap.divide(Whole ? group : group * kColumns, channel);
  uint32_t r = g.tapsOfRow.divide(tap, s);
  Columns values = {};
  if constexpr (Whole) {
    const int64_t from =
        g.inputAt(n, int(oh), int(ow), int(r), int(s), int(channel * kColumns));
    if (from >= 0)
      values = loadRaw<kColumns, true>(x + from);
  } else {
#pragma unroll
    for (int i = 0; i < kColumns; ++i) {
      if (int(r) < g.h.taps) { // else a column behind the last tap
        const int64_t from =
            g.inputAt(n, int(oh), int(ow), int(r), int(s), int(channel));
        if (from >= 0)
          values[i] = x[from];
      }
      if (++channel == g.perTap.by) {
        channel = 0;
        if (++s == g.tapsOfRow.by) {
          s = 0;
          ++r;
        }
      }
    }
  }
  storeRaw<kColumns, true>(windows + int64_t(at) * kColumns, values);
}

} // namespace

Status GatheredFilter::prepare(CudaDevice &device, const ConvParams &p,
                               int64_t windowBytes) {
  params_ = p;
  pixels_ = p.batch * p.outHeight * p.outWidth;
  isProduct_ = gathersNothing(p);
  piece_ = gatheredPixels(p, windowBytes);
  if (!isProduct_ &&
      (!fitsInt(Gathering::heightOf(p)) || !fitsInt(Gathering::widthOf(p)) ||
       p.outHeight * p.outWidth + piece_ > kDividends ||
       piece_ * gatheredColumns(p) > kDividends))
    return {Code::Unsupported,
            "conv_grad_filter on cuda takes sizes of at most 2^30"};
  Matmul::Params product{.lhs = p.type,
                         .rhs = p.type,
                         .out = DType::F32,
                         .batch = 1,
                         .m = p.outChannels,
                         .n = gatheredColumns(p),
                         .k = piece_,
                         .transposeLhs = true,
                         .transposeRhs = false,
                         .bias = false,
                         .tf32 = false};
  product.scratchBytes = kCudaMatmulScratchBytes;
  if (piece_ < pixels_)
    if (Status s = whole_.prepare("conv_grad_filter", device, product); !s)
      return s;
  product.k = (pixels_ - 1) % piece_ + 1;
  return last_.prepare("conv_grad_filter", device, product);
}

void GatheredFilter::run(Queue &queue, const void *x, const void *dy,
                         void *scratch) {
  const ConvParams &p = params_;
  char *bytes = static_cast<char *>(scratch);
  char *space = bytes + filterSumBytesOnCuda(p);
  uint16_t *windows =
      reinterpret_cast<uint16_t *>(space + kCudaMatmulScratchBytes);
  for (int64_t first = 0; first < pixels_; first += piece_) {
    const int64_t count = std::min(piece_, pixels_ - first);
    const uint16_t *rows =
        static_cast<const uint16_t *>(dy) + first * p.outChannels;
    const void *factor = x;
    if (!isProduct_) {
      const bool isWhole = p.inChannels % kColumns == 0 && isAligned(x);
      const Gathering g(p, first, count, isWhole);
      launch(queue, isWhole ? gatherWindows<true> : gatherWindows<false>,
             blocksFor(g.count, kBlock), dim3(kBlock), 0, g,
             static_cast<const uint16_t *>(x), windows);
      factor = windows;
    }
    Gemm &product = first + count < pixels_ ? whole_ : last_;
    product.run(queue, {rows, factor}, scratch, space, first > 0);
  }
}

} // namespace tmc::cuda
