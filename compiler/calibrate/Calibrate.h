// Calibrate.h - `tmc calibrate`: this machine as a target description.
//
// The probes are compiled, each runs a few steps under the trainer's profile,
// more than once, for other programs take the machine for a while at a time,
// and the fastest run of each launch goes into the fit of its family. What no
// probe has (a family that only other models need) is predicted by the roofline
// of all generated kernels together. The probes' products are of f32: rates of
// other types stay what they were in the target's description. One more probe
// keeps all engines busy at once, for the rates of transfers and of updates on
// the host (MoveFit.h).
//
// Measured times differ from run to run, so does the file; a plan made from it
// is a function of the file alone.

#ifndef TMC_COMPILER_CALIBRATE_CALIBRATE_H
#define TMC_COMPILER_CALIBRATE_CALIBRATE_H

#include "compiler/calibrate/Fit.h"
#include "compiler/calibrate/MoveWork.h"
#include "compiler/support/Failure.h"

#include <map>
#include <string>

namespace tmc {

struct CalibrateOptions {
  std::string target = "cpu"; // What to describe: its sizes are kept.
  int64_t threads = 0;        // Of the steps; 0: one per core.
  int64_t rounds = 3;         // Over all probes.
  int64_t steps = 3;          // Of each probe in each, after one to warm up.
  /// Where the file is whose rates are measured; empty: among the temporary
  /// files.
  std::string fileDirectory;
  /// After which a run of transfers is ended; 0: never. By default, three
  /// rounds and a first run take less than a minute.
  int64_t patienceSeconds = 14;
  bool progress = false;
};

struct Calibration {
  Target target;
  std::map<std::string, std::vector<MeasuredLaunch>> launches; // By family.
  EngineRates rates;                                           // All at once.
};

/// Measures. Needs a host compiler and, for a cuda target, its card.
Expected<Calibration> calibrate(const CalibrateOptions &options);

/// A table: rates by family, and how well they explain what was measured.
std::string calibrationTable(const Calibration &calibration);

} // namespace tmc

#endif // TMC_COMPILER_CALIBRATE_CALIBRATE_H
