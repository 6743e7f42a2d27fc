// ProbeRun.h - the files of a probe, and its trainer.

#ifndef TMC_DRIVER_CALIBRATE_PROBERUN_H
#define TMC_DRIVER_CALIBRATE_PROBERUN_H

#include "compiler/support/Failure.h"
#include "driver/calibrate/Probes.h"

#include <string>
#include <vector>

namespace tmc {

/// Writes `bytes` to `path`.
Expected<void> writeProbeFile(const std::string &path,
                              const std::string &bytes);

/// An input's data as .npy: integers below the limit, or floats around 0.
std::string npyOf(const ProbeInput &input);

/// A run of the trainer in `directory`, from random weights.
struct ProbeRun {
  std::string name, directory;
  std::vector<std::string> flags;
  int64_t threads = 0;       // 0: one per core.
  unsigned limitSeconds = 0; // The run is ended after this time; 0: never.
};

enum class ProbeEnd { Finished, TimedOut };

/// Runs the trainer. TimedOut: it was ended after `limitSeconds`. If it fails,
/// its output becomes notes.
Expected<ProbeEnd> runProbe(const ProbeRun &run);

} // namespace tmc

#endif // TMC_DRIVER_CALIBRATE_PROBERUN_H
