//===- BatchNorm.cu - batch normalization on cuda -------------------------===//
//
// A thread has eight neighbouring channels of [rows, channels] and some rows of
// a chunk (BatchNormCut). It keeps the sums or the coefficients of its channels
// in registers. There are three launches:
//
//   sums     each block combines the rows of its chunk: those of a thread in
//            order, then the lines of threads by a tree
//   finish   combines the chunks by a fixed tree, and computes coefficients
//   apply    y = (x - mean) slope + constant
//            dx = slope (dy - constant + (x - mean) curve)
//
// The forward pass reads x once for its statistics. A thread computes the mean
// and the sum of squares around the mean of four rows, and combines the pairs
// of two sets of rows. Source: Chan, Golub, LeVeque, "Updating Formulae and a
// Pairwise Algorithm for Computing Sample Variances", 1979. All means are of
// x - shift, where the shift is a row of x, so that a mean far from zero costs
// no digits. If that row is far from the others, the variance is large, too.
//
//===----------------------------------------------------------------------===//

#include "runtime/kernels/BatchNorm.h"

#include "runtime/cuda/Launch.h"
#include "runtime/cuda/Stored.h"
#include "runtime/cuda/TensorCore.h"
#include "runtime/cuda/Vector.h"

namespace tmc {

namespace cuda {
namespace {

constexpr int kBlock = int(kBatchNormBlock);
static_assert(kVector == kBatchNormVector);
/// Rows of x and dy that a thread reads together.
constexpr int kPairRows = 2;
/// Blocks on a multiprocessor, by the registers that a thread needs. Code for
/// sm_100 and newer needs more.
template <typename T>
constexpr int kResident =
    std::is_same_v<T, f16> || kArchitecture >= 1000 ? 2 : 3;
/// A block that combines chunks: channels, and threads for each of them.
constexpr int kFinishChannels = 8;
constexpr int kFinishLines = kBlock / kFinishChannels;

/// Scratch: two tables of one row per chunk, and rows of coefficients.
struct Tables {
  float *first, *second;
  float *mean, *slope, *curve, *constant;
  float *shift; // in the place of `curve`, in the forward pass

