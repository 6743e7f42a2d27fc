//===- Homes.h - where the tensors of a program are -------------*- C++ -*-===//
//
// Between two steps each tensor of a program is in the arena of its space. All
// code except the step itself reads and writes tensors through this class:
// loaded weights, saved checkpoints, and the data of each step.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_STEP_HOMES_H
#define TMC_RUNTIME_STEP_HOMES_H

#include "runtime/step/Device.h"
#include "runtime/step/Program.h"
#include "runtime/step/SwapFile.h"

namespace tmc {

class Homes {
public:
  explicit Homes(Device &device, SwapFile *file = nullptr)
      : device_(device), file_(file) {}

  Device &device() const { return device_; }

  /// Moves `bytes` bytes of a tensor from byte `first` on. Any number of
  /// threads may call for different pieces of tensors that aren't in a file.
  Status write(const TensorInfo &tensor, int64_t first, const void *from,
               int64_t bytes) const;
  Status read(const TensorInfo &tensor, int64_t first, void *to,
              int64_t bytes) const;

  /// Overwrites a region with NaNs, or makes reading it an error. All engines
  /// must be idle.
  void poison(const Region &region) const;
  /// Reads the bytes of a region.
  Status read(const Region &region, void *to) const;

private:
  Device &device_;
  SwapFile *file_;
};

} // namespace tmc

#endif // TMC_RUNTIME_STEP_HOMES_H
