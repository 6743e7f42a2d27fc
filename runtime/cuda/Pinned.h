//===- Pinned.h - arenas of the host's memory -------------------*- C++ -*-===//
//
// An arena beside the device is mapped, then registered with the driver in one
// piece ("pinned"), so that copies run beside the kernels. Systems limit how
// much can be pinned: an unprivileged container by `ulimit -l`, WSL2 to half of
// the machine's memory, any machine by what is free. A step that can't have its
// arena says how much there could be, and the flag that plans for it.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_CUDA_PINNED_H
#define TMC_RUNTIME_CUDA_PINNED_H

#include "runtime/kernels/Machine.h"
#include "runtime/kernels/Status.h"

#include <cstddef>
#include <cstdint>

namespace tmc::cuda {

/// Zeroed memory of at least `bytes` bytes for the arena of `space`, registered
/// with the driver, and its size in whole pages. Code::World: the system has
/// no such memory; the message says how much can be pinned now.
Status mapPinned(SpaceKind space, int64_t bytes, char *&memory,
                 size_t &mappedBytes);
void unmapPinned(char *memory, size_t mappedBytes);

} // namespace tmc::cuda

#endif // TMC_RUNTIME_CUDA_PINNED_H
