// VerifyWalk.h - the verifier's own count of a plan's bytes and time.
//
// The walk shares nothing with the timeline: it unrolls up to four trips, names
// each version of each value on the way forward, walks back with the set of
// versions that are needed or held, and times each trip by the ends of the work
// that each entry waits for. All sums have 128 bits. A defect begins with its
// rule: "R13: 'adam' overwrites ...".

#ifndef TMC_COMPILER_PLANNING_MODEL_VERIFYWALK_H
#define TMC_COMPILER_PLANNING_MODEL_VERIFYWALK_H

#include "compiler/planning/model/Problem.h"

#include <optional>

namespace tmc::planning {

/// Bytes and time of a plan, by the verifier's own count.
struct WalkMeasure {
  std::vector<__int128> peakBytes; // Per space, reserved left out.
  __int128 makespan = 0;
};

/// The first defect of the lists themselves: which recipes run where and how
/// often, and R10. It doesn't check memory.
std::optional<std::string> verifyLists(const Problem &problem,
                                       const Solution &solution);

/// The first defect of `solution`, or nothing and its measure.
std::optional<std::string> measureWalk(const Problem &problem,
                                       const Solution &solution,
                                       WalkMeasure &measure);

} // namespace tmc::planning

#endif // TMC_COMPILER_PLANNING_MODEL_VERIFYWALK_H
