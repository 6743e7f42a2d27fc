// Host.h - the rates of the engines that move bytes between spaces.
//
// Each engine that copies (runtime/kernels/Machine.h) is a channel: its
// transfers run one after the other, in parallel with every other engine. In
// measured targets, rates are those of all engines working together; in
// built-in targets, published rates of each engine alone.
//
// On a cpu target the device is memory of the same machine, in a heap of its
// own: a thread copies for each transfer.

#ifndef TMC_COMPILER_TARGET_HOST_H
#define TMC_COMPILER_TARGET_HOST_H

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

} // namespace tmc

#endif // TMC_COMPILER_TARGET_HOST_H
