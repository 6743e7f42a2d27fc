// NetworkFit.h - from times of gathers and exchanges to a level of a network.
//
// A call over n ranks that moves S bytes takes a + S (n - 1) / n / b seconds
// (compiler/target/Network.h). The rate b is that of all values of at least
// 1 MiB together: a step moves nearly all of its bytes in these. The latency a
// is the median time of values up to 64 KiB minus their bytes at that rate.

#ifndef TMC_DRIVER_CALIBRATE_NETWORKFIT_H
#define TMC_DRIVER_CALIBRATE_NETWORKFIT_H

#include "compiler/target/Network.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tmc {

/// The times of calls of one size.
struct NetworkTime {
  int64_t bytes = 0; // The whole value's.
  double gatherSeconds = 0, exchangeSeconds = 0;
};

/// A network as measured between ranks of one machine.
struct MeasuredNetwork {
  int64_t ranks = 0;       // 0: none is measured.
  std::string description; // "mpi (Open MPI v4.1.4)"
  std::vector<NetworkTime> times;
  NetworkLevel level; // It joins any number of ranks.
};

/// Reads what runtime/network/Measure.cpp prints. Empty if `text` isn't that.
std::optional<MeasuredNetwork> networkOfText(const std::string &text);

/// Takes the times of `network` into `fastest` that are less, or all if it has
/// none: other programs slow a machine for a while.
void keepFastest(const MeasuredNetwork &network, MeasuredNetwork &fastest);

/// The latency and the rate over `ranks` ranks. `times` ascends by size, and
/// isn't empty.
Channel fitNetwork(const std::vector<NetworkTime> &times, int64_t ranks);

/// Rows of measured and of fitted times.
std::string networkTable(const MeasuredNetwork &network);

} // namespace tmc

#endif // TMC_DRIVER_CALIBRATE_NETWORKFIT_H
