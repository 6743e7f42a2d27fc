// Buffers.h - from plans to packing problems.
//
// A solution says when each instance of a value is alive; what is packed are
// buffers: instances that take over one another's storage are one buffer, and a
// loop's body is laid out once, so that each of its buffers has one place in
// all trips.

#ifndef TMC_COMPILER_PLANNING_PACK_BUFFERS_H
#define TMC_COMPILER_PLANNING_PACK_BUFFERS_H

#include "compiler/planning/model/Graph.h"
#include "compiler/planning/pack/Arena.h"

#include <array>

namespace tmc::planning {

/// The buffers of a solution in one space as they will be placed: values that
/// take over one another's storage are one buffer, a loop's body is laid out
/// once, and what passes from trip to trip is alive throughout the body.
/// Persistent values first, then by begin. What work touches is alive through
/// its Done.
ArenaProblem arenaOf(const Problem &problem, const Solution &solution,
                     int64_t alignment, SpaceId space = 0);

/// What is alive on the device when most is, as it is laid out, by class: a
/// loop's body is laid out once, so that this may be more than any trip holds.
std::array<int64_t, kNumClasses> layoutPeakByClass(const Problem &problem,
                                                   const Solution &solution);

/// Packs in an order that doesn't depend on the order of the buffers: the same
/// buffers, listed in any order, get the same arena.
Packing packSorted(const ArenaProblem &problem,
                   const PackOptions &options = {});

/// Lifetimes of a training step: those of `graph` when all is kept.
ArenaProblem lifetimesOf(const Graph &graph);

} // namespace tmc::planning

#endif // TMC_COMPILER_PLANNING_PACK_BUFFERS_H
