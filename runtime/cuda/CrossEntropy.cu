//===- CrossEntropy.cu - the loss over a vocabulary, on cuda --------------===//

#include "runtime/kernels/CrossEntropy.h"

#include "runtime/cuda/CrossEntropyRows.h"
#include "runtime/cuda/Launch.h"
#include "runtime/cuda/Stored.h"
#include "runtime/cuda/Vector.h"
#include "runtime/kernels/Math.h"

namespace tmc {

namespace cuda {
namespace {

constexpr int kBlock = 256;
/// Threads of a row of logits. Two rows are on a multiprocessor, so that a
/// second read of a row of a large vocabulary finds it in the card's cache.
constexpr int kRowBlock = 1024;

/// Whether a row counts; if it does, `label` is in the vocabulary.
__device__ bool labelCounts(const LabelRule &rule, int64_t row,
                            int64_t &label) {
  label = indexAt(rule.labels, rule.type, rule.firstRow + row);
  return label != rule.ignoreIndex && label >= 0 && label < rule.vocabulary;
}

/// The maximum of some numbers, and the sum of e^(number - maximum): both at
/// once, in one pass.
struct TopAndSum {
  float top = -INFINITY, sum = 0;

  /// e^(x - to), which is added to others of which one is 1.
  __device__ static float above(float x, float to) {
    return math::card::powerOfTwo((x - to) * math::detail::kLog2E);
  }
  __device__ void raise(float to) {
    if (to > top) {
      sum *= top == -INFINITY ? 0.0f : above(top, to);
      top = to;
    }
  }
  template <int N> __device__ void add(const float (&x)[N]) {
    float most = x[0];
#pragma unroll
    for (int i = 1; i < N; ++i)
      most = fmaxf(most, x[i]);
    raise(most);
    // Numbers of which none is above -inf add nothing.
    const float to = top == -INFINITY ? 0.0f : top;
#pragma unroll
    for (int i = 0; i < N; ++i)
      sum += above(x[i], to);
  }
};

/// A row's log-sum-exp, in all threads. A thread takes every kRowBlock-th
/// vector of columns, and one of those behind the last vector; the threads'
/// maxima and sums are combined in halves.
template <bool Whole>
__device__ float logSumExp(const LabelRule &rule, const StoredIn &x) {
  __shared__ float shared[kRowBlock];
  TopAndSum own;
  x.visit([&](auto *at) {
    const int64_t whole = rule.vocabulary / kVector * kVector;
    for (int64_t i = kVector * int64_t(threadIdx.x); i < whole;
         i += kVector * kRowBlock) {
      float run[kVector];
      loadVector<Whole>(at + i, kVector, run);
      own.add(run);
    }
    if (whole + threadIdx.x < rule.vocabulary) {
      const float last[1] = {loadLanes<1>(at + whole + threadIdx.x)};
      own.add(last);
    }
  });
  const float top = blockReduce(own.top, shared, MaxOp{});
  own.raise(top);
  const float sum = blockReduce(own.sum, shared, AddOp{});
  return top == -INFINITY && sum == 0 ? top : top + logf(sum);
}

/// Writes the loss of a row with this log-sum-exp; for one thread.
__device__ void writeLoss(const LabelRule &rule, const StoredIn &x, float lse,
                          float *losses, DeviceFault *fault) {
  const int64_t row = rule.firstRow + blockIdx.x;
  int64_t label = 0;
  const bool counts = labelCounts(rule, blockIdx.x, label);
  if (!counts && label != rule.ignoreIndex)
    reportFault(fault, row, label, rule.vocabulary);
  losses[row] = counts ? lse - x.at(label) : 0.0f;
}

template <bool Whole>
__global__ void __launch_bounds__(kRowBlock)
    lossOfRow(LabelRule rule, StoredIn logits, float *lse, float *losses,
              DeviceFault *fault) {
  const StoredIn x = logits.shifted(blockIdx.x * rule.width);
  const float total = logSumExp<Whole>(rule, x);
  if (threadIdx.x != 0)
    return;
  lse[rule.firstRow + blockIdx.x] = total;
  writeLoss(rule, x, total, losses, fault);
}

__global__ void __launch_bounds__(kBlock)
    sumOfLosses(const float *__restrict__ losses, int64_t rows,
                const float *__restrict__ weight, float *loss,
                bool accumulate) {
  __shared__ double shared[kBlock];
  double sum = 0;
  for (int64_t i = threadIdx.x; i < rows; i += kBlock)
    sum += losses[i];
  sum = blockReduce(sum, shared, AddOp{});
  if (threadIdx.x != 0)
    return;
  const float total = float(sum * *weight);
  *loss = accumulate ? *loss + total : total;
}

// No __restrict__: dlogits may be the logits. A narrower element overwrites an
// earlier one, so each round is read completely before it is written.
template <typename T, bool Whole>
__device__ void writeGradient(const LabelRule &rule, const StoredIn &x,
                              float shift, float factor, T *dx) {
  constexpr int N = Whole ? kVector : 1;
  int64_t label = 0;
  const bool counts = labelCounts(rule, blockIdx.x, label);
  x.visit([&](auto *at) {
    for (int64_t i0 = 0; i0 < rule.width; i0 += N * kRowBlock) {
      const int64_t i = i0 + N * int64_t(threadIdx.x);
      float p[N] = {};
      if (i < rule.vocabulary && counts) {
        if constexpr (Whole)
          loadVector<true>(at + i, N, p);
        else
          p[0] = loadLanes<1>(at + i);
#pragma unroll
        for (int k = 0; k < N; ++k) {
          p[k] =
              i + k < rule.vocabulary ? factor * math::exp(p[k] - shift) : 0.0f;
          if (i + k == label)
            p[k] -= factor;
        }
      }
      if constexpr (isNarrow<T>)
        __syncthreads();
      if (i >= rule.width)
        continue;
      if constexpr (Whole)
        storeVector<true>(dx + i, N, p);
      else
        storeLanes<1>(dx + i, p[0]);
    }
  });
}

template <typename T, bool Whole>
__global__ void __launch_bounds__(kRowBlock)
    gradientOfRow(LabelRule rule, StoredIn logits, const float *lse,
                  const float *scale, T *dlogits, int64_t stride) {
  writeGradient<T, Whole>(rule, logits.shifted(blockIdx.x * rule.width),
                          lse[rule.firstRow + blockIdx.x], *scale,
                          dlogits + blockIdx.x * stride);
}

template <typename T, bool Whole>
__global__ void __launch_bounds__(kRowBlock)
    lossAndGradientOfRow(LabelRule rule, StoredIn logits, float *losses,
                         const float *scale, T *dlogits, int64_t stride,
                         DeviceFault *fault) {
  const StoredIn x = logits.shifted(blockIdx.x * rule.width);
  const float lse = logSumExp<Whole>(rule, x);
  // The label's logit is read before it may be overwritten.
  if (threadIdx.x == 0)
    writeLoss(rule, x, lse, losses, fault);
  __syncthreads();
  writeGradient<T, Whole>(rule, x, lse, *scale, dlogits + blockIdx.x * stride);
}

/// A thread takes a column: neighbouring threads read neighbouring elements,
/// and the rows are added in order.
template <typename T>
__global__ void __launch_bounds__(kBlock)
    sumOfRows(const T *__restrict__ values, int64_t stride, int64_t rows,
              int64_t columns, float *__restrict__ sums, bool accumulate) {
  const int64_t v = int64_t(blockIdx.x) * kBlock + threadIdx.x;
  if (v >= columns)
    return;
  float sum = accumulate ? sums[v] : 0.0f;
  for (int64_t r = 0; r < rows; ++r)
    sum += loadLanes<1>(values + r * stride + v);
  sums[v] = sum;
}

} // namespace

void rowLosses(Queue &queue, const LabelRule &rule, const StoredIn &logits,
               int64_t rows, float *lse, float *losses) {
  auto *kernel =
      areWhole(rule.width, {logits.data}) ? lossOfRow<true> : lossOfRow<false>;
  launch(queue, kernel, dim3(unsigned(rows)), dim3(kRowBlock), 0, rule, logits,
         lse, losses, queue.device().fault());
}

void weightedLoss(Queue &queue, const float *losses, int64_t rows,
                  const float *weight, float *loss, bool accumulate) {
  launch(queue, sumOfLosses, dim3(1), dim3(kBlock), 0, losses, rows, weight,
         loss, accumulate);
}

void rowGradients(Queue &queue, const LabelRule &rule, const StoredIn &logits,
                  int64_t rows, const float *lse, const float *scale,
                  const StoredRows &dlogits) {
  withStored(dlogits.type, [&](auto element) {
    using T = decltype(element);
    auto *kernel = areWhole(dlogits.stride, {dlogits.data}) &&
                           areWhole(rule.width, {logits.data})
                       ? gradientOfRow<T, true>
                       : gradientOfRow<T, false>;
    launch(queue, kernel, dim3(unsigned(rows)), dim3(kRowBlock), 0, rule,
           logits, lse, scale, static_cast<T *>(dlogits.data), dlogits.stride);
  });
}

void rowLossesAndGradients(Queue &queue, const LabelRule &rule,
                           const StoredIn &logits, int64_t rows, float *losses,
                           const float *scale, const StoredRows &dlogits) {
  withStored(dlogits.type, [&](auto element) {
    using T = decltype(element);
    auto *kernel = areWhole(dlogits.stride, {dlogits.data}) &&
                           areWhole(rule.width, {logits.data})
                       ? lossAndGradientOfRow<T, true>
                       : lossAndGradientOfRow<T, false>;
    launch(queue, kernel, dim3(unsigned(rows)), dim3(kRowBlock), 0, rule,
           logits, losses, scale, static_cast<T *>(dlogits.data),
           dlogits.stride, queue.device().fault());
  });
}

void addRows(Queue &queue, const StoredRows &values, int64_t rows,
             int64_t columns, float *sums, bool accumulate) {
  withStored(values.type, [&](auto element) {
    using T = decltype(element);
    launch(queue, sumOfRows<T>, blocksFor(columns, kBlock), dim3(kBlock), 0,
           static_cast<const T *>(values.data), values.stride, rows, columns,
           sums, accumulate);
  });
}

} // namespace cuda

struct CrossEntropy::State : cuda::Prepared {};
CrossEntropy::CrossEntropy(const Params &params)
    : params_(params), state_(std::make_unique<State>()) {}
CrossEntropy::~CrossEntropy() = default;

Status CrossEntropy::prepare(Device &device) {
  state_->device = &cuda::deviceOf(device);
  return cuda::requireScratch("cross_entropy",
                              scratchCap(params_, Backend::Cuda),
                              params_.scratchBytes);
}

void CrossEntropy::run(Stream &stream, In ins, Out outs, void *scratch,
                       bool accumulate) {
  const Params &p = params_;
  cuda::Queue queue(*state_->device, stream, "cross_entropy");
  float *losses = static_cast<float *>(scratch);
  const cuda::LabelRule rule{operand(ins, 1), p.labelType, p.vocabulary,
                             p.ignoreIndex,   0,           p.width()};
  cuda::rowLosses(queue, rule, {operand(ins, 0), p.type}, p.rows,
                  static_cast<float *>(result(outs, 1)), losses);
  cuda::weightedLoss(queue, losses, p.rows,
                     static_cast<const float *>(operand(ins, 2)),
                     static_cast<float *>(result(outs, 0)), accumulate);
}

struct CrossEntropyWithGrad::State : cuda::Prepared {};
CrossEntropyWithGrad::CrossEntropyWithGrad(const Params &params)
    : params_(params), state_(std::make_unique<State>()) {}
CrossEntropyWithGrad::~CrossEntropyWithGrad() = default;

Status CrossEntropyWithGrad::prepare(Device &device) {
  state_->device = &cuda::deviceOf(device);
  return cuda::requireScratch("cross_entropy_with_grad",
                              scratchCap(params_, Backend::Cuda),
                              params_.scratchBytes);
}

void CrossEntropyWithGrad::run(Stream &stream, In ins, Out outs, void *scratch,
                               bool) {
  const Params &p = params_;
  cuda::Queue queue(*state_->device, stream, "cross_entropy_with_grad");
  float *losses = static_cast<float *>(scratch);
  const cuda::LabelRule rule{operand(ins, 1), p.labelType, p.vocabulary,
                             p.ignoreIndex,   0,           p.width()};
  cuda::rowLossesAndGradients(queue, rule, {operand(ins, 0), p.type}, p.rows,
                              losses,
                              static_cast<const float *>(operand(ins, 3)),
                              {result(outs, 1), p.type, p.width()});
  cuda::weightedLoss(queue, losses, p.rows,
                     static_cast<const float *>(operand(ins, 2)),
                     static_cast<float *>(result(outs, 0)), false);
}

struct CrossEntropyGrad::State : cuda::Prepared {};
CrossEntropyGrad::CrossEntropyGrad(const Params &params)
    : params_(params), state_(std::make_unique<State>()) {}
CrossEntropyGrad::~CrossEntropyGrad() = default;

Status CrossEntropyGrad::prepare(Device &device) {
  state_->device = &cuda::deviceOf(device);
  return Status::ok();
}

void CrossEntropyGrad::run(Stream &stream, In ins, Out outs, void *, bool) {
  const Params &p = params_;
  cuda::Queue queue(*state_->device, stream, "cross_entropy_grad");
  const cuda::LabelRule rule{operand(ins, 1), p.labelType, p.vocabulary,
                             p.ignoreIndex,   0,           p.width()};
  cuda::rowGradients(queue, rule, {operand(ins, 0), p.type}, p.rows,
                     static_cast<const float *>(operand(ins, 2)),
                     static_cast<const float *>(operand(ins, 3)),
                     {result(outs, 0), p.type, p.width()});
}

} // namespace tmc
