//===- FileRing.h - transfers by io_uring -----------------------*- C++ -*-===//
//
// The part of io_uring that the swap file needs: queue reads and writes of one
// file, then take completions one at a time. It uses the kernel's system calls,
// so a step links no extra library.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_STEP_FILERING_H
#define TMC_RUNTIME_STEP_FILERING_H

#include <cstdint>
#include <memory>

struct io_uring_sqe;
struct io_uring_cqe;

namespace tmc {

class Ring {
public:
  /// Null if the kernel has no io_uring or doesn't permit it.
  static std::unique_ptr<Ring> create(int file);
  ~Ring();

  /// The largest number of requests in flight.
  static constexpr int kDepth = 8;

  struct Done {
    uint64_t tag;
    int64_t result; // bytes, or a negative errno
  };

  /// Queues one request; at most kDepth are in flight. False if the kernel
  /// refuses it, with errno set.
  bool submit(bool writes, void *data, int64_t bytes, int64_t offset,
              uint64_t tag);
  /// Waits for a request. False as above, with errno set.
  bool wait(Done &done);

private:
  Ring() = default;

  int fd_ = -1, file_ = -1;
  void *submissions_ = nullptr, *completions_ = nullptr;
  io_uring_sqe *entries_ = nullptr;
  uint64_t submissionBytes_ = 0, completionBytes_ = 0, entryBytes_ = 0;
  uint32_t *tail_ = nullptr, *mask_ = nullptr, *array_ = nullptr;
  uint32_t *doneHead_ = nullptr, *doneTail_ = nullptr, *doneMask_ = nullptr;
  io_uring_cqe *done_ = nullptr;
};

} // namespace tmc

#endif // TMC_RUNTIME_STEP_FILERING_H
