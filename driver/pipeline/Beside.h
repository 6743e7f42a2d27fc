// Beside.h - `tmc report`: two compiled steps beside each other, and a measured
// step beside its plan. The text goes to standard output, the page to the file
// that is named.

#ifndef TMC_DRIVER_PIPELINE_BESIDE_H
#define TMC_DRIVER_PIPELINE_BESIDE_H

#include "compiler/report/PlanTrace.h"

#include <string>
#include <vector>

namespace tmc {

struct BesideOptions {
  std::vector<std::string> directories; // One or two.
  std::string profile, log;             // With one directory; "": none.
  std::string output;                   // The page; "": none.
};

Expected<void> showBeside(const BesideOptions &options);

/// The trace in a directory that `tmc compile` wrote.
Expected<PlanTrace> traceIn(const std::string &directory);

} // namespace tmc

#endif // TMC_DRIVER_PIPELINE_BESIDE_H
