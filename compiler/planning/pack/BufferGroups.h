// BufferGroups.h - groups of tied buffers, which the packer places.
//
// A buffer without ties is a group of its own. Time is compressed to sections:
// between two neighbouring ends of lives nothing changes.

#ifndef TMC_COMPILER_PLANNING_PACK_BUFFERGROUPS_H
#define TMC_COMPILER_PLANNING_PACK_BUFFERGROUPS_H

#include "compiler/planning/pack/Arena.h"

#include <cstdint>
#include <limits>
#include <vector>

namespace tmc::planning {

struct BufferGroup {
  /// A buffer with bytes and a life, at `distance` bytes from the group's
  /// start, alive in the sections [first, last).
  struct Member {
    int64_t distance, bytes;
    int32_t first, last;
  };
  std::vector<Member> members;
  int64_t fixed = -1; // Offset of the start; -1: free.
  int64_t alignment = 1;
  int64_t extent = 0; // Bytes from the start to the last end.
  /// From the first section of all members to after the last.
  int32_t first = std::numeric_limits<int32_t>::max(), last = 0;
};

struct BufferGroups {
  /// The place of a buffer.
  struct Place {
    int32_t group;
    int64_t distance; // From the group's start.
  };
  std::vector<BufferGroup> groups;
  std::vector<Place> place;
  int32_t sections = 0;
};

/// The groups of a problem that `checkArena` accepts.
BufferGroups groupBuffers(const ArenaProblem &problem);

/// Groups with fixed offsets first; then by the most live bytes during their
/// lives, descending; among equals the longest lives first.
std::vector<int32_t> pressedFirst(const BufferGroups &of);

} // namespace tmc::planning

#endif // TMC_COMPILER_PLANNING_PACK_BUFFERGROUPS_H
