//===- World.cpp - the start and the end of a run on several ranks --------===//

#include "runtime/network/World.h"

#include "runtime/network/Frame.h"
#include "runtime/network/HeldNetwork.h"

#include <algorithm>
#include <unistd.h>

namespace tmc {

namespace {

/// A record of rank 0's addresses, for MPI.
constexpr int64_t kAddressBytes = 1024;

bool isOfMpi(const Place &place) {
  return place.launcher == "Open MPI" || place.launcher == "Hydra" ||
         place.launcher == "PMIx";
}

bool hasLibrary(const WorldSettings &settings, const char *name) {
  return access((settings.folder + "/" + networkFile(name)).c_str(), R_OK) == 0;
}

std::string libraryOf(const WorldSettings &settings, const Place &place) {
  if (!settings.library.empty() || place.ranks == 1)
    return settings.library;
  if (settings.forCards && hasLibrary(settings, "nccl"))
    return "nccl";
  return isOfMpi(place) ? "mpi" : "gloo";
}

NetworkStart startOf(const WorldSettings &settings, const World &world) {
  NetworkStart start;
  start.rank = world.place.rank;
  start.ranks = world.place.ranks;
  start.localRank = world.place.localRank;
  start.rendezvous = world.control.get();
  start.mostPartBytes = settings.mostPartBytes;
  if (world.control)
    start.address = world.control->address();
  return start;
}

/// All ranks get rank 0's addresses and port by the network.
Status shareAddress(Network &network, const Place &place,
                    std::vector<std::string> &hosts, int &port) {
  std::string own(kAddressBytes, '\0');
  if (place.rank == 0) {
    std::string record;
    for (const std::string &host : hosts)
      if (record.size() + host.size() + 2 * sizeof(uint32_t) < kAddressBytes)
        record += host + " ";
    record += std::to_string(port);
    std::copy(record.begin(), record.end(), own.begin());
  }
  std::string all(size_t(kAddressBytes) * size_t(place.ranks), '\0');
  if (Status s = network.gather(kWorld, all.data(), own.data(), kAddressBytes);
      !s)
    return s;
  if (place.rank == 0)
    return Status::ok();
  std::string record = all.substr(0, all.find('\0'));
  hosts.clear();
  for (size_t space; (space = record.find(' ')) != std::string::npos;) {
    hosts.push_back(record.substr(0, space));
    record.erase(0, space + 1);
  }
  std::string ignored;
  return splitAddress("host:" + record, ignored, port)
             ? Status::ok()
             : Status(Code::World, "rank 0's address is malformed");
}

Status startControl(const WorldSettings &settings, World &world) {
  ControlSettings control;
  control.assembly.place = world.place;
  control.assembly.facts = settings.facts;
  control.assembly.startSeconds = settings.startSeconds;
  // One rank waits for no other.
  control.mostSeconds = world.place.ranks > 1 ? settings.mostSeconds : 0;
  control.entryName = settings.entryName;
  control.onFault = settings.onFault;
  if (Network *network =
          world.launcher ? world.launcher.get() : world.network.get())
    control.assembly.shareAddress =
        [network, &world](std::vector<std::string> &hosts, int &port) {
          return shareAddress(*network, world.place, hosts, port);
        };
  return Control::start(control, world.control);
}

} // namespace

Status joinWorld(const WorldSettings &settings, const Place &place,
                 World &world) {
  world = {};
  world.place = place;
  const std::string library = libraryOf(settings, place);
  const bool knowsAddress = !place.host.empty() || place.ranks == 1;
  const bool asksMpi =
      !knowsAddress &&
      (library == "mpi" || (isOfMpi(place) && hasLibrary(settings, "mpi")));
  if (!knowsAddress && !asksMpi)
    return {Code::Usage, "no variable says where rank 0 is: set "
                         "TMC_ADDRESS=HOST:PORT for all ranks"};
  auto open = [&](const std::string &name, std::unique_ptr<Network> &network) {
    const Status done =
        openNetwork(name, settings.folder, startOf(settings, world), network);
    if (!done && world.control)
      world.control->fail(done);
    return done;
  };
  // MPI's own library is open before the control connection, others after it.
  if (asksMpi)
    if (Status s =
            open("mpi", library == "mpi" ? world.network : world.launcher);
        !s)
      return s;
  if (Status s = startControl(settings, world); !s) {
    (void)world.network.release(); // See leaveWorld().
    (void)world.launcher.release();
    return s;
  }
  if (!world.network)
    if (Status s = open(library, world.network); !s) {
      (void)world.launcher.release();
      return s;
    }
  if (settings.bytesPerSecond > 0)
    world.network = holdNetwork(std::move(world.network), place.ranks,
                                settings.bytesPerSecond);
  return Status::ok();
}

Status joinWorld(const WorldSettings &settings, World &world) {
  Place place;
  if (Status s = findPlace(place); !s)
    return s;
  return joinWorld(settings, place, world);
}

Status leaveWorld(World &world, const Status &status) {
  Status done = status;
  if (done && world.control)
    done = world.control->finish();
  else if (world.control)
    world.control->fail(status);
  for (std::unique_ptr<Network> *network : {&world.network, &world.launcher})
    if (done)
      network->reset();
    else
      (void)network->release();
  world.control.reset();
  return done;
}

} // namespace tmc
