//===- Cudnn.cpp - a stand-in for cuDNN -----------------------------------===//
//
// The part of cuDNN's interface that runtime/cuda/Dnn.cpp uses, over plain
// loops, for NHWC activations and KRSC filters in f32. The first candidate that
// it offers isn't deterministic and must not be taken.
//
//===----------------------------------------------------------------------===//

#include <cudnn.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

struct cudnnContext {};
struct cudnnTensorStruct {
  int n, c, h, w;
};
struct cudnnFilterStruct {
  int k, c, h, w;
};
struct cudnnConvolutionStruct {
  int padH, padW, strideH, strideW, dilationH, dilationW, groups = 1;
  cudnnMathType_t math = CUDNN_DEFAULT_MATH;
};

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

bool valid(const Tensor &x, const Filter &f, const Window &w, const Tensor &y) {
  return x.n == y.n && f.c * w.groups == x.c && f.k == y.c &&
         w.math == CUDNN_FMA_MATH &&
         (x.h + 2 * w.padH - (f.h - 1) * w.dilationH - 1) / w.strideH + 1 ==
             y.h &&
         (x.w + 2 * w.padW - (f.w - 1) * w.dilationW - 1) / w.strideW + 1 ==
             y.w;
}

template <typename Perf> cudnnStatus_t offer(int *count, Perf *candidates) {
  *count = 2;
  for (int i = 0; i < 2; ++i) {
    candidates[i].algo = decltype(candidates[i].algo)(i);
    candidates[i].status = CUDNN_STATUS_SUCCESS;
    candidates[i].memory = kWorkspace;
    candidates[i].determinism =
        i == 0 ? CUDNN_NON_DETERMINISTIC : CUDNN_DETERMINISTIC;
    candidates[i].mathType = CUDNN_FMA_MATH;
  }
  return CUDNN_STATUS_SUCCESS;
}

/// Checks a run and spoils its workspace.
bool start(int algo, void *workspace, size_t bytes, const void *alpha,
           const void *beta) {
  if (algo != 1 || bytes != kWorkspace ||
      *static_cast<const float *>(alpha) != 1 ||
      *static_cast<const float *>(beta) != 0)
    return false;
  std::memset(workspace, 0xff, bytes);
  return true;
}

/// `count` sums in f64, rounded into `to` at the end.
struct Sums {
  std::vector<double> at;
  void *to;
  Sums(void *to, int64_t count) : at(size_t(count)), to(to) {}
  ~Sums() { std::copy(at.begin(), at.end(), static_cast<float *>(to)); }
  double &operator[](int64_t i) { return at[size_t(i)]; }
};

