//===- Emulator.cpp - CUDA kernels on a machine without a GPU -------------===//

#include "test/cuda/emulator/Emulator.h"

#include <algorithm>
#include <csetjmp>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <string>
#include <ucontext.h>
#include <vector>

namespace tmc::emulator {

Position current;

namespace {

constexpr size_t kStackBytes = 64 << 10;
constexpr int kWarp = 32;
/// What a block may have without asking, and what it may ask for, on the
/// smallest supported device.
constexpr size_t kSharedBytes = 48 << 10, kSharedLimit = 99 << 10;
constexpr size_t kFence = 64;

enum class State { Ready, AtBlock, AtWarp, Done };

/// Lives as long as the process and runs one thread after the other. A context
/// starts it; after that jumps switch, since they make no system call.
struct Fiber {
  ucontext_t context;
  std::vector<char> stack;
  bool started = false;
  jmp_buf at;
  State state = State::Done;
  uint3 thread;
  float value; // what its warp's exchange shows
};

jmp_buf scheduler;
std::deque<Fiber> fibers; // they don't move
size_t running = 0;
const std::function<void()> *body = nullptr;
std::vector<unsigned char> shared;
bool reverse = [] {
  const char *text = std::getenv("TMC_EMULATOR_REVERSE");
  return text && *text;
}();
size_t memoryLimit = size_t(1) << 34;
std::string failing;
cudaError_t lastError = cudaSuccess;
std::map<const void *, size_t> sharedLimits;

[[noreturn]] void die(const char *what) {
  std::fprintf(stderr, "emulator: %s\n", what);
  std::abort();
}

/// Back to the scheduler, until it resumes this fiber.
void yield(State state) {
  Fiber &fiber = fibers[running];
  fiber.state = state;
  if (!_setjmp(fiber.at))
    _longjmp(scheduler, 1);
}

void runFiber() {
  for (;;) {
    (*body)();
    yield(State::Done);
  }
}

/// Runs a fiber until it yields.
__attribute__((noinline)) void resume(size_t i) {
  running = i;
  current.thread = fibers[i].thread;
  if (_setjmp(scheduler))
    return;
  if (fibers[i].started)
    _longjmp(fibers[i].at, 1);
  fibers[i].started = true;
  setcontext(&fibers[i].context);
}

/// Makes waiting fibers ready if all others of [begin, end) wait too, or are
/// done. Returns whether there were any.
bool release(size_t begin, size_t end, State waiting) {
  bool any = false;
  for (size_t i = begin; i < end; ++i) {
    if (fibers[i].state == waiting)
      any = true;
    else if (fibers[i].state != State::Done)
      return false;
  }
  for (size_t i = begin; any && i < end; ++i)
    if (fibers[i].state == waiting)
      fibers[i].state = State::Ready;
  return any;
}

void runBlock(size_t threads) {
  for (size_t i = 0; i < threads; ++i) {
    Fiber &fiber = fibers[i];
    fiber.state = State::Ready;
    const dim3 size = current.blockSize;
    fiber.thread = {unsigned(i) % size.x, unsigned(i) / size.x % size.y,
                    unsigned(i) / size.x / size.y};
  }
  const size_t warps = (threads + kWarp - 1) / kWarp;
  for (;;) {
    // A warp runs as far as it can before the next one starts: what relies on
    // the others' progress without a barrier then fails.
    bool progress = false;
    for (size_t n = 0; n < warps; ++n) {
      const size_t begin = (reverse ? warps - 1 - n : n) * kWarp;
      const size_t end = std::min(threads, begin + kWarp);
      do {
        for (size_t m = begin; m < end; ++m) {
          const size_t i = reverse ? begin + end - 1 - m : m;
          if (fibers[i].state != State::Ready)
            continue;
          progress = true;
          resume(i);
        }
      } while (release(begin, end, State::AtWarp));
    }
    bool done = true;
    for (size_t i = 0; i < threads; ++i)
      done = done && fibers[i].state == State::Done;
    if (done)
      return;
    progress |= release(0, threads, State::AtBlock);
    if (!progress)
      die("threads of a block wait for each other at different barriers");
  }
}

cudaError_t checkLaunch(const void *kernel, dim3 grid, dim3 block,
                        size_t sharedBytes) {
  const size_t threads = size_t(block.x) * block.y * block.z;
  if (threads == 0 || threads > 1024 || grid.x > 0x7fffffffu ||
      grid.y > 65535 || grid.z > 65535 || !grid.x || !grid.y || !grid.z)
    return cudaErrorInvalidConfiguration;
  const auto limit = sharedLimits.find(kernel);
  if (sharedBytes >
      (limit == sharedLimits.end() ? kSharedBytes : limit->second))
    return cudaErrorInvalidValue;
  return cudaSuccess;
}

bool shouldFail(const char *call) {
  if (failing != call)
    return false;
  failing.clear();
  return true;
}

cudaError_t allocate(void **to, size_t bytes) {
  *to = std::aligned_alloc(256, (bytes + 511) / 256 * 256);
  if (!*to)
    return cudaErrorMemoryAllocation;
  std::memset(*to, 0xff, bytes);
  return cudaSuccess;
}

} // namespace

void launch(const void *kernel, dim3 grid, dim3 block, size_t sharedBytes,
            const std::function<void()> &run) {
  lastError = shouldFail("launch")
                  ? cudaErrorLaunchFailure
                  : checkLaunch(kernel, grid, block, sharedBytes);
  if (lastError != cudaSuccess)
    return;
  const size_t threads = size_t(block.x) * block.y * block.z;
  while (fibers.size() < threads) {
    Fiber &fiber = fibers.emplace_back();
    fiber.stack.resize(kStackBytes);
    getcontext(&fiber.context);
    fiber.context.uc_stack.ss_sp = fiber.stack.data();
    fiber.context.uc_stack.ss_size = fiber.stack.size();
    fiber.context.uc_link = nullptr;
    makecontext(&fiber.context, runFiber, 0);
  }
  body = &run;
  current.blockSize = block;
  current.gridSize = grid;
  const size_t blocks = size_t(grid.x) * grid.y * grid.z;
  for (size_t n = 0; n < blocks; ++n) {
    const size_t i = reverse ? blocks - 1 - n : n;
    current.block = {unsigned(i % grid.x), unsigned(i / grid.x % grid.y),
                     unsigned(i / grid.x / grid.y)};
    shared.assign(sharedBytes + kFence, 0xff);
    runBlock(threads);
    for (size_t b = 0; b < kFence; ++b)
      if (shared[sharedBytes + b] != 0xff)
        die("a kernel wrote behind its shared memory");
  }
}

unsigned char *dynamicShared() { return shared.data(); }

void syncBlock() { yield(State::AtBlock); }

float exchange(float value, int laneMask) {
  const size_t self = running;
  fibers[self].value = value;
  yield(State::AtWarp);
  const float other =
      fibers[self / kWarp * kWarp + ((self % kWarp) ^ size_t(laneMask))].value;
  yield(State::AtWarp);
  return other;
}

void setReverse(bool value) { reverse = value; }
void setMemoryLimit(size_t bytes) { memoryLimit = bytes; }
void failNext(const char *call) { failing = call; }

} // namespace tmc::emulator

