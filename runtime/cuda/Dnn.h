//===- Dnn.h - convolutions by cuDNN ----------------------------*- C++ -*-===//
//
// One convolution, or one of its gradients, on NHWC activations and an OHWI
// filter. cuDNN supports only padding that is equal on both sides, and may have
// no deterministic algorithm within the planned workspace. Then usable() is
// false and the caller uses plain kernels. prepare() makes this choice, from
// the shape and the library's heuristics, without timing.
//
// Math is true f32: tensor cores are off.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_CUDA_DNN_H
#define TMC_RUNTIME_CUDA_DNN_H

#include "runtime/cuda/Cuda.h"
#include "runtime/kernels/Conv.h"

namespace tmc::cuda {

enum class ConvKind { Forward, GradInput, GradFilter };

class DnnConv {
public:
  DnnConv();
  ~DnnConv();
  DnnConv(const DnnConv &) = delete;
  DnnConv &operator=(const DnnConv &) = delete;

  /// `workspaceBytes`: the most that the library may use, alignment included.
  Status prepare(CudaDevice &device, ConvKind kind, const ConvParams &params,
                 int64_t workspaceBytes);
  bool usable() const;
  int64_t workspaceBytes() const;

  /// The two operands and the result, in the order of the kernel class:
  /// (x, filter) -> y, (dy, filter) -> dx, (x, dy) -> dfilter.
  void run(const Queue &queue, const void *first, const void *second,
           void *result, void *workspace);

private:
  struct State;
  std::unique_ptr<State> state_;
};

} // namespace tmc::cuda

#endif // TMC_RUNTIME_CUDA_DNN_H
