// PackSearch.h - exact search for a packing within a given capacity.
//
// Buffers are placed from the bottom up, each resting on the floor or on one
// placed before. For a buffer u not yet placed, `low_u` is the least offset it
// can still have: the highest top of what is placed in its lifetime. For a
// section of time s (no buffer begins or ends inside it), what is left to place
// there must fit between the least `low_u` of its buffers and the capacity:
//
//     min over u alive in s of low_u  +  sum of what is left in s  <= capacity
//
// The search takes a buffer b that nothing unplaced can lie under and branches:
// b lies at low_b; or it lies higher, so on one of the buffers not yet
// placed, which raises low_b to the least top that these can have:
//
//     capacity ------------------------
//                |     | e ?   |           Runs of sections: [c] lies lower
//       |   a    |  c? +-------+           than a and b beside it, so only what
//       |        |-----|   b   |           lives within it can lie at its
//     0 +--------+-----+-------+--> time   bottom: few buffers, often one.
//
// Which b decides most: of the runs that lie lower than their neighbours, a
// section with few buffers that have the least offset there, for how often it
// has failed before (the first-fail rule of constraint programming, weighted as
// by Boussemart et al., ECAI 2004). Of its buffers, one that leaves an even
// top. Every second restart, and every one where there is room to spare, takes
// the lowest buffer of the tightest section instead.
//
// What is left falls apart into components with no time in common, which are
// solved one by one: when one fails, no choice in another can help. A component
// is identified by its buffers and their least offsets; what has failed once,
// in any restart, isn't tried again (by 64-bit hashes: so "impossible" is no
// proof).
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

/// Offsets that fit `boxes` into `capacity`, or why not, after at most `work`
/// counted steps (about a nanosecond each).
SearchResult searchPacking(const std::vector<Box> &boxes, int32_t sections,
                           int64_t capacity, uint64_t seed, int64_t &work,
                           std::vector<int64_t> &offsets);

} // namespace tmc::planning

#endif // TMC_COMPILER_PLANNING_PACK_PACKSEARCH_H