  Tables(const BatchNormCut &cut, void *scratch) {
    first = static_cast<float *>(scratch);
    second = first + cut.chunks * cut.stride;
    mean = second + cut.chunks * cut.stride;
    slope = mean + cut.stride;
    curve = slope + cut.stride;
    constant = curve + cut.stride;
    shift = curve;
  }
};

//===----------------------------------------------------------------------===//
// Sums of columns
//===----------------------------------------------------------------------===//

/// Two values of each of N channels, of `count` rows.
template <int N> struct Pair {
  float a[N] = {}, b[N] = {}, count = 0;
};

/// a: the mean; b: the sum of squares around it.
template <int N> struct Moments : Pair<N> {
  __device__ void add(const Moments &more) {
    if (more.count == 0)
      return;
    const float total = this->count + more.count;
    const float weight = more.count / total, cross = this->count * weight;
#pragma unroll
    for (int i = 0; i < N; ++i)
      add(i, more.a[i], more.b[i], weight, cross);
    this->count = total;
  }
  template <int Rows>
  __device__ void addRows(float (&x)[Rows][N], const float (&shift)[N]) {
    const float total = this->count + Rows;
    const float weight = Rows / total, cross = this->count * weight;
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
    this->count = total;
  }

private:
  /// `weight`: the added rows' part of all; `cross`: this times the old rows.
  __device__ void add(int i, float mean, float squares, float weight,
                      float cross) {
    const float delta = mean - this->a[i];
    this->a[i] = fmaf(delta, weight, this->a[i]);
    this->b[i] = fmaf(delta * cross, delta, this->b[i] + squares);
  }
};

/// a: the sum of dy; b: the sum of dy (x - mean).
template <int N> struct Products : Pair<N> {
  __device__ void add(const Products &more) {
#pragma unroll
    for (int i = 0; i < N; ++i) {
      this->a[i] += more.a[i];
      this->b[i] += more.b[i];
    }
  }
};

/// Adds the sums of all lines of a block to those of line 0, by a tree.
template <int N, template <int> typename Sums>
__device__ void addLines(Sums<N> &mine) {
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
      Sums<N> more;
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

/// The channels and rows of a thread. A block has `rowsPerBlock` rows.
struct Place {
  int64_t c, chunk;
  int64_t at, stride; // the thread's first element; from a row to its next
  int count;          // channels
  int row, rows;      // the thread's first row of its block's

  __device__ Place(const BatchNormParams &p, const BatchNormCut &cut,
                   int64_t rowsPerBlock) {
    const unsigned groups = unsigned(cut.groups);
    chunk = blockIdx.x / groups;
    c = (int64_t(blockIdx.x % groups) * blockDim.x + threadIdx.x) * kVector;
    const int64_t left = p.channels - c, begin = chunk * rowsPerBlock;
    count = left >= kVector ? kVector : left > 0 ? int(left) : 0;
    row = int(threadIdx.y);
    rows = int(begin + rowsPerBlock < p.rows ? rowsPerBlock : p.rows - begin);
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

template <typename Sums>
__device__ void storeSums(const Place &place, const BatchNormCut &cut,
                          const Tables &tables, const Sums &sums) {
  if (threadIdx.y != 0 || place.count == 0)
    return;
  const int64_t at = place.chunk * cut.stride + place.c;
  storeVector<true>(tables.first + at, kVector, sums.a);
  storeVector<true>(tables.second + at, kVector, sums.b);
}

/// A row that is no image's corner in most batches.
__device__ int64_t shiftRow(const BatchNormParams &p) { return p.rows / 3; }

template <typename T>
__global__ void __launch_bounds__(kBlock, kResident<T>)
    sumMoments(BatchNormParams p, BatchNormCut cut, Tables tables, bool whole,
               const T *__restrict__ x) {
  const Place place(p, cut, cut.rowsPerChunk);
  Moments<kVector> sums;
  eitherWay(whole, [&](auto isWhole) {
    constexpr bool W = decltype(isWhole)::value;
    float shift[kVector] = {};
    if (place.count > 0)
      loadVector<W>(x + shiftRow(p) * p.channels + place.c, place.count, shift);
    if (place.at == place.c && place.count > 0)
      storeVector<true>(tables.shift + place.c, kVector, shift);
    eachRow<kBatchNormRows>(place, [&](auto rows, int64_t at) {
      constexpr int N = decltype(rows)::value;
      float v[N][kVector];
      loadRows<W>(x + at, place.stride, place.count, v);
      sums.addRows(v, shift);
    });
  });
  addLines(sums);
  storeSums(place, cut, tables, sums);
}

template <typename T>
__global__ void __launch_bounds__(kBlock, kResident<T>)
    sumProducts(BatchNormParams p, BatchNormCut cut, Tables tables, bool whole,
                const T *__restrict__ x, const T *__restrict__ dy,
                const float *__restrict__ mean) {
  const Place place(p, cut, cut.rowsPerChunk);
  Products<kVector> sums;
  float centre[kVector];
  loadVector<false>(mean + place.c, place.count, centre);
  eitherWay(whole, [&](auto isWhole) {
    constexpr bool W = decltype(isWhole)::value;
    eachRow<W ? kPairRows : 1>(place, [&](auto rows, int64_t at) {
      constexpr int N = decltype(rows)::value;
      float v[N][kVector], grad[N][kVector];
      loadRows<W>(x + at, place.stride, place.count, v);
      loadRows<W>(dy + at, place.stride, place.count, grad);
#pragma unroll
      for (int k = 0; k < N; ++k)
#pragma unroll
        for (int i = 0; i < kVector; ++i) {
          sums.a[i] += grad[k][i];
          sums.b[i] = fmaf(grad[k][i], v[k][i] - centre[i], sums.b[i]);
        }
    });
  });
  addLines(sums);
  storeSums(place, cut, tables, sums);
}

/// The sums of channel c over all chunks, in the threads of line 0.
template <template <int> typename Sums>
__device__ Sums<1> addChunks(const BatchNormParams &p, const BatchNormCut &cut,
                             const Tables &tables, int64_t c) {
  Sums<1> sums;
  if (c < p.channels)
#pragma unroll 4
    for (int64_t chunk = threadIdx.y; chunk < cut.chunks;
         chunk += kFinishLines) {
      Sums<1> more;
      more.a[0] = tables.first[chunk * cut.stride + c];
      more.b[0] = tables.second[chunk * cut.stride + c];
      const int64_t left = p.rows - chunk * cut.rowsPerChunk;
      more.count = float(left < cut.rowsPerChunk ? left : cut.rowsPerChunk);
      sums.add(more);
    }
  addLines(sums);
  return sums;
}

//===----------------------------------------------------------------------===//
// Forward
//===----------------------------------------------------------------------===//

/// Operands and results of one value per channel.
struct Statistics {
  const float *gamma, *beta, *oldMean, *oldVariance;
  float *newMean, *newVariance, *mean, *inverse;
};

// A running value may be updated in its own buffer.
__global__ void __launch_bounds__(kBlock)
    finishMoments(BatchNormParams p, BatchNormCut cut, Tables tables,
                  Statistics s) {
  const int64_t c = int64_t(blockIdx.x) * kFinishChannels + threadIdx.x;
  const Moments<1> sums = addChunks<Moments>(p, cut, tables, c);
  if (threadIdx.y != 0 || c >= p.channels)
    return;
  const float count = float(p.rows), momentum = float(p.momentum);
  const float mean = tables.shift[c] + sums.a[0], variance = sums.b[0] / count;
  const float inverse = 1 / sqrtf(variance + float(p.epsilon));
  const float kept =
      p.unbiasedRunning && p.rows > 1 ? sums.b[0] / (count - 1) : variance;
  s.mean[c] = mean;
  s.inverse[c] = inverse;
  if (s.newMean)
    s.newMean[c] = (1 - momentum) * s.oldMean[c] + momentum * mean;
  if (s.newVariance)
    s.newVariance[c] = (1 - momentum) * s.oldVariance[c] + momentum * kept;
  tables.mean[c] = mean;
  tables.slope[c] = inverse * s.gamma[c];
  tables.constant[c] = s.beta[c];
}

template <typename T>
__global__ void __launch_bounds__(kBlock, kResident<T>)
    normalize(BatchNormParams p, BatchNormCut cut, Tables tables, bool whole,
              const T *__restrict__ x, T *__restrict__ y) {
  const Place place(p, cut, kBatchNormLeastRows * blockDim.y);
  if (place.count == 0)
    return;
  eitherWay(whole, [&](auto isWhole) {
    constexpr bool W = decltype(isWhole)::value;
    float mean[kVector], slope[kVector], constant[kVector];
    loadVector<W>(tables.mean + place.c, place.count, mean);
    loadVector<W>(tables.slope + place.c, place.count, slope);
    loadVector<W>(tables.constant + place.c, place.count, constant);
    eachRow<W ? kBatchNormRows : 1>(place, [&](auto rows, int64_t at) {
      constexpr int N = decltype(rows)::value;
      float v[N][kVector];
      loadRows<W>(x + at, place.stride, place.count, v);
#pragma unroll
      for (int k = 0; k < N; ++k) {
#pragma unroll
        for (int i = 0; i < kVector; ++i)
          v[k][i] = fmaf(v[k][i] - mean[i], slope[i], constant[i]);
        storeVector<W>(y + at + k * place.stride, place.count, v[k]);
      }
    });
  });
}

//===----------------------------------------------------------------------===//
// Gradient
//===----------------------------------------------------------------------===//

__global__ void __launch_bounds__(kBlock)
    finishProducts(BatchNormParams p, BatchNormCut cut, Tables tables,
                   const float *gamma, const float *mean, const float *inverse,
                   float *dgamma, float *dbeta, bool accumulate) {
  const int64_t c = int64_t(blockIdx.x) * kFinishChannels + threadIdx.x;
  const Products<1> sums = addChunks<Products>(p, cut, tables, c);
  if (threadIdx.y != 0 || c >= p.channels)
    return;
  const float a = sums.a[0], b = sums.b[0] * inverse[c];
  const float count = float(p.rows);
  tables.mean[c] = mean[c];
  tables.slope[c] = gamma[c] * inverse[c];
  tables.curve[c] = -(inverse[c] * (b / count));
  tables.constant[c] = a / count;
  if (dgamma)
    dgamma[c] = accumulate ? dgamma[c] + b : b;
  if (dbeta)
    dbeta[c] = accumulate ? dbeta[c] + a : a;
}

// dx may be dy's buffer.
template <typename T>
__global__ void __launch_bounds__(kBlock, kResident<T>)
    gradientOfX(BatchNormParams p, BatchNormCut cut, Tables tables, bool whole,
                const T *__restrict__ x, const T *dy, T *dx) {
  const Place place(p, cut, kBatchNormLeastRows * blockDim.y);
  if (place.count == 0)
    return;
  eitherWay(whole, [&](auto isWhole) {
    constexpr bool W = decltype(isWhole)::value;
    float mean[kVector], slope[kVector], curve[kVector], constant[kVector];
    loadVector<W>(tables.mean + place.c, place.count, mean);
    loadVector<W>(tables.slope + place.c, place.count, slope);
    loadVector<W>(tables.curve + place.c, place.count, curve);
    loadVector<W>(tables.constant + place.c, place.count, constant);
    eachRow<W ? kPairRows : 1>(place, [&](auto rows, int64_t at) {
      constexpr int N = decltype(rows)::value;
      float v[N][kVector], grad[N][kVector];
      loadRows<W>(x + at, place.stride, place.count, v);
      loadRows<W>(dy + at, place.stride, place.count, grad);
#pragma unroll
      for (int k = 0; k < N; ++k) {
#pragma unroll
        for (int i = 0; i < kVector; ++i)
          v[k][i] = slope[i] *
                    fmaf(v[k][i] - mean[i], curve[i], grad[k][i] - constant[i]);
        storeVector<W>(dx + at + k * place.stride, place.count, v[k]);
      }
    });
  });
}

//===----------------------------------------------------------------------===//
// Launches
//===----------------------------------------------------------------------===//

/// Queues a kernel on the rows of x, cut by `rowsPerBlock`.
template <typename... P, typename... A>
void queueRows(Queue &queue, void (*kernel)(P...), const BatchNormParams &p,
               const BatchNormCut &cut, int64_t rowsPerBlock, A... arguments) {
  launch(queue, kernel,
         dim3(unsigned(ceilDivide(p.rows, rowsPerBlock) * cut.groups)),
         dim3(unsigned(cut.across), unsigned(cut.lines)), 0, p, cut,
         arguments...);
}
/// Queues a kernel that combines chunks.
template <typename... P, typename... A>
void queueFinish(Queue &queue, void (*kernel)(P...), const BatchNormParams &p,
                 const BatchNormCut &cut, A... arguments) {
  launch(queue, kernel, blocksFor(p.channels, kFinishChannels),
         dim3(kFinishChannels, kFinishLines), 0, p, cut, arguments...);
}

const float *floats(const void *p) { return static_cast<const float *>(p); }
float *floats(void *p) { return static_cast<float *>(p); }

} // namespace
} // namespace cuda

using cuda::areWhole;
using cuda::floats;

struct BatchNorm::State : cuda::Prepared {};
BatchNorm::BatchNorm(const Params &params)
    : params_(params), state_(std::make_unique<State>()) {}
BatchNorm::~BatchNorm() = default;

Status BatchNorm::prepare(Device &device) {
  state_->device = &cuda::deviceOf(device);
  return cuda::requireScratch("batch_norm", scratchCap(params_, Backend::Cuda),
                              params_.scratchBytes);
}

void BatchNorm::run(Stream &stream, In ins, Out outs, void *scratch, bool) {
  const Params &p = params_;
  cuda::Queue queue(*state_->device, stream, "batch_norm");
  const BatchNormCut cut = batchNormCut(p);
  const cuda::Tables tables(cut, scratch);
  const cuda::Statistics statistics{
      floats(operand(ins, 1)), floats(operand(ins, 2)), floats(operand(ins, 3)),
      floats(operand(ins, 4)), floats(result(outs, 1)), floats(result(outs, 2)),
      floats(result(outs, 3)), floats(result(outs, 4))};
  cuda::withStored(p.type, [&](auto element) {
    using T = decltype(element);
    const T *x = static_cast<const T *>(operand(ins, 0));
    T *y = static_cast<T *>(result(outs, 0));
    cuda::queueRows(queue, cuda::sumMoments<T>, p, cut, cut.rowsPerChunk,
                    tables, areWhole(p.channels, {x}), x);
    cuda::queueFinish(queue, cuda::finishMoments, p, cut, tables, statistics);
    cuda::queueRows(queue, cuda::normalize<T>, p, cut,
                    kBatchNormLeastRows * cut.lines, tables,
                    areWhole(p.channels, {x, y}), x, y);
  });
}

struct BatchNormGrad::State : cuda::Prepared {};
BatchNormGrad::BatchNormGrad(const Params &params)
    : params_(params), state_(std::make_unique<State>()) {}
BatchNormGrad::~BatchNormGrad() = default;

Status BatchNormGrad::prepare(Device &device) {
  state_->device = &cuda::deviceOf(device);
  return cuda::requireScratch("batch_norm_grad",
                              scratchCap(params_, Backend::Cuda),
                              params_.scratchBytes);
}

void BatchNormGrad::run(Stream &stream, In ins, Out outs, void *scratch,
                        bool accumulate) {
  const Params &p = params_;
  cuda::Queue queue(*state_->device, stream, "batch_norm_grad");
  const BatchNormCut cut = batchNormCut(p);
  const cuda::Tables tables(cut, scratch);
  const float *gamma = floats(operand(ins, 1));
  const float *mean = floats(operand(ins, 2));
  const float *inverse = floats(operand(ins, 3));
  cuda::withStored(p.type, [&](auto element) {
    using T = decltype(element);
    const T *x = static_cast<const T *>(operand(ins, 0));
    const T *dy = static_cast<const T *>(operand(ins, 4));
    T *dx = static_cast<T *>(result(outs, 0));
    cuda::queueRows(queue, cuda::sumProducts<T>, p, cut, cut.rowsPerChunk,
                    tables, areWhole(p.channels, {x, dy}), x, dy, mean);
    cuda::queueFinish(queue, cuda::finishProducts, p, cut, tables, gamma, mean,
                      inverse, floats(result(outs, 1)), floats(result(outs, 2)),
                      accumulate);
    if (dx)
      cuda::queueRows(queue, cuda::gradientOfX<T>, p, cut,
                      kBatchNormLeastRows * cut.lines, tables,
                      areWhole(p.channels, {x, dy, dx}), x, dy, dx);
  });
}

} // namespace tmc
