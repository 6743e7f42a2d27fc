//===- BatchNorm.cu - batch normalization on cuda -------------------------===//
//
// Column sums of [rows, channels]: rows are cut into kBatchNormChunks chunks. A
// block takes kColumns columns of one chunk. Each of its kLines lines of
// threads adds every kLines-th row; then the lines are added in order. A second
// launch adds the chunks in order. The variance is computed around the mean.
//
//===----------------------------------------------------------------------===//

#include "runtime/kernels/BatchNorm.h"

#include "runtime/cuda/Launch.h"
#include "runtime/cuda/Stored.h"

namespace tmc {

namespace cuda {
namespace {

constexpr int kBlock = 256;
constexpr int kColumns = 32;
constexpr int kLines = kBlock / kColumns;

/// Scratch: two tables of one row per chunk, and two rows of totals.
struct Sums {
  int64_t rowsPerChunk, chunks, stride;
  float *first, *second, *total1, *total2;

  Sums(const BatchNormParams &p, void *scratch) {
    rowsPerChunk = ceilDivide(p.rows, kBatchNormChunks);
    rowsPerChunk = rowsPerChunk > 0 ? rowsPerChunk : 1;
    chunks = ceilDivide(p.rows, rowsPerChunk);
    stride = alignScratch(p.channels * 4) / 4;
    first = static_cast<float *>(scratch);
    second = first + kBatchNormChunks * stride;
    total1 = second + kBatchNormChunks * stride;
    total2 = total1 + stride;
  }
};

/// The terms of sums: a call (at, channel, a, b) adds the terms of element
/// `at`.
struct SumOfX {
  StoredIn x;
  __device__ void operator()(int64_t at, int64_t, float &a, float &) const {
    a += x.at(at);
  }
};
struct SumOfSquares {
  StoredIn x;
  const float *mean;
  __device__ void operator()(int64_t at, int64_t c, float &a, float &) const {
    const float d = x.at(at) - mean[c];
    a = fmaf(d, d, a);
  }
};
struct SumsOfGradient { // a: dy; b: dy * normalized x
  StoredIn x, dy;
  const float *mean, *inverse;
  __device__ void operator()(int64_t at, int64_t c, float &a, float &b) const {
    const float grad = dy.at(at);
    a += grad;
    b = fmaf(grad, (x.at(at) - mean[c]) * inverse[c], b);
  }
};

template <typename Terms>
__global__ void __launch_bounds__(kBlock)
    sumChunks(BatchNormParams p, Sums sums, Terms terms) {
  __shared__ float lines[2][kLines][kColumns];
  const int x = int(threadIdx.x), y = int(threadIdx.y);
  const int64_t c = int64_t(blockIdx.x) * kColumns + x;
  const int64_t begin = int64_t(blockIdx.y) * sums.rowsPerChunk;
  const int64_t end =
      begin + sums.rowsPerChunk < p.rows ? begin + sums.rowsPerChunk : p.rows;
  float a = 0, b = 0;
  if (c < p.channels)
    for (int64_t r = begin + y; r < end; r += kLines)
      terms(r * p.channels + c, c, a, b);
  lines[0][y][x] = a;
  lines[1][y][x] = b;
  __syncthreads();
  if (y != 0 || c >= p.channels)
    return;
  for (int line = 1; line < kLines; ++line) {
    a += lines[0][line][x];
    b += lines[1][line][x];
  }
  sums.first[blockIdx.y * sums.stride + c] = a;
  sums.second[blockIdx.y * sums.stride + c] = b;
}

/// The chunks' sums of channel c, added in order.
__device__ void addChunks(const Sums &sums, int64_t c, float &a, float &b) {
  a = b = 0;
  for (int64_t chunk = 0; chunk < sums.chunks; ++chunk) {
    a += sums.first[chunk * sums.stride + c];
    b += sums.second[chunk * sums.stride + c];
  }
}

__global__ void __launch_bounds__(kBlock)
    finishMean(BatchNormParams p, Sums sums, float *mean) {
  const int64_t c = globalThread();
  if (c >= p.channels)
    return;
  float a, b;
  addChunks(sums, c, a, b);
  mean[c] = a / float(p.rows);
}

// A running value may be updated in its own buffer.
__global__ void __launch_bounds__(kBlock)
    finishVariance(BatchNormParams p, Sums sums, const float *mean,
                   const float *oldMean, const float *oldVariance,
                   float *newMean, float *newVariance, float *inverse) {
  const int64_t c = globalThread();
  if (c >= p.channels)
    return;
  float a, b;
  addChunks(sums, c, a, b);
  const float count = float(p.rows), momentum = float(p.momentum);
  const float variance = a / count;
  inverse[c] = 1 / sqrtf(variance + float(p.epsilon));
  const float kept =
      p.unbiasedRunning && p.rows > 1 ? a / (count - 1) : variance;
  if (newMean)
    newMean[c] = (1 - momentum) * oldMean[c] + momentum * mean[c];
  if (newVariance)
    newVariance[c] = (1 - momentum) * oldVariance[c] + momentum * kept;
}

__global__ void __launch_bounds__(kBlock)
    normalize(BatchNormParams p, StoredIn x, const float *__restrict__ gamma,
              const float *__restrict__ beta, const float *__restrict__ mean,
              const float *__restrict__ inverse, StoredOut y) {
  const int64_t i = globalThread();
  if (i >= p.rows * p.channels)
    return;
  const int64_t c = i % p.channels;
  y.put(i, fmaf(x.at(i) - mean[c], inverse[c] * gamma[c], beta[c]));
}

__global__ void __launch_bounds__(kBlock)
    finishGradient(BatchNormParams p, Sums sums, float *dgamma, float *dbeta,
                   bool accumulate) {
  const int64_t c = globalThread();
  if (c >= p.channels)
    return;
  float a, b;
  addChunks(sums, c, a, b);
  sums.total1[c] = a;
  sums.total2[c] = b;
  if (dgamma)
    dgamma[c] = accumulate ? dgamma[c] + b : b;
  if (dbeta)
    dbeta[c] = accumulate ? dbeta[c] + a : a;
}

// dx may be dy's buffer.
__global__ void __launch_bounds__(kBlock)
    gradientOfX(BatchNormParams p, Sums sums, StoredIn x, const float *gamma,
                const float *mean, const float *inverse, StoredIn dy,
                StoredOut dx) {
  const int64_t i = globalThread();
  if (i >= p.rows * p.channels)
    return;
  const int64_t c = i % p.channels;
  const float count = 1 / float(p.rows);
  const float normal = (x.at(i) - mean[c]) * inverse[c];
  const float centred =
      dy.at(i) - sums.total1[c] * count - normal * (sums.total2[c] * count);
  dx.put(i, gamma[c] * inverse[c] * centred);
}

template <typename Terms>
void queueSums(Queue &queue, const BatchNormParams &p, const Sums &sums,
               const Terms &terms) {
  launch(
      queue, sumChunks<Terms>,
      dim3(unsigned(ceilDivide(p.channels, kColumns)), unsigned(sums.chunks)),
      dim3(kColumns, kLines), 0, p, sums, terms);
}

const float *floats(const void *p) { return static_cast<const float *>(p); }
float *floats(void *p) { return static_cast<float *>(p); }

} // namespace
} // namespace cuda

using cuda::floats;
using cuda::StoredIn;
using cuda::StoredOut;

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
  const cuda::Sums sums(p, scratch);
  const StoredIn x{operand(ins, 0), p.type};
  float *mean = floats(result(outs, 3)), *inverse = floats(result(outs, 4));
  const dim3 columns = cuda::blocksFor(p.channels, cuda::kBlock);
  const dim3 block(cuda::kBlock);
  cuda::queueSums(queue, p, sums, cuda::SumOfX{x});
  launch(queue, cuda::finishMean, columns, block, 0, p, sums, mean);
  cuda::queueSums(queue, p, sums, cuda::SumOfSquares{x, mean});
  launch(queue, cuda::finishVariance, columns, block, 0, p, sums, mean,
         floats(operand(ins, 3)), floats(operand(ins, 4)),
         floats(result(outs, 1)), floats(result(outs, 2)), inverse);
  launch(queue, cuda::normalize,
         cuda::blocksFor(p.rows * p.channels, cuda::kBlock), block, 0, p, x,
         floats(operand(ins, 1)), floats(operand(ins, 2)), mean, inverse,
         StoredOut{result(outs, 0), p.type});
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
  const cuda::Sums sums(p, scratch);
  const StoredIn x{operand(ins, 0), p.type}, dy{operand(ins, 4), p.type};
  const float *gamma = floats(operand(ins, 1));
  const float *mean = floats(operand(ins, 2));
  const float *inverse = floats(operand(ins, 3));
  const StoredOut dx{result(outs, 0), p.type};
  cuda::queueSums(queue, p, sums, cuda::SumsOfGradient{x, dy, mean, inverse});
  launch(queue, cuda::finishGradient, cuda::blocksFor(p.channels, cuda::kBlock),
         dim3(cuda::kBlock), 0, p, sums, floats(result(outs, 1)),
         floats(result(outs, 2)), accumulate);
  if (dx.data)
    launch(queue, cuda::gradientOfX,
           cuda::blocksFor(p.rows * p.channels, cuda::kBlock),
           dim3(cuda::kBlock), 0, p, sums, x, gamma, mean, inverse, dy, dx);
}

} // namespace tmc
