//===- Quantize.cu - floats as 8-bit codes on cuda ------------------------===//
//
// Scales and codes are those of the cpu, bit for bit. A block takes a tile with
// as many elements as a cpu thread's tile. If transposed codes are needed too,
// the tile is a square, which is transposed in shared memory:
//
//     scale of x       maxima of tiles; then one block: their maximum; encode
//     scale delayed    one block: the history's maximum; encode, with maxima
//                      and counts of tiles; then one block: amax and count
//     of blocks        encode, with the maxima of a square's rows and columns,
//                      or of the whole square: no scale crosses a square
//
//===----------------------------------------------------------------------===//

#include "runtime/kernels/Quantize.h"

#include "runtime/cuda/Launch.h"
#include "runtime/cuda/Stored.h"
#include "runtime/kernels/ScaleOf.h"

namespace tmc {

namespace cuda {
namespace {

constexpr int kBlock = 256;
constexpr int kSide = int(kQuantizeSide);

struct LargerOp {
  template <typename T> __device__ T operator()(T a, T b) const {
    return a > b ? a : b;
  }
};

/// The findings of a thread in its elements.
struct Tally {
  int32_t most = 0, saturated = 0;

  /// The tally of a tile, returned to all its threads. `shared` has a place for
  /// each.
  __device__ Tally ofBlock(int32_t *shared) const {
    return {blockReduce(most, shared, LargerOp()),
            blockReduce(saturated, shared, AddOp())};
  }
};

/// maxima[tile] = the bits of the tile's largest magnitude.
__global__ void __launch_bounds__(kBlock)
    findMaxima(StoredIn x, int64_t count, int32_t *maxima) {
  __shared__ int32_t shared[kBlock];
  const int64_t first = int64_t(blockIdx.x) * kQuantizeTile;
  const int64_t end =
      count < first + kQuantizeTile ? count : first + kQuantizeTile;
  Tally tally;
  x.visit([&](auto *at) {
    for (int64_t i = first + threadIdx.x; i < end; i += kBlock) {
      const int32_t bits = magnitudeBits(float(loadLanes<1>(at + i)));
      tally.most = bits > tally.most ? bits : tally.most;
    }
  });
  const int32_t most = tally.ofBlock(shared).most;
  if (threadIdx.x == 0)
    maxima[blockIdx.x] = most;
}

/// The scale for these magnitudes: bits of floats, whose signs are ignored.
__global__ void __launch_bounds__(kBlock)
    findScale(const int32_t *__restrict__ magnitudes, int64_t count,
              DType codes, float *scale) {
  __shared__ int32_t shared[kBlock];
  int32_t most = 0;
  for (int64_t i = threadIdx.x; i < count; i += kBlock) {
    const int32_t bits = magnitudes[i] & 0x7fffffff;
    most = bits > most ? bits : most;
  }
  most = blockReduce(most, shared, LargerOp());
  if (threadIdx.x == 0)
    *scale = scaleOfWhole(most, codes);
}

/// Encodes x and adds it to the tally.
template <typename C>
__device__ void encodeOne(float x, float factor, DType codes, Tally &tally,
                          C *to) {
  const int32_t bits = magnitudeBits(x);
  tally.most = bits > tally.most ? bits : tally.most;
  tally.saturated += isSaturated(x, x * factor, codes) ? 1 : 0;
  storeLanes<1>(to, unlessInfinite(x, x * factor));
}

/// Stores the tally of a tile, if requested.
__device__ void keep(const Tally &tally, int32_t *shared, int32_t *maxima,
                     int32_t *counts) {
  if (!maxima)
    return;
  const Tally all = tally.ofBlock(shared);
  if (threadIdx.x == 0) {
    maxima[blockIdx.x] = all.most;
    counts[blockIdx.x] = all.saturated;
  }
}

/// `maxima` and `counts` of tiles, or nullptr.
template <typename C>
__global__ void __launch_bounds__(kBlock)
    encodeTiles(StoredIn x, int64_t count, DType codes,
                const float *__restrict__ scale, C *to, int32_t *maxima,
                int32_t *counts) {
  __shared__ int32_t shared[kBlock];
  const int64_t first = int64_t(blockIdx.x) * kQuantizeTile;
  const int64_t end =
      count < first + kQuantizeTile ? count : first + kQuantizeTile;
  const float factor = 1 / *scale;
  Tally tally;
  x.visit([&](auto *at) {
    for (int64_t i = first + threadIdx.x; i < end; i += kBlock)
      encodeOne(loadLanes<1>(at + i), factor, codes, tally, to + i);
  });
  keep(tally, shared, maxima, counts);
}

/// The size of a matrix, and its number of squares.
struct Squares {
  int64_t rows, columns, high, wide;

