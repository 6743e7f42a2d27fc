//===- Stream.h - a queue of launches ---------------------------*- C++ -*-===//
//
// Launches of one stream run in order. On the cpu backend a launch has finished
// when the call returns, and `native()` is the ThreadPool; on cuda it is the
// cudaStream_t.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_KERNELS_STREAM_H
#define TMC_RUNTIME_KERNELS_STREAM_H

#include "runtime/kernels/Status.h"

#include <cstdint>

namespace tmc {

/// An index outside the table of a kernel. The kernel reads row 0 instead (or
/// skips the row), so memory outside the table isn't touched. The first fault
/// of a step becomes its error.
struct IndexFault {
  bool set = false;
  int64_t row = 0;   // position in the index tensor
  int64_t value = 0; // the wrong index
  int64_t limit = 0; // indices must be in [0, limit)
};

class Stream {
public:
  explicit Stream(void *native) : native_(native) {}
  void *native() const { return native_; }

  /// Written by cpu kernels between parallel parts, read by Step after the
  /// step. On cuda the kernels write a word in device memory, which the
  /// device's synchronize() copies here.
  IndexFault fault;
  /// The error of a transfer that a kernel of the network waited for; it voids
  /// the step.
  Status failure;

private:
  void *native_;
};

} // namespace tmc

#endif // TMC_RUNTIME_KERNELS_STREAM_H
