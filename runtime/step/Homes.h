//===- Homes.h - where the tensors of a program are -------------*- C++ -*-===//
//
// Between two steps each tensor of a program is in the arena of its space. This
// is how everything but the step itself reaches it: weights on their way in,
// checkpoints on their way out, this step's data.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_STEP_HOMES_H
#define TMC_RUNTIME_STEP_HOMES_H

#include "runtime/step/Device.h"
#include "runtime/step/FileArena.h"
#include "runtime/step/Program.h"

namespace tmc {

class Homes {
public:
  explicit Homes(Device &device, FileArena *file = nullptr)
      : device_(device), file_(file) {}

  Device &device() const { return device_; }

  /// `bytes` of a tensor from its byte `first` on; in a file that is a multiple
  /// of kFileBlockBytes, and a piece that is written is read as a whole or in
  /// whole blocks. Any number of threads may call, for different pieces.
  Status write(const TensorInfo &tensor, int64_t first, const void *from,
               int64_t bytes) const;
  Status read(const TensorInfo &tensor, int64_t first, void *to,
              int64_t bytes) const;

  /// Overwrites a region with NaNs, or makes reading it an error. All engines
  /// are idle.
  void poison(const Region &region) const;
  /// The bytes of a region.
  Status read(const Region &region, void *to) const;

private:
  Device &device_;
  FileArena *file_;
};

} // namespace tmc

#endif // TMC_RUNTIME_STEP_HOMES_H