  explicit Squares(const Quantize::Params &p)
      : rows(p.rows), columns(p.columns), high(blocksIn(p.rows, kQuantizeSide)),
        wide(blocksIn(p.columns, kQuantizeSide)) {}
};

/// The same for squares, whose codes also go to `turned`. A row of a square in
/// shared memory has one extra byte, so that columns are in different banks.
template <typename C>
__global__ void __launch_bounds__(kBlock)
    encodeSquares(StoredIn x, Squares s, DType codes,
                  const float *__restrict__ scale, C *to, C *turned,
                  int32_t *maxima, int32_t *counts) {
  constexpr int kStep = kBlock / kSide;
  __shared__ C square[kSide][kSide + 1];
  __shared__ int32_t shared[kBlock];
  int64_t block = blockIdx.x;
  const int64_t column0 = block % s.wide * kSide;
  block /= s.wide;
  const int64_t row0 = block % s.high * kSide;
  const int64_t matrix = block / s.high * s.rows * s.columns;
  const int across = int(threadIdx.x) % kSide, down = int(threadIdx.x) / kSide;
  const float factor = 1 / *scale;
  Tally tally;
  x.visit([&](auto *at) {
    for (int i = down; i < kSide; i += kStep)
      if (row0 + i < s.rows && column0 + across < s.columns) {
        const int64_t e = matrix + (row0 + i) * s.columns + column0 + across;
        encodeOne(loadLanes<1>(at + e), factor, codes, tally,
                  &square[i][across]);
        to[e] = square[i][across];
      }
  });
  __syncthreads();
  for (int j = down; j < kSide; j += kStep)
    if (column0 + j < s.columns && row0 + across < s.rows)
      turned[matrix + (column0 + j) * s.rows + row0 + across] =
          square[across][j];
  keep(tally, shared, maxima, counts);
}

/// Combines the findings of all tiles.
__global__ void __launch_bounds__(kBlock)
    gather(const int32_t *__restrict__ maxima,
           const int32_t *__restrict__ counts, int64_t tiles, float *amax,
           int64_t *saturated) {
  __shared__ int32_t shared[kBlock];
  __shared__ int64_t sums[kBlock];
  int32_t most = 0;
  int64_t count = 0;
  for (int64_t i = threadIdx.x; i < tiles; i += kBlock) {
    most = maxima[i] > most ? maxima[i] : most;
    count += counts[i];
  }
  most = blockReduce(most, shared, LargerOp());
  count = blockReduce(count, sums, AddOp());
  if (threadIdx.x == 0) {
    *amax = recordedAmax(most);
    *saturated = count;
  }
}

//===----------------------------------------------------------------------===//
// Scales of blocks
//===----------------------------------------------------------------------===//

static_assert(kSide == kScaleBlock);
/// The threads of a square: each has as many elements of one column as a warp
/// has lanes, kRowStep rows apart.
constexpr int kSquareThreads = 512, kRowStep = kSquareThreads / kSide;
static_assert(kSide / kRowStep == kWarp);
/// Warps that share a row of a square.
constexpr int kParts = kSide / kWarp;

/// Codes and packed scales for one order of a matrix; null: not requested.
template <typename C> struct Packed {
  C *codes;
  float *scales;
  PackedScales place;
};

/// For each of 32 numbers, the largest magnitude over the lanes of a warp, as
/// bits; lane i gets the result of number i. Lanes exchange halves of the
/// numbers, then quarters, ...: 31 shuffles instead of 160. (A recursion,
/// because nvcc keeps the array in memory if nested loops are used.)
template <int Half = kWarp / 2, typename T>
__device__ int32_t maximaOfLanes(const T (&numbers)[2 * Half]) {
  const bool isUpper = (threadIdx.x & unsigned(Half)) != 0;
  int32_t larger[Half];
#pragma unroll
  for (int i = 0; i < Half; ++i) {
    const T mine = isUpper ? numbers[i + Half] : numbers[i];
    const T given = isUpper ? numbers[i] : numbers[i + Half];
    larger[i] =
        LargerOp()(magnitudeBits(mine),
                   magnitudeBits(__shfl_xor_sync(0xffffffffu, given, Half)));
  }
  if constexpr (Half > 1)
    return maximaOfLanes<Half / 2>(larger);
  else
    return larger[0];
}

/// The maximum over N parts for row or column `i`.
template <int N>
__device__ int32_t largestOf(const int32_t (&parts)[N][kSide], int i) {
  int32_t most = 0;
#pragma unroll
  for (int part = 0; part < N; ++part)
    most = LargerOp()(most, parts[part][i]);
  return most;
}

/// Writes the scales of the square at (row0, column0) of `to`'s matrix, and
/// keeps the factor of each row. Thread i passes the maximum of row i, or of
/// the square.
template <typename C>
__device__ void scaleRows(const Packed<C> &to, int64_t row0, int64_t column0,
                          int32_t most, DType codes, float *factors) {
  const int i = int(threadIdx.x);
  const float scale = scaleOfBlock(most, codes);
  factors[i] = 1 / scale;
  const PackedScales &place = to.place;
  if (!to.codes)
    return;
  if (!place.areSquares) {
    if (row0 + i < place.rows)
      to.scales[place.at(row0 + i, column0)] = scale;
    return;
  }
  const int64_t at = place.at(row0, column0);
  if (i == 0)
    to.scales[at] = scale;
  // The last square of a row writes the zeros after it.
  const int64_t behind = blocksIn(place.columns, kSide) + i;
  if (column0 + kSide >= place.columns && behind < place.along())
    to.scales[row0 / kSide * place.along() + behind] = 0;
}

/// Codes of the squares of a matrix with the scales of their rows, and of the
/// transposed squares with the scales of their columns. Elements stay in
/// registers, so they are read once.
template <typename C>
__global__ void __launch_bounds__(kSquareThreads)
    encodeBlocks(StoredIn x, Squares s, DType type, Packed<C> straight,
                 Packed<C> turned) {
  __shared__ C square[kSide][kSide + 1];
  __shared__ int32_t rowMost[kParts][kSide], columnMost[kRowStep][kSide];
  __shared__ int32_t shared[kSquareThreads];
  __shared__ float rowFactors[kSide], columnFactors[kSide];
  const int64_t column0 = int64_t(blockIdx.x) % s.wide * kSide;
  const int64_t row0 = int64_t(blockIdx.x) / s.wide * kSide;
  const int across = int(threadIdx.x) % kSide, down = int(threadIdx.x) / kSide;
  // Rows from this thread's first row on, in its column.
  const int64_t below = column0 + across < s.columns ? s.rows - row0 - down : 0;
  const int rows = int(below < kSide ? below : kSide);
  const int64_t first = (row0 + down) * s.columns + column0 + across,
                step = kRowStep * s.columns;
  float values[kWarp];
  x.visit([&](auto *at) {
    at += first;
#pragma unroll
    for (int i = 0; i < kWarp; ++i)
      values[i] =
          i * kRowStep < rows ? float(loadLanes<1>(at + i * step)) : 0.0f;
  });

  int32_t most = 0;
#pragma unroll
  for (int i = 0; i < kWarp; ++i)
    most = LargerOp()(most, magnitudeBits(values[i]));
  int32_t ofRow = 0, ofColumn = 0;
  if (straight.place.areSquares) {
    ofRow = ofColumn = blockReduce(most, shared, LargerOp());
  } else {
    columnMost[down][across] = most;
    const int lane = int(threadIdx.x) % kWarp;
    rowMost[across / kWarp][down + lane * kRowStep] = maximaOfLanes(values);
    __syncthreads();
    if (down == 0) {
      ofRow = largestOf(rowMost, across);
      ofColumn = largestOf(columnMost, across);
    }
  }
  if (down == 0) {
    scaleRows(straight, row0, column0, ofRow, type, rowFactors);
    scaleRows(turned, column0, row0, ofColumn, type, columnFactors);
  }
  __syncthreads();

  const float columnFactor = columnFactors[across];
#pragma unroll
  for (int i = 0; i < kWarp; ++i) {
    if (i * kRowStep >= rows)
      break;
    const int row = down + i * kRowStep;
    const float v = values[i];
    if (straight.codes)
      storeLanes<1>(straight.codes + first + i * step,
                    unlessInfinite(v, v * rowFactors[row]));
    if (turned.codes)
      storeLanes<1>(&square[row][across], unlessInfinite(v, v * columnFactor));
  }
  if (!turned.codes)
    return;
  __syncthreads();
  for (int j = down; j < kSide; j += kRowStep)
    if (column0 + j < s.columns && row0 + across < s.rows)
      turned.codes[(column0 + j) * s.rows + row0 + across] = square[across][j];
}

template <typename C>
void encodeInBlocks(Queue &queue, const Quantize::Params &p, StoredIn x,
                    Out outs) {
  const bool areSquares = p.blockRows == kScaleBlock;
  auto packed = [&](size_t first, int64_t rows, int64_t columns) {
    return Packed<C>{static_cast<C *>(result(outs, first)),
                     static_cast<float *>(result(outs, first + 1)),
                     PackedScales{rows, columns, areSquares}};
  };
  const Squares squares(p);
  launch(queue, encodeBlocks<C>, dim3(unsigned(squares.high * squares.wide)),
         dim3(kSquareThreads), 0, x, squares, p.codes,
         packed(0, p.rows, p.columns), packed(2, p.columns, p.rows));
}

//===----------------------------------------------------------------------===//
// Launches
//===----------------------------------------------------------------------===//

template <typename C>
void encode(Queue &queue, const Quantize::Params &p, StoredIn x,
            const float *scale, void *codes, void *turned, int32_t *maxima,
            int32_t *counts) {
  const dim3 grid{unsigned(quantizeTiles(p))};
  C *to = static_cast<C *>(codes);
  if (p.turned)
    launch(queue, encodeSquares<C>, grid, dim3(kBlock), 0, x, Squares(p),
           p.codes, scale, to, static_cast<C *>(turned), maxima, counts);
  else
    launch(queue, encodeTiles<C>, grid, dim3(kBlock), 0, x, p.elements(),
           p.codes, scale, to, maxima, counts);
}

} // namespace
} // namespace cuda

struct Quantize::State : cuda::Prepared {};
Quantize::Quantize(const Params &params)
    : params_(params), state_(std::make_unique<State>()) {}
Quantize::~Quantize() = default;

Status Quantize::prepare(Device &device) {
  state_->device = &cuda::deviceOf(device);
  return cuda::requireScratch("quantize", scratchCap(params_, Backend::Cuda),
                              params_.scratchBytes);
}

void Quantize::run(Stream &stream, In ins, Out outs, void *scratch, bool) {
  const Params &p = params_;
  cuda::Queue queue(*state_->device, stream, "quantize");
  const cuda::StoredIn x{operand(ins, 0), p.in};
  if (p.packed)
    return p.codes == DType::F8E4M3
               ? cuda::encodeInBlocks<f8e4m3>(queue, p, x, outs)
               : cuda::encodeInBlocks<f8e5m2>(queue, p, x, outs);
  const int64_t tiles = quantizeTiles(p);
  auto *maxima = static_cast<int32_t *>(scratch), *counts = maxima + tiles;
  float *scale = static_cast<float *>(result(outs, 1));
  const size_t behind = p.turned ? 3 : 2;
  auto findScale = [&](const void *magnitudes, int64_t count) {
    launch(queue, cuda::findScale, dim3(1), dim3(cuda::kBlock), 0,
           static_cast<const int32_t *>(magnitudes), count, p.codes, scale);
  };
  if (p.history) {
    findScale(operand(ins, 1), p.history);
  } else {
    const int64_t linear = blocksIn(p.elements(), kQuantizeTile);
    launch(queue, cuda::findMaxima, dim3(unsigned(linear)), dim3(cuda::kBlock),
           0, x, p.elements(), maxima);
    findScale(maxima, linear);
  }
  auto encode =
      p.codes == DType::F8E4M3 ? cuda::encode<f8e4m3> : cuda::encode<f8e5m2>;
  encode(queue, p, x, scale, result(outs, 0),
         p.turned ? result(outs, 2) : nullptr, p.history ? maxima : nullptr,
         p.history ? counts : nullptr);
  if (p.history)
    launch(queue, cuda::gather, dim3(1), dim3(cuda::kBlock), 0, maxima, counts,
           tiles, static_cast<float *>(result(outs, behind)),
           static_cast<int64_t *>(result(outs, behind + 1)));
}

} // namespace tmc
