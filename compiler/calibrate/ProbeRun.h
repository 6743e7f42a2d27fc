// ProbeRun.h - the files of a probe, and its trainer.

#ifndef TMC_COMPILER_CALIBRATE_PROBERUN_H
#define TMC_COMPILER_CALIBRATE_PROBERUN_H

#include "compiler/calibrate/Probes.h"
#include "compiler/support/Failure.h"

#include <string>
#include <vector>

namespace tmc {

/// Writes `bytes` to `path`.
Expected<bool> writeProbeFile(const std::string &path,
                              const std::string &bytes);

/// An input's data as .npy: whole numbers below the limit, or numbers around 0.
std::string npyOf(const ProbeInput &input);

/// A run of the trainer in `directory`, from random weights.
struct ProbeRun {
  std::string name, directory;
  std::vector<std::string> flags;
  int64_t threads = 0;       // 0: one per core.
  unsigned limitSeconds = 0; // Ended after so long; 0: never.
};

/// Runs it; false where it was ended after `limitSeconds`. What it prints
/// becomes notes where it fails.
Expected<bool> runProbe(const ProbeRun &run);

} // namespace tmc

#endif // TMC_COMPILER_CALIBRATE_PROBERUN_H
