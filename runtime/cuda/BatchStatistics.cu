//===- BatchStatistics.cu - statistics of a batch on cuda -----------------===//
//
// A thread has eight neighbouring channels of [rows, channels] and some rows of
// a chunk (StatisticsCut). It keeps the sums of its channels in registers.
// There are two launches:
//
//   sums     each block combines the rows of its chunk: those of a thread in
//            order, then the lines of threads by a tree
//   finish   combines the chunks by a fixed tree
//
// x is read once. A thread computes the mean and the sum of squares around the
// mean of four rows, and combines the pairs of two sets of rows. Source: Chan,
// Golub, LeVeque, "Updating Formulae and a Pairwise Algorithm for Computing
// Sample Variances", 1979. All means are of x - shift, where the shift is a row
// of x, so that a mean far from zero costs no digits. If that row is far from
// the others, the variance is large, too.
//
//===----------------------------------------------------------------------===//

#include "runtime/kernels/BatchStatistics.h"

#include "runtime/cuda/Launch.h"
#include "runtime/cuda/Stored.h"
#include "runtime/cuda/TensorCore.h"
#include "runtime/cuda/Vector.h"

namespace tmc {

namespace cuda {
namespace {

constexpr int kBlock = int(kStatisticsBlock);
static_assert(kVector == kStatisticsVector);
/// Blocks on a multiprocessor, by the registers that a thread needs. Code for
/// sm_100 and newer needs more.
template <typename T>
constexpr int kResident =
    std::is_same_v<T, f16> || kArchitecture >= 1000 ? 2 : 3;
/// A block that combines chunks: channels, and threads for each of them.
constexpr int kFinishChannels = 8;
constexpr int kFinishLines = kBlock / kFinishChannels;

/// Scratch: two tables of one row per chunk, and the shift.
struct Tables {
  float *first, *second, *shift;

  Tables(const StatisticsCut &cut, void *scratch) {
    first = static_cast<float *>(scratch);
    second = first + cut.chunks * cut.stride;
    shift = second + cut.chunks * cut.stride;
  }
};

/// Moments of `count` rows of N channels.
///
///     a: the mean
///     b: the sum of squares around it
template <int N> struct Moments {
  float a[N] = {}, b[N] = {}, count = 0;

  __device__ void add(const Moments &more) {
    if (more.count == 0)
      return;
    const float total = count + more.count;
    const float weight = more.count / total, cross = count * weight;
#pragma unroll
    for (int i = 0; i < N; ++i)
      add(i, more.a[i], more.b[i], weight, cross);
    count = total;
  }
  template <int Rows>
  __device__ void addRows(float (&x)[Rows][N], const float (&shift)[N]) {
    const float total = count + Rows;
    const float weight = Rows / total, cross = count * weight;
#pragma unroll
    for (int i = 0; i < N; ++i) {
      float sum = 0, squares = 0;
#pragma unroll
      for (int r = 0; r < Rows; ++r) {
        x[r][i] -= shift[i];
        sum += x[r][i];
      }
      const float mean = sum * (1.0f / Rows);
#pragma unroll
      for (int r = 0; r < Rows; ++r)
        squares = fmaf(x[r][i] - mean, x[r][i] - mean, squares);
      add(i, mean, squares, weight, cross);
    }
    count = total;
  }

private:
  /// `weight`: the added rows' part of all; `cross`: this times the old rows.
  __device__ void add(int i, float mean, float squares, float weight,
                      float cross) {
    const float delta = mean - a[i];
    a[i] = fmaf(delta, weight, a[i]);
    b[i] = fmaf(delta * cross, delta, b[i] + squares);
  }
};

/// Adds the sums of all lines of a block to those of line 0, by a tree.
template <int N> __device__ void addLines(Moments<N> &mine) {
  __shared__ float shared[2 * N + 1][kBlock];
  const int y = int(threadIdx.y), across = int(blockDim.x);
  const int lines = int(blockDim.y), at = y * across + int(threadIdx.x);
  int step = 1;
  while (step < lines)
    step *= 2;
  while (step > 1) {
    step /= 2;
    if (y >= step && y < 2 * step) {
#pragma unroll
      for (int i = 0; i < N; ++i) {
        shared[i][at] = mine.a[i];
        shared[N + i][at] = mine.b[i];
      }
      shared[2 * N][at] = mine.count;
    }
    __syncthreads();
    // The next round writes only lines that this one doesn't read.
    if (y < step && y + step < lines) {
      const int from = at + step * across;
      Moments<N> more;
#pragma unroll
      for (int i = 0; i < N; ++i) {
        more.a[i] = shared[i][from];
        more.b[i] = shared[N + i][from];
      }
      more.count = shared[2 * N][from];
      mine.add(more);
    }
  }
}

/// The channels and rows of a thread.
struct Place {
  int64_t c, chunk;
  int64_t at, stride; // the thread's first element; from a row to its next
  int count;          // channels
  int row, rows;      // the thread's first row of its block's

