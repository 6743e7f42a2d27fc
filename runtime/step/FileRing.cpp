//===- FileRing.cpp - transfers by io_uring -------------------------------===//

#include "runtime/step/FileRing.h"

#include <atomic>
#include <cerrno>
#include <cstring>
#include <linux/io_uring.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace tmc {

namespace {

int setUp(unsigned entries, io_uring_params *params) {
  return int(syscall(__NR_io_uring_setup, entries, params));
}
int enter(int fd, unsigned submit, unsigned wait, unsigned flags) {
  return int(syscall(__NR_io_uring_enter, fd, submit, wait, flags, nullptr, 0));
}

char *mapRing(int fd, uint64_t bytes, uint64_t offset) {
  void *at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                  MAP_SHARED | MAP_POPULATE, fd, off_t(offset));
  return at == MAP_FAILED ? nullptr : static_cast<char *>(at);
}

template <typename T> T *at(char *base, uint32_t offset) {
  return reinterpret_cast<T *>(base + offset);
}

} // namespace

std::unique_ptr<Ring> Ring::create(int file) {
  io_uring_params params;
  std::memset(&params, 0, sizeof params);
  std::unique_ptr<Ring> ring(new Ring);
  ring->fd_ = setUp(kDepth, &params);
  if (ring->fd_ < 0)
    return nullptr;
  ring->file_ = file;
  ring->submissionBytes_ =
      params.sq_off.array + params.sq_entries * sizeof(uint32_t);
  ring->completionBytes_ =
      params.cq_off.cqes + params.cq_entries * sizeof(io_uring_cqe);
  ring->entryBytes_ = params.sq_entries * sizeof(io_uring_sqe);
  char *sq = mapRing(ring->fd_, ring->submissionBytes_, IORING_OFF_SQ_RING);
  ring->submissions_ = sq;
  char *cq = mapRing(ring->fd_, ring->completionBytes_, IORING_OFF_CQ_RING);
  ring->completions_ = cq;
  char *entries = mapRing(ring->fd_, ring->entryBytes_, IORING_OFF_SQES);
  ring->entries_ = reinterpret_cast<io_uring_sqe *>(entries);
  if (!sq || !cq || !entries)
    return nullptr;
  ring->tail_ = at<uint32_t>(sq, params.sq_off.tail);
  ring->mask_ = at<uint32_t>(sq, params.sq_off.ring_mask);
  ring->array_ = at<uint32_t>(sq, params.sq_off.array);
  ring->doneHead_ = at<uint32_t>(cq, params.cq_off.head);
  ring->doneTail_ = at<uint32_t>(cq, params.cq_off.tail);
  ring->doneMask_ = at<uint32_t>(cq, params.cq_off.ring_mask);
  ring->done_ = at<io_uring_cqe>(cq, params.cq_off.cqes);
  return ring;
}

Ring::~Ring() {
  if (submissions_)
    munmap(submissions_, submissionBytes_);
  if (completions_)
    munmap(completions_, completionBytes_);
  if (entries_)
    munmap(entries_, entryBytes_);
  if (fd_ >= 0)
    close(fd_);
}

bool Ring::submit(bool writes, void *data, int64_t bytes, int64_t offset,
                  uint64_t tag) {
  // The kernel has taken all earlier submissions: enter() returned.
  const uint32_t tail = *tail_, index = tail & *mask_;
  io_uring_sqe &entry = entries_[index];
  std::memset(&entry, 0, sizeof entry);
  entry.opcode = writes ? IORING_OP_WRITE : IORING_OP_READ;
  entry.fd = file_;
  entry.off = uint64_t(offset);
  entry.addr = reinterpret_cast<uint64_t>(data);
  entry.len = uint32_t(bytes);
  entry.user_data = tag;
  array_[index] = index;
  std::atomic_ref<uint32_t>(*tail_).store(tail + 1, std::memory_order_release);
  int taken;
  do
    taken = enter(fd_, 1, 0, 0);
  while (taken < 0 && (errno == EINTR || errno == EAGAIN || errno == EBUSY));
  return taken == 1;
}

bool Ring::wait(Done &done) {
  const std::atomic_ref<uint32_t> head(*doneHead_), tail(*doneTail_);
  const uint32_t next = head.load(std::memory_order_relaxed);
  while (tail.load(std::memory_order_acquire) == next)
    if (enter(fd_, 0, 1, IORING_ENTER_GETEVENTS) < 0 && errno != EINTR)
      return false;
  const io_uring_cqe &entry = done_[next & *doneMask_];
  done = {entry.user_data, entry.res};
  head.store(next + 1, std::memory_order_release);
  return true;
}

} // namespace tmc
