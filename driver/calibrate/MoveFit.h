// MoveFit.h - from the trace of a probe of transfers to the rates of engines.
//
// Engines share the memory of the host and, on a cpu target, the processor. So
// only the work that ran while all engines were busy counts:
//
//     compute    |-------|-------|-------|-------|
//     d2h          |---|---|---|---|---|
//     file-read   |------|------|------|------|
//                  ^ all have begun     ^ the first engine is idle from here on
//
// A rate is that of all large pieces between the two marks together, because a
// piece that waited for the processor is as real as one that didn't. A latency
// is the median small piece's time minus its bytes at that rate.

#ifndef TMC_DRIVER_CALIBRATE_MOVEFIT_H
#define TMC_DRIVER_CALIBRATE_MOVEFIT_H

#include "compiler/target/Target.h"
#include "driver/calibrate/MoveWork.h"

#include "llvm/ADT/StringRef.h"

#include <map>
#include <vector>

namespace tmc {

/// One piece of work of an engine, from a step's trace.
struct MeasuredMove {
  double bytes = 0;                        // Moved, or of a kernel.
  double beginSeconds = 0, endSeconds = 0; // Since the step began.
};
using MeasuredMoves = std::map<EngineKind, std::vector<MeasuredMove>>;

/// The moves in a trace; an empty map if `json` is no trace.
MeasuredMoves movesOfTrace(llvm::StringRef json);

/// Latency and rate of each engine while all are busy, from one step.
EngineRates fitRates(const MeasuredMoves &moves);

/// True if all engines together moved more at the rates `a` than at `b`: the
/// mean of their logarithms is greater. The rates of one run are kept together:
/// other programs slow the machine for a while, and a choice engine by engine
/// would combine rates that engines had only while the others waited.
bool areFaster(const EngineRates &a, const EngineRates &b);

/// Writes measured rates into a description; missing engines keep the rates
/// that it had.
void describeMoves(const EngineRates &rates, Target &target);

} // namespace tmc

#endif // TMC_DRIVER_CALIBRATE_MOVEFIT_H
