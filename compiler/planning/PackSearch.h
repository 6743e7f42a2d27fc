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
// The search takes a buffer b with the least `low` of all and branches: b lies
// at low_b; or it lies higher, hence on one of the buffers not yet placed,
// which raises low_b to the least top that these can have. Either way some
// section usually fails at once where the packing has to be tight. What is left
// falls apart into components with no time in common, which are solved one by
// one: when one fails, no choice in another can help.
//
// Source: the bottom-up order and the section bound are those of MiniMalloc
// (Moffitt, ASPLOS 2023); the branching on "higher than its least offset" and
// the restarts are ours.

#ifndef TMC_COMPILER_PLANNING_PACKSEARCH_H
#define TMC_COMPILER_PLANNING_PACKSEARCH_H

#include "compiler/planning/Arena.h"

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

#endif // TMC_COMPILER_PLANNING_PACKSEARCH_H
