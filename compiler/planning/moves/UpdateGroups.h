// UpdateGroups.h - contents that can be at home on the host, and updates that
// the host can run.
//
// Persistent contents move in groups. A group is an update with the states that
// only it reads and the contents that others read as well (a parameter), or a
// content that nothing updates. Updates with the earliest gradients come first:
// they leave first, so that the host works while the backward pass goes on.
// Each group has a mode.

#ifndef TMC_COMPILER_PLANNING_MOVES_UPDATEGROUPS_H
#define TMC_COMPILER_PLANNING_MOVES_UPDATEGROUPS_H

#include "compiler/planning/moves/Projection.h"

namespace tmc::planning {

struct UpdateGroup {
  InstructionId instruction = kNone; // kNone: nothing updates it.
  int32_t variant = kNone;           // The host's variant, or kNone.
  size_t ready = 0;                  // Place of the last maker of its inputs.
  /// Forms on the host: of contents that only this instruction reads, and of
  /// contents that others read as well.
  std::vector<ValueId> states, shared;
  bool isHostable() const { return variant != kNone; }
};

struct UpdateGroups {
  std::vector<UpdateGroup> all; // Groups that the host can run come first.
  size_t hostable = 0;          // Number of those groups.
};

UpdateGroups findUpdateGroups(const Problem &problem);

/// Which side runs an update, and where its contents are at home.
enum class GroupMode : uint8_t {
  Device,   // The device; all is at home there.
  Paged,    // The device; its states are at home on the host.
  Streamed, // The device; shared contents are at home on the host.
  Away,     // The device; all is at home on the host.
  Hosted,   // The host; all is at home there.
  Returned, // The host; shared contents are at home on the device.
};
inline constexpr size_t kNumGroupModes = 6;

/// Per group, in their order.
using UpdateModes = std::vector<GroupMode>;

inline bool isHosted(GroupMode mode) { return mode >= GroupMode::Hosted; }
/// Whether states, or shared contents, are at home on the host.
inline bool leavesStates(GroupMode mode) {
  return mode != GroupMode::Device && mode != GroupMode::Streamed;
}
inline bool leavesShared(GroupMode mode) {
  return mode >= GroupMode::Streamed && mode <= GroupMode::Hosted;
}
/// `mode`, or the nearest mode that the group can have.
GroupMode possibleMode(const UpdateGroup &group, GroupMode mode);

/// All groups on the device.
UpdateModes plainModes(const UpdateGroups &groups);
/// The first `hosted` groups run on the host; of the groups after them, the
/// first `paged` have their states at home there, and the first `streamed`
/// their shared contents.
UpdateModes modesOf(const UpdateGroups &groups, size_t hosted, size_t paged,
                    size_t streamed);

SpaceChoice choiceOf(const Problem &problem, const UpdateGroups &groups,
                     const UpdateModes &modes);

} // namespace tmc::planning

#endif // TMC_COMPILER_PLANNING_MOVES_UPDATEGROUPS_H
