//===- World.h - the start and the end of a run on several ranks *- C++ -*-===//
//
// The order in which a trainer uses this folder:
//
//     World world;
//     joinWorld(settings, world);            place, control, network
//     world.network->makeGroup(...);         one for each axis of the mesh
//     { world.control->computes(step, entry);
//       world.control->calls(entry);         before and after each call:
//       world.network->exchange(...);        calls(-1)
//     }                                      a failure goes to explain()
//     world.control->rests();                the step is over
//     world.control->meet("agree", ...);     a number of all ranks
//     leaveWorld(world, status);
//
// A process without a launcher is a world of one rank, for which all of these
// do nothing. So a trainer has one way for both.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_NETWORK_WORLD_H
#define TMC_RUNTIME_NETWORK_WORLD_H

#include "runtime/network/Control.h"
#include "runtime/network/Library.h"
#include "runtime/network/Network.h"
#include "runtime/network/Place.h"

#include <memory>
#include <string>
#include <vector>

namespace tmc {

struct WorldSettings {
  /// "mpi", "gloo" or "nccl"; "": NCCL for cards where its library is there,
  /// else MPI where a launcher of MPI started the process, else Gloo.
  std::string library;
  bool forCards = false;
  std::string folder; // of the libraries: the step's own
  std::vector<SharedFact> facts;
  double startSeconds = 60, mostSeconds = 120;
  int64_t mostPartBytes = 0; // NetworkStart's
  double bytesPerSecond = 0; // of the network (HeldNetwork.h); 0: its own
  std::function<std::string(int64_t entry)> entryName;
  std::function<void(const Status &)> onFault; // null: endProcess
};

struct World {
  Place place;
  std::unique_ptr<Control> control;
  std::unique_ptr<Network> network; // goes before the control that it uses
  /// MPI, where it said rank 0's address and another library moves the bytes.
  std::unique_ptr<Network> launcher;
};

/// Finds the place, compares the facts of all ranks and opens the network. The
/// thread that calls it also calls leaveWorld().
Status joinWorld(const WorldSettings &settings, World &world);

/// The same for a place that is known.
Status joinWorld(const WorldSettings &settings, const Place &place,
                 World &world);

/// Waits for all ranks and closes the network, if `status` is Ok. Else tells
/// them the error, and leaves the network as it is, since closing it may wait
/// for ranks that are gone: the process then ends by _exit(). Returns `status`,
/// or what went wrong at the end.
Status leaveWorld(World &world, const Status &status);

} // namespace tmc

#endif // TMC_RUNTIME_NETWORK_WORLD_H
