//===- LaunchText.h - syntax that only nvcc reads ---------------*- C++ -*-===//
//
// A launch and dynamic shared memory have their own syntax. A build with
// another compiler defines both macros before it includes a header of the
// backend. Then every kernel runs unchanged on a machine without a GPU.
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
