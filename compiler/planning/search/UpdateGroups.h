// UpdateGroups.h - what can be at home on the host, and which updates it can
// run.
//
// Persistent contents move in groups: an update with the states that it alone
// reads and with what others read as well (a parameter), or a content that
// nothing updates. Updates whose gradients are there first stand in front: they
// are the first to leave, so that the host works while the backward pass goes
// on. Each group has a mode.

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

/// Who runs an update, and where what it changes is at home.
enum class GroupMode : uint8_t {
  Device,   // The device; all is at home there.
  Paged,    // The device; its states are at home on the host.
  Streamed, // The device; what others read as well is at home on the host.
  Away,     // The device; all is at home on the host.
  Hosted,   // The host; all is at home there.
  Returned, // The host; what others read as well is at home on the device.
};
inline constexpr size_t kNumGroupModes = 6;

/// Of each group, in their order.
using UpdateModes = std::vector<GroupMode>;

inline bool isHosted(GroupMode mode) { return mode >= GroupMode::Hosted; }
/// Whether states, and what is shared, are at home on the host.
inline bool leavesStates(GroupMode mode) {
  return mode != GroupMode::Device && mode != GroupMode::Streamed;
}
inline bool leavesShared(GroupMode mode) {
  return mode >= GroupMode::Streamed && mode <= GroupMode::Hosted;
}
/// `mode`, or what is nearest to it of a group that lacks what it takes.
GroupMode possibleMode(const UpdateGroup &group, GroupMode mode);

/// All groups on the device.
UpdateModes plainModes(const UpdateGroups &groups);
/// Of the groups in their order, the first so many are the host's; of those
/// behind them, so many have their states at home there, and so many what they
/// share.
UpdateModes modesOf(const UpdateGroups &groups, size_t hosted, size_t paged,
                    size_t streamed);

SpaceChoice choiceOf(const Problem &problem, const UpdateGroups &groups,
                     const UpdateModes &modes);

} // namespace tmc::planning

#endif // TMC_COMPILER_PLANNING_SEARCH_UPDATEGROUPS_H
