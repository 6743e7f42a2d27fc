// Arena.h - the place of each buffer inside one allocation.
//
// A step is a fixed list of instructions. A buffer is alive from the
// instruction that first writes it to the one that last reads it, and two
// buffers may share bytes only if those intervals do not meet:
//
//     offset
//       64 |        [ c      ]
//        0 | [ a   ][ b            ]
//          +--0--1--2--3--4--5--6--7--> instruction
//
// Some buffers are tied: `inside` puts one at a fixed distance in another (a
// piece of a concatenation; at distance 0, the in-place successor that takes
// its predecessor's storage). Tied buffers form one *group*, placed as one
// shape: the union of its members' boxes. Members of a group may overlap each
// other in time and place: their tie means that they share bytes.
//
// `ArenaProblem` states the buffers, `packArena` chooses offsets, and
// `verifyPacking` proves the offsets right independently of `packArena`. The
// answer of every planner passes through `verifyPacking`, in release builds
// too.

#ifndef TMC_COMPILER_PLANNING_PACK_ARENA_H
#define TMC_COMPILER_PLANNING_PACK_ARENA_H

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tmc::planning {

/// Instructions [begin, end) during which a buffer holds a live value.
struct Lifetime {
  int64_t begin = 0;
  int64_t end = 0;

  bool meets(const Lifetime &other) const {
    return begin < other.end && other.begin < end && begin < end &&
           other.begin < other.end;
  }
};

struct Buffer {
  std::string name; // For diagnostics only.
  int64_t bytes = 0;
  Lifetime lifetime;
  int64_t alignment = 0; // 0: the problem's alignment.
  /// This buffer is at `distance` bytes from the start of buffer `inside`
  /// (which may itself be inside another; no cycles).
  int32_t inside = -1;
  int64_t distance = 0;
  int64_t fixedOffset = -1; // -1: free.
};

struct ArenaProblem {
  std::vector<Buffer> buffers;
  int64_t alignment = 256;    // For offsets; a buffer may override it.
  int64_t capacityBytes = -1; // Good enough; -1: as small as found.
};

/// `offsets[i]` places `problem.buffers[i]`.
struct Packing {
  std::vector<int64_t> offsets;
  int64_t arenaBytes = 0;
};

struct PackOptions {
  uint64_t seed = 1;
  int64_t effort = 100; // Counted work, in percent of the default.
};

/// Largest total size in bytes of buffers alive at one instruction (a group
/// counts as the union of its live members). No packing is smaller.
int64_t peakBytes(const ArenaProblem &problem);

/// The first defect of `problem`, or nothing: negative sizes, ties that form a
/// cycle or disagree with fixed offsets or alignments.
std::optional<std::string> checkArena(const ArenaProblem &problem);

/// Offsets for a problem that `checkArena` accepts.
Packing packArena(const ArenaProblem &problem, const PackOptions &options = {});

/// The first defect of `packing`, in words, or nothing. O(n log n) sweep.
std::optional<std::string> verifyPacking(const ArenaProblem &problem,
                                         const Packing &packing);

} // namespace tmc::planning

#endif // TMC_COMPILER_PLANNING_PACK_ARENA_H
