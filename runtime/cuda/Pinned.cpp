#include "runtime/cuda/Pinned.h"
#include "runtime/step/Device.h"

#include <cuda_runtime.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <string>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

namespace tmc::cuda {

namespace {

constexpr double kMiB = 1 << 20;

std::string mebibytes(double bytes) {
  char text[48];
  snprintf(text, sizeof text, "%.0f MiB", bytes / kMiB);
  return text;
}

/// The largest sixteenth part of `size` bytes from `memory` that can be pinned.
size_t mostPinnable(char *memory, size_t size, size_t page) {
  constexpr size_t kParts = 16;
  size_t low = 0, high = kParts; // `low` can be pinned, `high` can't.
  while (high - low > 1) {
    const size_t middle = (low + high) / 2;
    const size_t bytes = size / kParts * middle / page * page;
    const bool canBe =
        bytes > 0 &&
        cudaHostRegister(memory, bytes, cudaHostRegisterMapped) == cudaSuccess;
    if (canBe)
      (void)cudaHostUnregister(memory);
    else
      (void)cudaGetLastError(); // Later calls start clean.
    (canBe ? low : high) = middle;
  }
  return size / kParts * low / page * page;
}

/// The limits of this system that are known to bind, in words.
std::string knownLimits() {
  std::string words;
  rlimit limit{};
  if (getrlimit(RLIMIT_MEMLOCK, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
    words += "; `ulimit -l` allows " + mebibytes(double(limit.rlim_cur));
  std::string release;
  std::ifstream("/proc/sys/kernel/osrelease") >> release;
  if (release.find("icrosoft") != std::string::npos)
    words += "; WSL2 pins at most half of the machine's memory";
  return words;
}

} // namespace

Status mapPinned(SpaceKind space, int64_t bytes, char *&memory,
                 size_t &mappedBytes) {
  const std::string what = arenaText(space, bytes);
  const auto page = size_t(sysconf(_SC_PAGESIZE));
  const size_t size =
      (size_t(std::max<int64_t>(bytes, 1)) + page - 1) / page * page;
  void *mapped = mmap(nullptr, size, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED)
    return {Code::World, "can't map " + what + ": " + std::strerror(errno)};
  char *const at = static_cast<char *>(mapped);
  const cudaError_t e = cudaHostRegister(at, size, cudaHostRegisterMapped);
  if (e == cudaSuccess) {
    memory = at;
    mappedBytes = size;
    return Status::ok();
  }
  (void)cudaGetLastError(); // Later calls start clean.
  const size_t most = mostPinnable(at, size, page);
  munmap(mapped, size);
  return {Code::World,
          "can't pin " + what + ": " + cudaGetErrorString(e) + "; " +
              (most ? mebibytes(double(most)) + " can be pinned now"
                    : std::string("nothing near it can be pinned now")) +
              knownLimits() +
              (most ? "; tmc plans for that by --host-budget " +
                          std::to_string(most / size_t(kMiB)) + "MiB"
                    : "")};
}

void unmapPinned(char *memory, size_t mappedBytes) {
  (void)cudaHostUnregister(memory);
  munmap(memory, mappedBytes);
}

} // namespace tmc::cuda
