// UpdateGroups.h - what can be at home on the host, and which updates it can
// run.
//
// Persistent contents move in groups: an update with the states that it alone
// reads and with what others read as well (a parameter), or a content that
// nothing updates. Updates whose gradients are there first stand in front: they
// are the first to leave, so that the host works while the backward pass goes
// on. How many groups leave, and how, is a choice of three numbers.

#ifndef TMC_COMPILER_PLANNING_SEARCH_UPDATEGROUPS_H
#define TMC_COMPILER_PLANNING_SEARCH_UPDATEGROUPS_H

#include "compiler/planning/search/Projection.h"

namespace tmc::planning {

struct UpdateGroup {
  InstructionId instruction = kNone; // kNone: nothing updates it.
  int32_t variant = kNone;           // By which the host runs it, or kNone.
  size_t ready = 0; // Place of the last instruction that makes what it reads.
  /// Forms on the host: of what the instruction alone reads, and of what others
  /// read as well.
  std::vector<ValueId> states, shared;
  bool isHostable() const { return variant != kNone; }
};

struct UpdateGroups {
  std::vector<UpdateGroup> all; // Those that the host can run in front.
  size_t hostable = 0;          // How many it can.
};

UpdateGroups findUpdateGroups(const Problem &problem);

/// Of the groups in their order, the first so many are the host's; of those
/// behind them, so many have their states at home there, and so many what they
/// share.
struct UpdateModes {
  size_t hosted = 0, paged = 0, streamed = 0;
  auto operator<=>(const UpdateModes &) const = default;
};

SpaceChoice choiceOf(const Problem &problem, const UpdateGroups &groups,
                     const UpdateModes &modes);

} // namespace tmc::planning

#endif // TMC_COMPILER_PLANNING_SEARCH_UPDATEGROUPS_H
