// SystemMemory.h - how much main memory this machine has.

#ifndef TMC_DRIVER_PIPELINE_SYSTEMMEMORY_H
#define TMC_DRIVER_PIPELINE_SYSTEMMEMORY_H

#include <cstdint>

namespace tmc {

struct SystemMemory {
  int64_t totalBytes = -1, availableBytes = -1; // -1: unknown.
};

/// The numbers of /proc/meminfo. Available memory includes caches that the
/// system frees on demand.
SystemMemory systemMemory();

} // namespace tmc

#endif // TMC_DRIVER_PIPELINE_SYSTEMMEMORY_H
