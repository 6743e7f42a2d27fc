// PackSearch.h - exact search for a packing within a given capacity.
//
// Buffers are placed from the bottom up, each on the floor or on a placed
// buffer. For a buffer u not yet placed, `low_u` is its least possible offset:
// the highest top of placed buffers in its lifetime. For a section of time s
// (no buffer begins or ends inside it), the unplaced buffers must fit between
// their least `low_u` and the capacity:
//
//     min over u alive in s of low_u  +  sum of bytes left in s  <= capacity
//
// The search takes a buffer b that no unplaced buffer can lie under and
// branches: b lies at low_b; or b lies higher, so on an unplaced buffer, which
// raises low_b to the least top that these can have:
//
//     capacity ------------------------
//                |     | e ?   |           Runs of sections: [c] lies lower
//       |   a    |  c? +-------+           than a and b beside it, so only
//       |        |-----|   b   |           buffers alive only in it can lie
//     0 +--------+-----+-------+--> time   at its bottom: few, often one.
//
// The choice of b matters most. Among the runs that lie lower than their
// neighbours, the search takes a section with few buffers at the least offset,
// relative to its number of failures (the first-fail rule of constraint
// programming, weighted as by Boussemart et al., ECAI 2004), and of its buffers
// one that leaves an even top. Every second restart, and every restart if there
// is room to spare, takes the lowest buffer of the tightest section instead.
//
// The unplaced buffers fall apart into components with no time in common,
// solved one by one: if one fails, no choice in another can help. A component
// is identified by its buffers and their least offsets. A component that has
// failed once, in any restart, isn't tried again (by 64-bit hashes, so
// "impossible" is no proof).
//
// Source: the bottom-up order and the section bound are those of MiniMalloc
// (Moffitt, ASPLOS 2023); the branching on "higher than its least offset", the
// choice of b and the memory of failures are ours.

#ifndef TMC_COMPILER_PLANNING_PACK_PACKSEARCH_H
#define TMC_COMPILER_PLANNING_PACK_PACKSEARCH_H

#include "compiler/planning/pack/Arena.h"

namespace tmc::planning {

/// A box without ties: bytes over [first, last) of compressed sections.
struct Box {
  int64_t bytes;
  int32_t first, last;
};

enum class SearchResult : uint8_t { Found, Impossible, GaveUp };

/// Fills `offsets` with a packing of `boxes` within `capacity`. `work`: the
/// most counted steps (about 1 ns each) on entry, the steps used on return.
SearchResult searchPacking(const std::vector<Box> &boxes, int32_t sections,
                           int64_t capacity, uint64_t seed, int64_t &work,
                           std::vector<int64_t> &offsets);

} // namespace tmc::planning

#endif // TMC_COMPILER_PLANNING_PACK_PACKSEARCH_H
