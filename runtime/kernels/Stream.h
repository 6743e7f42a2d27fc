//===- Stream.h - a queue of launches ---------------------------*- C++ -*-===//
//
// Launches of one stream run in the order in which they were given. On the cpu
// backend a launch has run when the call returns, and `native()` is the
// ThreadPool; on cuda it is the cudaStream_t.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_KERNELS_STREAM_H
#define TMC_RUNTIME_KERNELS_STREAM_H

#include <cstdint>

namespace tmc {

/// An index that a kernel met outside its table. The kernel reads row 0 (or
/// skips the row) instead, so that no memory outside the table is touched; the
/// first fault of a step becomes its error.
struct IndexFault {
  bool set = false;
  int64_t row = 0;   // where in the index tensor
  int64_t value = 0; // what stood there
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

private:
  void *native_;
};

} // namespace tmc

#endif // TMC_RUNTIME_KERNELS_STREAM_H
