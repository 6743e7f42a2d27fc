// VerifySpaces.h - the verifier of problems with spaces, engines and exact
// loops.
//
// The part of `Verify.h` for everything beyond R1 to R8. It shares nothing with
// the timeline: it unrolls up to four trips, names each version of each value
// on the way forward, walks back with the set of versions that are needed or
// held, and times each trip by the ends of what every entry waits for. All sums
// have 128 bits. A defect begins with its rule: "R13: 'adam' overwrites ...".

#ifndef TMC_COMPILER_PLANNING_MODEL_VERIFYSPACES_H
#define TMC_COMPILER_PLANNING_MODEL_VERIFYSPACES_H

#include "compiler/planning/model/Problem.h"

#include <optional>

namespace tmc::planning {

/// What a plan takes, by the verifier's own count.
struct SpaceMeasure {
  std::vector<__int128> peakBytes; // Of every space, reserved left out.
  __int128 makespan = 0;
};

/// The first defect of the lists themselves: what runs where and how often, and
/// R10. Nothing of what is in memory.
std::optional<std::string> verifyLists(const Problem &problem,
                                       const Solution &solution);

/// The first defect of `solution`, or nothing and its measure.
std::optional<std::string> measureSpaces(const Problem &problem,
                                         const Solution &solution,
                                         SpaceMeasure &measure);

} // namespace tmc::planning

#endif // TMC_COMPILER_PLANNING_MODEL_VERIFYSPACES_H
