// Target.h - what a step is compiled for: rates, sizes, and the backend.
//
// A description is constants, never a look at the machine at hand: the same
// input gives the same plan everywhere. `--target` names one (`cpu`,
// `cuda:rtx3060`), a CUDA architecture (`cuda:sm_90`: a typical card of it), or
// a file that a calibration wrote.

#ifndef TMC_COMPILER_TARGET_TARGET_H
#define TMC_COMPILER_TARGET_TARGET_H

#include "runtime/kernels/Kernel.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tmc {

struct Target {
  std::string name;
  Backend backend = Backend::Cpu;
  std::string arch;              // "sm_90"; empty for cpu.
  int64_t memoryBytes = -1;      // Of the device; -1: no limit.
  int64_t reservedBytes = 0;     // Context and library handles.
  double flopsPerSecond = 0;     // Of a large matrix product.
  double bytesPerSecond = 0;     // Of device memory.
  double launchSeconds = 0;      // Before a kernel does anything.
  double hostBytesPerSecond = 0; // Between device and host, each way.
  int64_t arenaAlignment = 256;  // Of every buffer.

  /// Seconds that a kernel takes by the roofline of this target.
  double seconds(int64_t flops, int64_t bytes) const;
  /// The same in picoseconds, at least 1: the unit of planning costs.
  int64_t picoseconds(int64_t flops, int64_t bytes) const;
};

/// The target named `text`; nothing where there is none of that name.
std::optional<Target> findTarget(const std::string &text);

/// The names that `findTarget` knows, for messages.
std::vector<std::string> targetNames();

} // namespace tmc

#endif // TMC_COMPILER_TARGET_TARGET_H
