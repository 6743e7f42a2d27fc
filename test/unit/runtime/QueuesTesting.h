//===- QueuesTesting.h - what tests of engines share ------------*- C++ -*-===//
#ifndef TMC_TEST_UNIT_RUNTIME_QUEUESTESTING_H
#define TMC_TEST_UNIT_RUNTIME_QUEUESTESTING_H

#include "runtime/step/Device.h"

#include <chrono>
#include <cstdlib>
#include <future>
#include <thread>

namespace tmc::test {

/// How many rounds a random test makes: TMC_TEST_ROUNDS times as many as ever.
inline int scaled(int rounds) {
  const char *times = std::getenv("TMC_TEST_ROUNDS");
  return times ? rounds * std::max(1, std::atoi(times)) : rounds;
}

/// Holds each work for a while that its engine, its launch and a seed draw.
class RandomDelays final : public WorkObserver {
public:
  explicit RandomDelays(unsigned seed) : seed_(seed) {}
  void begins(EngineKind engine, int64_t launch) override {
    uint64_t draw =
        (uint64_t(seed_) * 64 + uint64_t(launch)) * 8 + uint64_t(engine) + 1;
    draw = (draw ^ draw >> 13) * 0x9e3779b97f4a7c15u >> 40;
    if (draw % 3 == 0)
      std::this_thread::sleep_for(std::chrono::microseconds(draw % 300));
  }

private:
  unsigned seed_;
};

/// Holds one engine's work, or one launch of it.
class Delay final : public WorkObserver {
public:
  Delay(EngineKind engine, int milliseconds, int64_t launch = -1)
      : engine_(engine), launch_(launch), time_(milliseconds) {}
  void begins(EngineKind engine, int64_t launch) override {
    if (engine == engine_ && (launch_ < 0 || launch == launch_))
      std::this_thread::sleep_for(time_);
  }

private:
  EngineKind engine_;
  int64_t launch_;
  std::chrono::milliseconds time_;
};

/// Holds one engine's work until it is let go.
class Hold final : public WorkObserver {
public:
  explicit Hold(EngineKind engine) : engine_(engine) {}
  void begins(EngineKind engine, int64_t) override {
    if (engine == engine_)
      gone_.get_future().wait();
  }
  void letGo() { gone_.set_value(); }

private:
  EngineKind engine_;
  std::promise<void> gone_;
};

} // namespace tmc::test

#endif // TMC_TEST_UNIT_RUNTIME_QUEUESTESTING_H
