// HostRoom.h - which activations may move if the host can't hold them all.
//
// The projection for the device (`moves/Projection.h`) prices the time of a
// move and doesn't count the host's bytes. With long sequences links are cheap
// beside kernels, so that a plan of the device sends all activations away:
//
//     Llama-3.1 8B, 21,848 tokens    device 7.6 GiB, host 122 GiB of 24
//
// This rule then says which of them may go. The inputs of the model's repeated
// blocks may, since each block can be recomputed from them. The remaining bytes
// go to the values that take longest to recompute per byte from values that may
// go: attention's result before a product's, a product's before a norm's. A
// binary search finds the least time per byte for which all of them fit.

#ifndef TMC_COMPILER_PLANNING_DRIVER_HOSTROOM_H
#define TMC_COMPILER_PLANNING_DRIVER_HOSTROOM_H

#include "compiler/planning/moves/Projection.h"

namespace tmc::planning {

/// Limits the moves of a search's choices. Links as cheap as those of a plan
/// that the spaces beside the device couldn't hold get the rule above.
class HostRoom {
public:
  explicit HostRoom(const Problem &problem) : problem(problem) {}

  /// Limits the moves of `choice`, if links of this price were too cheap for a
  /// plan to fit.
  void limit(SpaceChoice &choice, double price) const;

  /// True if a plan of `choice` is larger beside the device than permitted, and
  /// a limit is worth a try. From then on, links of that price are limited.
  bool isOver(const std::vector<int64_t> &peakBytes, const SpaceChoice &choice,
              double price);
  /// True if some plan was that large.
  bool isFull() const { return tooCheap >= 0; }

  bool isOff = false; // Nothing is limited.

private:
  const Problem &problem;
  double tooCheap = -1; // The highest price of such a plan.
};

/// Per value, 1 if no optional move takes it away from the device, so that the
/// values of each segment that may go have at most `bytes`. Empty: all of them
/// fit, or `choice` is impossible.
std::vector<char> stayingValues(const Problem &problem,
                                const SpaceChoice &choice, int64_t bytes);

/// Bytes that the spaces beside the device have beyond the homes of `choice`;
/// -1: no limit.
int64_t roomBeside(const Problem &problem, const SpaceChoice &choice);

} // namespace tmc::planning

#endif // TMC_COMPILER_PLANNING_DRIVER_HOSTROOM_H
