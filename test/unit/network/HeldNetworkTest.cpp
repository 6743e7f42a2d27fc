//===- HeldNetworkTest.cpp - the least time of a call ---------------------===//

#include "runtime/network/HeldNetwork.h"
#include "runtime/network/Socket.h"

#include "gtest/gtest.h"

#include <functional>

namespace tmc {
namespace {

/// Takes no time, and fails on groups that it doesn't know.
class Free final : public Network {
public:
  std::string description() const override { return "free"; }
  Status makeGroup(const std::vector<int> &, int &group) override {
    group = ++groups_;
    return Status::ok();
  }
  Status gather(int group, void *, const void *, int64_t, int64_t) override {
    return group <= groups_ ? Status::ok() : Status(Code::Defect, "no group");
  }
  Status exchange(int group, void *, const void *, int64_t, int64_t) override {
    return gather(group, nullptr, nullptr, 0, 0);
  }
  Status send(int, int, const void *, int64_t) override { return Status::ok(); }
  Status receive(int, int, void *, int64_t) override { return Status::ok(); }
  Status barrier(int) override { return Status::ok(); }

private:
  int groups_ = 0;
};

double secondsOf(const std::function<Status()> &call) {
  const double begin = monotonicSeconds();
  EXPECT_TRUE(call());
  return monotonicSeconds() - begin;
}

TEST(HeldNetwork, ACallTakesTheTimeOfItsBytes) {
  const std::unique_ptr<Network> held =
      holdNetwork(std::make_unique<Free>(), 4, 1e6);
  EXPECT_EQ(held->description(), "free");
  int pair = 0, own = 0;
  ASSERT_TRUE(held->makeGroup({1, 3}, pair));
  ASSERT_TRUE(held->makeGroup({1}, own));
  const struct {
    double seconds;
    std::function<Status()> call;
  } calls[] = {
      // 3 others x 20,000 bytes.
      {0.06, [&] { return held->gather(kWorld, nullptr, nullptr, 20000); }},
      {0.06, [&] { return held->exchange(kWorld, nullptr, nullptr, 20000); }},
      {0.02, [&] { return held->exchange(pair, nullptr, nullptr, 20000); }},
      {0.02, [&] { return held->send(kWorld, 2, nullptr, 20000); }},
      {0.02, [&] { return held->receive(kWorld, 2, nullptr, 20000); }}};
  for (const auto &[seconds, call] : calls)
    EXPECT_GE(secondsOf(call), seconds);
  // A rank alone, an empty call and a barrier move nothing: 1e12 bytes would
  // take 11 days.
  EXPECT_TRUE(held->gather(own, nullptr, nullptr, int64_t(1e12)));
  EXPECT_TRUE(held->gather(kWorld, nullptr, nullptr, 0));
  EXPECT_TRUE(held->barrier(kWorld));
  // Nor does a call that fails.
  EXPECT_FALSE(held->gather(9, nullptr, nullptr, int64_t(1e12)));
}

} // namespace
} // namespace tmc
