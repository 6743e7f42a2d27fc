// ModeLoads.h - what modes of updates come to before anything is planned.
//
// Of thousands of choices few are worth a plan. Which, the engines' loads say:
//
//   compute   all kernels, less the updates that the host runs
//   host      its updates, one after the other, each when its gradients are
//             there: so the last ones of a step are the last to end
//   links     what must come and go: gradients, states, parameters at home on
//             the host; and for each byte that the budget lacks, a byte of
//             activations both ways
//   file      for each byte that the host's budget lacks, a byte both ways
//
// The longest of these ranks a choice. It proves nothing: `leastMakespan` does.

#ifndef TMC_COMPILER_PLANNING_SEARCH_MODELOADS_H
#define TMC_COMPILER_PLANNING_SEARCH_MODELOADS_H

#include "compiler/planning/search/UpdateGroups.h"

namespace tmc::planning {

/// Of all groups' choices, computed once; a choice then takes one pass over the
/// groups.
class ModeLoads {
public:
  ModeLoads(const Problem &problem, const UpdateGroups &groups);

  struct Loads {
    int64_t estimate = 0; // Plans should come near it.
    int64_t moved = 0;    // Of both links.
    bool fits = true;     // What is at home does, on the device and the host.
  };
  Loads of(const UpdateModes &modes) const;

  /// The modes in steps of a part of the groups, the best estimates first.
  std::vector<UpdateModes> ranked(size_t parts) const;

private:
  struct Group {
    Group(const Problem &problem, const UpdateGroup &group,
          const std::vector<int64_t> &in, const std::vector<int64_t> &out,
          const std::vector<int64_t> &madeAt);

    int64_t device = 0, host = 0;        // Its update.
    int64_t ready = 0;                   // When its gradients are on the host.
    int64_t gradients = 0;               // Time to the host.
    int64_t statesIn = 0, statesOut = 0; // Time of the links.
    int64_t sharedIn = 0, sharedOut = 0;
    /// Of what an update on the host borrows from the device.
    int64_t lentOut = 0, lentIn = 0;
    int64_t stateBytes = 0, sharedBytes = 0;
  };
  std::vector<Group> groups;
  size_t hostable = 0;
  int64_t compute = 0;  // All kernels.
  int64_t resident = 0; // Bytes of all at home on the device.
  int64_t others = 0;   // Bytes beside these at the peak.
  int64_t budget = -1;  // Reserved left out.
  int64_t hostBudget = -1;
  bool hasFile = false;
  double linkTime = 0; // Of a byte.
  double readTime = 0, writeTime = 0;
};

} // namespace tmc::planning

#endif // TMC_COMPILER_PLANNING_SEARCH_MODELOADS_H