const float *floats(const void *p) { return static_cast<const float *>(p); }

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
cudnnStatus_t cudnnSetStream(cudnnHandle_t, cudaStream_t) {
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
  if (format != CUDNN_TENSOR_NHWC || type != CUDNN_DATA_FLOAT)
    return CUDNN_STATUS_NOT_SUPPORTED;
  *p = {n, c, h, w};
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
  if (format != CUDNN_TENSOR_NHWC || type != CUDNN_DATA_FLOAT)
    return CUDNN_STATUS_NOT_SUPPORTED;
  *p = {k, c, h, w};
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
    const cudnnConvolutionDescriptor_t w, const cudnnTensorDescriptor_t x,
    const cudnnFilterDescriptor_t f, int *n, int *c, int *h, int *v) {
  *n = x->n;
  *c = f->k;
  *h = (x->h + 2 * w->padH - (f->h - 1) * w->dilationH - 1) / w->strideH + 1;
  *v = (x->w + 2 * w->padW - (f->w - 1) * w->dilationW - 1) / w->strideW + 1;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetConvolutionForwardAlgorithm_v7(
    cudnnHandle_t, const cudnnTensorDescriptor_t, const cudnnFilterDescriptor_t,
    const cudnnConvolutionDescriptor_t, const cudnnTensorDescriptor_t,
    const int, int *count, cudnnConvolutionFwdAlgoPerf_t *candidates) {
  return offer(count, candidates);
}
cudnnStatus_t cudnnGetConvolutionBackwardDataAlgorithm_v7(
    cudnnHandle_t, const cudnnFilterDescriptor_t, const cudnnTensorDescriptor_t,
    const cudnnConvolutionDescriptor_t, const cudnnTensorDescriptor_t,
    const int, int *count, cudnnConvolutionBwdDataAlgoPerf_t *candidates) {
  return offer(count, candidates);
}
cudnnStatus_t cudnnGetConvolutionBackwardFilterAlgorithm_v7(
    cudnnHandle_t, const cudnnTensorDescriptor_t, const cudnnTensorDescriptor_t,
    const cudnnConvolutionDescriptor_t, const cudnnFilterDescriptor_t,
    const int, int *count, cudnnConvolutionBwdFilterAlgoPerf_t *candidates) {
  return offer(count, candidates);
}
cudnnStatus_t cudnnGetConvolutionForwardWorkspaceSize(
    cudnnHandle_t, const cudnnTensorDescriptor_t, const cudnnFilterDescriptor_t,
    const cudnnConvolutionDescriptor_t, const cudnnTensorDescriptor_t,
    cudnnConvolutionFwdAlgo_t, size_t *bytes) {
  *bytes = kWorkspace;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnGetConvolutionBackwardDataWorkspaceSize(
    cudnnHandle_t, const cudnnFilterDescriptor_t, const cudnnTensorDescriptor_t,
    const cudnnConvolutionDescriptor_t, const cudnnTensorDescriptor_t,
    cudnnConvolutionBwdDataAlgo_t, size_t *bytes) {
  *bytes = kWorkspace;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnGetConvolutionBackwardFilterWorkspaceSize(
    cudnnHandle_t, const cudnnTensorDescriptor_t, const cudnnTensorDescriptor_t,
    const cudnnConvolutionDescriptor_t, const cudnnFilterDescriptor_t,
    cudnnConvolutionBwdFilterAlgo_t, size_t *bytes) {
  *bytes = kWorkspace;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnConvolutionForward(
    cudnnHandle_t, const void *alpha, const cudnnTensorDescriptor_t x,
    const void *xAt, const cudnnFilterDescriptor_t f, const void *fAt,
    const cudnnConvolutionDescriptor_t w, cudnnConvolutionFwdAlgo_t algo,
    void *workspace, size_t bytes, const void *beta,
    const cudnnTensorDescriptor_t y, void *yAt) {
  if (!valid(*x, *f, *w, *y) || !start(algo, workspace, bytes, alpha, beta))
    return CUDNN_STATUS_BAD_PARAM;
  Sums out(yAt, int64_t(y->n) * y->h * y->w * y->c);
  eachProduct(*x, *f, *w, *y, [&](int64_t xi, int64_t fi, int64_t yi) {
    out[yi] += double(floats(xAt)[xi]) * floats(fAt)[fi];
  });
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnConvolutionBackwardData(
    cudnnHandle_t, const void *alpha, const cudnnFilterDescriptor_t f,
    const void *fAt, const cudnnTensorDescriptor_t dy, const void *dyAt,
    const cudnnConvolutionDescriptor_t w, cudnnConvolutionBwdDataAlgo_t algo,
    void *workspace, size_t bytes, const void *beta,
    const cudnnTensorDescriptor_t dx, void *dxAt) {
  if (!valid(*dx, *f, *w, *dy) || !start(algo, workspace, bytes, alpha, beta))
    return CUDNN_STATUS_BAD_PARAM;
  Sums out(dxAt, int64_t(dx->n) * dx->h * dx->w * dx->c);
  eachProduct(*dx, *f, *w, *dy, [&](int64_t xi, int64_t fi, int64_t yi) {
    out[xi] += double(floats(dyAt)[yi]) * floats(fAt)[fi];
  });
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnConvolutionBackwardFilter(
    cudnnHandle_t, const void *alpha, const cudnnTensorDescriptor_t x,
    const void *xAt, const cudnnTensorDescriptor_t dy, const void *dyAt,
    const cudnnConvolutionDescriptor_t w, cudnnConvolutionBwdFilterAlgo_t algo,
    void *workspace, size_t bytes, const void *beta,
    const cudnnFilterDescriptor_t df, void *dfAt) {
  if (!valid(*x, *df, *w, *dy) || !start(algo, workspace, bytes, alpha, beta))
    return CUDNN_STATUS_BAD_PARAM;
  Sums out(dfAt, int64_t(df->k) * df->h * df->w * df->c);
  eachProduct(*x, *df, *w, *dy, [&](int64_t xi, int64_t fi, int64_t yi) {
    out[fi] += double(floats(dyAt)[yi]) * floats(xAt)[xi];
  });
  return CUDNN_STATUS_SUCCESS;
}
}
