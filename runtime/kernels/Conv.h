//===- Conv.h - two-dimensional convolution ---------------------*- C++ -*-===//
//
// Activations are NHWC. The filter is OIHW, as in the model's file
// ([outChannels, inChannels / groups, kernelHeight, kernelWidth]), and each run
// repacks it into scratch. The constants here describe the cpu kernels of
// runtime/cpu/ConvProduct.h; they are the same for every instruction set.
//
// 16-bit activations are widened when they are read, sums are in f32, and each
// element of a result is rounded once. If activations have 16 bits, an f32
// filter is rounded to their type when it is read; its gradient is f32 or of
// their type.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_KERNELS_CONV_H
#define TMC_RUNTIME_KERNELS_CONV_H

#include "runtime/kernels/ConvParams.h"
#include "runtime/kernels/CudnnConv.h"
#include "runtime/kernels/Matmul.h"

namespace tmc {

/// ins: x [N, H, W, C], filter OIHW. outs: y [N, outH, outW, outChannels].
/// `accumulate` isn't supported.
class Conv : public Kernel {
public:
  using Params = ConvParams;
  static constexpr bool takes(const Params &params, Backend) {
    return convTakes(params);
  }
  static int64_t scratchCap(const Params &params, Backend backend);
  /// Operations of the cpu backend's kernel.
  static int64_t cpuFlops(const Params &params);
  static int64_t cudaLaunches(const Params &params, Wanted) {
    return packsFilter(params) ? 2 : 1;
  }
  static int64_t unalignedProducts(const Params &) { return 0; }
  TMC_KERNEL(Conv)
};

/// ins: dy, filter. outs: dx [N, H, W, C]. `accumulate` isn't supported.
class ConvGradInput : public Kernel {
public:
  using Params = ConvParams;
  static constexpr bool takes(const Params &params, Backend) {
    return convTakes(params);
  }
  static int64_t scratchCap(const Params &params, Backend backend);
  static int64_t cpuFlops(const Params &params);
  static int64_t cudaLaunches(const Params &params, Wanted) {
    return packsFilter(params) ? 2 : 1;
  }
  static int64_t unalignedProducts(const Params &) { return 0; }
  TMC_KERNEL(ConvGradInput)
};

/// ins: x, dy. outs: dfilter OIHW. `accumulate` adds to it.
class ConvGradFilter : public Kernel {
public:
  using Params = ConvParams;
  static constexpr bool takes(const Params &params, Backend) {
    return convTakes(params);
  }
  static int64_t scratchCap(const Params &params, Backend backend);
  static int64_t cpuFlops(const Params &params);
  static int64_t cudaLaunches(const Params &params, Wanted);
  static int64_t unalignedProducts(const Params &params);
  TMC_KERNEL(ConvGradFilter)
};

/// cuDNN's workspace: the most that a plan may want, beside what fills up its
/// address to kCudaConvAlign; or that of the products of gathered windows.
constexpr int64_t kCudaConvScratchBytes = 64 << 20;
constexpr int64_t kCudaConvAlign = 256;

namespace conv {

constexpr int64_t ceilDiv(int64_t n, int64_t by) { return (n + by - 1) / by; }
constexpr int64_t roundUp(int64_t n, int64_t to) { return ceilDiv(n, to) * to; }

/// Pixels whose windows one thread gathers at a time: whole panels of rows on
/// every machine, and with kGemmDepth floats each, a fraction of the
/// second-level cache.
constexpr int64_t kTileRows = 2 * kGemmRowStep;
/// Floats from one gathered row to the next: a cache line more than a row
/// holds, so that the rows of a panel map to different cache sets.
constexpr int64_t kRowStride = kGemmDepth + 16;
/// A convolution is cut into this many tiles or units if its rows alone make
/// fewer; and the flops of a unit below which a cut doesn't pay.
constexpr int64_t kUnits = 8;
constexpr int64_t kUnitFlops = 4 << 20;
/// Rows of dy's channels that a filter gradient packs at a time, the
/// approximate columns that it then computes, and the most floats of one such
/// result.
constexpr int64_t kSlabRows = 4 * kGemmRowStep;
constexpr int64_t kSlabColumns = 256;
constexpr int64_t kSlabFloats = 3 << 14;

/// The matrix product of a convolution's forward pass, for one group: `rows`
/// pixels of the result, `columns` of its channels, `depth` window elements.
struct Product {
  int64_t rows, columns, depth;
};
inline Product forwardProduct(const ConvParams &p) {
  return {p.batch * p.outHeight * p.outWidth, p.outChannels / p.groups,
          p.inChannels / p.groups * p.kernelHeight * p.kernelWidth};
}
inline double flops(const ConvParams &p) {
  const Product f = forwardProduct(p);
  return 2.0 * double(f.rows) * double(f.columns) * double(f.depth) *
         double(p.groups);
}
/// The number of units of kUnitFlops in the work, at most `most`.
inline int64_t worthOf(const ConvParams &p, int64_t most) {
  const double worth = flops(p) / double(kUnitFlops);
  return worth >= double(most) ? most : worth < 1 ? 1 : int64_t(worth);
}

/// The product of a pointwise pass: y = x f^T or dx = dy f. runtime/cpu/Gemm.h
/// computes it in the same order of additions as ConvProduct.h. Gemm.h divides
/// columns among threads, so passes with few columns use ConvProduct.h.
inline Matmul::Params pointwiseProduct(const ConvParams &p, bool gradInput) {
  const int64_t pixels = p.batch * p.outHeight * p.outWidth;
  return {.lhs = p.type,
          .rhs = p.filter,
          .out = p.type,
          .batch = 1,
          .m = pixels,
          .n = gradInput ? p.inChannels : p.outChannels,
          .k = gradInput ? p.outChannels : p.inChannels,
          .transposeLhs = false,
          .transposeRhs = !gradInput,
          .bias = false,
          .tf32 = false};
}
/// df = dy^T x.
inline Matmul::Params pointwiseFilterGradient(const ConvParams &p) {
  return {.lhs = p.type,
          .rhs = p.type,
          .out = p.filter,
          .batch = 1,
          .m = p.outChannels,
          .n = p.inChannels,
          .k = p.batch * p.outHeight * p.outWidth,
          .transposeLhs = true,
          .transposeRhs = false,
          .bias = false,
          .tf32 = false};
}
inline bool isPointwiseProduct(const ConvParams &p, const Matmul::Params &m) {
  return isPointwise(p) &&
         worthOf(p, kUnits) <= ceilDiv(m.n, gemmTileColumns(m.m, m.n, m.k));
}

/// The cut of a pointwise pass of bf16 with few columns, whose products
/// runtime/cpu/Gemm.h computes faster than ConvProduct.h: forward and input
/// gradient into rows, the filter gradient into parts of its sums.
struct PointwiseCut {
  int64_t pieces = 0; // 0: the pass isn't cut
  int64_t each;       // rows, or pixels of a sum, in each piece but the last
};
constexpr int64_t kPointwiseRows = 7 * kGemmRowStep;
inline bool isCutPointwise(const ConvParams &p, const Matmul::Params &m) {
  return p.type == DType::BF16 && isPointwise(p) && !isPointwiseProduct(p, m);
}
inline PointwiseCut cutRows(const ConvParams &p, const Matmul::Params &m) {
  if (!isCutPointwise(p, m))
    return {};
  return {ceilDiv(m.m, kPointwiseRows), kPointwiseRows};
}
inline PointwiseCut cutSums(const ConvParams &p, const Matmul::Params &m) {
  if (!isCutPointwise(p, m))
    return {};
  const int64_t blocks = ceilDiv(m.k, kGemmDepth);
  const int64_t wanted = worthOf(p, kUnits);
  const int64_t each =
      ceilDiv(blocks, wanted < blocks ? wanted : blocks) * kGemmDepth;
  return {ceilDiv(m.k, each), each};
}
/// The product of a piece of `each` rows, or of `each` pixels of a sum.
inline Matmul::Params pieceOfRows(Matmul::Params m, int64_t each) {
  m.m = each;
  return m;
}
inline Matmul::Params pieceOfSums(Matmul::Params m, int64_t each) {
  m.out = DType::F32;
  m.k = each;
  return m;
}

/// The number of row tiles of a pass. Forward cuts the pixels of the result.
/// `gradInput` cuts the pixels of the input by their residue modulo the stride:
/// each class is a dense convolution with some of the window's taps.
inline int64_t rowTiles(const ConvParams &p, bool gradInput) {
  if (!gradInput)
    return ceilDiv(p.batch * p.outHeight * p.outWidth, kTileRows);
  int64_t tiles = 0;
  for (int64_t h = 0; h < p.strideHeight && h < p.inHeight; ++h)
    for (int64_t w = 0; w < p.strideWidth && w < p.inWidth; ++w)
      tiles += ceilDiv(p.batch * ceilDiv(p.inHeight - h, p.strideHeight) *
                           ceilDiv(p.inWidth - w, p.strideWidth),
                       kTileRows);
  return tiles;
}
/// Columns of the result in one tile, whole panels.
inline int64_t tileColumns(const ConvParams &p, bool gradInput) {
  const int64_t columns = (gradInput ? p.inChannels : p.outChannels) / p.groups;
  const int64_t tiles = rowTiles(p, gradInput) * p.groups;
  const int64_t wanted = ceilDiv(worthOf(p, kUnits), tiles > 0 ? tiles : 1);
  return roundUp(ceilDiv(columns, wanted), kGemmPanelN);
}
inline int64_t tiles(const ConvParams &p, bool gradInput) {
  const int64_t columns = (gradInput ? p.inChannels : p.outChannels) / p.groups;
  return rowTiles(p, gradInput) * p.groups *
         ceilDiv(columns, tileColumns(p, gradInput));
}
inline int64_t workersOf(int64_t units) {
  return units < kScratchWorkers ? units : kScratchWorkers;
}

/// Bytes of the packed filter, in panels of columns; for depthwise convolution,
/// as [window, channels].
inline int64_t packedBytes(const ConvParams &p, bool gradInput) {
  const int64_t window = p.kernelHeight * p.kernelWidth;
  if (isDepthwise(p))
    return alignScratch(window * p.groups * 4);
  const int64_t in = p.inChannels / p.groups, out = p.outChannels / p.groups;
  const int64_t columns = gradInput ? in : out, depth = gradInput ? out : in;
  return alignScratch(p.groups * window * depth *
                      roundUp(columns, kGemmPanelN) * 4);
}
/// Bytes of the gathered rows of one worker, and of its tile's sums. If the
/// result is f32, the sums are in the result itself.
constexpr int64_t kGatherBytes = kTileRows * kRowStride * 4;
inline int64_t tileSumBytes(const ConvParams &p, bool gradInput) {
  return p.type == DType::F32
             ? 0
             : alignScratch(kTileRows * tileColumns(p, gradInput) * 4);
}
inline int64_t productScratch(const ConvParams &p, bool gradInput) {
  return packedBytes(p, gradInput) +
         (isDepthwise(p) ? 0
                         : workersOf(tiles(p, gradInput)) *
                               (kGatherBytes + tileSumBytes(p, gradInput)));
}
/// The scratch of a piece of a cut pass.
inline int64_t pieceScratch(const Matmul::Params &piece) {
  return alignScratch(Matmul::scratchCap(piece, Backend::Cpu));
}
inline int64_t cutRowsScratch(const PointwiseCut &cut,
                              const Matmul::Params &m) {
  return workersOf(cut.pieces) * pieceScratch(pieceOfRows(m, cut.each));
}
inline int64_t cutSumsScratch(const PointwiseCut &cut,
                              const Matmul::Params &m) {
  return workersOf(cut.pieces) * pieceScratch(pieceOfSums(m, cut.each)) +
         cut.pieces * alignScratch(m.m * m.n * 4);
}

/// Bytes of the sums of a filter gradient that isn't f32.
inline int64_t filterSumBytes(const ConvParams &p) {
  return p.filter == DType::F32
             ? 0
             : alignScratch(p.outChannels * (p.inChannels / p.groups) *
                            p.kernelHeight * p.kernelWidth * 4);
}

/// The cut of a filter gradient: a unit is some channels of dy (`slabRows`),
/// all taps of some channels of x (`rangeChannels`), and a part of the pixels.
struct FilterUnits {
  int64_t slabRows, slabs;           // of a group's channels of dy
  int64_t rangeChannels, ranges;     // of a group's channels of x
  int64_t blocks, partBlocks, parts; // of pixels, kGemmDepth in each block
  int64_t units;                     // in all groups
  bool direct;                       // the sums are in the result itself
  int64_t slabBytes, panelBytes, sumBytes; // of a worker; sumBytes: of a unit
  int64_t sums;                            // the number of sums that fit
};
inline FilterUnits filterUnits(const ConvParams &p) {
  const int64_t window = p.kernelHeight * p.kernelWidth;
  const int64_t in = p.inChannels / p.groups, out = p.outChannels / p.groups;
  const int64_t pixels = p.batch * p.outHeight * p.outWidth;
  FilterUnits u{};
  u.rangeChannels = roundUp(ceilDiv(kSlabColumns, window), kGemmPanelN);
  if (u.rangeChannels > in)
    u.rangeChannels = in;
  u.ranges = ceilDiv(in, u.rangeChannels);
  const int64_t columns = u.rangeChannels * window;
  int64_t most = kSlabFloats / columns / kGemmRowStep * kGemmRowStep;
  most = most < kGemmRowStep ? kGemmRowStep
         : most > kSlabRows  ? kSlabRows
                             : most;
  u.slabs = ceilDiv(out, most);
  u.slabRows =
      u.slabs == 1 ? out : roundUp(ceilDiv(out, u.slabs), kGemmRowStep);
  u.slabs = ceilDiv(out, u.slabRows);
  // Pixels are cut only if slabs and ranges don't make enough units.
  u.blocks = ceilDiv(pixels, kGemmDepth);
  const int64_t others = p.groups * u.slabs * u.ranges;
  int64_t parts = ceilDiv(worthOf(p, kUnits), others);
  if (parts > u.blocks)
    parts = u.blocks;
  u.partBlocks = ceilDiv(u.blocks, parts);
  u.parts = ceilDiv(u.blocks, u.partBlocks);
  u.units = others * u.parts;
  u.direct = window == 1 && u.parts == 1;
  const int64_t depth = pixels < kGemmDepth ? pixels : kGemmDepth;
  u.slabBytes = alignScratch(u.slabRows * depth * 4);
  u.panelBytes = alignScratch(kGemmPanelN * depth * 4);
  u.sumBytes = u.direct ? 0 : alignScratch(u.slabRows * columns * 4);
  u.sums = u.parts > 1 ? u.units : workersOf(u.units);
  return u;
}

/// 3 x 3 windows with stride 1: 16 products a channel instead of 36 for four
/// pixels of a result (runtime/cpu/Winograd.h). With few channels the
/// transforms cost more than the products save. Pixels beyond an odd edge are
/// computed and dropped.
inline int64_t winogradTiles(int64_t batch, int64_t height, int64_t width) {
  return batch * ceilDiv(height, 2) * ceilDiv(width, 2);
}
constexpr int64_t kWinogradPoints = 16;
constexpr int64_t kWinogradChannels = 32; // at least
constexpr int64_t kWinogradStep = 16;     // a multiple of this
/// Transforming and reading the filters, 16 floats instead of 9, takes as long
/// as the products of about 60 tiles.
constexpr int64_t kWinogradTiles = 96;
inline bool isWinogradFilter(const ConvParams &p) {
  auto fits = [](int64_t channels) {
    return channels >= kWinogradChannels && channels % kWinogradStep == 0;
  };
  auto fills = [&](int64_t height, int64_t width) {
    return 8 * winogradTiles(1, height, width) <= 3 * height * width;
  };
  return p.groups == 1 && p.kernelHeight == 3 && p.kernelWidth == 3 &&
         p.strideHeight == 1 && p.strideWidth == 1 && p.dilationHeight == 1 &&
         p.dilationWidth == 1 && fits(p.inChannels) && fits(p.outChannels) &&
         fills(p.outHeight, p.outWidth) && fills(p.inHeight, p.inWidth);
}
inline bool isWinograd(const ConvParams &p, bool gradInput) {
  return isWinogradFilter(p) &&
         kWinogradTiles <=
             (gradInput ? winogradTiles(p.batch, p.inHeight, p.inWidth)
                        : winogradTiles(p.batch, p.outHeight, p.outWidth));
}
/// Tiles of a block whose windows one thread transforms at a time, channels
/// that are added up in one pass, floats from one of their rows to the next,
/// and columns of the result that are kept at each point.
constexpr int64_t kWinogradRows = kGemmRowStep;
constexpr int64_t kWinogradDepth = 128;
constexpr int64_t kWinogradStride = kWinogradDepth + 16;
constexpr int64_t kWinogradColumns = 64;
/// For the filter gradient: tiles of a block, which are also rows and columns
/// of a unit; floats from one point's matrix to the next.
constexpr int64_t kWinogradSide = 64;
constexpr int64_t kWinogradMatrix = kWinogradSide * kWinogradSide + 16;

/// The cut of a pass into units: blocks of tiles times groups of columns.
struct WinogradUnits {
  int64_t tiles, blocks;
  int64_t columns, depth; // of the pass's product
  int64_t unitColumns, across;
  int64_t filterBytes;            // all transformed filters
  int64_t inputBytes, pointBytes; // of a worker: inputs; results at each point
};
inline WinogradUnits winogradUnits(const ConvParams &p, bool gradInput) {
  WinogradUnits u{};
  u.tiles = gradInput ? winogradTiles(p.batch, p.inHeight, p.inWidth)
                      : winogradTiles(p.batch, p.outHeight, p.outWidth);
  u.blocks = ceilDiv(u.tiles, kWinogradRows);
  u.columns = gradInput ? p.inChannels : p.outChannels;
  u.depth = gradInput ? p.outChannels : p.inChannels;
  u.unitColumns =
      roundUp(ceilDiv(u.columns, ceilDiv(worthOf(p, kUnits), u.blocks)),
              kWinogradColumns);
  u.across = ceilDiv(u.columns, u.unitColumns);
  // One extra row between two points maps them to different cache sets.
  u.filterBytes = alignScratch(kWinogradPoints * (u.depth + 1) *
                               roundUp(u.columns, kGemmPanelN) * 4);
  u.inputBytes =
      alignScratch(ceilDiv(u.depth, kWinogradDepth) * kWinogradPoints *
                   kWinogradRows * kWinogradStride * 4);
  u.pointBytes =
      alignScratch(kWinogradPoints * kWinogradRows * kWinogradColumns * 4);
  return u;
}
/// Operations on `tiles` tiles: the products at each point, 32 additions for
/// each channel of a patch, and at most 32 for each channel of the other side.
inline int64_t winogradFlops(const ConvParams &p, int64_t tiles) {
  return tiles * (2 * kWinogradPoints * p.inChannels * p.outChannels +
                  32 * (p.inChannels + p.outChannels));
}
inline int64_t winogradScratch(const ConvParams &p, bool gradInput) {
  const WinogradUnits u = winogradUnits(p, gradInput);
  return u.filterBytes +
         workersOf(u.blocks * u.across) * (u.inputBytes + u.pointBytes);
}

/// The cut of the filter gradient: kWinogradSide channels of dy, as many of x,
/// and a part of the tiles.
struct WinogradFilterUnits {
  int64_t slabs, ranges;
  int64_t tiles, blocks, partBlocks, parts;
  int64_t units;
  int64_t sideBytes, sumBytes; // of a worker's operand; of a unit's sums
  int64_t sums;                // the number of sums that fit
};
inline WinogradFilterUnits winogradFilterUnits(const ConvParams &p) {
  WinogradFilterUnits u{};
  u.slabs = ceilDiv(p.outChannels, kWinogradSide);
  u.ranges = ceilDiv(p.inChannels, kWinogradSide);
  u.tiles = winogradTiles(p.batch, p.outHeight, p.outWidth);
  u.blocks = ceilDiv(u.tiles, kWinogradSide);
  int64_t parts = ceilDiv(worthOf(p, kUnits), u.slabs * u.ranges);
  parts = parts < u.blocks ? parts : u.blocks;
  u.partBlocks = ceilDiv(u.blocks, parts);
  u.parts = ceilDiv(u.blocks, u.partBlocks);
  u.units = u.slabs * u.ranges * u.parts;
  u.sideBytes = alignScratch(kWinogradPoints * kWinogradMatrix * 4);
  u.sumBytes = u.sideBytes;
  u.sums = u.parts > 1 ? u.units : workersOf(u.units);
  return u;
}

/// Depthwise: the samples of each part of a filter gradient except the last,
/// and the number of parts.
inline int64_t depthwisePartSamples(const ConvParams &p) {
  return ceilDiv(p.batch, worthOf(p, p.batch < 4 ? p.batch : 4));
}
inline int64_t depthwiseParts(const ConvParams &p) {
  return ceilDiv(p.batch, depthwisePartSamples(p));
}

} // namespace conv

/// Bytes of one copy of the filter for cuda, channels last.
inline int64_t packedFilterBytes(const ConvParams &p) {
  auto up = [](int64_t n, int64_t block) {
    return (n + block - 1) / block * block;
  };
  const int64_t in = p.inChannels / p.groups, out = p.outChannels / p.groups;
  const int64_t channels = p.groups == 1 ? up(out, 64) * up(in, 16)
                           : isDepthwise(p)
                               ? up(p.groups, 64)
                               : p.groups * up(out, 16) * up(in, 16);
  return alignScratch(channels * p.kernelHeight * p.kernelWidth *
                      sizeOf(p.type));
}

/// The backend's own kernels for 16-bit filter gradients of one group: products
/// of dy with windows that are gathered several pixels at a time, with sums in
/// f32 (runtime/cuda/ConvFilter.h).
inline bool canGatherWindows(const ConvParams &p) {
  return isHalf(p.type) && p.groups == 1;
}
/// True if they run, unless the library is missing.
inline bool gathersWindows(const ConvParams &p) {
  return canGatherWindows(p) && whyNotCudnn(p, ConvPass::GradFilter);
}
/// Elements of a gathered window row, padded to whole accesses of 16 bytes.
inline int64_t gatheredColumns(const ConvParams &p) {
  return conv::roundUp(p.inChannels * p.kernelHeight * p.kernelWidth, 8);
}
/// Pixels whose windows are gathered at a time, if they may take `windowBytes`.
/// A multiple of 8, so that rows of dy begin at multiples of 16 bytes.
constexpr int64_t kGatheredBytes =
    kCudaConvScratchBytes - kCudaMatmulScratchBytes;
inline bool gathersNothing(const ConvParams &p) {
  return conv::isPointwise(p) && p.inChannels == gatheredColumns(p);
}
inline int64_t gatheredPixels(const ConvParams &p, int64_t windowBytes) {
  constexpr int64_t kStep = 8;
  if (gathersNothing(p))
    return p.batch * p.outHeight * p.outWidth;
  const int64_t most = windowBytes / (2 * gatheredColumns(p)) / kStep * kStep;
  return most > kStep ? most : kStep;
}
inline int64_t gatheredPieces(const ConvParams &p) {
  return conv::ceilDiv(p.batch * p.outHeight * p.outWidth,
                       gatheredPixels(p, kGatheredBytes));
}
inline int64_t filterSumBytesOnCuda(const ConvParams &p) {
  return canGatherWindows(p)
             ? alignScratch(p.outChannels * gatheredColumns(p) * 4)
             : packedFilterBytes(p);
}

/// The products by gathered windows, whose rows are padded; those of dy aren't.
inline int64_t ConvGradFilter::unalignedProducts(const ConvParams &p) {
  return gathersWindows(p) && !isAlignedRow(p.outChannels, p.type)
             ? gatheredPieces(p)
             : 0;
}

/// Sums are unpacked, unless the plain kernel makes them.
inline int64_t ConvGradFilter::cudaLaunches(const ConvParams &p, Wanted) {
  if (gathersWindows(p))
    return gatheredPieces(p) * (gathersNothing(p) ? 1 : 2) + 1;
  return whyNotCudnn(p, ConvPass::GradFilter) ? 1 : 2;
}

inline int64_t Conv::scratchCap(const Params &params, Backend backend) {
  if (backend == Backend::Cuda)
    return kCudaConvScratchBytes + packedFilterBytes(params);
  const Matmul::Params product = conv::pointwiseProduct(params, false);
  if (conv::isPointwiseProduct(params, product))
    return Matmul::scratchCap(product, backend);
  if (const auto cut = conv::cutRows(params, product); cut.pieces > 0)
    return conv::cutRowsScratch(cut, product);
  if (conv::isWinograd(params, false))
    return conv::winogradScratch(params, false);
  return conv::productScratch(params, false);
}
inline int64_t ConvGradInput::scratchCap(const Params &params,
                                         Backend backend) {
  if (backend == Backend::Cuda)
    return kCudaConvScratchBytes + packedFilterBytes(params);
  const Matmul::Params product = conv::pointwiseProduct(params, true);
  if (conv::isPointwiseProduct(params, product))
    return Matmul::scratchCap(product, backend);
  if (const auto cut = conv::cutRows(params, product); cut.pieces > 0)
    return conv::cutRowsScratch(cut, product);
  if (conv::isWinograd(params, true))
    return conv::winogradScratch(params, true);
  return conv::productScratch(params, true);
}
inline int64_t ConvGradFilter::scratchCap(const Params &params,
                                          Backend backend) {
  if (backend == Backend::Cuda)
    return kCudaConvScratchBytes + filterSumBytesOnCuda(params);
  const Matmul::Params product = conv::pointwiseFilterGradient(params);
  if (conv::isPointwiseProduct(params, product))
    return Matmul::scratchCap(product, backend);
  const int64_t rounded = conv::filterSumBytes(params);
  if (const auto cut = conv::cutSums(params, product); cut.pieces > 0)
    return rounded + conv::cutSumsScratch(cut, product);
  if (isDepthwise(params))
    return rounded +
           conv::depthwiseParts(params) * conv::packedBytes(params, false);
  if (conv::isWinogradFilter(params)) {
    const conv::WinogradFilterUnits u = conv::winogradFilterUnits(params);
    return rounded + conv::workersOf(u.units) * 2 * u.sideBytes +
           u.sums * u.sumBytes;
  }
  const conv::FilterUnits u = conv::filterUnits(params);
  return rounded + conv::workersOf(u.units) * (u.slabBytes + u.panelBytes) +
         u.sums * u.sumBytes;
}

inline int64_t Conv::cpuFlops(const Params &p) {
  return conv::isWinograd(p, false)
             ? conv::winogradFlops(
                   p, conv::winogradTiles(p.batch, p.outHeight, p.outWidth))
             : int64_t(conv::flops(p));
}
inline int64_t ConvGradInput::cpuFlops(const Params &p) {
  return conv::isWinograd(p, true)
             ? conv::winogradFlops(
                   p, conv::winogradTiles(p.batch, p.inHeight, p.inWidth))
             : int64_t(conv::flops(p));
}
inline int64_t ConvGradFilter::cpuFlops(const Params &p) {
  return conv::isWinogradFilter(p)
             ? conv::winogradFlops(
                   p, conv::winogradTiles(p.batch, p.outHeight, p.outWidth))
             : int64_t(conv::flops(p));
}

} // namespace tmc

#endif // TMC_RUNTIME_KERNELS_CONV_H
