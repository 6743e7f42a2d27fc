// HostMoves.h - a target's host, in the planner's units.

#ifndef TMC_COMPILER_ANALYSIS_HOSTMOVES_H
#define TMC_COMPILER_ANALYSIS_HOSTMOVES_H

#include "compiler/planning/model/OfferMoves.h"
#include "compiler/target/Target.h"

namespace tmc {

/// The costs of moves between the device, `target`'s host and its file, and the
/// bytes that a plan may take of both. Rates are whole bytes per second,
/// latencies picoseconds.
/// An update is assumed to be bound by the host's memory bandwidth, as
/// optimizer rules are.
/// `budgets`: bytes of each space; -1: no limit; without bytes of a file there
/// are no moves to it.
planning::MoveOptions moveOptionsOf(const Target &target,
                                    const PerSpace<int64_t> &budgets);

} // namespace tmc

#endif // TMC_COMPILER_ANALYSIS_HOSTMOVES_H
