// MeasureMoves.h - compiles and runs the probe of transfers.
//
//     firstWork -> text -> run -> rates, roughly
//                                   |
//     balancedWork -> text -> run, once in each round -> the fastest round's
//
// Each run is ended after a while (14 s, unless the user has more patience), so
// that a slow disk or a busy machine can't hold a calibration for long. One
// round that wasn't is enough.

#ifndef TMC_COMPILER_CALIBRATE_MEASUREMOVES_H
#define TMC_COMPILER_CALIBRATE_MEASUREMOVES_H

#include "compiler/calibrate/MoveWork.h"
#include "compiler/target/Target.h"

#include <string>

namespace tmc {

struct MoveRunner {
  Target target;
  std::string directory;     // Of the probe's own files; there is none yet.
  std::string fileDirectory; // Of the file that is read and written.
  int64_t threads = 0;       // Of the step; 0: one per core.
  int64_t limitSeconds;      // Of a run; 0: none.

  MoveWork work{};
  EngineRates fastest{}; // Of all rounds so far; empty: each was ended.

  /// Chooses sizes by the memory and the room that there are. Fails where they
  /// are too small, or where there is no such directory.
  Expected<bool> fit();
  /// Compiles a first probe and finds out how much each engine does in a while;
  /// compiles the one that measures.
  Expected<bool> prepare();
  /// Runs it once: a step to warm up, and one that counts.
  Expected<bool> measure();
  /// Why there are no rates.
  Failure tooSlow() const;

private:
  Expected<bool> compile(const MoveWork &work, const std::string &step) const;
  /// No rates where the run was ended.
  Expected<EngineRates> run(const std::string &step) const;
};

} // namespace tmc

#endif // TMC_COMPILER_CALIBRATE_MEASUREMOVES_H
