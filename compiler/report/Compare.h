// Compare.h - two plans beside each other: their figures, their memory over the
// step, and the tensors about which they decide differently.

#ifndef TMC_COMPILER_REPORT_COMPARE_H
#define TMC_COMPILER_REPORT_COMPARE_H

#include "compiler/report/PlanFile.h"

#include <string>

namespace tmc {

/// The figures that differ, and the decisions that differ and cost most.
std::string compareText(const PlanDirectory &first,
                        const PlanDirectory &second);

/// The same, whole, with a picture, as a page without other files.
std::string compareHtml(const PlanDirectory &first,
                        const PlanDirectory &second);

/// Bytes alive on the device over a step, reserved bytes included: a line of
/// milliseconds and GiB with at most a few thousand points.
std::vector<std::pair<double, double>> memoryLine(const PlanTrace &trace);

} // namespace tmc

#endif // TMC_COMPILER_REPORT_COMPARE_H
