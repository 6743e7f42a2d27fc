// Buffers.h - from plans to packing problems.
//
// A solution gives the life of each instance of a value. The packer places
// buffers: instances that take over one another's storage are one buffer. A
// loop's body is laid out once, so each of its buffers has one place in all
// trips.

#ifndef TMC_COMPILER_PLANNING_PACK_BUFFERS_H
#define TMC_COMPILER_PLANNING_PACK_BUFFERS_H

#include "compiler/planning/model/Problem.h"
#include "compiler/planning/pack/Arena.h"

#include <array>

namespace tmc::planning {

/// The buffers of a solution in one space: instances that take over one
/// another's storage are one buffer, a loop's body is laid out once, and
/// buffers that pass from trip to trip are alive throughout the body.
/// Persistent values first, then by begin. Operands of work are alive through
/// its Done.
ArenaProblem arenaOf(const Problem &problem, const Solution &solution,
                     int64_t alignment, SpaceId space = 0);

/// Bytes alive at the peak of the device's layout, by class. A loop's body is
/// laid out once, so this may be more than any trip holds.
std::array<int64_t, kNumClasses> layoutPeakByClass(const Problem &problem,
                                                   const Solution &solution);

/// Packs buffers independently of their order: the same buffers, listed in any
/// order, get the same arena.
Packing packSorted(const ArenaProblem &problem,
                   const PackOptions &options = {});

} // namespace tmc::planning

#endif // TMC_COMPILER_PLANNING_PACK_BUFFERS_H
