// Host.h - what a device has beside it: its host's memory, and a file.
//
//                 toHost                write
//     device  ------------->   host  ------------->  file
//             <-------------  memory  <-------------
//                toDevice        |          read
//                                | updates
//                             kernels of optimizers
//
// Each arrow is a channel: its transfers run one after the other, beside those
// of every other channel and beside the device's and the host's kernels. Rates
// are those of all of them together where they were measured, published ones of
// each alone in built-in targets.
//
// On a cpu target the device is memory of the same machine, in a heap of its
// own: a transfer is a copy by a thread.

#ifndef TMC_COMPILER_TARGET_HOST_H
#define TMC_COMPILER_TARGET_HOST_H

#include "compiler/target/Roofline.h"

#include <cstdint>

namespace tmc {

/// One direction of transfers.
struct Channel {
  double latencySeconds = 0; // Of each transfer, before its first byte.
  double bytesPerSecond = 0;

  /// Of one transfer.
  double seconds(double bytes) const {
    return latencySeconds + bytes / bytesPerSecond;
  }
};

struct HostDescription {
  int64_t memoryBytes = -1; // -1: unknown.
  Channel toHost, toDevice; // From the device, and back.
  /// Of an optimizer's rule that the host runs; bytes are of the host's memory.
  Roofline updates;
};

struct FileDescription {
  int64_t bytes = -1;  // -1: unknown.
  Channel write, read; // From the host's memory, and back.
};

} // namespace tmc

#endif // TMC_COMPILER_TARGET_HOST_H
