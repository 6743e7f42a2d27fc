//===- Shadow.h - who wrote and read each word, and what exists -*- C++ -*-===//
//
// Every load and store of a kernel arrives here (Hooks.cpp) and is looked up in
// one of three spaces:
//
//     device memory      one range of addresses; pieces by cudaMalloc, between
//                        red zones (Memory.h)
//     dynamic shared     the bytes of the launch, between red zones
//     static shared      a slot of 64 KiB for each variable (Image.h)
//
// A word of 4 bytes has a state byte, 4 bits "exists" and 4 bits "written",
// and a cell of three records:
//
//     [ last writer | a reader | another thread that read ]
//
// A record is (block's serial number, thread, barriers that its block had
// passed, its warp clock, which of the 4 bytes, place in the program). Two
// accesses to a byte, at least one of them a write, are a race unless one
// happens before the other:
//
//     same thread;  or an earlier launch;  or the same block, with a barrier
//     between;  or the same warp, with a __syncwarp of both between
//
// That is judged when the second access comes, whatever the order in which the
// two ran: so a race is found in every schedule in which both happen. Two
// readers are kept, since a later writer differs from at least one of them.
// (Of bytes within one word that several threads write without a barrier, only
// the last writer is kept: races between single bytes may be missed under one
// seed, and are seen under others.)
//
// Shared memory counts as unwritten when a block starts; device memory when it
// is allocated, when a launch begins that will write it, and when what it held
// is dead (Steps.h).
//
//===----------------------------------------------------------------------===//
#ifndef TMC_TEST_CUDA_EMULATOR_SHADOW_H
#define TMC_TEST_CUDA_EMULATOR_SHADOW_H

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace tmc::emulator {

/// What a kernel's access is.
enum class Touch { Read, Write, Atomic };

/// Checks and records one access of the thread that runs; false where something
/// was reported.
bool touch(uintptr_t at, size_t bytes, Touch kind, uintptr_t pc);
bool isShared(uintptr_t at);
/// The thread writes shared memory, whole words, at some time between these two
/// calls. False where that was reported.
bool startCopy(uintptr_t at, size_t bytes, uintptr_t pc);
void finishCopy(uintptr_t at, size_t bytes, uintptr_t pc);

/// `arguments` say by the addresses among them which extents it may touch.
void startLaunch(size_t sharedBytes, const void *arguments,
                 size_t argumentBytes);
void endLaunch();
/// Forgets what shared memory held.
void startBlock();
/// Static shared memory that this launch has touched.
size_t staticSharedBytes();

//===----------------------------------------------------------------------===//
// Device memory
//===----------------------------------------------------------------------===//

/// The range of addresses that device memory is taken from.
struct DeviceRange {
  uintptr_t base = 0;
  size_t bytes = 0;
};
const DeviceRange &deviceRange();
inline bool isDevice(uintptr_t at) {
  return at - deviceRange().base < deviceRange().bytes;
}

/// Lets kernels touch memory of the host, unwatched: for tests that pass the
/// address of a local variable as a scalar. Off by default.
void allowHostMemory(bool allow);

/// Says that bytes exist, or no longer.
void setExists(uintptr_t at, size_t bytes, bool exists);
/// Of memory that is freed: no byte exists, and what was remembered of accesses
/// takes no memory any more.
void forget(uintptr_t at, size_t bytes);
/// Says that bytes were written, or that nobody may read them any more.
void setWritten(uintptr_t at, size_t bytes, bool written);

/// The first byte of [at, at + bytes) that doesn't exist or, where `written`,
/// that nobody wrote; `at + bytes` if there is none.
uintptr_t firstMissing(uintptr_t at, size_t bytes, bool written);

/// The host, a copy or a library touches device memory: everything must exist
/// and, where read, be written. `what` names it in reports. Returns whether all
/// is well. Memory outside of the device's range is refused.
bool touchAll(const void *at, size_t bytes, Touch kind, const char *what);

//===----------------------------------------------------------------------===//
// What a launch of a step may touch
//===----------------------------------------------------------------------===//

/// A piece of device memory with a name.
struct Extent {
  uintptr_t begin, end;
  std::string name;
  bool writable;
};
/// From now on accesses to [arena, arena + bytes) must lie in one of these,
/// which are disjoint and in order. Null: anything goes. The caller keeps it.
void restrictTo(const std::vector<Extent> *extents, uintptr_t arena,
                size_t bytes);

} // namespace tmc::emulator

#endif // TMC_TEST_CUDA_EMULATOR_SHADOW_H
