//===- Cudnn.cpp - a stand-in for cuDNN -----------------------------------===//
//
// The part of cuDNN's interface that runtime/cuda/Dnn.cpp uses, over plain
// loops, for NHWC activations and KRSC filters, all of one type: f32, or bf16
// or f16 with sums in f32 and the result rounded once. Descriptors are checked
// when they are set and when they are used together; what the library refuses
// gets its status. Operands outside of their buffers or never written, which
// it wouldn't notice, are reported.
//
// Three candidates are offered. The first isn't deterministic and must not be
// taken; the two others differ in whether products are rounded to f32 before
// they are added, and which of them comes first is a hash of the shape.
//
//===----------------------------------------------------------------------===//

#include <cudnn.h>

#include "test/cuda/emulator/Counts.h"
#include "test/cuda/emulator/Report.h"
#include "test/cuda/emulator/Shadow.h"
#include "test/cuda/emulator/Streams.h"

#include "runtime/kernels/Storage.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

struct cudnnContext {
  cudaStream_t stream = nullptr;
};
struct cudnnTensorStruct {
  int n, c, h, w;
  cudnnDataType_t type;
};
struct cudnnFilterStruct {
  int k, c, h, w;
  cudnnDataType_t type;
};
struct cudnnConvolutionStruct {
  int padH, padW, strideH, strideW, dilationH, dilationW, groups = 1;
  cudnnMathType_t math = CUDNN_DEFAULT_MATH;
};

using namespace tmc::emulator;

namespace {

constexpr size_t kWorkspace = 1000;

using Tensor = cudnnTensorStruct;
using Filter = cudnnFilterStruct;
using Window = cudnnConvolutionStruct;

/// Calls body(x index, filter index, y index) for each multiply-add.
template <typename F>
void eachProduct(const Tensor &x, const Filter &f, const Window &w,
                 const Tensor &y, F &&body) {
  const int perGroup = y.c / w.groups;
  for (int n = 0; n < y.n; ++n)
    for (int p = 0; p < y.h; ++p)
      for (int q = 0; q < y.w; ++q)
        for (int k = 0; k < y.c; ++k)
          for (int r = 0; r < f.h; ++r)
            for (int s = 0; s < f.w; ++s)
              for (int c = 0; c < f.c; ++c) {
                const int h = p * w.strideH - w.padH + r * w.dilationH;
                const int v = q * w.strideW - w.padW + s * w.dilationW;
                if (h < 0 || h >= x.h || v < 0 || v >= x.w)
                  continue;
                body(((int64_t(n) * x.h + h) * x.w + v) * x.c +
                         k / perGroup * f.c + c,
                     ((int64_t(k) * f.h + r) * f.w + s) * f.c + c,
                     ((int64_t(n) * y.h + p) * y.w + q) * y.c + k);
              }
}

bool isKnown(cudnnDataType_t type) {
  return type == CUDNN_DATA_FLOAT || type == CUDNN_DATA_BFLOAT16 ||
         type == CUDNN_DATA_HALF;
}

/// Tensor cores are for 16 bits: f32 would be rounded to TF32 by them.
cudnnMathType_t mathOf(cudnnDataType_t type) {
  return type == CUDNN_DATA_FLOAT ? CUDNN_FMA_MATH : CUDNN_TENSOR_OP_MATH;
}

bool valid(const Tensor &x, const Filter &f, const Window &w, const Tensor &y) {
  return x.n == y.n && f.c * w.groups == x.c && f.k == y.c &&
         x.type == y.type && f.type == x.type && w.math == mathOf(x.type) &&
         (x.h + 2 * w.padH - (f.h - 1) * w.dilationH - 1) / w.strideH + 1 ==
             y.h &&
         (x.w + 2 * w.padW - (f.w - 1) * w.dilationW - 1) / w.strideW + 1 ==
             y.w;
}

/// The algorithms that are offered; the first isn't deterministic.
constexpr int kFirst = 0, kExact = 1, kRounded = 2;

size_t workspaceOf(int algo) {
  return algo == kRounded ? 2 * kWorkspace : kWorkspace;
}

template <typename Perf>
cudnnStatus_t offer(const Tensor &x, const Filter &f, const Window &w,
                    const Tensor &y, int requested, int *count,
                    Perf *candidates) {
  *count = 0;
  if (!valid(x, f, w, y) || requested < 1)
    return CUDNN_STATUS_BAD_PARAM;
  uint64_t hash = 0;
  for (int v : {x.n, x.c, x.h, x.w, f.k, f.c, f.h, f.w, w.strideH, w.groups})
    hash = (hash ^ uint64_t(v)) * 0x9e3779b97f4a7c15u + 1;
  const int second = hash >> 40 & 1 ? kRounded : kExact;
  for (int algo : {kFirst, second, kExact + kRounded - second}) {
    if (*count == requested)
      break;
    Perf &candidate = candidates[(*count)++];
    candidate.algo = decltype(candidate.algo)(algo);
    candidate.status = CUDNN_STATUS_SUCCESS;
    candidate.memory = workspaceOf(algo);
    candidate.determinism =
        algo == kFirst ? CUDNN_NON_DETERMINISTIC : CUDNN_DETERMINISTIC;
    candidate.mathType = mathOf(x.type);
  }
  return CUDNN_STATUS_SUCCESS;
}

/// One convolution: its operands, its result and how it is run.
struct Job {
  const char *name;
  cudnnDataType_t type;
  const void *first;
  int64_t firstCount;
  const void *second;
  int64_t secondCount;
  void *result;
  int64_t resultCount;
  int algo;
  void *workspace;
  size_t bytes;
};

int64_t countOf(const Tensor &t) { return int64_t(t.n) * t.h * t.w * t.c; }
int64_t countOf(const Filter &f) { return int64_t(f.k) * f.h * f.w * f.c; }

/// An array of a type that is known when it runs.
struct Stored {
  const void *data;
  cudnnDataType_t type;

