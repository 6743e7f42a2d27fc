// Calibrate.h - `tmc calibrate`: this machine as a target description.
//
// Each probe is compiled and runs a few steps under the trainer's profile,
// several times, because other programs slow the machine for a while. The
// fastest run of each launch goes into the fit of its family. A family without
// a launch in any probe is predicted by the roofline of all generated kernels
// together. A card's probes are compiled for each type of products that it has
// units for. Rates of types that no probe has, and of families that no probe of
// the type has, stay as in the target's description. One more probe keeps all
// engines busy at once, for the rates of transfers and of updates on the host
// (MoveFit.h). The network between ranks of this machine is measured alone
// (MeasureNetwork.h).
//
// Measured times differ from run to run, and so does the file; a plan made from
// the file depends on the file alone.

#ifndef TMC_DRIVER_CALIBRATE_CALIBRATE_H
#define TMC_DRIVER_CALIBRATE_CALIBRATE_H

#include "compiler/support/Failure.h"
#include "driver/calibrate/Fit.h"
#include "driver/calibrate/MoveWork.h"
#include "driver/calibrate/NetworkFit.h"

#include <map>
#include <string>

namespace tmc {

struct CalibrateOptions {
  std::string target = "cpu"; // The target to describe; its sizes are kept.
  int64_t threads = 0;        // For the steps; 0: one per core.
  int64_t rounds = 3;         // The number of rounds over all probes.
  int64_t steps = 3;          // Per probe and round, after one warm-up step.
  /// The directory of the file whose rates are measured; empty: the directory
  /// of temporary files.
  std::string fileDirectory;
  /// The time limit of one run of transfers, in seconds; 0: none. By default,
  /// three rounds and a first run take less than a minute.
  int64_t patienceSeconds = 14;
  /// The number of ranks on this machine between which the network is measured;
  /// 0: it isn't.
  int64_t devices = 0;
  std::string network; // "mpi" or "gloo"; "": what there is.
  bool progress = false;
};

struct Calibration {
  Target target;
  MeasuredFamilies launches;
  EngineRates rates; // All at once.
  MeasuredNetwork network;
};

/// Measures. Needs a host compiler and, for a cuda target, its card.
Expected<Calibration> calibrate(const CalibrateOptions &options);

/// A table: rates by family, and the ratio of predicted to measured time.
std::string calibrationTable(const Calibration &calibration);

} // namespace tmc

#endif // TMC_DRIVER_CALIBRATE_CALIBRATE_H
