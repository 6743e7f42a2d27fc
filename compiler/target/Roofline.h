// Roofline.h - a kernel's time from its operations and bytes.
//
//     seconds = launch + max(flops / flopsPerSecond, bytes / bytesPerSecond)

#ifndef TMC_COMPILER_TARGET_ROOFLINE_H
#define TMC_COMPILER_TARGET_ROOFLINE_H

namespace tmc {

/// The parameters of a kernel's time.
struct Roofline {
  double launchSeconds = 0;  // Before a kernel does any work.
  double flopsPerSecond = 0; // A multiply-add is two.
  double bytesPerSecond = 0; // The rate of the kernel's memory.

  double seconds(double flops, double bytes) const;
};

} // namespace tmc

#endif // TMC_COMPILER_TARGET_ROOFLINE_H
