//===- HostUpdates.h - the cpu backend's updates, beside cuda's -*- C++ -*-===//
//
// HostUpdates.cpp compiles runtime/cpu/Optimizer.cpp inside a namespace, so
// that one library can hold its classes and this backend's classes with the
// same names. Parameters are passed as bytes: both declarations of a class come
// from the same source.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_CUDA_HOSTUPDATES_H
#define TMC_RUNTIME_CUDA_HOSTUPDATES_H

#include "runtime/kernels/Kernel.h"
#include "runtime/kernels/OnHostList.h"

#include <memory>

namespace tmc::host {

/// Whether this processor has the instructions that the updates use.
bool canRun();

#define TMC_DECLARE_MAKE(NAME)                                                 \
  std::unique_ptr<Kernel> make##NAME(const void *params);
TMC_FOR_EACH_ON_HOST(TMC_DECLARE_MAKE)
#undef TMC_DECLARE_MAKE

} // namespace tmc::host

#endif // TMC_RUNTIME_CUDA_HOSTUPDATES_H
