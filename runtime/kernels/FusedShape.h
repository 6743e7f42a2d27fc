//===- FusedShape.h - the tiles of a fused kernel ---------------*- C++ -*-===//
//
// A fused kernel runs over `rows` x `cols` elements, row-major. All sizes here
// depend on that shape and the backend only, not on the number of threads: the
// compiler plans scratch with them, and the runtime uses the same sizes.
//
//      cols ->      a tile: rowsPerTile rows of colsPerTile columns; sums over
//    r +-----+---+  the rows are made per row of tiles into partials (in
//    o |  0  | 1 |  scratch), which are then added in the order of the rows.
//    w +-----+---+
//    s |  2  | 3 |
//      +-----+---+
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_KERNELS_FUSEDSHAPE_H
#define TMC_RUNTIME_KERNELS_FUSEDSHAPE_H

#include "runtime/kernels/Kernel.h"
#include "runtime/kernels/Portable.h"

namespace tmc {

struct FusedShape {
  int64_t rows, cols;
  /// A tile must hold whole rows, because a row is reduced.
  bool wholeRows = false;
  /// Sums (or extrema) over all rows: of columns, and of one number per row.
  int columnSums = 0;
  int totals = 0;
  /// `finish` runs after all rows.
  bool finish = false;
  /// The values of a row that are kept between passes.
  int kept = 0;
};

struct FusedTiling {
  int64_t rowsPerTile, colsPerTile;
  int64_t rowTiles, colTiles;
  /// Columns rounded up to a multiple of 16, and floats of one row of tiles'
  /// partials.
  int64_t paddedCols, partialFloats;

