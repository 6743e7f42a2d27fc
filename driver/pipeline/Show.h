// Show.h - `tmc plan` and `tmc explain`: a plan as a table, a curve, reasons, a
// page, or a file for another viewer. Data goes to standard output or to the
// files that are named; nothing else is printed there.

#ifndef TMC_DRIVER_PIPELINE_SHOW_H
#define TMC_DRIVER_PIPELINE_SHOW_H

#include "driver/pipeline/Pipeline.h"

namespace tmc {

/// Options of `tmc plan`, beside those of `tmc compile`.
struct ShowOptions {
  bool json = false;  // plan.json instead of the table.
  bool sweep = false; // The curve instead of the table.
  std::string output; // With `sweep`: PREFIX.csv and PREFIX.svg.
  std::string report, snapshot, trace; // Files; empty: none.
};

/// Plans the model and shows the requested views.
Expected<void> planModel(CompileOptions options, const ShowOptions &show);

/// Explains a compiled directory (one with a plan-trace.json), or a model
/// planned as `options` say; `glob` names tensors, empty: the largest.
Expected<void> explainPlan(CompileOptions options, const std::string &glob);

} // namespace tmc

#endif // TMC_DRIVER_PIPELINE_SHOW_H
