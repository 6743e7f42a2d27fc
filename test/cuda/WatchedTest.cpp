//===- WatchedTest.cpp - a fault fails the test that it is found in -------===//
//
// Every test of this program runs watched: what the emulator reports is a
// failure of that test, unless the test took the faults itself.
//
//===----------------------------------------------------------------------===//

#include "test/cuda/emulator/Report.h"

#include "gtest/gtest.h"

#include <memory>

namespace {

class Watch : public testing::EmptyTestEventListener {
  void OnTestStart(const testing::TestInfo &) override {
    tmc::emulator::allowHostMemory(true);
    collect_ = std::make_unique<tmc::emulator::Collect>();
  }
  void OnTestEnd(const testing::TestInfo &) override {
    cudaDeviceSynchronize();
    for (const tmc::emulator::Fault &fault : collect_->faults())
      ADD_FAILURE() << fault.message();
    collect_.reset();
  }
  std::unique_ptr<tmc::emulator::Collect> collect_;
};

[[maybe_unused]] const bool watched = [] {
  testing::UnitTest::GetInstance()->listeners().Append(new Watch);
  return true;
}();

} // namespace