  TMC_HD constexpr int64_t tiles() const { return rowTiles * colTiles; }
  constexpr int64_t scratchBytes() const {
    return alignScratch(rowTiles * partialFloats * int64_t(sizeof(float)));
  }
};

TMC_HD constexpr int64_t ceilDiv(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}
TMC_HD constexpr int64_t clampTo(int64_t x, int64_t low, int64_t high) {
  return x < low ? low : x > high ? high : x;
}

/// Elements of a tile on the cpu: enough that the cost of handing out a tile is
/// small, few enough to stay in a core's second-level cache.
constexpr int64_t kTileElements = 16384;
/// Columns of a tile whose partial sums stay in the first-level cache.
constexpr int64_t kSumColumns = 2048;
/// The wanted number of tiles for sums over rows. On cuda eight blocks for each
/// of 132 multiprocessors, or two where each warp of a block has rows.
constexpr int64_t kCpuSumTiles = 16;
constexpr int64_t kCudaSumTiles = 1056;
constexpr int64_t kCudaWarpSumTiles = 264;
/// Columns of a block of the finish, where a warp has 4 of them; and if numbers
/// of a row are finished.
constexpr int64_t kCudaFinishColumns = 32;
constexpr int64_t kCudaTotalColumns = 1024;
/// Sums over rows and kept values that a thread has in registers, at most: two
/// blocks fit on a multiprocessor then.
constexpr int64_t kCudaRegisterFloats = 80;
/// Floats of a warp's kept values in shared memory, at most: eight warps have
/// 48 KiB, with room for a reduction's words, and for 8 KiB where warps add up
/// sums.
constexpr int64_t kCudaWarpKept = 1440;
constexpr int64_t kCudaWarpKeptBesideSums = 1152;

constexpr int kCudaBlockThreads = 256;
constexpr int kCudaWarp = 32;

/// Columns that a thread on cuda takes at once: eight where they fill whole
/// threads, so that 16 bits each are an access of 16 bytes, else four.
TMC_HD constexpr int cudaLanes(const FusedShape &shape) {
  if (shape.cols <= 1024)
    return shape.cols > 0 && shape.cols % (8 * kCudaWarp) == 0 ? 8 : 4;
  if (shape.cols % 8 != 0)
    return 4;
  constexpr int64_t wide = 8 * kCudaBlockThreads;
  if (shape.wholeRows)
    return shape.cols > wide / 2 + wide / 4 ? 8 : 4;
  return shape.cols % wide == 0 || shape.cols >= 8 * wide ? 8 : 4;
}
/// Columns of a row that each of `threads` threads has.
TMC_HD constexpr int64_t cudaColumns(const FusedShape &shape, int threads) {
  const int64_t lanes = cudaLanes(shape), all = lanes * threads;
  return (shape.cols + all - 1) / all * lanes;
}
/// Floats from one kept value to the next.
TMC_HD constexpr int64_t keptStride(int64_t cols) {
  return ceilDiv(cols, 16) * 16;
}
/// True if a warp's row has its kept values in registers on cuda.
TMC_HD constexpr bool cudaKeepsInRegisters(const FusedShape &shape) {
  return (shape.columnSums + shape.kept) * cudaColumns(shape, kCudaWarp) <=
         kCudaRegisterFloats;
}
/// Threads that share a row on cuda: a warp, if a row is short, its sums over
/// rows fit in the warp's registers, and its kept values fit there or in shared
/// memory; else a block.
TMC_HD constexpr int cudaRowThreads(const FusedShape &shape) {
  const int64_t columns = cudaColumns(shape, kCudaWarp);
  const bool sums = shape.columnSums + shape.totals > 0;
  if (shape.cols > 1024 || shape.columnSums * columns > kCudaRegisterFloats)
    return kCudaBlockThreads;
  return cudaKeepsInRegisters(shape) ||
                 shape.kept * keptStride(shape.cols) <=
                     (sums ? kCudaWarpKeptBesideSums : kCudaWarpKept)
             ? kCudaWarp
             : kCudaBlockThreads;
}

/// The largest number of kept values of a row. They must fit in the stack's
/// part of the first-level cache, and in the 48 KiB of shared memory of a
/// block: for 8 rows of up to 512 columns, with room for a reduction's words,
/// or for one longer row.
TMC_HD constexpr int64_t mostKept(int64_t cols) {
  return cols <= 0 ? 0
                   : (cols <= 512 ? kCudaWarpKept : 8192) / keptStride(cols);
}

TMC_HD constexpr FusedTiling tilingOf(const FusedShape &shape,
                                      Backend backend) {
  const bool cuda = backend == Backend::Cuda;
  const bool sums = shape.columnSums + shape.totals > 0;
  const int64_t rows = clampTo(shape.rows, 1, INT64_MAX);
  const int64_t cols = clampTo(shape.cols, 1, INT64_MAX);
  FusedTiling t{};
  t.colsPerTile = cols;
  const int64_t rowsAtOnce =
      cuda ? kCudaBlockThreads / cudaRowThreads(shape) : 1;
  if (!shape.wholeRows) {
    const int64_t widest = cuda   ? kCudaBlockThreads * cudaLanes(shape)
                           : sums ? kSumColumns
                                  : kTileElements;
    if (cols > widest)
      t.colsPerTile = widest;
  }
  t.colTiles = ceilDiv(cols, t.colsPerTile);
  if (sums) {
    // Enough tiles for all workers, of at least 8 rows each.
    const int64_t most = !cuda            ? kCpuSumTiles
                         : rowsAtOnce > 1 ? kCudaWarpSumTiles
                                          : kCudaSumTiles;
    const int64_t wanted =
        clampTo(ceilDiv(most, t.colTiles), 1, ceilDiv(rows, 8));
    t.rowsPerTile = ceilDiv(rows, wanted);
  } else if (cuda) {
    t.rowsPerTile = rowsAtOnce;
  } else {
    t.rowsPerTile = clampTo(kTileElements / t.colsPerTile, 1, rows);
  }
  t.rowTiles = ceilDiv(rows, t.rowsPerTile);
  if (sums) {
    t.paddedCols = ceilDiv(cols, 16) * 16;
    t.partialFloats =
        shape.columnSums * t.paddedCols + ceilDiv(shape.totals, 16) * 16;
  }
  return t;
}

} // namespace tmc

#endif // TMC_RUNTIME_KERNELS_FUSEDSHAPE_H
