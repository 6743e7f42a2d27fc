// Target.h - what a step is compiled for: rates, sizes, and the backend.
//
// A description is constants, never a look at the machine at hand: the same
// input gives the same plan everywhere. `--target` names one (`cpu`,
// `cuda:rtx3060`), a CUDA architecture (`cuda:sm_90`: a typical card of it), or
// a file that `tmc calibrate` wrote.
//
// A kernel's time is that of a roofline with a start:
//
//     seconds = launch + max(flops / flopsPerSecond, bytes / bytesPerSecond)
//
// Built-in targets have one roofline, of a large matrix product and of device
// memory. A calibration has one for each family of kernels that it measured.

#ifndef TMC_COMPILER_TARGET_TARGET_H
#define TMC_COMPILER_TARGET_TARGET_H

#include "runtime/kernels/Kernel.h"

#include "absl/status/statusor.h"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace tmc {

/// What a kernel's time follows from.
struct Roofline {
  double launchSeconds = 0;  // Before a kernel does anything.
  double flopsPerSecond = 0; // A multiply-add is two.
  double bytesPerSecond = 0; // Of device memory.

  double seconds(double flops, double bytes) const;
};

struct Target {
  std::string name;
  Backend backend = Backend::Cpu;
  std::string arch;          // "sm_90"; empty for cpu.
  int64_t memoryBytes = -1;  // Of the device; -1: no limit.
  int64_t reservedBytes = 0; // Context and library handles.
  Roofline roofline;         // Of kernels that `families` doesn't name.
  /// By the kernel's class in the runtime ("Matmul"), "Fused" for generated
  /// ones.
  std::map<std::string, Roofline> families;
  double hostBytesPerSecond = 0; // Between device and host, each way.
  int64_t arenaAlignment = 256;  // Of every buffer.

  /// Seconds that a kernel of `family` takes.
  double seconds(const std::string &family, int64_t flops, int64_t bytes) const;
  /// The same in picoseconds, at least 1: the unit of planning costs.
  int64_t picoseconds(const std::string &family, int64_t flops,
                      int64_t bytes) const;
};

/// The target named `text`, or described by the file of that path. NotFound
/// where there is neither; another error where the file can't be read or isn't
/// a description.
absl::StatusOr<Target> findTarget(const std::string &text);

/// The names that `findTarget` knows, for messages.
std::vector<std::string> targetNames();

/// True if `findTarget` would take `text` for the path of a file.
bool isTargetFile(const std::string &text);

/// A description as a file (JSON), and back. `name` is used in errors.
std::string targetToJson(const Target &target);
absl::StatusOr<Target> targetFromJson(const std::string &json,
                                      const std::string &name);

} // namespace tmc

#endif // TMC_COMPILER_TARGET_TARGET_H
