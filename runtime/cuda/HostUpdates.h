//===- HostUpdates.h - the cpu backend's updates, beside cuda's -*- C++ -*-===//
//
// HostUpdates.cpp compiles the text of runtime/cpu/Optimizer.cpp within a
// namespace, so that its classes and those of this backend, which have the same
// names, can be in one library. Parameters are passed as bytes: the two
// declarations of a class are of one text.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_CUDA_HOSTUPDATES_H
#define TMC_RUNTIME_CUDA_HOSTUPDATES_H

#include "runtime/kernels/Kernel.h"
#include "runtime/kernels/OnHostList.h"

#include <memory>

namespace tmc::host {

/// Whether this processor has the instructions that they were compiled for.
bool canRun();

#define TMC_DECLARE_MAKE(NAME)                                                 \
  std::unique_ptr<Kernel> make##NAME(const void *params);
TMC_FOR_EACH_ON_HOST(TMC_DECLARE_MAKE)
#undef TMC_DECLARE_MAKE

} // namespace tmc::host

#endif // TMC_RUNTIME_CUDA_HOSTUPDATES_H
