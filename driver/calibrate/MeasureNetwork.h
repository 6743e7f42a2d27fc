// MeasureNetwork.h - measures the network between ranks of this machine.
//
// runtime/network/Measure.cpp is compiled, and started once for each rank: by
// mpirun where the library is MPI, else by tmc itself.

#ifndef TMC_DRIVER_CALIBRATE_MEASURENETWORK_H
#define TMC_DRIVER_CALIBRATE_MEASURENETWORK_H

#include "compiler/support/Failure.h"
#include "driver/calibrate/NetworkFit.h"

#include <string>

namespace tmc {

struct NetworkRunner {
  std::string directory; // For the probe's files; created by prepare().
  int64_t ranks = 2;
  std::string library; // "mpi" or "gloo"; "": MPI where it can start, or Gloo.
  MeasuredNetwork fastest{}; // In all rounds so far.

  /// Chooses the library, and compiles it and the program. Fails if this
  /// machine can't compile or start one.
  Expected<void> prepare();
  /// Runs the program, which takes seconds, and fits the fastest times.
  Expected<void> measure();

private:
  std::string program() const { return directory + "/measure"; }
};

} // namespace tmc

#endif // TMC_DRIVER_CALIBRATE_MEASURENETWORK_H
