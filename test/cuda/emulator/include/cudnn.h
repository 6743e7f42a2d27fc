//===- cudnn.h - cuDNN's interface, declared again --------------*- C++ -*-===//
//
// The part that runtime/cuda uses: convolutions of cuDNN 7 and later, declared
// from its reference. Values are the emulator's own.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_TEST_CUDA_EMULATOR_CUDNN_H
#define TMC_TEST_CUDA_EMULATOR_CUDNN_H

#include <cuda_runtime.h>

enum cudnnStatus_t {
  CUDNN_STATUS_SUCCESS,
  CUDNN_STATUS_BAD_PARAM,
  CUDNN_STATUS_NOT_SUPPORTED,
  CUDNN_STATUS_EXECUTION_FAILED,
};
enum cudnnDataType_t {
  CUDNN_DATA_FLOAT,
  CUDNN_DATA_DOUBLE,
  CUDNN_DATA_HALF,
  CUDNN_DATA_BFLOAT16,
};
enum cudnnTensorFormat_t { CUDNN_TENSOR_NCHW, CUDNN_TENSOR_NHWC };
enum cudnnConvolutionMode_t { CUDNN_CONVOLUTION, CUDNN_CROSS_CORRELATION };
enum cudnnMathType_t {
  CUDNN_DEFAULT_MATH,
  CUDNN_TENSOR_OP_MATH,
  CUDNN_TENSOR_OP_MATH_ALLOW_CONVERSION,
  CUDNN_FMA_MATH,
};
enum cudnnDeterminism_t { CUDNN_NON_DETERMINISTIC, CUDNN_DETERMINISTIC };
enum cudnnConvolutionFwdAlgo_t {
  CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM,
  CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM,
  CUDNN_CONVOLUTION_FWD_ALGO_GEMM,
};
enum cudnnConvolutionBwdDataAlgo_t {
  CUDNN_CONVOLUTION_BWD_DATA_ALGO_0, // not deterministic
  CUDNN_CONVOLUTION_BWD_DATA_ALGO_1,
  CUDNN_CONVOLUTION_BWD_DATA_ALGO_FFT,
};
enum cudnnConvolutionBwdFilterAlgo_t {
  CUDNN_CONVOLUTION_BWD_FILTER_ALGO_0, // not deterministic
  CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1,
  CUDNN_CONVOLUTION_BWD_FILTER_ALGO_FFT,
};

typedef struct cudnnContext *cudnnHandle_t;
typedef struct cudnnTensorStruct *cudnnTensorDescriptor_t;
typedef struct cudnnFilterStruct *cudnnFilterDescriptor_t;
typedef struct cudnnConvolutionStruct *cudnnConvolutionDescriptor_t;

template <typename Algo> struct cudnnAlgoPerf {
  Algo algo;
  cudnnStatus_t status;
  float time;
  size_t memory;
  cudnnDeterminism_t determinism;
  cudnnMathType_t mathType;
};
typedef cudnnAlgoPerf<cudnnConvolutionFwdAlgo_t> cudnnConvolutionFwdAlgoPerf_t;
typedef cudnnAlgoPerf<cudnnConvolutionBwdDataAlgo_t>
    cudnnConvolutionBwdDataAlgoPerf_t;
typedef cudnnAlgoPerf<cudnnConvolutionBwdFilterAlgo_t>
    cudnnConvolutionBwdFilterAlgoPerf_t;

extern "C" {
const char *cudnnGetErrorString(cudnnStatus_t status);
cudnnStatus_t cudnnCreate(cudnnHandle_t *handle);
cudnnStatus_t cudnnDestroy(cudnnHandle_t handle);
cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream);
cudnnStatus_t cudnnCreateTensorDescriptor(cudnnTensorDescriptor_t *p);
cudnnStatus_t cudnnDestroyTensorDescriptor(cudnnTensorDescriptor_t p);
cudnnStatus_t cudnnSetTensor4dDescriptor(cudnnTensorDescriptor_t p,
                                         cudnnTensorFormat_t format,
                                         cudnnDataType_t type, int n, int c,
                                         int h, int w);
cudnnStatus_t cudnnCreateFilterDescriptor(cudnnFilterDescriptor_t *p);
cudnnStatus_t cudnnDestroyFilterDescriptor(cudnnFilterDescriptor_t p);
cudnnStatus_t cudnnSetFilter4dDescriptor(cudnnFilterDescriptor_t p,
                                         cudnnDataType_t type,
                                         cudnnTensorFormat_t format, int k,
                                         int c, int h, int w);
