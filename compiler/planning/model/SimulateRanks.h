// SimulateRanks.h - the lists of several ranks, run together.
//
// A group of equal ranks runs one list, so one rank's makespan is everybody's
// (R18). Stages of a pipeline have lists of their own, and wait for each other.
// Here each rank has a problem and a list, and some of its recipes on networks
// meet those of other ranks on a *channel*: a group that exchanges, or the way
// from one rank to another.
//
//     rank 0      f0  send(  f1  send(  ...      channel 0: {0, 1}
//     rank 1      receive( )receive  f0  receive( )receive  f1
//
// The k-th work on a channel of each of its ranks is one *meeting*. It begins
// when all of them may begin it by R12, takes the longest of their costs, and
// ends on all of them at once. So a send waits for its receive, as runtimes may
// do. Everything else is R12 and R17 of each rank: trips end with idle engines,
// and other ranks may be in other trips.
//
//     rank 0      0-10 f0, 10-20 f1              two kernels of 10, no latency
//     rank 1           10-20 f0, 20-30 f1        its first receive waited 10
//
// If the ranks wait for each other, the error names a ring of them.

#ifndef TMC_COMPILER_PLANNING_MODEL_SIMULATERANKS_H
#define TMC_COMPILER_PLANNING_MODEL_SIMULATERANKS_H

#include "compiler/planning/model/Problem.h"

#include <span>

namespace tmc::planning {

/// Ranks that meet, ascending: at least two.
using Channel = std::vector<int32_t>;

struct RankList {
  const Problem *problem = nullptr;
  const Solution *solution = nullptr;
  /// The channel of each recipe; kNone: the rank runs it alone. The recipes of
  /// a channel run on one network of the rank.
  std::vector<int32_t> channelOf;
};

struct RankTimes {
  struct Of {
    int64_t end = 0; // Its list's.
    /// Time in which its networks could have begun work but for other ranks.
    int64_t waiting = 0;
  };
  std::vector<Of> ranks;
  int64_t makespan = 0; // The latest end.
};

/// The times of all ranks. InvalidArgument: a channel that isn't as above.
/// FailedPrecondition: a list breaks a rule of Problem.h, or ranks wait for
/// each other.
absl::StatusOr<RankTimes> simulateRanks(std::span<const RankList> lists,
                                        std::span<const Channel> channels);

} // namespace tmc::planning

#endif // TMC_COMPILER_PLANNING_MODEL_SIMULATERANKS_H
