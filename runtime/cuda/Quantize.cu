//===- Quantize.cu - floats as codes of 8 bits on cuda --------------------===//
//
// One scale of a tensor, and of it codes: those of the cpu, bit for bit. A
// block takes a tile of as many elements as a thread of the cpu does; where
// codes are wanted turned as well, a square of them, which is turned in shared
// memory:
//
//     scale of x       maxima of tiles, then one block: their maximum; encode
//     scale delayed    one block: the history's maximum; encode, with maxima
//                      and counts of tiles; then one block: amax and count
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

struct LargerOp {
  template <typename T> __device__ T operator()(T a, T b) const {
    return a > b ? a : b;
  }
};

/// What a thread finds in its elements.
struct Tally {
  int32_t most = 0, saturated = 0;

  /// A tile's, for all of its threads. `shared` has room for each.
  __device__ Tally ofBlock(int32_t *shared) const {
    return {blockReduce(most, shared, LargerOp()),
            blockReduce(saturated, shared, AddOp())};
  }
};

/// maxima[tile] = the bits of its largest magnitude.
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

/// The scale of what has these magnitudes: bits of floats, whose signs don't
/// count.
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

/// A code of x, which the tally takes up.
template <typename C>
__device__ void encodeOne(float x, float factor, DType codes, Tally &tally,
                          C *to) {
  const int32_t bits = magnitudeBits(x);
  tally.most = bits > tally.most ? bits : tally.most;
  tally.saturated += isSaturated(x, x * factor, codes) ? 1 : 0;
  storeLanes<1>(to, unlessInfinite(x, x * factor));
}

/// What a tile found, where that is wanted.
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

/// Matrices, and squares of them.
struct Squares {
  int64_t rows, columns, high, wide;

  explicit Squares(const Quantize::Params &p)
      : rows(p.rows), columns(p.columns), high(blocksIn(p.rows, kQuantizeSide)),
        wide(blocksIn(p.columns, kQuantizeSide)) {}
};

/// The same of squares, whose codes go to `turned`, too. A row of a square in
/// shared memory is a byte longer, so that columns lie in different banks.
template <typename C>
__global__ void __launch_bounds__(kBlock)
    encodeSquares(StoredIn x, Squares s, DType codes,
                  const float *__restrict__ scale, C *to, C *turned,
                  int32_t *maxima, int32_t *counts) {
  constexpr int kSide = int(kQuantizeSide), kStep = kBlock / kSide;
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

/// What the tiles found, together.
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
