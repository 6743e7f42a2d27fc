// LoopChoices.h - what may come anew in each trip of a loop, or be held over
// all.
//
// A loop runs one list in all of its trips, so what is outside costs either the
// same bytes in each or the same transfer in each:
//
//     made outside      held over all trips (the projection's default), or
//                       stashed once, and fetched anew in each
//     at home elsewhere fetched anew in each trip (the default), or fetched
//     once
//                       before the loop, and held over all
//
// The search for the device's plan folds a loop to one trip and can't weigh the
// two against each other: so which of them is tried from outside.

#ifndef TMC_COMPILER_PLANNING_SEARCH_LOOPCHOICES_H
#define TMC_COMPILER_PLANNING_SEARCH_LOOPCHOICES_H

#include "compiler/planning/search/Projection.h"

namespace tmc::planning {

/// What to try: all that may come anew, all that may be held over, both; and of
/// few, each by itself.
std::vector<LoopChoice> loopChoices(const Problem &problem);

} // namespace tmc::planning

#endif // TMC_COMPILER_PLANNING_SEARCH_LOOPCHOICES_H
