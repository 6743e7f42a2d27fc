#include "compiler/target/Network.h"

#include <algorithm>
#include <cassert>

using namespace tmc;

std::vector<int64_t> tmc::ranksByLevel(const NetworkLevels &network,
                                       int64_t ranks) {
  std::vector<int64_t> counts(network.size(), 1);
  for (size_t i = 0; i + 1 < network.size(); ++i) {
    int64_t count = std::min(ranks, network[i].ranks);
    while (ranks % count)
      --count;
    counts[i] = count;
    ranks /= count;
  }
  counts.back() = ranks;
  return counts;
}

double tmc::secondsOver(const NetworkLevels &network, double bytes,
                        const std::vector<int64_t> &ranks) {
  assert(ranks.size() == network.size());
  double seconds = 0;
  for (size_t i = 0; i < network.size(); ++i) {
    const auto count = double(ranks[i]);
    if (count > 1)
      seconds += network[i].channel.seconds(bytes * (count - 1) / count);
    bytes /= count;
  }
  return seconds;
}

namespace {

constexpr double kGiga = 1e9;

/// The time before the first byte: guesses. On 8 A100 an all-reduce by a ring
/// takes 34 us (NVIDIA/nccl-tests#123), and a gather is half of it.
constexpr double kCardLatency = 20e-6, kRdmaLatency = 30e-6,
                 kEthernetLatency = 50e-6;

NetworkLevel cards(const char *name, int64_t ranks, double gigabytes) {
  return {name, ranks, {kCardLatency, gigabytes * kGiga}};
}
NetworkLevel rdma(double gigabytes) {
  return {"rdma", NetworkLevel::kAnyRanks, {kRdmaLatency, gigabytes * kGiga}};
}
NetworkLevel ethernet() { // A guess: 10 Gbit/s.
  return {
      "ethernet", NetworkLevel::kAnyRanks, {kEthernetLatency, 1.25 * kGiga}};
}

} // namespace

// NVLink's rates are those of large transfers by NCCL, which reaches 0.78 of
// the line's 450 GB/s on an H100. NICs have the rate of the line.
NetworkLevels tmc::networkOf(Fabric fabric) {
  switch (fabric) {
  case Fabric::Nvlink5:
    // A guess: 0.78 of 900 GB/s. NIC: DGX B200 data sheet, 400 Gbit/s a card.
    return {cards("nvlink", 8, 700), rdma(50)};
  case Fabric::Nvlink4:
    // Published: NVIDIA/nccl#986; 360 GB/s in NVIDIA/nccl-tests#326. NIC: DGX
    // H100 data sheet, 400 Gbit/s a card.
    return {cards("nvlink", 8, 350), rdma(50)};
  case Fabric::Nvlink3:
    // A guess: 0.78 of 300 GB/s. NIC: DGX A100 data sheet, 200 Gbit/s a card.
    return {cards("nvlink", 8, 235), rdma(25)};
  case Fabric::Nvlink2:
    // A guess: 0.8 of 150 GB/s. NICs: DGX-2 data sheet, eight of 100 Gbit/s for
    // 16 cards.
    return {cards("nvlink", 16, 120), rdma(6.25)};
  case Fabric::Pcie:
    // A guess: copies through the host's memory.
    return {cards("pcie", 2, 12), ethernet()};
  case Fabric::Ethernet:
    break;
  }
  return {ethernet()};
}
int64_t tmc::networkReservedBytes(int64_t ranks) {
  constexpr int64_t kMiB = 1 << 20;
  constexpr int64_t kCollectives = 512 * kMiB;
  constexpr int64_t kChannels = 16, kChannelOfPeer = 16 * kMiB;
  // Beyond the cards of a node the peers share connections by NICs.
  constexpr int64_t kMostPeers = 7;
  return ranks > 1 ? kCollectives + std::min(ranks - 1, kMostPeers) *
                                        kChannels * kChannelOfPeer
                   : 0;
}
