//===- FileRing.h - transfers by io_uring -----------------------*- C++ -*-===//
//
// As much of io_uring as the file's arena needs: queue reads and writes of one
// file, then take one completion after the other. It asks the kernel by its
// calls, so that a step links no library for it.
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
  /// Null where the kernel has none, or doesn't let us have one.
  static std::unique_ptr<Ring> create(int file);
  ~Ring();

  /// Requests that may be on their way at once.
  static constexpr int kDepth = 8;

  struct Done {
    uint64_t tag;
    int64_t result; // bytes, or a negative errno
  };

  /// Queues one request; at most kDepth are on their way. False where the
  /// kernel refuses it, with errno set.
  bool submit(bool writes, void *data, int64_t bytes, int64_t offset,
              uint64_t tag);
  /// Waits for a request. False as above.
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
