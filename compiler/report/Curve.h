// Curve.h - predicted time over memory: plans of one step, from the smallest
// budget with a known plan to the budget that needs no recomputation. The plans
// are either made for a row of budgets, or are those that the search for one
// plan found on its way.

#ifndef TMC_COMPILER_REPORT_CURVE_H
#define TMC_COMPILER_REPORT_CURVE_H

#include <cstdint>
#include <string>
#include <vector>

namespace tmc {

struct CurvePoint {
  int64_t budgetBytes = 0; // Reserved bytes included, as in the arena.
  int64_t arenaBytes = 0;
  double seconds = 0;
  double overheadPct = 0;
  double lowerBoundPct = -1; // For that plan's order; -1: not known.
  int64_t recomputedOps = 0;
  std::string levers; // The levers in use; empty: not shown.
};

struct Curve {
  std::string model, target;
  std::vector<CurvePoint> points; // By ascending budget.
  CurvePoint plan;                // The compilation's own; arena -1: none.
  /// The points come from planning one budget, and no plan was sought between
  /// them: between two points, the earlier point is the best known plan.
  bool isSparse = false;
};

/// One line per point, after a heading.
std::string curveCsv(const Curve &curve);

/// A complete SVG picture, in steps where the curve is sparse; light or dark by
/// the viewer's setting.
std::string curveSvg(const Curve &curve);

} // namespace tmc

#endif // TMC_COMPILER_REPORT_CURVE_H
