// FileFaults.cpp - a library that tests load before a trainer (LD_PRELOAD): it
// stands between the runtime's swap file and the kernel, and does to one
// transfer what disks do.
//
//     TMC_FAULT=KIND:N     what befalls transfer number N of the file, from 0
//       enospc, eio        it ends with that error
//       short              it brings a page less than it was asked for, and so
//                          does each one after it
//       stall              it brings nothing whole, again and again
//       flip               one bit of what it writes is another in the file
//       lost               it reports success and writes nothing
//       truncate           the file is cut to half before it
//       kill               the process is killed there
//     TMC_FAULT_TRANSFERS=writes|reads   counts only these (default: both)
//     TMC_FAULT_RING=0     the kernel has no io_uring
//     TMC_FAULT_NAMELESS=0 the file system has no files without names
//     TMC_FAULT_START=ENOSPC             allocating the file fails
//     TMC_FAULT_COUNT=FILE the number of transfers is written there at exit
//
// Transfers go by pread and pwrite, or by a ring that the runtime asks the
// kernel for itself. Of a ring, the last entry is changed before the kernel is
// told of it, or made a no-op whose completion is then changed. The swap file
// is known by having no name.

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <fcntl.h>
#include <linux/io_uring.h>
#include <map>
#include <mutex>
#include <string>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace {

constexpr int64_t kPage = 4096;

std::string variable(const char *name) {
  const char *text = getenv(name);
  return text ? text : "";
}

template <typename F> F real(F, const char *name) {
  return reinterpret_cast<F>(dlsym(RTLD_NEXT, name));
}

struct Plan {
  std::string kind, transfers = variable("TMC_FAULT_TRANSFERS");
  int64_t at = -1;
  Plan() {
    const std::string text = variable("TMC_FAULT");
    const size_t colon = text.find(':');
    kind = text.substr(0, colon);
    if (colon != std::string::npos)
      at = atoll(text.c_str() + colon + 1);
  }
};
const Plan &plan() {
  static const Plan plan;
  return plan;
}

std::atomic<int64_t> count{0};

/// Writes the count when the process exits.
struct AtExit {
  ~AtExit() {
    const std::string path = variable("TMC_FAULT_COUNT");
    if (path.empty())
      return;
    if (FILE *file = fopen(path.c_str(), "w")) {
      fprintf(file, "%lld\n", static_cast<long long>(count.load()));
      fclose(file);
    }
  }
} atExit;

bool isSwap(int fd) {
  struct stat info;
  return !fstat(fd, &info) && S_ISREG(info.st_mode) && info.st_nlink == 0;
}

/// What becomes of a transfer.
struct Verdict {
  int64_t bytes;          // to ask for
  const void *from;       // of a write, the bytes to write
  bool isDecided = false; // it has the result below, and never happens
  int64_t result = 0;
};

Verdict judge(bool writes, int fd, const void *data, int64_t bytes) {
  Verdict verdict{bytes, data};
  const Plan &p = plan();
  if ((p.transfers == "writes" && !writes) ||
      (p.transfers == "reads" && writes))
    return verdict;
  const int64_t number = count++;
  if (p.at < 0 || number < p.at)
    return verdict;
  const bool isIt = number == p.at;
  if (p.kind == "short" && bytes > kPage) {
    verdict.bytes = (bytes - 1) / kPage * kPage;
  } else if (p.kind == "stall") {
    verdict.isDecided = true;
    verdict.result = 1;
  } else if (!isIt) {
    return verdict;
  } else if (p.kind == "enospc" || p.kind == "eio") {
    verdict.isDecided = true;
    verdict.result = p.kind == "eio" ? -EIO : -ENOSPC;
  } else if (p.kind == "lost") {
    verdict.isDecided = true;
    verdict.result = bytes;
  } else if (p.kind == "flip") {
    // Never freed: the transfer may be under way for long.
    char *copy = static_cast<char *>(std::aligned_alloc(
        size_t(kPage), size_t((bytes + kPage - 1) / kPage * kPage)));
    memcpy(copy, data, size_t(bytes));
    copy[bytes / 3] = char(copy[bytes / 3] ^ 4);
    verdict.from = copy;
  } else if (p.kind == "truncate") {
    struct stat info;
    if (fstat(fd, &info) || ftruncate(fd, info.st_size / 2))
      abort();
  } else if (p.kind == "kill") {
    raise(SIGKILL);
  }
  return verdict;
}

/// A ring of the runtime's: where its entries and completions are.
struct Ring {
  io_uring_params params;
  char *submissions = nullptr, *completions = nullptr;
  io_uring_sqe *entries = nullptr;
};
std::mutex ringsMutex;
/// By their descriptors. What maps memory before main finds it made, too.
std::map<int, Ring> &rings() {
  static std::map<int, Ring> rings;
  return rings;
}

template <typename T> T &at(char *base, uint32_t offset) {
  return *reinterpret_cast<T *>(base + offset);
}

