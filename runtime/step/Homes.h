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

#include <atomic>
#include <utility>

namespace tmc {

class Homes {
public:
  /// `samples` gets a sum over samples of all that is written to tensors in
  /// shards: equal on ranks that write the same wholes in the same pieces.
  explicit Homes(Device &device, SwapFile *file = nullptr,
                 std::atomic<uint64_t> *samples = nullptr)
      : device_(device), file_(file), samples_(samples) {}

  Device &device() const { return device_; }

  /// Moves `bytes` bytes of a tensor from byte `first` on. Any number of
  /// threads may call for different pieces of tensors that aren't in a file.
  ///
  /// A write to a tensor of which ranks have shards or pieces keeps this rank's
  /// bytes. A read is of all ranks: each calls for the same bytes, in one
  /// order, by one thread.
  Status write(const TensorInfo &tensor, int64_t first, const void *from,
               int64_t bytes) const;
  Status read(const TensorInfo &tensor, int64_t first, void *to,
              int64_t bytes) const;

  uint64_t samples() const { return samples_ ? samples_->load() : 0; }

  /// False on the ranks for which another one writes files.
  bool writesFiles() const;

  /// Overwrites a region with NaNs, or makes reading it an error. All engines
  /// must be idle.
  void poison(const Region &region) const;
  /// Reads the bytes of a region.
  Status read(const Region &region, void *to) const;

  /// The bytes that this rank's arena holds of a tensor, from byte `first` on
  /// of the whole, or of its piece.
  Status writeHeld(const TensorInfo &tensor, int64_t first, const void *from,
                   int64_t bytes) const;
  Status readHeld(const TensorInfo &tensor, int64_t first, void *to,
                  int64_t bytes) const;
  /// Writes zeros to all of a shard, of which `tensor` is the first: nothing
  /// else writes its padding.
  Status clearShard(const TensorInfo &tensor) const;
  /// The bytes of a tensor, or of its piece, that this rank's arena holds:
  /// [first, second).
  std::pair<int64_t, int64_t> heldBytes(const TensorInfo &tensor) const;

private:
  /// Bytes of a piece; a shard's owner has them. Of all ranks that share a
  /// batch.
  Status readPiece(const TensorInfo &tensor, int64_t first, void *to,
                   int64_t bytes) const;
  /// The place of byte `first` of a tensor, which this rank holds.
  Region regionOf(const TensorInfo &tensor, int64_t first, int64_t bytes) const;

  Device &device_;
  SwapFile *file_;
  std::atomic<uint64_t> *samples_;
};

} // namespace tmc

#endif // TMC_RUNTIME_STEP_HOMES_H
