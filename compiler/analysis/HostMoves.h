// HostMoves.h - a target's host, in the planner's units.

#ifndef TMC_COMPILER_ANALYSIS_HOSTMOVES_H
#define TMC_COMPILER_ANALYSIS_HOSTMOVES_H

#include "compiler/planning/model/OfferMoves.h"
#include "compiler/target/Target.h"

namespace tmc {

/// What moves to and from `target`'s host and its file cost, and how much they
/// hold: rates in
/// whole bytes a second, latencies in picoseconds. An update is taken to be
/// bound by the host's memory, as rules of optimizers are.
planning::MoveOptions moveOptionsOf(const Target &target);

} // namespace tmc

#endif // TMC_COMPILER_ANALYSIS_HOSTMOVES_H
