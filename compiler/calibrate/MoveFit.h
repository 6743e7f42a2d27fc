// MoveFit.h - from the trace of a probe of transfers to the rates of engines.
//
// Engines share the memory of the host and, on a cpu target, the processor. So
// only work counts that ran while all were busy:
//
//     compute |-------|-------|-------|-------|
//     d2h       |---|---|---|---|---|
//     read     |------|------|------|------|
//               ^ all have begun     ^ the first engine is idle from here on
//
// A rate is of all large pieces between the two together, for a piece that
// waited for the processor is as real as one that didn't. A latency is what the
// median small piece takes beyond its share.

#ifndef TMC_COMPILER_CALIBRATE_MOVEFIT_H
#define TMC_COMPILER_CALIBRATE_MOVEFIT_H

#include "compiler/calibrate/MoveWork.h"
#include "compiler/target/Target.h"

#include "llvm/ADT/StringRef.h"

#include <map>
#include <string>
#include <vector>

namespace tmc {

/// Work of an engine that a step's trace shows.
struct MeasuredMove {
  double bytes = 0;                        // Moved, or of a kernel.
  double beginSeconds = 0, endSeconds = 0; // Since the step began.
};
/// By the engine's name.
using MeasuredMoves = std::map<std::string, std::vector<MeasuredMove>>;

/// What a trace measured; an empty map where it is no trace.
MeasuredMoves movesOfTrace(llvm::StringRef json);

/// Latency and rate of each engine while all are busy, from one step.
EngineRates fitRates(const MeasuredMoves &moves);

/// Whether all engines together moved more at the rates `a` than at `b`: the
/// mean of their logarithms is greater. Other programs take the machine for a
/// while at a time; a choice engine by engine would take of each what it had
/// while the others waited.
bool areFaster(const EngineRates &a, const EngineRates &b);

/// Writes what was measured into a description; engines that are missing leave
/// what it had.
void describeMoves(const EngineRates &rates, Target &target);

} // namespace tmc

#endif // TMC_COMPILER_CALIBRATE_MOVEFIT_H