  __device__ Place(const BatchStatisticsParams &p, const StatisticsCut &cut) {
    const unsigned groups = unsigned(cut.groups);
    chunk = blockIdx.x / groups;
    c = (int64_t(blockIdx.x % groups) * blockDim.x + threadIdx.x) * kVector;
    const int64_t left = p.channels - c, begin = chunk * cut.rowsPerChunk;
    count = left >= kVector ? kVector : left > 0 ? int(left) : 0;
    row = int(threadIdx.y);
    rows = int(begin + cut.rowsPerChunk < p.rows ? cut.rowsPerChunk
                                                 : p.rows - begin);
    if (count == 0)
      rows = 0;
    at = (begin + row) * p.channels + c;
    stride = blockDim.y * p.channels;
  }
};

/// Calls body(number of rows, first element) for the thread's rows, N at a time
/// and then one by one.
template <int N, typename F>
__device__ __forceinline__ void eachRow(const Place &place, F &&body) {
  const int lines = int(blockDim.y);
  int64_t at = place.at;
  int r = place.row;
  for (; r + (N - 1) * lines < place.rows; r += N * lines) {
    body(std::integral_constant<int, N>(), at);
    at += N * place.stride;
  }
  for (; r < place.rows; r += lines) {
    body(std::integral_constant<int, 1>(), at);
    at += place.stride;
  }
}

template <bool Whole, int N, typename T>
__device__ __forceinline__ void loadRows(const T *p, int64_t stride, int count,
                                         float (&v)[N][kVector]) {
#pragma unroll
  for (int r = 0; r < N; ++r)
    loadVector<Whole>(p + r * stride, count, v[r]);
}

/// Calls body(a constant: whether vectors are whole).
template <typename F>
__device__ __forceinline__ void eitherWay(bool whole, F &&body) {
  if (whole)
    body(std::true_type());
  else
    body(std::false_type());
}

__device__ void storeSums(const Place &place, const StatisticsCut &cut,
                          const Tables &tables, const Moments<kVector> &sums) {
  if (threadIdx.y != 0 || place.count == 0)
    return;
  const int64_t at = place.chunk * cut.stride + place.c;
  storeVector<true>(tables.first + at, kVector, sums.a);
  storeVector<true>(tables.second + at, kVector, sums.b);
}

/// A row that is no image's corner in most batches.
__device__ int64_t shiftRow(const BatchStatisticsParams &p) {
  return p.rows / 3;
}

template <typename T>
__global__ void __launch_bounds__(kBlock, kResident<T>)
    sumMoments(BatchStatisticsParams p, StatisticsCut cut, Tables tables,
               bool whole, const T *__restrict__ x) {
  const Place place(p, cut);
  Moments<kVector> sums;
  eitherWay(whole, [&](auto isWhole) {
    constexpr bool W = decltype(isWhole)::value;
    float shift[kVector] = {};
    if (place.count > 0)
      loadVector<W>(x + shiftRow(p) * p.channels + place.c, place.count, shift);
    if (place.at == place.c && place.count > 0)
      storeVector<true>(tables.shift + place.c, kVector, shift);
    eachRow<kStatisticsRows>(place, [&](auto rows, int64_t at) {
      constexpr int N = decltype(rows)::value;
      float v[N][kVector];
      loadRows<W>(x + at, place.stride, place.count, v);
      sums.addRows(v, shift);
    });
  });
  addLines(sums);
  storeSums(place, cut, tables, sums);
}

/// The sums of channel c over all chunks, in the threads of line 0.
__device__ Moments<1> addChunks(const BatchStatisticsParams &p,
                                const StatisticsCut &cut, const Tables &tables,
                                int64_t c) {
  Moments<1> sums;
  if (c < p.channels)
#pragma unroll 4
    for (int64_t chunk = threadIdx.y; chunk < cut.chunks;
         chunk += kFinishLines) {
      Moments<1> more;
      more.a[0] = tables.first[chunk * cut.stride + c];
      more.b[0] = tables.second[chunk * cut.stride + c];
      const int64_t left = p.rows - chunk * cut.rowsPerChunk;
      more.count = float(left < cut.rowsPerChunk ? left : cut.rowsPerChunk);
      sums.add(more);
    }
  addLines(sums);
  return sums;
}

/// Operands and results of one value per channel.
struct Statistics {
  const float *oldMean, *oldVariance;
  float *newMean, *newVariance, *mean, *inverse;
};

// A running value may be updated in its own buffer.
__global__ void __launch_bounds__(kBlock)
    finishMoments(BatchStatisticsParams p, StatisticsCut cut, Tables tables,
                  Statistics s) {
  const int64_t c = int64_t(blockIdx.x) * kFinishChannels + threadIdx.x;
  const Moments<1> sums = addChunks(p, cut, tables, c);
  if (threadIdx.y != 0 || c >= p.channels)
    return;
  const float count = float(p.rows), momentum = float(p.momentum);
  const float mean = tables.shift[c] + sums.a[0], variance = sums.b[0] / count;
  const float inverse = 1 / sqrtf(variance + float(p.epsilon));
  const float kept = p.rows > 1 ? sums.b[0] / (count - 1) : variance;
  s.mean[c] = mean;
  s.inverse[c] = inverse;
  if (s.newMean)
    s.newMean[c] = (1 - momentum) * s.oldMean[c] + momentum * mean;
  if (s.newVariance)
    s.newVariance[c] = (1 - momentum) * s.oldVariance[c] + momentum * kept;
}

const float *floats(const void *p) { return static_cast<const float *>(p); }
float *floats(void *p) { return static_cast<float *>(p); }

} // namespace
} // namespace cuda

using cuda::areWhole;
using cuda::floats;

struct BatchStatistics::State : cuda::Prepared {};
BatchStatistics::BatchStatistics(const Params &params)
    : params_(params), state_(std::make_unique<State>()) {}
BatchStatistics::~BatchStatistics() = default;

Status BatchStatistics::prepare(Device &device) {
  state_->device = &cuda::deviceOf(device);
  return cuda::requireScratch("batch_statistics",
                              scratchCap(params_, Backend::Cuda),
                              params_.scratchBytes);
}

void BatchStatistics::run(Stream &stream, In ins, Out outs, void *scratch,
                          bool) {
  const Params &p = params_;
  cuda::Queue queue(*state_->device, stream, "batch_statistics");
  const StatisticsCut cut = statisticsCut(p);
  const cuda::Tables tables(cut, scratch);
  const cuda::Statistics statistics{
      floats(operand(ins, 1)), floats(operand(ins, 2)),
      floats(result(outs, 0)), floats(result(outs, 1)),
      floats(result(outs, 2)), floats(result(outs, 3))};
  cuda::withStored(p.type, [&](auto element) {
    using T = decltype(element);
    const T *x = static_cast<const T *>(operand(ins, 0));
    cuda::launch(queue, cuda::sumMoments<T>,
                 dim3(unsigned(cut.chunks * cut.groups)),
                 dim3(unsigned(cut.across), unsigned(cut.lines)), 0, p, cut,
                 tables, areWhole(p.channels, {x}), x);
  });
  cuda::launch(queue, cuda::finishMoments,
               cuda::blocksFor(p.channels, cuda::kFinishChannels),
               dim3(cuda::kFinishChannels, cuda::kFinishLines), 0, p, cut,
               tables, statistics);
}

} // namespace tmc
