// Network.h - the rates at which the ranks of a mesh reach each other.
//
// A network is a list of levels, inner first. Each joins groups of the level
// inside it, and has the rate of one rank in one direction:
//
//   level    ranks   latency   rate        of
//   nvlink   8       20 us     350 GB/s    the cards of a node
//   rdma     any     30 us     50 GB/s     nodes, of which each card has a NIC
//
// Ranks that exchange or gather S bytes do so level by level. Sums are made at
// each level, so only the sums of a node's n0 ranks leave it, in n0 equal parts
// by its n0 NICs. A gather of S bytes, which every rank has at its end, goes
// the other way round. Over n0 x n1 ranks both take
//
//   a1 + (S / n0) (n1 - 1) / n1 / b1  +  a0 + S (n0 - 1) / n0 / b0
//
// seconds, with the latency a and the rate b of each level. A level of one rank
// takes none. So 1 GB over 2 nodes of 8 such cards takes
// 30 us + 62.5 MB / 50 GB/s + 20 us + 875 MB / 350 GB/s = 3.8 ms. Over 16 cards
// that are joined by their NICs alone it would take 18.8 ms.

#ifndef TMC_COMPILER_TARGET_NETWORK_H
#define TMC_COMPILER_TARGET_NETWORK_H

#include "compiler/target/Host.h"

#include <cstdint>
#include <string>
#include <vector>

namespace tmc {

struct NetworkLevel {
  /// The level joins as many ranks as there are.
  static constexpr int64_t kAnyRanks = -1;

  std::string name;
  /// At most so many ranks, or groups of the level inside this one; at least 2.
  int64_t ranks = kAnyRanks;
  Channel channel; // One rank's, in one direction.
};

/// Inner levels first; never empty. The outermost level joins any number.
using NetworkLevels = std::vector<NetworkLevel>;

/// The ranks at each level where `ranks` ranks are as far inside as they fit,
/// and all groups are equal: their product is `ranks`. 12 ranks of nodes of 8
/// are 6 x 2.
std::vector<int64_t> ranksByLevel(const NetworkLevels &network, int64_t ranks);

/// Seconds of an exchange or a gather of `bytes` over `ranks` ranks at each
/// level.
double secondsOver(const NetworkLevels &network, double bytes,
                   const std::vector<int64_t> &ranks);

/// The way in which a card is joined to others. The rates are in Network.cpp.
enum class Fabric : uint8_t {
  Nvlink5,  // HGX B200
  Nvlink4,  // HGX H100 and H200
  Nvlink3,  // HGX A100
  Nvlink2,  // DGX-2
  Pcie,     // The cards of a machine by its host, and Ethernet.
  Ethernet, // One rank a machine.
};
NetworkLevels networkOf(Fabric fabric);

/// Bytes of a card that NCCL takes beside a step's arena, for its own buffers.
/// No measurement of ours exists. Published ones are 0.55 to 0.7 GB for
/// collectives (NVIDIA/nccl issue 964) and, where 8 cards exchange, 15 MB for
/// each channel and peer (issue 1685). The step has 16 channels (Nccl.cpp).
int64_t networkReservedBytes(int64_t ranks);

} // namespace tmc

#endif // TMC_COMPILER_TARGET_NETWORK_H
