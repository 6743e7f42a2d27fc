// LoopChoices.h - values that may be fetched anew in each trip of a loop, or
// held over all trips.
//
// A loop runs one list in all of its trips, so an outside value costs either
// the same bytes or the same transfer in each trip:
//
//     made outside       held over all trips (the projection's default), or
//                        stashed once and fetched anew in each trip
//     at home elsewhere  fetched anew in each trip (the default), or fetched
//                        once before the loop and held over all trips
//
// The search for the device's plan folds a loop to one trip and can't weigh the
// two against each other. So its caller tries them.

#ifndef TMC_COMPILER_PLANNING_MOVES_LOOPCHOICES_H
#define TMC_COMPILER_PLANNING_MOVES_LOOPCHOICES_H

#include "compiler/planning/moves/Projection.h"

namespace tmc::planning {

/// Choices to try: all values that may come anew, all that may be held over,
/// both; and, if there are few, each value by itself.
std::vector<LoopChoice> loopChoices(const Problem &problem);

} // namespace tmc::planning

#endif // TMC_COMPILER_PLANNING_MOVES_LOOPCHOICES_H
