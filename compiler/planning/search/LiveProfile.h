// LiveProfile.h - live bytes at every moment of a schedule, and their excess
// over a limit, under changes to ranges of moments.
//
// Moments are stored in blocks; blocks are the leaves of a tree of fan-out 8:
//
//     level 2                  [         ]
//     level 1          [   ]      [   ]      [   ]
//     level 0 (blocks) [|||]      [|||]      [|||]    live bytes of moments
//
// A node holds the bytes added to all of its moments at once, an upper bound on
// the largest of them, and their *excess*: the sum of the bytes above the
// limit. Adding to a range of blocks touches a few nodes on each level; only
// parts above the limit, before or after, are walked down to their moments.
// Near a solution these are few, so a change costs O(log(blocks)) small steps.

#ifndef TMC_COMPILER_PLANNING_SEARCH_LIVEPROFILE_H
#define TMC_COMPILER_PLANNING_SEARCH_LIVEPROFILE_H

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tmc::planning {

class LiveProfile {
public:
  LiveProfile(int32_t blocks, int64_t limitBytes);

  /// Appends a moment; call before the first `count`.
  void append(int32_t block, int64_t bytes) { live[block].push_back(bytes); }
  /// Recomputes all sums and bounds.
  void count();

  int64_t limit() const { return limitBytes; }
  void setLimit(int64_t bytes) {
    limitBytes = bytes;
    count();
  }

  int32_t sizeOf(int32_t block) const { return int32_t(live[block].size()); }
  int64_t at(int32_t block, int32_t index) const {
    return live[block][index] + lazyFrom(0, block);
  }
  void insert(int32_t block, int32_t index, int64_t bytes);
  void erase(int32_t block, int32_t index);
  /// Adds to the moments [begin, end) of a block.
  void add(int32_t block, int32_t begin, int32_t end, int64_t bytes);
  /// Adds to all moments of the blocks [first, last).
  void addToBlocks(int32_t first, int32_t last, int64_t bytes);

  /// Sum over all moments of the bytes above the limit.
  int64_t excess() const { return levels.back().front().excess; }
  int64_t peak() const;
  /// Index of the largest moment of a block that isn't empty.
  int32_t worstIn(int32_t block) const;
  /// The first block with an excess, searched from `from` on and around; -1:
  /// none.
  int32_t blockAbove(int32_t from) const;

  int64_t work = 0; // Small steps taken so far.

private:
  static constexpr int32_t kFanOut = 8;
  struct Node {
    int64_t lazy = 0;   // Added to all its moments, not stored in them.
    int64_t most = 0;   // At least the largest moment, with `lazy`.
    int64_t excess = 0; // Sum over its moments.
  };

  /// Bytes that a node and its ancestors add to the moments under the node.
  int64_t lazyFrom(size_t level, int32_t node) const {
    int64_t lazy = 0;
    for (; level < levels.size(); ++level, node /= kFanOut)
      lazy += levels[level][node].lazy;
    return lazy;
  }
  /// Makes a node's sums exact, where it reaches above the limit. `above`: the
  /// bytes that its ancestors add. Returns the change of its excess.
  int64_t refresh(size_t level, int32_t node, int64_t above);
  int64_t refreshIfOver(size_t level, int32_t node, int64_t above) {
    const Node &n = levels[level][node];
    return n.excess > 0 || n.most + above > limitBytes
               ? refresh(level, node, above)
               : 0;
  }
  /// Updates the ancestors after a change of a node's sums.
  void raise(size_t level, int32_t node, int64_t excess);
  void settle(int32_t block);

  int64_t limitBytes;
  std::vector<std::vector<int64_t>> live; // Per block.
  std::vector<std::vector<Node>> levels;  // Blocks first, root last.
};

} // namespace tmc::planning

#endif // TMC_COMPILER_PLANNING_SEARCH_LIVEPROFILE_H
