// Host.h - the memory beside a device: its host's memory, and a file.
//
//                 toHost                write
//     device  ------------->   host  ------------->  file
//             <-------------  memory  <-------------
//                toDevice        |          read
//                                | updates
//                             kernels of optimizers
//
// Each arrow is a channel: its transfers run one after the other, in parallel
// with every other channel and with the kernels of the device and the host. In
// measured targets, rates are those of all channels working together; in
// built-in targets, published rates of each channel alone.
//
// On a cpu target the device is memory of the same machine, in a heap of its
// own: a thread copies for each transfer.

#ifndef TMC_COMPILER_TARGET_HOST_H
#define TMC_COMPILER_TARGET_HOST_H

#include "compiler/target/Roofline.h"

#include <cstdint>

namespace tmc {

/// One direction of transfers.
struct Channel {
  double latencySeconds = 0; // Before the first byte of each transfer.
  double bytesPerSecond = 0;

  /// Seconds of one transfer.
  double seconds(double bytes) const {
    return latencySeconds + bytes / bytesPerSecond;
  }
};

struct HostDescription {
  int64_t memoryBytes = -1; // -1: unknown.
  Channel toHost, toDevice; // From the device, and back.
  /// For an optimizer's rule that the host runs; bytes are of the host's
  /// memory.
  Roofline updates;
};

struct FileDescription {
  int64_t bytes = -1;  // -1: unknown.
  Channel write, read; // From the host's memory, and back.
};

} // namespace tmc

#endif // TMC_COMPILER_TARGET_HOST_H
