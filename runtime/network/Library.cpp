//===- Library.cpp - opens a library of the network -----------------------===//

#include "runtime/network/Library.h"

#include "runtime/network/Groups.h"

#include <dlfcn.h>

namespace tmc {

namespace {

/// A world of one rank. Nothing leaves it.
class Alone final : public Network {
public:
  Alone() { groups_.add({0}, 0); }

  std::string description() const override { return "one rank"; }
  Status makeGroup(const std::vector<int> &members, int &group) override {
    group = groups_.find(members);
    return groups_.check(members);
  }
  Status gather(int group, void *to, const void *from, int64_t bytes,
                int64_t total) override {
    Groups<int>::Group *found = nullptr;
    return groups_.prepare(group, to, from, bytes, total, found);
  }
  Status exchange(int group, void *to, const void *from, int64_t bytes,
                  int64_t total) override {
    return gather(group, to, from, bytes, total);
  }
  Status send(int group, int rank, const void *, int64_t bytes) override {
    Groups<int>::Group *found = nullptr;
    return groups_.prepareMessage(group, rank, bytes, found);
  }
  Status receive(int group, int rank, void *, int64_t bytes) override {
    return send(group, rank, nullptr, bytes);
  }
  Status barrier(int group) override {
    return gather(group, nullptr, nullptr, 0, 0);
  }

private:
  Groups<int> groups_{0, 1};
};

Status notOpened(const std::string &path, const char *why) {
  return {Code::World, "can't open '" + path + "': " + (why ? why : "unknown")};
}

} // namespace

Status openNetwork(const std::string &name, const std::string &folder,
                   const NetworkStart &start,
                   std::unique_ptr<Network> &network) {
  if (start.ranks == 1 && name.empty()) {
    network = std::make_unique<Alone>();
    return Status::ok();
  }
  const std::string path = folder + "/" + networkFile(name);
  // Libraries of MPI open parts of their own, which look for its names in what
  // is opened for all. A library stays open: its threads may outlive a network.
  void *library = dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (!library)
    return notOpened(path, dlerror());
  const auto version = reinterpret_cast<NetworkVersionFunction *>(
      dlsym(library, kNetworkVersionName));
  const auto open =
      reinterpret_cast<NetworkOpenFunction *>(dlsym(library, kNetworkOpenName));
  if (!version || !open)
    return notOpened(path, "it is no library of tmc's network");
  if (version() != kNetworkVersion)
    return notOpened(path, ("it has version " + std::to_string(version()) +
                            " of the network, and this trainer version " +
                            std::to_string(kNetworkVersion) +
                            ": compile the step again")
                               .c_str());
  Network *opened = nullptr;
  Status status;
  open(kNetworkVersion, &start, &opened, &status);
  network.reset(opened);
  return status;
}

} // namespace tmc
