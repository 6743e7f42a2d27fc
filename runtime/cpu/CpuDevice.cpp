//===- CpuDevice.cpp - the arenas of the cpu backend ----------------------===//
//
//        guard | arena: exactly the planned bytes, page-rounded | guard
//
// The arena ends at the last guard page, up to the rounding, so a kernel that
// runs past either end stops at once. Creation touches no page;
// /proc/self/pagemap then lists the touched pages.
//
// An arena of several huge pages begins at a huge page and requests such pages:
// a column of a large matrix would use as many small pages as it has rows. The
// system may refuse. A touched huge page counts completely.
//
//===----------------------------------------------------------------------===//

#include "runtime/cpu/CpuQueues.h"
#include "runtime/cpu/Parallel.h"
#include "runtime/step/Device.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <thread>
#include <unistd.h>
#include <utility>

namespace tmc {

namespace {

/// All bits set: a NaN in every float type, minus one in every integer type.
constexpr int kPoison = 0xff;

/// The size on x86-64 and on most other processors.
constexpr int64_t kHugePage = 2 << 20;

/// One mapping between guard pages.
class Mapping {
public:
  Mapping() = default;
  ~Mapping() {
    if (mapping_)
      munmap(mapping_, size_t(mappingBytes_));
  }
  Mapping(const Mapping &) = delete;
  Mapping &operator=(const Mapping &) = delete;

  char *begin() const { return begin_; }

  Status map(SpaceKind space, int64_t bytes, bool isGuarded) {
    const int64_t page = sysconf(_SC_PAGESIZE);
    if (bytes < 0 || bytes > INT64_MAX / 2)
      return {Code::BadInput, arenaText(space, bytes) + " can't exist"};
    bytes_ = (std::max<int64_t>(bytes, 1) + page - 1) / page * page;
    const int64_t guard = isGuarded ? page : 0;
    const bool huge = bytes_ >= 2 * kHugePage;
    mappingBytes_ = bytes_ + 2 * guard + (huge ? kHugePage : 0);
    void *mapping = mmap(nullptr, size_t(mappingBytes_), PROT_NONE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapping == MAP_FAILED)
      return noMemory(space, bytes);
    mapping_ = static_cast<char *>(mapping);
    begin_ = mapping_ + guard;
    if (huge) {
      const auto at = reinterpret_cast<uintptr_t>(begin_);
      begin_ += (uintptr_t(kHugePage) - at % kHugePage) % kHugePage;
    }
    if (mprotect(begin_, size_t(bytes_), PROT_READ | PROT_WRITE))
      return noMemory(space, bytes);
    if (huge) // Only a request.
      (void)madvise(begin_, size_t(bytes_), MADV_HUGEPAGE);
    return Status::ok();
  }

  int64_t highWaterBytes() const {
    const int64_t page = sysconf(_SC_PAGESIZE);
    const int file = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    if (file < 0)
      return bytes_;
    // One 64-bit word per page; bit 63: present, bit 62: swapped out.
    constexpr uint64_t touched = (1ull << 63) | (1ull << 62);
    uint64_t words[512];
    int64_t pages = bytes_ / page, count = 0;
    off_t at = off_t(reinterpret_cast<uintptr_t>(begin_) / uintptr_t(page) * 8);
    while (pages > 0) {
      const size_t wanted = size_t(std::min<int64_t>(pages, 512)) * 8;
      const ssize_t got = pread(file, words, wanted, at);
      if (got <= 0)
        break;
      for (ssize_t i = 0; i < got / 8; ++i)
        count += (words[i] & touched) != 0;
      at += got;
      pages -= got / 8;
    }
    close(file);
    return pages > 0 ? bytes_ : count * page;
  }

private:
  static Status noMemory(SpaceKind space, int64_t bytes) {
    return {Code::World, "can't map " + arenaText(space, bytes) + ": " +
                             std::strerror(errno)};
  }

  char *mapping_ = nullptr, *begin_ = nullptr;
  int64_t mappingBytes_ = 0, bytes_ = 0;
};

class CpuDevice final : public Device {
public:
  explicit CpuDevice(const DeviceOptions &options)
      : options_(options),
        pool_(options.threads > 0
                  ? options.threads
                  : int(std::max(1u, std::thread::hardware_concurrency()))),
        stream_(&pool_), queues_(stream_) {
    peers = options.peers;
  }

  const char *name() const override { return "cpu"; }
  int threads() const override { return pool_.threads(); }

  Status allocateArena(SpaceKind space, int64_t bytes) override {
    return arenas_[space].map(space, bytes, options_.guardPages);
  }
  char *arena(SpaceKind space) const override { return arenas_[space].begin(); }

  void upload(void *to, const void *from, int64_t bytes) override {
    std::memcpy(to, from, size_t(bytes));
  }
  void download(void *to, const void *from, int64_t bytes) override {
    std::memcpy(to, from, size_t(bytes));
  }
  void poison(void *device, int64_t bytes) override {
    std::memset(device, kPoison, size_t(bytes));
  }

  Stream &compute() override { return stream_; }
  Queues &queues() override { return queues_; }
  Status startQueues(const QueueNeeds &needs) override {
    queues_.place(arenas());
    return queues_.start(needs, options_, pool_.threads());
  }
  void observeWork(WorkObserver *observer) override {
    queues_.observe(observer);
  }
  Status synchronize(StepNumbers *numbers = nullptr) override {
    queues_.drain();
    if (numbers)
      for (Number &number : *numbers)
        if (number.at)
          std::memcpy(&number.bits, number.at, size_t(number.bytes));
    return queues_.takeFault();
  }

  int64_t highWaterBytes(SpaceKind space) const override {
    return arenas_[space].begin() ? arenas_[space].highWaterBytes() : 0;
  }

private:
  DeviceOptions options_;
  PerSpace<Mapping> arenas_;
  ThreadPool pool_;
  Stream stream_;
  CpuQueues queues_; // destroyed before the memory that it moves
};

} // namespace

Status createDevice(const DeviceOptions &options,
                    std::unique_ptr<Device> &device) {
  device = std::make_unique<CpuDevice>(options);
  return Status::ok();
}

} // namespace tmc
