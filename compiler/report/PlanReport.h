// PlanReport.h - a plan's figures, as JSON (plan.json) and as text.

#ifndef TMC_COMPILER_REPORT_PLANREPORT_H
#define TMC_COMPILER_REPORT_PLANREPORT_H

#include "compiler/report/Curve.h"
#include "compiler/report/Planned.h"

#include <string>

namespace tmc {

/// The schema of plan.json.
constexpr int kPlanSchema = 3;

/// plan.json: the schema is versioned; an unknown figure is null, never 0.
std::string planJson(const Planned &planned);

/// "1.25 s", "3.40 ms", "12.0 us".
std::string readableSeconds(double seconds);

/// The place of the peak, in the model's names and with the user's line.
std::string peakPlace(const PlanTrace &trace);
/// The tensors alive at the peak, the largest first.
std::vector<int32_t> aliveAtPeak(const PlanTrace &trace);

/// The levers that tmc chose, with the time of the best setting that has
/// another value: a section of the table below. Empty: none was free.
std::string chosenLeversText(const PlanFigures &plan);

/// The table that `tmc plan` and `tmc compile` print.
std::string planTable(const Planned &planned);

/// report.html: the same table, memory over the step, the arena, the curve over
/// budgets, and every decision, on one page without other files.
std::string planHtml(const Planned &planned, const Curve &curve);

} // namespace tmc

#endif // TMC_COMPILER_REPORT_PLANREPORT_H
