//===- RankTimes.h - the slowest of a run's ranks ---------------*- C++ -*-===//
//
// All ranks of a step end at nearly the same time, since they wait for each
// other. A rank's own time is that without the calls of the network, in which
// it waits. The rank with the longest one is the slowest.
//
//     rank   own time    network  slowest in  device memory
//        1   0.0785 s   0.0139 s           4      148.0 KiB
//        0   0.0012 s   0.0910 s           0      148.0 KiB
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_STEP_RANKTIMES_H
#define TMC_RUNTIME_STEP_RANKTIMES_H

#include "runtime/kernels/Machine.h"

#include <cstdint>
#include <string>
#include <vector>

namespace tmc {

/// One step of one rank. Ranks send it to each other as it is.
struct RankStep {
  double seconds = 0;
  double networkSeconds = 0; // that kernels waited for the network
  PerSpace<int64_t> highWaterBytes;

  double ownSeconds() const { return seconds - networkSeconds; }
};

class RankTimes {
public:
  /// Adds a step: one entry for each rank, in their order. The sums leave out
  /// the first step, unless it is the only one.
  void add(const std::vector<RankStep> &ranks);

  /// In the last step: the rank with the longest own time; -1: there was none.
  int slowest() const { return slowest_; }
  double slowestSeconds() const { return slowestSeconds_; }

  /// The slowest ranks first, 8 at most, each with means of its times. "" if
  /// there was no step.
  std::string table() const;

private:
  struct Sums {
    double own = 0, network = 0;
    int64_t slowestIn = 0, deviceBytes = 0;
  };
  std::vector<Sums> sums_; // by rank
  int64_t steps_ = 0;      // all so far
  int slowest_ = -1;
  double slowestSeconds_ = 0;
};

} // namespace tmc

#endif // TMC_RUNTIME_STEP_RANKTIMES_H
