//===- Stream.h - a queue of launches ---------------------------*- C++ -*-===//
//
// Launches of one stream run in the order in which they were given. On the cpu
// backend a launch has run when the call returns, and `native()` is the
// ThreadPool; on cuda it is the cudaStream_t.
//
// An emitted step says after each launch which one it was:
//
//     k.matmul_0.run(s, {at(0x1000), at(0x2000)}, {at(0x3000)}, at(0x4000));
//     s.launched(17);
//
// That costs one test of a pointer, and lets an observer (poison, check-finite,
// a profile) act between launches by the program's table of launches.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_KERNELS_STREAM_H
#define TMC_RUNTIME_KERNELS_STREAM_H

#include <cstdint>

namespace tmc {

class Stream;

/// Is told of each launch of a step, after it was queued.
class LaunchObserver {
public:
  virtual ~LaunchObserver() = default;
  /// `launch` indexes StepProgram::launches.
  virtual void launched(Stream &stream, int64_t launch) = 0;
};

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

  void setObserver(LaunchObserver *observer) { observer_ = observer; }
  void launched(int64_t launch) {
    if (observer_)
      observer_->launched(*this, launch);
  }

  /// Written by cpu kernels between parallel parts, read by Step after the
  /// step. On cuda the kernels write a word in device memory, which the
  /// device's synchronize() copies here.
  IndexFault fault;

private:
  void *native_;
  LaunchObserver *observer_ = nullptr;
};

} // namespace tmc

#endif // TMC_RUNTIME_KERNELS_STREAM_H
