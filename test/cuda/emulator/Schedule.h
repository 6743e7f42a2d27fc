//===- Schedule.h - grids, blocks, warps and threads as fibers --*- C++ -*-===//
//
// A launch runs its blocks one after the other. Each thread of a block is a
// fiber with a stack of its own; it gives way only where threads of a device
// communicate: at __syncthreads, __syncwarp, shuffles and votes.
//
//     launch -> block -> warp -> lane        one at a time, in an order that
//                                            the seed draws
//
// What is decided by happens-before (Shadow.h) doesn't depend on the order in
// which fibers run. The order matters where a kernel acts on what it read: so
// a seed permutes blocks, warps and lanes. Seed 0 is first to last, seed 1 last
// to first, every other seed random. TMC_EMULATOR_SEED sets it.
//
// Rules that are checked here, with what the programming guide says of them:
//
//   __syncthreads  every thread of the block arrives, at one source line, and
//                  none has left the kernel
//   __syncwarp, shuffles, votes
//                  a lane's mask names the lane itself; all lanes that a mask
//                  names and that haven't left arrive at the same operation
//                  with the same mask; a shuffle reads only lanes in the mask
//                  that haven't left
//   mma, ldmatrix  all lanes of a whole warp arrive at the same instruction, at
//                  one source line, and none has left
//   a launch       at most 1024 threads, 2^31 - 1 x 65535 x 65535 blocks, and
//                  the shared memory of the smallest supported device
//
// A barrier orders the memory accesses of the block; __syncwarp those of the
// lanes that it names. A shuffle or a vote orders nothing.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_TEST_CUDA_EMULATOR_SCHEDULE_H
#define TMC_TEST_CUDA_EMULATOR_SCHEDULE_H

#include "test/cuda/emulator/Orders.h"

#include <cuda_runtime.h>

#include <cstdint>
#include <memory>
#include <string>

namespace tmc::emulator {

constexpr int kWarp = 32;
constexpr size_t kMostThreads = 1024;

/// Where a thread is. For kernels it is constant while they run.
struct Position {
  uint3 thread, block;
  dim3 blockSize, gridSize;
};
#ifdef TMC_EMULATOR_IMPLEMENTATION
extern Position current;
#else
extern const Position current; // reads of it aren't instrumented
#endif

/// A launch: what runs, and the arguments as the kernel is given them.
struct Launch {
  const void *kernel;
  dim3 grid, block;
  size_t sharedBytes;
  /// Calls the kernel with the arguments at that place.
  void (*body)(const void *arguments);
  const void *arguments;
  size_t argumentBytes;
  std::shared_ptr<void> keepsArguments;
  std::string scalars; // the bytes of those that aren't structures
};
/// What cudaGetLastError would say of a launch's configuration.
cudaError_t checkLaunch(const Launch &launch);
/// Runs it to its end.
void runLaunch(const Launch &launch);
/// A serial number that no block has.
uint32_t takeSerial();
size_t sharedLimit();
void setSharedLimit(size_t bytes);
/// cudaFuncSetAttribute; false where the device doesn't allow that much.
bool allowDynamicShared(const void *kernel, int64_t bytes);

//===----------------------------------------------------------------------===//
// Of the thread that runs
//===----------------------------------------------------------------------===//

/// What happens-before is judged by.
struct Clock {
  uint32_t serial;      // of its block, counted over all launches
  uint32_t firstSerial; // of the launch's first block
  uint32_t epoch;       // barriers that the block has passed
  uint16_t thread;      // its number within the block
  /// The __syncwarps of each lane that it knows to be over; its own: how many
  /// it has passed.
  uint16_t lanes[kWarp];
};
/// Null outside of kernels. Of each thread: what engines run beside a kernel
/// may share functions with it, and then calls the hooks, too. Found at a fixed
/// place, because each access of a kernel asks for it.
extern __thread Clock *self __attribute__((tls_model("initial-exec")));

inline bool inKernel() { return self != nullptr; }
const void *currentKernel();
/// Readable memory of the launch that runs.
bool isArgument(uintptr_t at, size_t bytes);
/// The place of thread `i` of a block of this launch as "(x,y,z)".
std::string threadName(unsigned i);
/// The block with that serial number as "(x,y,z)".
std::string blockName(uint32_t serial);

/// Stacks of all fibers, one behind the other: [stacks, stacks + stackBytes).
extern uintptr_t stacks;
extern size_t stackBytes;

unsigned char *dynamicShared();
/// This thread's lane; a warp is 32 threads in a row, x fastest.
int laneId();

enum class BlockOp { Sync, Count, And, Or };
/// Returns what the operation yields; 0 for Sync.
int blockBarrier(BlockOp op, bool predicate);

enum class WarpOp { Sync, Shuffle, Vote, Reduce, Together };
/// Waits for the lanes of `mask`; returns the ballot of their predicates.
unsigned warpVote(WarpOp op, unsigned mask, bool predicate);
/// Copies `bytes` (at most 16) of lane `source`'s value to `to`.
void warpShuffle(unsigned mask, const void *value, int source, void *to,
                 size_t bytes);
/// Waits until all lanes of a whole warp call this for the same instruction,
/// at one line; then `body` gets what each of them has of its own.
void warpTogether(const char *instruction, void *own,
                  void (*body)(void *const *lanes), uintptr_t pc);

} // namespace tmc::emulator

#endif // TMC_TEST_CUDA_EMULATOR_SCHEDULE_H
