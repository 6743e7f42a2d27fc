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
/// The wanted number of tiles for sums over rows.
constexpr int64_t kCpuSumTiles = 16;
constexpr int64_t kCudaSumTiles = 512;
/// Columns that the threads of one block take at once on cuda.
constexpr int64_t kCudaBlockColumns = 1024;
/// Columns of a block of the finish, where a warp has 4 of them.
constexpr int64_t kCudaFinishColumns = 32;
/// Sums over rows that a thread keeps in registers, at most, in fours.
constexpr int64_t kCudaRegisterSums = 16;

/// Threads that share a row on cuda: a warp if few columns would leave a block
/// idle (then several rows share a block), else a block.
constexpr int kCudaBlockThreads = 256;
TMC_HD constexpr int cudaRowThreads(int64_t cols) {
  return cols <= 512 ? 32 : kCudaBlockThreads;
}
/// Floats from one kept value to the next.
TMC_HD constexpr int64_t keptStride(int64_t cols) {
  return ceilDiv(cols, 16) * 16;
}
/// The largest number of kept values of a row. They must fit in the stack's
/// part of the first-level cache, and in the 48 KiB of shared memory of a
/// block: for 8 rows of up to 512 columns, with room for a reduction's words,
/// or for one longer row.
TMC_HD constexpr int64_t mostKept(int64_t cols) {
  return cols <= 0 ? 0 : (cols <= 512 ? 1440 : 8192) / keptStride(cols);
}

TMC_HD constexpr FusedTiling tilingOf(const FusedShape &shape,
                                      Backend backend) {
  const bool cuda = backend == Backend::Cuda;
  const bool sums = shape.columnSums + shape.totals > 0;
  const int64_t rows = clampTo(shape.rows, 1, INT64_MAX);
  const int64_t cols = clampTo(shape.cols, 1, INT64_MAX);
  FusedTiling t{};
  t.colsPerTile = cols;
  if (!shape.wholeRows) {
    const int64_t widest = cuda   ? kCudaBlockColumns
                           : sums ? kSumColumns
                                  : kTileElements;
    if (cols > widest)
      t.colsPerTile = widest;
  }
  t.colTiles = ceilDiv(cols, t.colsPerTile);
  if (sums) {
    // Enough tiles for all workers, of at least 8 rows each.
    const int64_t most = cuda ? kCudaSumTiles : kCpuSumTiles;
    const int64_t wanted =
        clampTo(ceilDiv(most, t.colTiles), 1, ceilDiv(rows, 8));
    t.rowsPerTile = ceilDiv(rows, wanted);
  } else if (cuda) {
    t.rowsPerTile = 1;
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
