#include "driver/calibrate/NetworkFit.h"

#include "gtest/gtest.h"

namespace tmc {
namespace {

/// Times of a network that obeys the formula.
std::vector<NetworkTime> timesOf(const Channel &channel, int64_t ranks) {
  std::vector<NetworkTime> times;
  for (int64_t bytes = 1 << 10; bytes <= 64 << 20; bytes *= 4) {
    const double seconds =
        channel.seconds(double(bytes) * double(ranks - 1) / double(ranks));
    times.push_back({bytes, seconds, seconds});
  }
  return times;
}

TEST(NetworkFit, FindsTheLatencyAndTheRate) {
  for (const int64_t ranks : {2, 8})
    for (const Channel channel : {Channel{2e-6, 2e9}, Channel{200e-6, 0.8e9}}) {
      const Channel fitted = fitNetwork(timesOf(channel, ranks), ranks);
      EXPECT_NEAR(fitted.bytesPerSecond / channel.bytesPerSecond, 1, 0.02);
      EXPECT_NEAR(fitted.latencySeconds / channel.latencySeconds, 1, 0.02);
    }
}

TEST(NetworkFit, OneSlowCallChangesNoLatency) {
  const Channel channel{10e-6, 1e9};
  std::vector<NetworkTime> times = timesOf(channel, 2);
  times[0].gatherSeconds = 1;
  EXPECT_NEAR(fitNetwork(times, 2).latencySeconds, 10e-6, 1e-6);
}

// 2 ranks move a half of a value: 512 KiB in 0.5 ms.
TEST(NetworkFit, OneSizeGivesARate) {
  const Channel fitted = fitNetwork({{1 << 20, 0.5e-3, 0.5e-3}}, 2);
  EXPECT_EQ(fitted.latencySeconds, 0);
  EXPECT_DOUBLE_EQ(fitted.bytesPerSecond, (1 << 19) / 0.5e-3);
  // A small value alone has no bytes to tell from its latency.
  EXPECT_GT(fitNetwork({{1024, 1e-6, 1e-6}}, 2).bytesPerSecond, 0);
}

TEST(NetworkFit, ReadsWhatTheProgramPrints) {
  const auto network = networkOfText("network gloo (tcp)\ngather 1024 2e-06\n"
                                     "exchange 1024 3e-06\ngather 4096 5e-06\n"
                                     "exchange 4096 4e-06\n");
  ASSERT_TRUE(network);
  EXPECT_EQ(network->description, "gloo (tcp)");
  ASSERT_EQ(network->times.size(), 2u);
  EXPECT_EQ(network->times[0].exchangeSeconds, 3e-6);
  EXPECT_EQ(network->times[1].bytes, 4096);
  EXPECT_EQ(network->times[1].gatherSeconds, 5e-6);
  const std::string table = networkTable(
      {2, network->description, network->times,
       NetworkLevel{"here", NetworkLevel::kAnyRanks, {1e-6, 1e9}}});
  EXPECT_NE(table.find("2 ranks by gloo (tcp)"), std::string::npos);
  EXPECT_NE(table.find("4 KiB"), std::string::npos) << table;
}

TEST(NetworkFit, KeepsTheFastestTimes) {
  MeasuredNetwork fastest;
  keepFastest({2, "gloo", {{1024, 2, 3}, {4096, 5, 5}}, {}}, fastest);
  keepFastest({2, "gloo", {{1024, 1, 4}, {4096, 6, 4}}, {}}, fastest);
  EXPECT_EQ(fastest.ranks, 2);
  EXPECT_EQ(fastest.times[0].gatherSeconds, 1);
  EXPECT_EQ(fastest.times[0].exchangeSeconds, 3);
  EXPECT_EQ(fastest.times[1].gatherSeconds, 5);
  EXPECT_EQ(fastest.times[1].exchangeSeconds, 4);
}

TEST(NetworkFit, RefusesOtherText) {
  const std::string head = "network gloo\ngather 1024 2e-06\n";
  for (const std::string &text :
       {std::string(), std::string("network gloo\n"), head,
        std::string("gather 1024 1e-6\nexchange 1024 1e-6\n"),
        head + "exchange 1024 0\n", head + "exchange 1024 nan\n",
        head + "exchange -1 1e-6\n", head + "exchange 1024\n",
        head + "exchange 2048 1e-6\n", head + "error: no\n"})
    EXPECT_FALSE(networkOfText(text)) << text;
}

} // namespace
} // namespace tmc
