// VerifyWalk.h - the verifier's own count of a plan's bytes and time.
//
// The walk shares nothing with the timeline: it unrolls up to four trips (or
// two more than twice the largest lag), names each version of each value on the
// way forward, walks back with the set of versions that are needed or held, and
// times each trip (VerifyTimes.cpp): at each end it asks of the entries behind
// it which of them may begin. All sums have 128 bits. A defect begins with its
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

/// An entry of a trip, for its time.
struct TimedEntry {
  const Recipe *recipe = nullptr; // Null: a move of a first trip's nothing.
  Phase phase = Phase::Whole;
  int32_t start = kNone;       // A Done has the entry of its Start.
  bool onDevice = false;       // It reads or writes a value of the device.
  std::vector<int32_t> makers; // The entries that make work's inputs.
};

/// Time of one trip's entries (R12, R17).
__int128 timeOfTrip(const Problem &problem,
                    const std::vector<TimedEntry> &entries);

} // namespace tmc::planning

#endif // TMC_COMPILER_PLANNING_MODEL_VERIFYWALK_H
