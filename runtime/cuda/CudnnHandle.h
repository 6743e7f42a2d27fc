//===- CudnnHandle.h - the device's handle of cuDNN -------------*- C++ -*-===//
//
// Convolutions (Dnn.cpp) and graphs (CudnnGraph.cpp) share one handle, which
// queues on the compute stream and lives as long as the device.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_CUDA_CUDNNHANDLE_H
#define TMC_RUNTIME_CUDA_CUDNNHANDLE_H

#include "runtime/cuda/Cuda.h"

#include <cudnn.h>

#include <memory>
#include <string>

namespace tmc::cuda {

/// Code::World, with the library's words, if it can't be made.
inline Status cudnnHandleOf(CudaDevice &device, cudnnHandle_t &handle) {
  if (!device.dnn) {
    cudnnHandle_t made = nullptr;
    if (cudnnStatus_t s = cudnnCreate(&made); s != CUDNN_STATUS_SUCCESS)
      return {Code::World,
              std::string("can't start cuDNN: ") + cudnnGetErrorString(s)};
    device.dnn = std::shared_ptr<void>(made, [](void *p) {
      (void)cudnnDestroy(static_cast<cudnnHandle_t>(p));
    });
    if (cudnnStatus_t s = cudnnSetStream(made, nativeOf(device.compute()));
        s != CUDNN_STATUS_SUCCESS)
      return {Code::World,
              std::string("cudnnSetStream: ") + cudnnGetErrorString(s)};
  }
  handle = static_cast<cudnnHandle_t>(device.dnn.get());
  return Status::ok();
}

} // namespace tmc::cuda

#endif // TMC_RUNTIME_CUDA_CUDNNHANDLE_H