cudnnStatus_t cudnnCreateConvolutionDescriptor(cudnnConvolutionDescriptor_t *p);
cudnnStatus_t cudnnDestroyConvolutionDescriptor(cudnnConvolutionDescriptor_t p);
cudnnStatus_t cudnnSetConvolution2dDescriptor(cudnnConvolutionDescriptor_t p,
                                              int padH, int padW, int strideH,
                                              int strideW, int dilationH,
                                              int dilationW,
                                              cudnnConvolutionMode_t mode,
                                              cudnnDataType_t compute);
cudnnStatus_t cudnnSetConvolutionGroupCount(cudnnConvolutionDescriptor_t p,
                                            int groups);
cudnnStatus_t cudnnSetConvolutionMathType(cudnnConvolutionDescriptor_t p,
                                          cudnnMathType_t math);
cudnnStatus_t cudnnGetConvolution2dForwardOutputDim(
    cudnnConvolutionDescriptor_t w, cudnnTensorDescriptor_t x,
    cudnnFilterDescriptor_t f, int *n, int *c, int *h, int *v);
cudnnStatus_t cudnnGetConvolutionForwardAlgorithm_v7(
    cudnnHandle_t handle, cudnnTensorDescriptor_t x, cudnnFilterDescriptor_t f,
    cudnnConvolutionDescriptor_t w, cudnnTensorDescriptor_t y, int requested,
    int *count, cudnnConvolutionFwdAlgoPerf_t *candidates);
cudnnStatus_t cudnnGetConvolutionBackwardDataAlgorithm_v7(
    cudnnHandle_t handle, cudnnFilterDescriptor_t f, cudnnTensorDescriptor_t dy,
    cudnnConvolutionDescriptor_t w, cudnnTensorDescriptor_t dx, int requested,
    int *count, cudnnConvolutionBwdDataAlgoPerf_t *candidates);
cudnnStatus_t cudnnGetConvolutionBackwardFilterAlgorithm_v7(
    cudnnHandle_t handle, cudnnTensorDescriptor_t x, cudnnTensorDescriptor_t dy,
    cudnnConvolutionDescriptor_t w, cudnnFilterDescriptor_t df, int requested,
    int *count, cudnnConvolutionBwdFilterAlgoPerf_t *candidates);
cudnnStatus_t cudnnGetConvolutionForwardWorkspaceSize(
    cudnnHandle_t handle, cudnnTensorDescriptor_t x, cudnnFilterDescriptor_t f,
    cudnnConvolutionDescriptor_t w, cudnnTensorDescriptor_t y,
    cudnnConvolutionFwdAlgo_t algo, size_t *bytes);
cudnnStatus_t cudnnGetConvolutionBackwardDataWorkspaceSize(
    cudnnHandle_t handle, cudnnFilterDescriptor_t f, cudnnTensorDescriptor_t dy,
    cudnnConvolutionDescriptor_t w, cudnnTensorDescriptor_t dx,
    cudnnConvolutionBwdDataAlgo_t algo, size_t *bytes);
cudnnStatus_t cudnnGetConvolutionBackwardFilterWorkspaceSize(
    cudnnHandle_t handle, cudnnTensorDescriptor_t x, cudnnTensorDescriptor_t dy,
    cudnnConvolutionDescriptor_t w, cudnnFilterDescriptor_t df,
    cudnnConvolutionBwdFilterAlgo_t algo, size_t *bytes);
cudnnStatus_t cudnnConvolutionForward(
    cudnnHandle_t handle, const void *alpha, cudnnTensorDescriptor_t x,
    const void *xAt, cudnnFilterDescriptor_t f, const void *fAt,
    cudnnConvolutionDescriptor_t w, cudnnConvolutionFwdAlgo_t algo,
    void *workspace, size_t bytes, const void *beta, cudnnTensorDescriptor_t y,
    void *yAt);
cudnnStatus_t cudnnConvolutionBackwardData(
    cudnnHandle_t handle, const void *alpha, cudnnFilterDescriptor_t f,
    const void *fAt, cudnnTensorDescriptor_t dy, const void *dyAt,
    cudnnConvolutionDescriptor_t w, cudnnConvolutionBwdDataAlgo_t algo,
    void *workspace, size_t bytes, const void *beta, cudnnTensorDescriptor_t dx,
    void *dxAt);
cudnnStatus_t cudnnConvolutionBackwardFilter(
    cudnnHandle_t handle, const void *alpha, cudnnTensorDescriptor_t x,
    const void *xAt, cudnnTensorDescriptor_t dy, const void *dyAt,
    cudnnConvolutionDescriptor_t w, cudnnConvolutionBwdFilterAlgo_t algo,
    void *workspace, size_t bytes, const void *beta, cudnnFilterDescriptor_t df,
    void *dfAt);
}

#endif // TMC_TEST_CUDA_EMULATOR_CUDNN_H