/// Changes the entry that is about to be given to the kernel; returns whether
/// its completion is to be changed, and to what.
bool changeEntry(Ring &ring, uint64_t &tag, int32_t &result) {
  const io_sqring_offsets &sq = ring.params.sq_off;
  const uint32_t mask = at<uint32_t>(ring.submissions, sq.ring_mask);
  const uint32_t tail = at<uint32_t>(ring.submissions, sq.tail);
  io_uring_sqe &entry = ring.entries[(
      &at<uint32_t>(ring.submissions, sq.array))[(tail - 1) & mask]];
  if ((entry.opcode != IORING_OP_READ && entry.opcode != IORING_OP_WRITE) ||
      !isSwap(entry.fd))
    return false;
  const Verdict verdict =
      judge(entry.opcode == IORING_OP_WRITE, entry.fd,
            reinterpret_cast<const void *>(entry.addr), entry.len);
  entry.addr = reinterpret_cast<uint64_t>(verdict.from);
  entry.len = uint32_t(verdict.bytes);
  if (!verdict.isDecided)
    return false;
  tag = entry.user_data;
  result = int32_t(verdict.result);
  memset(&entry, 0, sizeof entry);
  entry.opcode = IORING_OP_NOP;
  entry.user_data = tag;
  return true;
}

/// A no-op is complete when the kernel has been told of it.
void changeCompletion(Ring &ring, uint64_t tag, int32_t result) {
  const io_cqring_offsets &cq = ring.params.cq_off;
  const uint32_t mask = at<uint32_t>(ring.completions, cq.ring_mask);
  const uint32_t head = at<uint32_t>(ring.completions, cq.head);
  const uint32_t tail =
      std::atomic_ref<uint32_t>(at<uint32_t>(ring.completions, cq.tail))
          .load(std::memory_order_acquire);
  for (uint32_t i = head; i != tail; ++i) {
    io_uring_cqe &done =
        (&at<io_uring_cqe>(ring.completions, cq.cqes))[i & mask];
    if (done.user_data == tag) {
      done.res = result;
      return;
    }
  }
  abort();
}

} // namespace

extern "C" {

ssize_t pread(int fd, void *data, size_t bytes, off_t offset) {
  static const auto next = real(&pread, "pread");
  if (!isSwap(fd))
    return next(fd, data, bytes, offset);
  const Verdict verdict = judge(false, fd, data, int64_t(bytes));
  if (!verdict.isDecided)
    return next(fd, data, size_t(verdict.bytes), offset);
  errno = int(-verdict.result);
  return verdict.result < 0 ? -1 : verdict.result;
}

ssize_t pwrite(int fd, const void *data, size_t bytes, off_t offset) {
  static const auto next = real(&pwrite, "pwrite");
  if (!isSwap(fd))
    return next(fd, data, bytes, offset);
  const Verdict verdict = judge(true, fd, data, int64_t(bytes));
  if (!verdict.isDecided)
    return next(fd, verdict.from, size_t(verdict.bytes), offset);
  errno = int(-verdict.result);
  return verdict.result < 0 ? -1 : verdict.result;
}

int fallocate(int fd, int mode, off_t offset, off_t bytes) {
  static const auto next = real(&fallocate, "fallocate");
  if (variable("TMC_FAULT_START") == "ENOSPC" && isSwap(fd)) {
    errno = ENOSPC;
    return -1;
  }
  return next(fd, mode, offset, bytes);
}

int openat(int directory, const char *path, int flags, ...) {
  using Open = int (*)(int, const char *, int, ...);
  static const auto next = reinterpret_cast<Open>(dlsym(RTLD_NEXT, "openat"));
  va_list list;
  va_start(list, flags);
  const mode_t mode = va_arg(list, mode_t);
  va_end(list);
  if ((flags & O_TMPFILE) == O_TMPFILE &&
      variable("TMC_FAULT_NAMELESS") == "0") {
    errno = EOPNOTSUPP;
    return -1;
  }
  return next(directory, path, flags, mode);
}

void *mmap(void *wanted, size_t bytes, int protection, int flags, int fd,
           off_t offset) {
  static const auto next = real(&mmap, "mmap");
  void *made = next(wanted, bytes, protection, flags, fd, offset);
  const std::lock_guard lock(ringsMutex);
  if (auto ring = rings().find(fd); fd >= 0 && ring != rings().end()) {
    if (offset == IORING_OFF_SQES)
      ring->second.entries = static_cast<io_uring_sqe *>(made);
    else
      (offset == IORING_OFF_SQ_RING ? ring->second.submissions
                                    : ring->second.completions) =
          static_cast<char *>(made);
  }
  return made;
}

long syscall(long number, ...) {
  using Call = long (*)(long, ...);
  static const auto next = reinterpret_cast<Call>(dlsym(RTLD_NEXT, "syscall"));
  long words[6];
  va_list list;
  va_start(list, number);
  for (long &word : words)
    word = va_arg(list, long);
  va_end(list);
  auto pass = [&] {
    return next(number, words[0], words[1], words[2], words[3], words[4],
                words[5]);
  };
  if (number == __NR_io_uring_setup) {
    if (variable("TMC_FAULT_RING") == "0") {
      errno = ENOSYS;
      return -1;
    }
    const long fd = pass();
    if (fd >= 0) {
      const std::lock_guard lock(ringsMutex);
      rings()[int(fd)] = {*reinterpret_cast<io_uring_params *>(words[1])};
    }
    return fd;
  }
  if (number != __NR_io_uring_enter || words[1] == 0)
    return pass();
  Ring *ring;
  {
    const std::lock_guard lock(ringsMutex);
    ring = &rings().at(int(words[0]));
  }
  uint64_t tag;
  int32_t result;
  const bool isChanged = changeEntry(*ring, tag, result);
  const long taken = pass();
  if (isChanged && taken == 1)
    changeCompletion(*ring, tag, result);
  return taken;
}

} // extern "C"
