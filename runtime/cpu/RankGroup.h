//===- RankGroup.h - the group of ranks that a kernel is for ----*- C++ -*-===//

#ifndef TMC_RUNTIME_CPU_RANKGROUP_H
#define TMC_RUNTIME_CPU_RANKGROUP_H

#include "runtime/kernels/Ranks.h"
#include "runtime/step/Device.h"

namespace tmc::cpu {

/// The ranks of the device that a kernel runs on.
struct RankGroup {
  Peers *peers = nullptr;

  /// An error if the device has no network, or other ranks along `axis` than
  /// the kernel was emitted for.
  Status find(const Device &device, Axis axis, int64_t ranks) {
    peers = device.peers;
    return checkPeers(peers, axis, ranks);
  }
};

} // namespace tmc::cpu

#endif // TMC_RUNTIME_CPU_RANKGROUP_H