  float operator[](int64_t i) const {
    switch (type) {
    case CUDNN_DATA_BFLOAT16:
      return tmc::widen(static_cast<const tmc::bf16 *>(data)[i]);
    case CUDNN_DATA_HALF:
      return tmc::widen(static_cast<const tmc::f16 *>(data)[i]);
    default:
      return static_cast<const float *>(data)[i];
    }
  }
};

void store(void *data, cudnnDataType_t type, size_t i, float value) {
  switch (type) {
  case CUDNN_DATA_BFLOAT16:
    static_cast<tmc::bf16 *>(data)[i] = tmc::narrow<tmc::bf16>(value);
    break;
  case CUDNN_DATA_HALF:
    static_cast<tmc::f16 *>(data)[i] = tmc::narrow<tmc::f16>(value);
    break;
  default:
    static_cast<float *>(data)[i] = value;
  }
}

/// Checks a call and queues body(sums), which adds every product.
template <typename F>
cudnnStatus_t queueJob(cudnnHandle_t handle, const Job &job, const void *alpha,
                       const void *beta, F body) {
  // The stand-in has no other factors.
  if (*static_cast<const float *>(alpha) != 1 ||
      *static_cast<const float *>(beta) != 0)
    return CUDNN_STATUS_NOT_SUPPORTED;
  if (job.bytes < workspaceOf(job.algo) || !job.workspace)
    return CUDNN_STATUS_BAD_PARAM;
  if (job.algo == kFirst)
    report(FaultKind::Library, 0,
           std::string(job.name) + " by an algorithm that isn't deterministic");
  ++counts().kernels;
  const WorkKey key =
      keyOf(job.first, job.firstCount, job.second, job.secondCount, job.result,
            job.resultCount, job.name, job.algo, job.workspace);
  queueWork(handle->stream, job.name, key, [=] {
    auto touches = [&](const void *p, int64_t count, Touch kind,
                       const char *what) {
      const size_t size = job.type == CUDNN_DATA_FLOAT ? 4 : 2;
      return touchAll(p, size_t(count) * size, kind,
                      (std::string(job.name) + what).c_str());
    };
    if (!touchAll(job.workspace, workspaceOf(job.algo), Touch::Write,
                  (std::string(job.name) + ", its workspace,").c_str()))
      return;
    std::memset(job.workspace, 0xff, workspaceOf(job.algo));
    setWritten(reinterpret_cast<uintptr_t>(job.workspace),
               workspaceOf(job.algo), false);
    if (!touches(job.first, job.firstCount, Touch::Read,
                 ", its first operand,") ||
        !touches(job.second, job.secondCount, Touch::Read,
                 ", its second operand,") ||
        !touches(job.result, job.resultCount, Touch::Write, ", its result,"))
      return;
    std::vector<double> sums(static_cast<size_t>(job.resultCount));
    if (job.algo == kRounded)
      body([&](int64_t i, float a, float b) { sums[size_t(i)] += a * b; });
    else
      body([&](int64_t i, float a, float b) {
        sums[size_t(i)] += double(a) * b;
      });
    for (size_t i = 0; i < sums.size(); ++i)
      store(job.result, job.type, i, float(sums[i]));
  });
  return CUDNN_STATUS_SUCCESS;
}

} // namespace

