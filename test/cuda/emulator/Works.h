//===- Works.h - which queued work happens before which ---------*- C++ -*-===//
//
// Work on one stream runs in the order in which it was queued. Work on two
// streams is ordered by what connects them: an event recorded behind the one
// and waited for before the other, or the host, which waited for the one
// before it queued the other. Each stream, event and the host carries a vector
// clock: how much of each stream's work it knows to be over.
//
//     first   fill x | add x -> y | record e
//     second            wait e | add y -> z      knows 2 pieces of the first
//
// Two accesses to a byte by unordered work, one of them writing, are a race,
// in whichever order the two have run. Kernels are compared by word (Races.h);
// copies, fills and libraries by the range that they touch.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_TEST_CUDA_EMULATOR_WORKS_H
#define TMC_TEST_CUDA_EMULATOR_WORKS_H

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace tmc::emulator {

/// By stream: so many of its pieces of work are over.
using WorkClock = std::vector<uint64_t>;
void join(WorkClock &into, const WorkClock &from);
/// Whether `a` knows nothing that `b` doesn't know.
bool isWithin(const WorkClock &a, const WorkClock &b);

/// Work of a stream begins to run; `clock` is what it knows, itself included.
void beginWork(size_t stream, const WorkClock &clock);
/// Everything that has run is known to whatever is queued from now on.
void forgetWorks();

/// Whether something that has run isn't ordered before what runs.
extern bool hasConcurrentWork;
/// Whether the work with that serial number of a block is ordered before what
/// runs; a number of its own counts as that.
bool isOrderedBefore(uint32_t serial);
/// The kernel, or "a copy" and the like, and its stream.
std::string workName(uint32_t serial);
/// Names what runs, for those that come later: by its kernel, or by a literal.
void nameWork(const void *kernel);
void nameWork(const char *literal);

/// A range of device memory that what runs touches as a whole.
struct RangeAccess {
  uintptr_t begin, end;
  bool writes;
  uint32_t serial;
};
void noteRange(uintptr_t at, size_t bytes, bool writes);
/// An unordered access to a byte of the range, one of both writing; or null.
const RangeAccess *conflictingRange(uintptr_t at, size_t bytes, bool writes);

} // namespace tmc::emulator

#endif // TMC_TEST_CUDA_EMULATOR_WORKS_H
