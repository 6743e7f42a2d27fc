//===- ConvFilter.cu - 16-bit filter gradients on cuda --------------------===//

#include "runtime/cuda/ConvFilter.h"

#include "runtime/cuda/Launch.h"
#include "runtime/cuda/Window.h"

#include <algorithm>

namespace tmc::cuda {

namespace {

constexpr int kBlock = 256;

/// The parameters for copying an element of a window.
struct Gathering {
  Window h, w;
  int64_t channels, columns, first, count; // count: elements of the piece
};

/// Copies one 16-bit element of any type.
__global__ void __launch_bounds__(kBlock)
    gatherWindows(Gathering g, const uint16_t *__restrict__ x,
                  uint16_t *__restrict__ windows) {
  const int64_t at = globalThread();
  if (at >= g.count)
    return;
  const int64_t column = at % g.columns, pixel = g.first + at / g.columns;
  const int64_t c = column % g.channels, tap = column / g.channels;
  const int64_t s = tap % g.w.taps, r = tap / g.w.taps;
  const int64_t ow = pixel % g.w.outSize,
                oh = pixel / g.w.outSize % g.h.outSize;
  const int64_t n = pixel / g.w.outSize / g.h.outSize;
  uint16_t value = 0; // also after the last tap
  if (r < g.h.taps) {
    const int64_t ih = g.h.input(oh, r), iw = g.w.input(ow, s);
    if (ih >= 0 && iw >= 0)
      value = x[((n * g.h.inSize + ih) * g.w.inSize + iw) * g.channels + c];
  }
  windows[at] = value;
}

} // namespace

Status GatheredFilter::prepare(CudaDevice &device, const ConvParams &p,
                               int64_t windowBytes) {
  params_ = p;
  pixels_ = p.batch * p.outHeight * p.outWidth;
  isProduct_ = gathersNothing(p);
  piece_ = gatheredPixels(p, windowBytes);
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
      const Gathering g{{p.inHeight, p.outHeight, p.kernelHeight,
                         p.strideHeight, p.padTop, p.dilationHeight},
                        {p.inWidth, p.outWidth, p.kernelWidth, p.strideWidth,
                         p.padLeft, p.dilationWidth},
                        p.inChannels,
                        gatheredColumns(p),
                        first,
                        count * gatheredColumns(p)};
      launch(queue, gatherWindows, blocksFor(g.count, kBlock), dim3(kBlock), 0,
             g, static_cast<const uint16_t *>(x), windows);
      factor = windows;
    }
    Gemm &product = first + count < pixels_ ? whole_ : last_;
    product.run(queue, {rows, factor}, scratch, space, first > 0);
  }
}

} // namespace tmc::cuda
