// OfferMoves.h - adds a host beside the device, and a file behind the host,
// with the moves that a step may use.
//
// A step's problem knows only the device (`StepProblem.h`). This file adds a
// space and three engines, and forms in that space:
//
//   - Stash and fetch for each temporary large enough to be worth a transfer,
//     for parameters, and for contents that updates change. Only fetch for
//     parameters that nothing updates.
//   - For an optimizer's update a variant that the host runs, on the forms
//     there, if the host has the kernel; all values that the update reads or
//     writes get a form, too.
//
// A step of several devices has networks and shards already (R18). Each form on
// the device has its own form on the host, and the host's update is that of the
// shards.
//
// Parameters, moments and other updated contents may be at home on either side.
// Nothing has to move: the plans of the problem before are plans of this one.
//
// With a file (`fileRead.bandwidth`) there are a third space, two engines and a
// form in the file for each form on the host that is large enough:
//
//     a  <- stash, fetch ->  a@host  <- write, read ->  a@file
//
// A form goes to the file and comes back only through the host. So a plan with
// the states in the file is one of: read, update on the host, write; or read,
// fetch, update on the device, stash, write.

#ifndef TMC_COMPILER_PLANNING_MODEL_OFFERMOVES_H
#define TMC_COMPILER_PLANNING_MODEL_OFFERMOVES_H

#include "compiler/planning/model/Problem.h"

#include "absl/status/status.h"

#include <functional>

namespace tmc::planning {

/// Time of one transfer, or of one update.
struct MoveRate {
  int64_t bandwidth = 0; // Bytes per second.
  int64_t latency = 0;   // Picoseconds, for any number of bytes.
};

struct MoveOptions {
  MoveRate toHost = {25'000'000'000, 10'000'000};
  MoveRate toDevice = toHost;
  MoveRate update = {50'000'000'000, 0}; // On the host; by bytes touched.
  /// Bytes per second of the host's memory, which copies and updates share
  /// (R17); 0: no limit.
  int64_t hostBandwidth = 0;
  int64_t hostBudget = -1;      // Bytes; -1: no limit.
  int64_t leastBytes = 1 << 20; // Least size of a value worth a move.
  /// Contents that may move: temporaries; moments; parameters. The host runs an
  /// update if the moments may be at home there; a parameter that may not be at
  /// home there is copied for the update and comes back.
  bool activations = true, optimizer = true, parameters = true;
  /// Whether the host has the kernel of an instruction's update. Null: always.
  std::function<bool(InstructionId)> runsOnHost = nullptr;
  /// From and to the file. Without a read bandwidth there is no file; without a
  /// write bandwidth, writes are as fast as reads.
  MoveRate fileRead = {0, 100'000'000}, fileWrite = {0, 100'000'000};
  int64_t fileBudget = -1; // Bytes; -1: no limit.
};

/// Adds the moves. An error if the problem has more than one space, or engines
/// of other spaces. Values
/// carried from trip to trip stay on the device.
absl::Status offerMoves(Problem &problem, const MoveOptions &options);

} // namespace tmc::planning

#endif // TMC_COMPILER_PLANNING_MODEL_OFFERMOVES_H
