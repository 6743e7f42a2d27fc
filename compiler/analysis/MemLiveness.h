// MemLiveness.h - when each buffer of a program is alive.
//
// Moments number the launches, fills, copies and dones of a program in order, a
// loop's body once:
//
//     launch      0
//     loop        launch 1, launch 2, launch 3
//     launch      4
//
// A buffer is alive from the first moment that touches it to the last, both
// included; a persistent one always. In a loop, a buffer that is also touched
// outside it, or that the body reads before it writes it, is alive from the
// body's first moment to its last: its bytes pass from one trip to the next.
// Buffers of asynchronous work stay alive through that work's done, and what a
// joined launch touches is alive during all of the launches joined with it.

#ifndef TMC_COMPILER_ANALYSIS_MEMLIVENESS_H
#define TMC_COMPILER_ANALYSIS_MEMLIVENESS_H

#include "compiler/planning/pack/Arena.h"
#include "dialects/mem/Mem.h"

#include <vector>

namespace tmc {

struct MemLiveness {
  /// Moments [begin, end); empty where nothing touches the buffer.
  struct Span {
    int64_t begin = 0, end = 0;
    bool crossesTrips = false; // Its bytes pass from one trip to the next.
  };
  std::vector<mem::BufferOp> buffers;
  std::vector<Span> spans;                // One per buffer.
  std::vector<mlir::Operation *> moments; // The op at each moment.

  /// The largest sum of the bytes alive in `space` at one moment, each buffer
  /// rounded up to `alignment`, and where it is.
  std::pair<int64_t, int64_t> peak(int64_t alignment, SpaceKind space) const;

  /// The buffers of one space, as indices, and the problem of packing them.
  struct SpaceBuffers {
    std::vector<size_t> indices;
    planning::ArenaProblem problem;
  };
  SpaceBuffers buffersIn(SpaceKind space, int64_t alignment) const;
};

/// "", " of the host" or " of the file", for messages.
std::string nameAtPeak(SpaceKind space);

MemLiveness memLiveness(mem::ProgramOp program);

/// The work of each event: the copy, or launch on the host, that stands before
/// its record.
llvm::DenseMap<int64_t, mlir::Operation *> workOfEvents(mem::ProgramOp program);

/// The launches that are joined with the ones after them and run as one with
/// `launch`, in order: `launch` alone if it isn't joined.
llvm::SmallVector<mem::LaunchOp> joinedFrom(mem::LaunchOp launch);

/// The buffer that `memref` is a view or a piece of.
mem::BufferOp bufferOf(mlir::Value memref);

} // namespace tmc

#endif // TMC_COMPILER_ANALYSIS_MEMLIVENESS_H
