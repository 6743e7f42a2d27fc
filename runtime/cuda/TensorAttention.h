//===- TensorAttention.h - attention on tensor cores ------------*- C++ -*-===//
//
// The kernels of TensorAttention.cu and TensorAttentionGrad.cu, for
// Attention.cu and AttentionGrad.cu. They compute the same results as the
// kernels of those files, with the same masks, dropout and windows, for bf16
// operands, and for f32 operands with AttentionParams::tf32.
//
// Products of operands are exact and added up in f32. Results of the softmax
// and their gradients are rounded to bf16 before the second products, as
// PyTorch's kernels do. With AttentionParams::exact they enter these as two
// bf16 numbers, the rounded value and the rounded rest: 16 bits in total. So
// results then equal those of the f32 kernels up to the order of sums, not to
// the bit. f16 doesn't have enough range: gradients of scores overflow if a
// loss is scaled.
//
// With tf32, all factors of products are rounded to TF32: q, k, v and dout, and
// probabilities and gradients of scores. A rounding is at most 2^-11 of its
// number, and to nearest. Products are exact and added up in f32.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_CUDA_TENSORATTENTION_H
#define TMC_RUNTIME_CUDA_TENSORATTENTION_H

#include "runtime/cuda/Cuda.h"
#include "runtime/kernels/Attention.h"

namespace tmc::cuda {

/// The operands and results of the gradients of attention. `dots` [batch,
/// heads, queries]: for each query, the sum over channels of dout * out.
struct GradOperands {
  const void *q, *k, *v, *out, *dout;
  const float *lse;
  AttentionExtras extras;
  float *dots;
  void *dq, *dk, *dv;
  float *dbias, *slices;       // from the second slice of the batch on
  uint32_t *dropped = nullptr; // words of TensorDropout.h, if there is room
};

/// Whether the device has tensor cores and shared memory for these kernels, and
/// the operands have their form: bf16, or f32 with tf32; heads of up to 128
/// channels.
bool takesTensorCores(const CudaDevice &device, const AttentionParams &p);

Status prepareTensorAttention(const CudaDevice &device,
                              const AttentionParams &p);
void runTensorAttention(Queue &queue, const AttentionParams &p, const void *q,
                        const void *k, const void *v,
                        const AttentionExtras &extras, void *out, float *lse);

/// Computes dq, dk and dv; the dots must be complete.
Status prepareTensorGradients(const CudaDevice &device,
                              const AttentionParams &p);
void runTensorGradients(Queue &queue, const AttentionParams &p,
                        const GradOperands &operands);

} // namespace tmc::cuda

#endif // TMC_RUNTIME_CUDA_TENSORATTENTION_H
