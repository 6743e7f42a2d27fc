//===- Portable.h - shared code for g++ and nvcc ----------------*- C++ -*-===//
//
// Macros by which a function can be written once and be compiled by g++ for the
// host and by nvcc for both host and device.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_KERNELS_PORTABLE_H
#define TMC_RUNTIME_KERNELS_PORTABLE_H

#ifdef __CUDACC__
#define TMC_HD __host__ __device__
#else
#define TMC_HD
#endif

/// Defined if this code is compiled for a GPU, or for the host's emulation of
/// one.
#if defined(__CUDACC__) || defined(TMC_CUDA_EMULATED)
#define TMC_CUDA
#endif

#define TMC_INLINE inline __attribute__((always_inline))

#endif // TMC_RUNTIME_KERNELS_PORTABLE_H
