//===- CpuDevice.cpp - the arena of the cpu backend -----------------------===//
//
//        guard | arena: exactly the planned bytes, page-rounded | guard
//
// The arena ends where the last guard page begins up to the rounding, so that a
// kernel that runs off either end stops at once. Nothing is touched at
// creation; /proc/self/pagemap then says which pages ever were.
//
// An arena of several huge pages begins at one and asks for them: a column of a
// large matrix lies in as many small pages as it has rows. The system gives
// them or doesn't; a touched one counts as a whole.
//
//===----------------------------------------------------------------------===//

#include "runtime/cpu/Parallel.h"
#include "runtime/step/Device.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <thread>
#include <unistd.h>

namespace tmc {

namespace {

/// All bits set: a NaN in every float type, minus one in every integer type.
constexpr int kPoison = 0xff;

/// Of x86-64 and of most others.
constexpr int64_t kHugePage = 2 << 20;

class CpuDevice final : public Device {
public:
  explicit CpuDevice(const DeviceOptions &options)
      : guard_(options.guardPages),
        pool_(options.threads > 0
                  ? options.threads
                  : int(std::max(1u, std::thread::hardware_concurrency()))),
        stream_(&pool_) {}

  ~CpuDevice() override {
    if (mapping_)
      munmap(mapping_, size_t(mappingBytes_));
  }

  const char *name() const override { return "cpu"; }
  int threads() const override { return pool_.threads(); }

  Status allocateArena(int64_t bytes) override {
    const int64_t page = sysconf(_SC_PAGESIZE);
    if (bytes < 0 || bytes > INT64_MAX / 2)
      return {Code::BadInput,
              "an arena of " + std::to_string(bytes) + " bytes can't exist"};
    arenaBytes_ = (std::max<int64_t>(bytes, 1) + page - 1) / page * page;
    const int64_t guard = guard_ ? page : 0;
    const bool huge = arenaBytes_ >= 2 * kHugePage;
    mappingBytes_ = arenaBytes_ + 2 * guard + (huge ? kHugePage : 0);
    void *mapping = mmap(nullptr, size_t(mappingBytes_), PROT_NONE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapping == MAP_FAILED)
      return noMemory(bytes);
    mapping_ = static_cast<char *>(mapping);
    arena_ = mapping_ + guard;
    if (huge) {
      const auto at = reinterpret_cast<uintptr_t>(arena_);
      arena_ += (uintptr_t(kHugePage) - at % kHugePage) % kHugePage;
    }
    if (mprotect(arena_, size_t(arenaBytes_), PROT_READ | PROT_WRITE))
      return noMemory(bytes);
    if (huge) // Whether it is heard or not.
      (void)madvise(arena_, size_t(arenaBytes_), MADV_HUGEPAGE);
    return Status::ok();
  }
  char *arena() const override { return arena_; }

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
  Status synchronize() override { return Status::ok(); }

  int64_t highWaterBytes() const override {
    const int64_t page = sysconf(_SC_PAGESIZE);
    const int file = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    if (file < 0)
      return arenaBytes_;
    // One 64-bit word per page; bit 63: present, bit 62: swapped out.
    constexpr uint64_t touched = (1ull << 63) | (1ull << 62);
    uint64_t words[512];
    int64_t pages = arenaBytes_ / page, count = 0;
    off_t at = off_t(reinterpret_cast<uintptr_t>(arena_) / uintptr_t(page) * 8);
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
    return pages > 0 ? arenaBytes_ : count * page;
  }

private:
  Status noMemory(int64_t bytes) const {
    return {Code::World, "can't map an arena of " + std::to_string(bytes) +
                             " bytes: " + std::strerror(errno)};
  }

  bool guard_;
  ThreadPool pool_;
  Stream stream_;
  char *mapping_ = nullptr, *arena_ = nullptr;
  int64_t mappingBytes_ = 0, arenaBytes_ = 0;
};

} // namespace

Status createDevice(const DeviceOptions &options,
                    std::unique_ptr<Device> &device) {
  device = std::make_unique<CpuDevice>(options);
  return Status::ok();
}

} // namespace tmc
