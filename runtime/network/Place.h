//===- Place.h - which rank a process is ------------------------*- C++ -*-===//
//
// Launchers tell a process its place in the world by environment variables:
//
//     launcher            rank                  ranks               on this
//     host by hand             TMC_RANK              TMC_RANKS TMC_LOCAL_RANK
//     torchrun            RANK                  WORLD_SIZE          LOCAL_RANK
//     mpirun of Open MPI  OMPI_COMM_WORLD_RANK  ..._SIZE ..._LOCAL_RANK Hydra
//     of MPICH      PMI_RANK              PMI_SIZE            MPI_LOCALRANKID
//     PMIx                PMIX_RANK             -                   -
//     srun                SLURM_PROCID          SLURM_NTASKS SLURM_LOCALID a
//     Job of Kubernetes JOB_COMPLETION_INDEX  TMC_RANKS           -
//
// All of the first five that are set must agree. The last two are read only
// where these leave something open: within a job of Slurm, srun starts the
// launchers, and its variables count those.
//
// Rank 0 listens at an address for Control.h: TMC_ADDRESS, or MASTER_ADDR with
// the port after MASTER_PORT (torchrun itself listens at MASTER_PORT), or the
// first host of SLURM_JOB_NODELIST. Launchers of MPI give no address; there
// rank 0 tells it to the others by MPI (World.h).
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_NETWORK_PLACE_H
#define TMC_RUNTIME_NETWORK_PLACE_H

#include "runtime/kernels/Mesh.h"
#include "runtime/kernels/Status.h"

#include <functional>
#include <string>

namespace tmc {

struct Place {
  int rank = 0, ranks = 1;
  int localRank = 0;    // among the processes of this host
  int localRanks = 0;   // on this host; 0: unknown
  std::string host;     // of rank 0, for Control.h; "": unknown
  int port = 0;         // 1 to 65535 where the host is known
  std::string launcher; // the first one found; "": none, a world of one rank
};

/// The value of a variable, or null.
using Lookup = std::function<const char *(const char *name)>;

/// Reads the place from variables. Code::Usage, with the names and the values,
/// for values that aren't numbers, contradict each other or leave a rank
/// without a size.
Status findPlace(const Lookup &lookup, Place &place);

/// Reads it from this process's environment.
Status findPlace(Place &place);

/// The first host of a list of Slurm: "node07" of "node[07-09,12],gpu1". "":
/// it isn't one.
std::string firstHost(const std::string &list);

/// Splits "host:port" or "[::1]:port". False if it isn't one.
bool splitAddress(const std::string &text, std::string &host, int &port);

} // namespace tmc

#endif // TMC_RUNTIME_NETWORK_PLACE_H
