// Curve.h - how predicted time falls as memory grows: plans of one step, from
// the smallest budget known to work to what the step needs when nothing is
// recomputed. They are either planned for a row of budgets, or those that were
// found on the way to one plan.

#ifndef TMC_COMPILER_REPORT_CURVE_H
#define TMC_COMPILER_REPORT_CURVE_H

#include <cstdint>
#include <string>
#include <vector>

namespace tmc {

struct CurvePoint {
  int64_t budgetBytes = 0; // Reserved included, as is the arena.
  int64_t arenaBytes = 0;  // -1: not packed.
  double seconds = 0;
  double overheadPct = 0;
  double lowerBoundPct = -1; // For that plan's order; -1: not known.
  int64_t recomputedOps = 0; // -1: not counted.
  std::string levers;        // What is pulled; empty: not a matter.
};

struct Curve {
  std::string model, target;
  std::vector<CurvePoint> points; // By ascending budget.
  CurvePoint plan;                // The compilation's own; arena -1: none.
  /// The points are what planning one budget found; nothing was sought between
  /// them, where the point before is what is known.
  bool isSparse = false;
};

/// One line a point, with a heading.
std::string curveCsv(const Curve &curve);

/// A picture of itself, in steps where the curve is sparse; light or dark as
/// the viewer wants it.
std::string curveSvg(const Curve &curve);

} // namespace tmc

#endif // TMC_COMPILER_REPORT_CURVE_H