extern "C" {

const char *cudnnGetErrorString(cudnnStatus_t) { return "an emulated failure"; }
cudnnStatus_t cudnnCreate(cudnnHandle_t *handle) {
  *handle = new cudnnContext;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnDestroy(cudnnHandle_t handle) {
  delete handle;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream) {
  handle->stream = stream;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnCreateTensorDescriptor(cudnnTensorDescriptor_t *p) {
  *p = new cudnnTensorStruct{};
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnDestroyTensorDescriptor(cudnnTensorDescriptor_t p) {
  delete p;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetTensor4dDescriptor(cudnnTensorDescriptor_t p,
                                         cudnnTensorFormat_t format,
                                         cudnnDataType_t type, int n, int c,
                                         int h, int w) {
  if (format != CUDNN_TENSOR_NHWC || !isKnown(type))
    return CUDNN_STATUS_NOT_SUPPORTED;
  *p = {n, c, h, w, type};
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnCreateFilterDescriptor(cudnnFilterDescriptor_t *p) {
  *p = new cudnnFilterStruct{};
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnDestroyFilterDescriptor(cudnnFilterDescriptor_t p) {
  delete p;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetFilter4dDescriptor(cudnnFilterDescriptor_t p,
                                         cudnnDataType_t type,
                                         cudnnTensorFormat_t format, int k,
                                         int c, int h, int w) {
  if (format != CUDNN_TENSOR_NHWC || !isKnown(type))
    return CUDNN_STATUS_NOT_SUPPORTED;
  *p = {k, c, h, w, type};
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t
cudnnCreateConvolutionDescriptor(cudnnConvolutionDescriptor_t *p) {
  *p = new cudnnConvolutionStruct{};
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t
cudnnDestroyConvolutionDescriptor(cudnnConvolutionDescriptor_t p) {
  delete p;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetConvolution2dDescriptor(cudnnConvolutionDescriptor_t p,
                                              int padH, int padW, int u, int v,
                                              int dilationH, int dilationW,
                                              cudnnConvolutionMode_t mode,
                                              cudnnDataType_t compute) {
  if (mode != CUDNN_CROSS_CORRELATION || compute != CUDNN_DATA_FLOAT)
    return CUDNN_STATUS_NOT_SUPPORTED;
  *p = {padH, padW, u, v, dilationH, dilationW};
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetConvolutionGroupCount(cudnnConvolutionDescriptor_t p,
                                            int groups) {
  p->groups = groups;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetConvolutionMathType(cudnnConvolutionDescriptor_t p,
                                          cudnnMathType_t math) {
  p->math = math;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnGetConvolution2dForwardOutputDim(
    cudnnConvolutionDescriptor_t w, cudnnTensorDescriptor_t x,
    cudnnFilterDescriptor_t f, int *n, int *c, int *h, int *v) {
  *n = x->n;
  *c = f->k;
  *h = (x->h + 2 * w->padH - (f->h - 1) * w->dilationH - 1) / w->strideH + 1;
  *v = (x->w + 2 * w->padW - (f->w - 1) * w->dilationW - 1) / w->strideW + 1;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetConvolutionForwardAlgorithm_v7(
    cudnnHandle_t, cudnnTensorDescriptor_t x, cudnnFilterDescriptor_t f,
    cudnnConvolutionDescriptor_t w, cudnnTensorDescriptor_t y, int requested,
    int *count, cudnnConvolutionFwdAlgoPerf_t *candidates) {
  return offer(*x, *f, *w, *y, requested, count, candidates);
}
cudnnStatus_t cudnnGetConvolutionBackwardDataAlgorithm_v7(
    cudnnHandle_t, cudnnFilterDescriptor_t f, cudnnTensorDescriptor_t dy,
    cudnnConvolutionDescriptor_t w, cudnnTensorDescriptor_t dx, int requested,
    int *count, cudnnConvolutionBwdDataAlgoPerf_t *candidates) {
  return offer(*dx, *f, *w, *dy, requested, count, candidates);
}
cudnnStatus_t cudnnGetConvolutionBackwardFilterAlgorithm_v7(
    cudnnHandle_t, cudnnTensorDescriptor_t x, cudnnTensorDescriptor_t dy,
    cudnnConvolutionDescriptor_t w, cudnnFilterDescriptor_t df, int requested,
    int *count, cudnnConvolutionBwdFilterAlgoPerf_t *candidates) {
  return offer(*x, *df, *w, *dy, requested, count, candidates);
}
cudnnStatus_t cudnnGetConvolutionForwardWorkspaceSize(
    cudnnHandle_t, cudnnTensorDescriptor_t, cudnnFilterDescriptor_t,
    cudnnConvolutionDescriptor_t, cudnnTensorDescriptor_t,
    cudnnConvolutionFwdAlgo_t algo, size_t *bytes) {
  *bytes = workspaceOf(algo);
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnGetConvolutionBackwardDataWorkspaceSize(
    cudnnHandle_t, cudnnFilterDescriptor_t, cudnnTensorDescriptor_t,
    cudnnConvolutionDescriptor_t, cudnnTensorDescriptor_t,
    cudnnConvolutionBwdDataAlgo_t algo, size_t *bytes) {
  *bytes = workspaceOf(algo);
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnGetConvolutionBackwardFilterWorkspaceSize(
    cudnnHandle_t, cudnnTensorDescriptor_t, cudnnTensorDescriptor_t,
    cudnnConvolutionDescriptor_t, cudnnFilterDescriptor_t,
    cudnnConvolutionBwdFilterAlgo_t algo, size_t *bytes) {
  *bytes = workspaceOf(algo);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnConvolutionForward(
    cudnnHandle_t handle, const void *alpha, cudnnTensorDescriptor_t x,
    const void *xAt, cudnnFilterDescriptor_t f, const void *fAt,
    cudnnConvolutionDescriptor_t w, cudnnConvolutionFwdAlgo_t algo,
    void *workspace, size_t bytes, const void *beta, cudnnTensorDescriptor_t y,
    void *yAt) {
  if (!valid(*x, *f, *w, *y))
    return CUDNN_STATUS_BAD_PARAM;
  return queueJob(handle,
                  {"cudnnConvolutionForward", x->type, xAt, countOf(*x), fAt,
                   countOf(*f), yAt, countOf(*y), algo, workspace, bytes},
                  alpha, beta,
                  [=, x = *x, f = *f, w = *w, y = *y, xs = Stored{xAt, x->type},
                   fs = Stored{fAt, x->type}](auto add) {
                    eachProduct(x, f, w, y,
                                [&](int64_t xi, int64_t fi, int64_t yi) {
                                  add(yi, xs[xi], fs[fi]);
                                });
                  });
}
cudnnStatus_t cudnnConvolutionBackwardData(
    cudnnHandle_t handle, const void *alpha, cudnnFilterDescriptor_t f,
    const void *fAt, cudnnTensorDescriptor_t dy, const void *dyAt,
    cudnnConvolutionDescriptor_t w, cudnnConvolutionBwdDataAlgo_t algo,
    void *workspace, size_t bytes, const void *beta, cudnnTensorDescriptor_t dx,
    void *dxAt) {
  if (!valid(*dx, *f, *w, *dy))
    return CUDNN_STATUS_BAD_PARAM;
  return queueJob(
      handle,
      {"cudnnConvolutionBackwardData", dx->type, fAt, countOf(*f), dyAt,
       countOf(*dy), dxAt, countOf(*dx), algo, workspace, bytes},
      alpha, beta,
      [=, x = *dx, f = *f, w = *w, y = *dy, ys = Stored{dyAt, dx->type},
       fs = Stored{fAt, dx->type}](auto add) {
        eachProduct(x, f, w, y, [&](int64_t xi, int64_t fi, int64_t yi) {
          add(xi, ys[yi], fs[fi]);
        });
      });
}
cudnnStatus_t cudnnConvolutionBackwardFilter(
    cudnnHandle_t handle, const void *alpha, cudnnTensorDescriptor_t x,
    const void *xAt, cudnnTensorDescriptor_t dy, const void *dyAt,
    cudnnConvolutionDescriptor_t w, cudnnConvolutionBwdFilterAlgo_t algo,
    void *workspace, size_t bytes, const void *beta, cudnnFilterDescriptor_t df,
    void *dfAt) {
  if (!valid(*x, *df, *w, *dy))
    return CUDNN_STATUS_BAD_PARAM;
  return queueJob(
      handle,
      {"cudnnConvolutionBackwardFilter", x->type, xAt, countOf(*x), dyAt,
       countOf(*dy), dfAt, countOf(*df), algo, workspace, bytes},
      alpha, beta,
      [=, x = *x, f = *df, w = *w, y = *dy, xs = Stored{xAt, x->type},
       ys = Stored{dyAt, x->type}](auto add) {
        eachProduct(x, f, w, y, [&](int64_t xi, int64_t fi, int64_t yi) {
          add(fi, ys[yi], xs[xi]);
        });
      });
}
}
