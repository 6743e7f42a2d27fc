//===- LaunchText.h - the two phrases that only nvcc reads ------*- C++ -*-===//
//
// A launch and dynamic shared memory have syntax of their own. A build that
// reads kernels with another compiler defines both macros before it includes
// anything of the backend; then every kernel runs as it stands on a machine
// without a GPU.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_CUDA_LAUNCHTEXT_H
#define TMC_RUNTIME_CUDA_LAUNCHTEXT_H

#ifndef TMC_LAUNCH
#define TMC_LAUNCH(kernel, grid, block, sharedBytes, stream, ...)              \
  kernel<<<grid, block, size_t(sharedBytes), stream>>>(__VA_ARGS__)
#define TMC_DYNAMIC_SHARED(name)                                               \
  extern __shared__ __align__(16) unsigned char name[]
#endif

#endif // TMC_RUNTIME_CUDA_LAUNCHTEXT_H
