// Curve.h - how predicted time falls as memory grows: the plans of one step for
// a row of budgets, from the smallest one known to work to what the step needs
// when nothing is recomputed.
//
// All plans come from one book, so a plan that is found for one budget serves
// every larger one for which nothing better is found: the curve never rises.

#ifndef TMC_COMPILER_PIPELINE_CURVE_H
#define TMC_COMPILER_PIPELINE_CURVE_H

#include "compiler/pipeline/Pipeline.h"

#include <string>
#include <vector>

namespace tmc {

struct CurvePoint {
  int64_t budgetBytes = 0; // Reserved included, as is the arena.
  int64_t arenaBytes = 0;
  double seconds = 0;
  double overheadPct = 0;
  double lowerBoundPct = -1; // For that plan's order; -1: not known.
  int64_t recomputedOps = 0;
};

struct Curve {
  std::string model, target;
  std::vector<CurvePoint> points; // By ascending budget.
  CurvePoint plan;                // The compilation's own; arena -1: none.
};

/// About `count` budgets for a compilation that has been planned. Empty where
/// no plan is known.
Curve sweep(Compilation &compilation, int count = 16);

/// One line a point, with a heading.
std::string curveCsv(const Curve &curve);

/// A picture of itself, light or dark as the viewer wants it.
std::string curveSvg(const Curve &curve);

} // namespace tmc

#endif // TMC_COMPILER_PIPELINE_CURVE_H
