// NetworkTest.cpp - the time of transfers between ranks, level by level.

#include "compiler/target/Network.h"
#include "compiler/target/Target.h"

#include <gtest/gtest.h>

using namespace tmc;

namespace {

using Counts = std::vector<int64_t>;

int64_t picoseconds(const Target &target, const char *family, int64_t ranks,
                    int64_t pieceBytes) {
  KernelWork work;
  work.family = family;
  work.bytes = (ranks - 1) * pieceBytes; // As the op says (nn.gather).
  work.object = std::string(family) +
                " axis=data ranks=" + std::to_string(ranks) +
                " bytes=" + std::to_string(pieceBytes);
  return target.price(work).picoseconds;
}

} // namespace

TEST(Network, RanksFillTheInnerLevelInEqualGroups) {
  const NetworkLevels network = networkOf(Fabric::Nvlink4);
  EXPECT_EQ(ranksByLevel(network, 1), (Counts{1, 1}));
  EXPECT_EQ(ranksByLevel(network, 7), (Counts{7, 1}));
  EXPECT_EQ(ranksByLevel(network, 8), (Counts{8, 1}));
  EXPECT_EQ(ranksByLevel(network, 12), (Counts{6, 2}));
  EXPECT_EQ(ranksByLevel(network, 13), (Counts{1, 13}));
  EXPECT_EQ(ranksByLevel(network, 1024), (Counts{8, 128}));
  const NetworkLevels deep = {{"a", 2, {}}, {"b", 3, {}}, {"c", -1, {}}};
  EXPECT_EQ(ranksByLevel(deep, 24), (Counts{2, 3, 4}));
  EXPECT_EQ(ranksByLevel(deep, 4), (Counts{2, 2, 1}));
}

TEST(Network, EachLevelHasItsLatencyAndItsBytes) {
  const NetworkLevels network = {{"in", 4, {1, 100}},
                                 {"out", NetworkLevel::kAnyRanks, {10, 10}}};
  // 1 + 800 * 3/4 / 100
  EXPECT_DOUBLE_EQ(secondsOver(network, 800, {4, 1}), 7);
  // 10 + 800 * 1/2 / 10
  EXPECT_DOUBLE_EQ(secondsOver(network, 800, {1, 2}), 50);
  // 10 + 800/4 * 1/2 / 10, and the inner level as above
  EXPECT_DOUBLE_EQ(secondsOver(network, 800, {4, 2}), 20 + 7);
  EXPECT_EQ(secondsOver(network, 800, {1, 1}), 0);
  const NetworkLevels deep = {{"a", 2, {0, 1}},
                              {"b", 2, {0, 1}},
                              {"c", NetworkLevel::kAnyRanks, {0, 1}}};
  // 800/2 + 400/2 + 200/2
  EXPECT_DOUBLE_EQ(secondsOver(deep, 800, {2, 2, 2}), 700);
}

/// The example of Network.h.
TEST(Network, ATargetPricesPiecesByItsNetwork) {
  const Target card = *findTarget("cuda:h100");
  constexpr int64_t kPiece = 62'500'000; // 1 GB over 16 ranks.
  for (const char *family : {"ExchangeRanks", "GatherRanks"})
    EXPECT_NEAR(double(picoseconds(card, family, 16, kPiece)), 3.8e9, 1);
  Target nics = card;
  nics.network.erase(nics.network.begin());
  EXPECT_NEAR(double(picoseconds(nics, "GatherRanks", 16, kPiece)), 18.78e9, 1);
  // 50 us + 1 MB * 1/2 / 1.25 GB/s
  EXPECT_NEAR(
      double(picoseconds(*findTarget("cpu"), "GatherRanks", 2, 500'000)), 450e6,
      1);
}

TEST(Network, NcclTakesMemoryForEachPeerOfANode) {
  constexpr int64_t kMiB = 1 << 20;
  EXPECT_EQ(networkReservedBytes(1), 0);
  EXPECT_EQ(networkReservedBytes(2), 768 * kMiB);
  EXPECT_EQ(networkReservedBytes(8), 2304 * kMiB);
  EXPECT_EQ(networkReservedBytes(64), networkReservedBytes(8));
}

TEST(Network, CardsHaveTheirLinks) {
  auto rates = [](const char *name) {
    std::vector<double> list;
    const Target target = *findTarget(name);
    for (const NetworkLevel &level : target.network)
      list.push_back(level.channel.bytesPerSecond / 1e9);
    return list;
  };
  using Rates = std::vector<double>;
  EXPECT_EQ(rates("cuda:b200"), (Rates{700, 50}));
  EXPECT_EQ(rates("cuda:h200"), (Rates{350, 50}));
  EXPECT_EQ(rates("cuda:h100"), (Rates{350, 50}));
  EXPECT_EQ(rates("cuda:a100-80"), (Rates{235, 25}));
  EXPECT_EQ(rates("cuda:a100-40"), (Rates{235, 25}));
  EXPECT_EQ(rates("cuda:v100"), (Rates{120, 6.25}));
  for (const char *name :
       {"cuda:l40s", "cuda:rtx-pro-6000", "cuda:rtx5090", "cuda:rtx4090",
        "cuda:rtx3090", "cuda:rtx3060", "cuda:t4"})
    EXPECT_EQ(rates(name), (Rates{12, 1.25})) << name;
  EXPECT_EQ(rates("cpu"), (Rates{1.25}));
  EXPECT_EQ(findTarget("cuda:v100")->network[0].ranks, 16);
  EXPECT_EQ(findTarget("cuda:h100")->network[0].ranks, 8);
}