//===----------------------------------------------------------------------===//
// The part of the runtime's API that the backend uses
//===----------------------------------------------------------------------===//

using namespace tmc::emulator;

extern "C" {

cudaError_t cudaGetDeviceCount(int *count) {
  *count = 1;
  return cudaSuccess;
}
cudaError_t cudaGetDevice(int *device) {
  *device = 0;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr, int) {
  *value = 4;
  return cudaSuccess;
}
cudaError_t cudaMemGetInfo(size_t *free, size_t *total) {
  *free = *total = memoryLimit;
  return cudaSuccess;
}
cudaError_t cudaMalloc(void **to, size_t bytes) {
  if (bytes > memoryLimit)
    return lastError = cudaErrorMemoryAllocation;
  return allocate(to, bytes);
}
cudaError_t cudaFree(void *p) {
  std::free(p);
  return cudaSuccess;
}
cudaError_t cudaHostAlloc(void **to, size_t bytes, unsigned) {
  return allocate(to, bytes);
}
cudaError_t cudaFreeHost(void *p) {
  std::free(p);
  return cudaSuccess;
}
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes,
                            cudaMemcpyKind, cudaStream_t) {
  if (shouldFail("cudaMemcpyAsync"))
    return cudaErrorInvalidValue;
  std::memmove(to, from, bytes);
  return cudaSuccess;
}
cudaError_t cudaMemsetAsync(void *to, int value, size_t bytes, cudaStream_t) {
  std::memset(to, value, bytes);
  return cudaSuccess;
}
cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned) {
  *stream = reinterpret_cast<cudaStream_t>(std::malloc(1));
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  std::free(stream);
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t) { return cudaSuccess; }
cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned) {
  *event = reinterpret_cast<cudaEvent_t>(std::malloc(1));
  return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  std::free(event);
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t, cudaStream_t) { return cudaSuccess; }
cudaError_t cudaEventSynchronize(cudaEvent_t) { return cudaSuccess; }
cudaError_t cudaGetLastError() {
  const cudaError_t error = lastError;
  lastError = cudaSuccess;
  return error;
}
const char *cudaGetErrorString(cudaError_t error) {
  return error == cudaErrorMemoryAllocation ? "out of memory"
                                            : "an emulated failure";
}
cudaError_t cudaFuncSetAttribute(const void *kernel, cudaFuncAttribute,
                                 int bytes) {
  if (size_t(bytes) > kSharedLimit)
    return lastError = cudaErrorInvalidValue;
  sharedLimits[kernel] = size_t(bytes);
  return cudaSuccess;
}
}
