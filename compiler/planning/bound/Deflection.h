// Deflection.h - the direction of a subgradient step.
//
// Source: Camerini, Fratta, Maffioli, "On improving relaxation methods by
// modified gradient techniques" (1975).

#ifndef TMC_COMPILER_PLANNING_BOUND_DEFLECTION_H
#define TMC_COMPILER_PLANNING_BOUND_DEFLECTION_H

#include <cstddef>
#include <vector>

namespace tmc::planning {

/// Turns `direction` towards `slope`, and away from the direction before if the
/// two disagree. Prices aren't pushed below 0. Returns the square of the
/// direction's length; 0: there is none.
inline double deflect(const std::vector<double> &at, std::vector<double> &slope,
                      std::vector<double> &direction) {
  constexpr double kStrength = 1.5;
  double dot = 0, size = 0, steep = 0, norm = 0;
  for (size_t i = 0; i < at.size(); ++i) {
    if (at[i] <= 0 && slope[i] < 0)
      slope[i] = 0;
    dot += slope[i] * direction[i];
    size += direction[i] * direction[i];
    steep += slope[i] * slope[i];
  }
  if (steep <= 0)
    return 0;
  const double beta = dot < 0 && size > 0 ? -kStrength * dot / size : 0;
  for (size_t i = 0; i < at.size(); ++i) {
    direction[i] = slope[i] + beta * direction[i];
    norm += direction[i] * direction[i];
  }
  return norm;
}

} // namespace tmc::planning

#endif // TMC_COMPILER_PLANNING_BOUND_DEFLECTION_H
