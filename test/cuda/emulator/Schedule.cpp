//===- Schedule.cpp - grids, blocks, warps and threads as fibers ----------===//

#include "test/cuda/emulator/Schedule.h"

#include "test/cuda/emulator/Orders.h"
#include "test/cuda/emulator/Report.h"
#include "test/cuda/emulator/Shadow.h"
#include "test/cuda/emulator/Works.h"

#include <algorithm>
#include <csetjmp>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <sys/mman.h>
#include <ucontext.h>

namespace tmc::emulator {

Position current;
__thread Clock *self = nullptr;
uintptr_t stacks = 0;
size_t stackBytes = 0;

namespace {

constexpr size_t kStackBytes = 128 << 10, kGuardBytes = 4096;
/// What a block may have without asking, and what it may ask for, on the
/// smallest supported device.
constexpr size_t kSharedBytes = 48 << 10;
size_t sharedLimitBytes = [] {
  const char *text = std::getenv("TMC_EMULATOR_SHARED_KIB");
  return std::min<size_t>(text ? std::strtoul(text, nullptr, 10) : 99, 99)
         << 10;
}();

enum class State : unsigned char { Ready, AtBlock, AtWarp, Done };

/// Lives as long as the process and runs one thread after the other. A context
/// starts it; after that jumps switch, since they make no system call.
struct Fiber {
  bool started = false;
  jmp_buf at;
  uint3 thread;
  Clock clock;
  // What it waits for.
  uintptr_t pc = 0;
  BlockOp blockOp;
  WarpOp warpOp;
  unsigned mask = 0;
  bool predicate = false;
  int source = 0;
  size_t bytes = 0;
  unsigned char value[16];
  const char *instruction = nullptr;
  void *own = nullptr;
  void (*body)(void *const *lanes) = nullptr;
  // What it is given when it goes on.
  unsigned answer = 0;
  unsigned char received[16];
};

jmp_buf scheduler;
Fiber *fibers = nullptr;
ucontext_t *contexts = nullptr;
/// Side by side, since they are looked through far more often than a fiber
/// runs; and how many threads of the block are in each state.
State states[kMostThreads];
size_t inState[4] = {};
size_t running = 0, threads = 0;
uint32_t nextSerial = 0;
const Launch *launched = nullptr;
std::map<const void *, size_t> sharedLimits;
const Order *blockOrder = nullptr;

void setState(size_t i, State state) {
  --inState[size_t(states[i])];
  ++inState[size_t(state)];
  states[i] = state;
}
size_t countOf(State state) { return inState[size_t(state)]; }

/// Back to the scheduler, until it resumes this fiber.
void yield(State state) {
  Fiber &fiber = fibers[running];
  setState(running, state);
  if (!_setjmp(fiber.at))
    _longjmp(scheduler, 1);
}

void runFiber() {
  for (;;) {
    launched->body(launched->arguments);
    yield(State::Done);
  }
}

void enter(size_t i) {
  running = i;
  current.thread = fibers[i].thread;
  self = &fibers[i].clock;
}

/// Runs a fiber until it yields.
__attribute__((noinline)) void resume(size_t i) {
  enter(i);
  if (_setjmp(scheduler)) {
    self = nullptr;
    return;
  }
  if (fibers[i].started)
    _longjmp(fibers[i].at, 1);
  fibers[i].started = true;
  setcontext(&contexts[i]);
}

void makeFibers() {
  stackBytes = kMostThreads * kStackBytes;
  void *at = mmap(nullptr, stackBytes, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  stacks = reinterpret_cast<uintptr_t>(at);
  fibers = new Fiber[kMostThreads];
  contexts = new ucontext_t[kMostThreads];
  std::fill(states, states + kMostThreads, State::Done);
  for (size_t i = 0; i < kMostThreads; ++i) {
    char *stack = static_cast<char *>(at) + i * kStackBytes;
    (void)mprotect(stack, kGuardBytes, PROT_NONE);
    ucontext_t &context = contexts[i];
    getcontext(&context);
    context.uc_stack.ss_sp = stack + kGuardBytes;
    context.uc_stack.ss_size = kStackBytes - kGuardBytes;
    context.uc_link = nullptr;
    makecontext(&context, runFiber, 0);
  }
}

/// Reports as if thread i ran.
void reportOf(size_t i, FaultKind kind, const std::string &text) {
  enter(i);
  report(kind, fibers[i].pc, text);
  self = nullptr;
}

//===----------------------------------------------------------------------===//
// Warps
//===----------------------------------------------------------------------===//

bool exists(size_t warp, int lane) {
  return warp * kWarp + size_t(lane) < threads;
}
Fiber &laneOf(size_t warp, int lane) {
  return fibers[warp * kWarp + size_t(lane)];
}
bool isLive(size_t warp, int lane) {
  return exists(warp, lane) &&
         states[warp * kWarp + size_t(lane)] != State::Done;
}

template <typename F> void eachLane(unsigned mask, F &&body) {
  for (int lane = 0; lane < kWarp; ++lane)
    if (mask >> lane & 1)
      body(lane);
}

/// Runs an instruction that all lanes of the warp execute.
void runTogether(size_t warp, unsigned live, const Fiber &first) {
  const size_t one = warp * kWarp + size_t(__builtin_ctz(live));
  if (live != ~0u) {
    reportOf(one, FaultKind::Warp,
             std::to_string(kWarp - __builtin_popcount(live)) +
                 " lanes of the warp don't exist or have left the kernel "
                 "before this " +
                 first.instruction);
    return;
  }
  void *lanes[kWarp];
  for (int lane = 0; lane < kWarp; ++lane) {
    const Fiber &fiber = laneOf(warp, lane);
    lanes[lane] = fiber.own;
    if (fiber.pc != first.pc &&
        sourceLine(fiber.pc, true) != sourceLine(first.pc, true))
      reportOf(warp * kWarp + size_t(lane), FaultKind::Warp,
               std::string("lanes of one warp are at different places of the "
                           "program: lane ") +
                   std::to_string(one % kWarp) + " executes the " +
                   first.instruction + " at " + sourceLine(first.pc));
  }
  first.body(lanes);
}

/// Lets a complete group of lanes go on.
void finishGroup(size_t warp, unsigned live, const Fiber &first) {
  if (first.warpOp == WarpOp::Together)
    runTogether(warp, live, first);
  unsigned ballot = 0;
  eachLane(live, [&](int lane) {
    ballot |= unsigned(laneOf(warp, lane).predicate) << lane;
  });
  if (first.warpOp == WarpOp::Sync) {
    uint16_t known[kWarp] = {};
    eachLane(live, [&](int lane) {
      for (int k = 0; k < kWarp; ++k)
        known[k] = std::max(known[k], laneOf(warp, lane).clock.lanes[k]);
    });
    eachLane(live, [&](int lane) {
      Clock &clock = laneOf(warp, lane).clock;
      std::copy(known, known + kWarp, clock.lanes);
      ++clock.lanes[lane];
    });
  }
  eachLane(live, [&](int lane) {
    Fiber &fiber = laneOf(warp, lane);
    fiber.answer = ballot;
    if (fiber.warpOp != WarpOp::Shuffle)
      return;
    std::memcpy(fiber.received, fiber.value, sizeof fiber.value);
    if (fiber.source == lane)
      return;
    if (live >> fiber.source & 1) {
      std::memcpy(fiber.received, laneOf(warp, fiber.source).value,
                  sizeof fiber.value);
      return;
    }
    std::memset(fiber.received, 0xff, sizeof fiber.received);
    reportOf(warp * kWarp + size_t(lane), FaultKind::Warp,
             "a shuffle reads lane " + std::to_string(fiber.source) +
                 (fiber.mask >> fiber.source & 1
                      ? ", which has left the kernel"
                      : ", which its mask doesn't name"));
  });
  eachLane(live, [&](int lane) {
    setState(warp * kWarp + size_t(lane), State::Ready);
  });
}

/// Lets every complete group of a warp go on; returns whether there was one.
bool releaseWarp(size_t warp) {
  bool any = false;
  if (countOf(State::AtWarp) == 0)
    return false;
  for (int lane = 0; lane < kWarp; ++lane) {
    if (!exists(warp, lane))
      break;
    if (states[warp * kWarp + size_t(lane)] != State::AtWarp)
      continue;
    const Fiber &first = laneOf(warp, lane);
    unsigned live = 0;
    bool complete = true;
    eachLane(first.mask, [&](int other) {
      if (!isLive(warp, other))
        return;
      const Fiber &fiber = laneOf(warp, other);
      live |= 1u << other;
      complete = complete &&
                 states[warp * kWarp + size_t(other)] == State::AtWarp &&
                 fiber.warpOp == first.warpOp && fiber.mask == first.mask &&
                 (first.warpOp != WarpOp::Together ||
                  fiber.instruction == first.instruction);
    });
    if (complete) {
      finishGroup(warp, live, first);
      any = true;
    }
  }
  return any;
}

//===----------------------------------------------------------------------===//
// Blocks
//===----------------------------------------------------------------------===//

/// Lets the block go on if all of its threads are at a barrier, or gone.
bool releaseBlock() {
  const size_t waiting = countOf(State::AtBlock), gone = countOf(State::Done);
  if (waiting == 0 || waiting + gone < threads)
    return false;
  const size_t first =
      size_t(std::find(states, states + threads, State::AtBlock) - states);
  if (gone > 0)
    reportOf(first, FaultKind::Barrier,
             std::to_string(gone) + " of " + std::to_string(threads) +
                 " threads of the block have left the kernel before a barrier "
                 "that this one waits at");
  int count = 0;
  for (size_t i = 0; i < threads; ++i) {
    const Fiber &fiber = fibers[i];
    if (states[i] != State::AtBlock)
      continue;
    count += fiber.predicate;
    if (fiber.pc != fibers[first].pc &&
        sourceLine(fiber.pc, true) != sourceLine(fibers[first].pc, true))
      reportOf(i, FaultKind::Barrier,
               "threads of one block wait at different barriers: thread " +
                   threadName(unsigned(first)) + " at " +
                   sourceLine(fibers[first].pc));
  }
  for (size_t i = 0; i < threads; ++i) {
    Fiber &fiber = fibers[i];
    if (states[i] != State::AtBlock)
      continue;
    setState(i, State::Ready);
    fiber.answer = fiber.blockOp == BlockOp::And  ? count == int(waiting)
                   : fiber.blockOp == BlockOp::Or ? count > 0
                                                  : unsigned(count);
    ++fiber.clock.epoch;
    std::fill(fiber.clock.lanes, fiber.clock.lanes + kWarp, uint16_t(0));
    fiber.clock.lanes[i % kWarp] = 1;
  }
  return true;
}

/// Nothing can go on: names a waiting thread and what the others wait for.
void reportDeadlock() {
  const size_t atBlock = countOf(State::AtBlock),
               atWarp = countOf(State::AtWarp);
  size_t who = threads;
  for (size_t i = threads; i-- > 0;) {
    if (states[i] == State::AtWarp ||
        (who == threads && states[i] == State::AtBlock))
      who = i;
  }
  const Fiber &fiber = fibers[who];
  std::string text;
  if (states[who] == State::AtWarp && fiber.warpOp == WarpOp::Together) {
    text = std::string("not all lanes of the warp arrive at this ") +
           fiber.instruction;
  } else if (states[who] == State::AtWarp) {
    char mask[16];
    std::snprintf(mask, sizeof mask, "0x%08x", fiber.mask);
    text = std::string("lanes that the mask ") + mask +
           " of this operation names don't arrive at it with the same mask";
  } else {
    text = "threads of the block wait for each other";
  }
  text += " (" + std::to_string(atBlock) + " wait at a barrier, " +
          std::to_string(atWarp) + " in their warp, " +
          std::to_string(threads - atBlock - atWarp) + " have left)";
  reportOf(who,
           states[who] == State::AtWarp ? FaultKind::Warp : FaultKind::Deadlock,
           text);
}

/// Runs the block that `current` names. What waits for ever is left behind.
void runBlock(uint32_t firstSerial) {
  const uint32_t serial = ++nextSerial;
  const dim3 size = current.blockSize;
  for (size_t i = 0; i < threads; ++i) {
    Fiber &fiber = fibers[i];
    if (states[i] != State::Done) { // of a deadlock: its stack starts anew
      fiber.started = false;
      makecontext(&contexts[i], runFiber, 0);
    }
    states[i] = State::Ready;
    fiber.thread = {unsigned(i) % size.x, unsigned(i) / size.x % size.y,
                    unsigned(i) / size.x / size.y};
    fiber.clock = {serial, firstSerial, 1, uint16_t(i), {}};
    fiber.clock.lanes[i % kWarp] = 1;
  }
  std::fill(std::begin(inState), std::end(inState), size_t(0));
  inState[size_t(State::Ready)] = threads;
  const size_t warps = (threads + kWarp - 1) / kWarp;
  for (;;) {
    bool progress = false;
    const Order order(warps);
    for (size_t n = 0; n < warps; ++n) {
      const size_t warp = order[n];
      const size_t begin = warp * kWarp;
      const size_t lanes = std::min<size_t>(threads - begin, kWarp);
      // In order, a warp runs as far as it can before the next one starts;
      // at random, it may give way earlier.
      do {
        const Order laneOrder(lanes);
        for (size_t m = 0; m < lanes; ++m) {
          const size_t i = begin + laneOrder[m];
          if (states[i] != State::Ready)
            continue;
          progress = true;
          resume(i);
        }
      } while (releaseWarp(warp) && (seed() < 2 || draw(4) != 0));
    }
    if (countOf(State::Done) == threads)
      return;
    if (progress || releaseBlock())
      continue;
    reportDeadlock();
    return;
  }
}

} // namespace

//===----------------------------------------------------------------------===//
// Launches
//===----------------------------------------------------------------------===//

cudaError_t checkLaunch(const Launch &l) {
  const size_t count = size_t(l.block.x) * l.block.y * l.block.z;
  if (count == 0 || count > kMostThreads || l.block.z > 64 ||
      l.grid.x > 0x7fffffffu || l.grid.y > 65535 || l.grid.z > 65535 ||
      !l.grid.x || !l.grid.y || !l.grid.z)
    return cudaErrorInvalidConfiguration;
  const auto limit = sharedLimits.find(l.kernel);
  if (l.sharedBytes > (limit == sharedLimits.end()
                           ? kSharedBytes
                           : std::max(kSharedBytes, limit->second)))
    return cudaErrorInvalidValue;
  return cudaSuccess;
}

bool allowDynamicShared(const void *kernel, int64_t bytes) {
  if (bytes < 0 || size_t(bytes) > sharedLimitBytes)
    return false;
  sharedLimits[kernel] = size_t(bytes);
  return true;
}

size_t sharedLimit() { return sharedLimitBytes; }
void setSharedLimit(size_t bytes) {
  sharedLimitBytes = std::min<size_t>(bytes, 99 << 10);
}

uint32_t takeSerial() { return ++nextSerial; }

void runLaunch(const Launch &launch) {
  if (!fibers)
    makeFibers();
  nameWork(launch.kernel);
  launched = &launch;
  threads = size_t(launch.block.x) * launch.block.y * launch.block.z;
  current.blockSize = launch.block;
  current.gridSize = launch.grid;
  const uint32_t firstSerial = nextSerial + 1;
  const uint64_t blocks =
      uint64_t(launch.grid.x) * launch.grid.y * launch.grid.z;
  startLaunch(launch.sharedBytes, launch.arguments, launch.argumentBytes);
  const Order order(blocks);
  blockOrder = &order;
  for (uint64_t n = 0; n < blocks; ++n) {
    const uint64_t i = order[n];
    current.block = {unsigned(i % launch.grid.x),
                     unsigned(i / launch.grid.x % launch.grid.y),
                     unsigned(i / launch.grid.x / launch.grid.y)};
    startBlock();
    runBlock(firstSerial);
  }
  const size_t limit = sharedLimits.count(launch.kernel)
                           ? std::max(kSharedBytes, sharedLimits[launch.kernel])
                           : kSharedBytes;
  if (const size_t used = launch.sharedBytes + staticSharedBytes();
      used > limit) {
    enter(0);
    report(FaultKind::SharedLimit, 0,
           "the block has " + std::to_string(launch.sharedBytes) +
               " bytes of dynamic and " + std::to_string(staticSharedBytes()) +
               " of static shared memory; " + std::to_string(limit) +
               " are allowed");
    self = nullptr;
  }
  endLaunch();
  launched = nullptr;
  blockOrder = nullptr;
  endIfFaulty();
}

const void *currentKernel() { return launched ? launched->kernel : nullptr; }

bool isArgument(uintptr_t at, size_t bytes) {
  const auto from = reinterpret_cast<uintptr_t>(launched->arguments);
  return at >= from && at + bytes <= from + launched->argumentBytes;
}

std::string threadName(unsigned i) {
  const dim3 size = current.blockSize;
  return "(" + std::to_string(i % size.x) + "," +
         std::to_string(i / size.x % size.y) + "," +
         std::to_string(i / size.x / size.y) + ")";
}

std::string blockName(uint32_t serial) {
  const uint64_t i = (*blockOrder)[serial - self->firstSerial];
  const dim3 size = current.gridSize;
  return "(" + std::to_string(i % size.x) + "," +
         std::to_string(i / size.x % size.y) + "," +
         std::to_string(i / size.x / size.y) + ")";
}

//===----------------------------------------------------------------------===//
// What threads wait at
//===----------------------------------------------------------------------===//

int laneId() { return self->thread % kWarp; }

__attribute__((noinline)) int blockBarrier(BlockOp op, bool predicate) {
  Fiber &fiber = fibers[running];
  fiber.pc = reinterpret_cast<uintptr_t>(__builtin_return_address(0));
  fiber.blockOp = op;
  fiber.predicate = predicate;
  yield(State::AtBlock);
  return op == BlockOp::Sync ? 0 : int(fibers[running].answer);
}

namespace {
void waitInWarp(WarpOp op, unsigned mask, uintptr_t pc) {
  Fiber &fiber = fibers[running];
  fiber.pc = pc;
  fiber.warpOp = op;
  const unsigned own = 1u << (running % kWarp);
  if (!(mask & own)) {
    char text[80];
    std::snprintf(text, sizeof text,
                  "the mask 0x%08x doesn't name lane %zu, which calls", mask,
                  running % kWarp);
    report(FaultKind::Warp, pc, text);
    mask |= own;
  }
  fiber.mask = mask;
  yield(State::AtWarp);
}
} // namespace

__attribute__((noinline)) unsigned warpVote(WarpOp op, unsigned mask,
                                            bool predicate) {
  fibers[running].predicate = predicate;
  waitInWarp(op, mask,
             reinterpret_cast<uintptr_t>(__builtin_return_address(0)));
  return fibers[running].answer;
}

__attribute__((noinline)) void warpShuffle(unsigned mask, const void *value,
                                           int source, void *to, size_t bytes) {
  Fiber &fiber = fibers[running];
  std::memcpy(fiber.value, value, bytes);
  fiber.source = source;
  fiber.bytes = bytes;
  waitInWarp(WarpOp::Shuffle, mask,
             reinterpret_cast<uintptr_t>(__builtin_return_address(0)));
  std::memcpy(to, fibers[running].received, bytes);
}

void warpTogether(const char *instruction, void *own,
                  void (*body)(void *const *lanes), uintptr_t pc) {
  Fiber &fiber = fibers[running];
  fiber.instruction = instruction;
  fiber.own = own;
  fiber.body = body;
  waitInWarp(WarpOp::Together, ~0u, pc);
}

} // namespace tmc::emulator
