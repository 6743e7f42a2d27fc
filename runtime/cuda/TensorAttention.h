//===- TensorAttention.h - attention of bf16 by tensor cores ----*- C++ -*-===//
//
// The kernels of TensorAttention.cu, for Attention.cu and AttentionGrad.cu:
// what the ones of those files compute of the same operands, with the same
// masks, dropout and windows, where operands are bf16.
//
// Products of operands are exact and added up in f32. What the softmax gives
// goes into the second products as two bf16 numbers, its rounded value and
// what that leaves: 16 bits of it count. So results are those of the f32
// kernels up to the order of sums, not to the bit. f16 hasn't the range for
// that: gradients of scores overflow where a loss is scaled.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_CUDA_TENSORATTENTION_H
#define TMC_RUNTIME_CUDA_TENSORATTENTION_H

#include "runtime/cuda/Cuda.h"
#include "runtime/kernels/Attention.h"

namespace tmc::cuda {

/// What gradients of attention read and write. `dots` [batch, heads, queries]:
/// for each query, the sum over channels of dout * out.
struct GradOperands {
  const void *q, *k, *v, *out, *dout;
  const float *lse;
  AttentionExtras extras;
  float *dots;
  void *dq, *dk, *dv;
  float *dbias, *slices; // of the second slice of the batch on
};

/// Whether the device has units and shared memory for these kernels, and the
/// operands are theirs: bf16, heads of up to 128 channels.
bool takesTensorCores(const CudaDevice &device, const AttentionParams &p);

Status prepareTensorAttention(const CudaDevice &device,
                              const AttentionParams &p);
void runTensorAttention(Queue &queue, const AttentionParams &p, const void *q,
                        const void *k, const void *v,
                        const AttentionExtras &extras, void *out, float *lse);

/// dq, dk and dv, once the dots are there.
Status prepareTensorGradients(const CudaDevice &device,
                              const AttentionParams &p);
void runTensorGradients(Queue &queue, const AttentionParams &p,
                        const GradOperands &operands);

} // namespace tmc::cuda

#endif // TMC_RUNTIME_CUDA_TENSORATTENTION_H
