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

#include <memory>

namespace tmc::host {

/// Whether this processor has the instructions that they were compiled for.
bool canRun();

std::unique_ptr<Kernel> makeAdamW(const void *params);
std::unique_ptr<Kernel> makeAdamW8bit(const void *params);
std::unique_ptr<Kernel> makeSgd(const void *params);
std::unique_ptr<Kernel> makeSquareSum(const void *params);
std::unique_ptr<Kernel> makeGradNorm(const void *params);
std::unique_ptr<Kernel> makeLossScale(const void *params);

} // namespace tmc::host

#endif // TMC_RUNTIME_CUDA_HOSTUPDATES_H
