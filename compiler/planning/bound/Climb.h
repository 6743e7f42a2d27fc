// Climb.h - subgradient steps towards the highest value of a concave sum over
// prices that aren't negative.

#ifndef TMC_COMPILER_PLANNING_BOUND_CLIMB_H
#define TMC_COMPILER_PLANNING_BOUND_CLIMB_H

#include "compiler/planning/bound/Deflection.h"

#include <algorithm>
#include <cstdint>

namespace tmc::planning {

struct ClimbAim {
  int64_t steps = 10;
  /// A step aims at `above` times the best gain over the start, and at least at
  /// a gain of `least`. No sum of interest is as high as `beyond`.
  double least = 0, above = 1, beyond = 0;
};

/// Moves `best` from a point without gain to the best one found; `sum(at,
/// &slope)` is the sum at a point, and its slope there. Returns its value.
template <typename Sum>
double climb(Sum &&sum, std::vector<double> &best, const ClimbAim &aim) {
  /// Steps in a row without gain that shorten the steps, as a part of all; the
  /// factor; and the shortest step. A gain below a part of the gain so far
  /// doesn't count. Source: set by hand on generated problems.
  constexpr int64_t kPatiencePart = 60, kLeastPatience = 8, kMostPatience = 60;
  constexpr double kShorten = 0.6, kShortestStep = 1e-7, kLeastGain = 1e-6;
  const std::vector<double> none(best.size(), 0);
  std::vector<double> at = best, slope = at, direction = none;
  const double start = sum(at, nullptr);
  double own = start, step = 1;
  int64_t idle = 0, patience = std::clamp(aim.steps / kPatiencePart,
                                          kLeastPatience, kMostPatience);
  for (int64_t i = 0; i < aim.steps && own <= aim.beyond; ++i) {
    const double value = sum(at, &slope);
    if (value > own) {
      if (value - start > (own - start) * (1 + kLeastGain))
        idle = 0;
      own = value;
      best = at;
    } else if (++idle > patience) {
      // The steps are too long: shorten them, and restart from the best point.
      step *= kShorten;
      idle = 0;
      at = best;
      direction = none;
      if (step < kShortestStep)
        break;
      continue;
    }
    const double norm = deflect(at, slope, direction);
    if (norm <= 0)
      break;
    const double gain = std::max(aim.least, (own - start) * aim.above);
    const double length = step * std::max(gain - (value - start), 0.0) / norm;
    for (size_t k = 0; k < at.size(); ++k)
      at[k] = std::max(0.0, at[k] + length * direction[k]);
  }
  return own;
}

} // namespace tmc::planning

#endif // TMC_COMPILER_PLANNING_BOUND_CLIMB_H
