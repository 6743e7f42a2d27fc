//===- HeldNetwork.cpp - a network held to a rate -------------------------===//

#include "runtime/network/HeldNetwork.h"

#include <chrono>
#include <thread>
#include <utility>

namespace tmc {

namespace {

class HeldNetwork final : public Network {
public:
  HeldNetwork(std::unique_ptr<Network> inner, int ranks, double bytesPerSecond)
      : inner_(std::move(inner)),
        bytesPerSecond_(bytesPerSecond), sizes_{ranks} {}

  std::string description() const override { return inner_->description(); }
  Status makeGroup(const std::vector<int> &members, int &group) override {
    const Status done = inner_->makeGroup(members, group);
    if (!done)
      return done;
    if (size_t(group) >= sizes_.size())
      sizes_.resize(size_t(group) + 1);
    sizes_[size_t(group)] = int(members.size());
    return Status::ok();
  }
  Status gather(int group, void *to, const void *from, int64_t bytes,
                int64_t total) override {
    return held(othersOf(group), bytes,
                [&] { return inner_->gather(group, to, from, bytes, total); });
  }
  Status exchange(int group, void *to, const void *from, int64_t bytes,
                  int64_t total) override {
    return held(othersOf(group), bytes, [&] {
      return inner_->exchange(group, to, from, bytes, total);
    });
  }
  Status send(int group, int rank, const void *from, int64_t bytes) override {
    return held(1, bytes,
                [&] { return inner_->send(group, rank, from, bytes); });
  }
  Status receive(int group, int rank, void *to, int64_t bytes) override {
    return held(1, bytes,
                [&] { return inner_->receive(group, rank, to, bytes); });
  }
  Status barrier(int group) override { return inner_->barrier(group); }

private:
  /// 0 for a wrong group, which the network itself refuses.
  int othersOf(int group) const {
    const bool isKnown = group >= 0 && size_t(group) < sizes_.size();
    return isKnown ? sizes_[size_t(group)] - 1 : 0;
  }

  template <typename Call> Status held(int pieces, int64_t bytes, Call &&call) {
    const std::chrono::duration<double> least(double(pieces) * double(bytes) /
                                              bytesPerSecond_);
    const auto end = std::chrono::steady_clock::now() + least;
    const Status done = call();
    if (done)
      std::this_thread::sleep_until(end);
    return done;
  }

  const std::unique_ptr<Network> inner_;
  const double bytesPerSecond_;
  std::vector<int> sizes_; // by group
};

} // namespace

std::unique_ptr<Network> holdNetwork(std::unique_ptr<Network> inner, int ranks,
                                     double bytesPerSecond) {
  return std::make_unique<HeldNetwork>(std::move(inner), ranks, bytesPerSecond);
}

} // namespace tmc
