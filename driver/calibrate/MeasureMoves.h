// MeasureMoves.h - compiles and runs the probe of transfers.
//
//     firstWork -> text -> run -> coarse rates
//                                   |
//     balancedWork -> text -> run, once in each round -> the fastest round's
//
// Each run is ended after a while (14 s, unless the user has more patience), so
// that a slow disk or a busy machine can't hold a calibration for long. One
// round that ran to its end is enough.

#ifndef TMC_DRIVER_CALIBRATE_MEASUREMOVES_H
#define TMC_DRIVER_CALIBRATE_MEASUREMOVES_H

#include "compiler/target/Target.h"
#include "driver/calibrate/MoveWork.h"

#include <string>

namespace tmc {

struct MoveRunner {
  Target target;
  std::string directory;     // For the probe's own files; created here.
  std::string fileDirectory; // For the file that is read and written.
  int64_t threads = 0;       // For the step; 0: one per core.
  int64_t limitSeconds;      // For each run; 0: none.

  MoveWork work{};
  EngineRates fastest{}; // Best round so far; empty: every run was ended.

  /// Chooses sizes by the free memory and the free room on the disk. Fails if
  /// they are too small, or if the directory doesn't exist.
  Expected<void> fit();
  /// Compiles a first probe and measures each engine's rate coarsely; then
  /// compiles the probe that measures.
  Expected<void> prepare();
  /// Runs the probe once: a warm-up step, and one that counts.
  Expected<void> measure();
  /// The failure to report if there are no rates.
  Failure tooSlow() const;

private:
  Expected<void> compile(const MoveWork &work, const std::string &step) const;
  /// Returns no rates if the run was ended at the limit.
  Expected<EngineRates> run(const std::string &step) const;
};

} // namespace tmc

#endif // TMC_DRIVER_CALIBRATE_MEASUREMOVES_H
