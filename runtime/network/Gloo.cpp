//===- Gloo.cpp - a network by Gloo ---------------------------------------===//
//
// libtmc-network-gloo.so. Gloo moves bytes by TCP, and any launcher will do:
// the ranks find each other by the table that they share (Rendezvous). Gloo
// reports errors by exceptions, which end here.
//
//===----------------------------------------------------------------------===//

#include "runtime/network/Groups.h"
#include "runtime/network/Network.h"
#include "runtime/network/PipeSignal.h"

// Gloo's headers aren't free of warnings.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"
#pragma GCC diagnostic ignored "-Wdeprecated"
#include <gloo/allgather.h>
#include <gloo/allgatherv.h>
#include <gloo/alltoall.h>
#include <gloo/alltoallv.h>
#include <gloo/barrier.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/store.h>
#include <gloo/transport/tcp/device.h>
#pragma GCC diagnostic pop

#include <algorithm>
#include <chrono>
#include <cstring>
#include <exception>
#include <memory>
#include <stdexcept>

namespace tmc {

namespace {

/// Control.h ends calls that last too long: Gloo's own limit of 30 s would end
/// a step that saves.
constexpr auto kCallTime = std::chrono::hours(24);
/// Until the members of a group have connected.
constexpr auto kConnectTime = std::chrono::seconds(120);
/// A prefix that Gloo's own calls don't have.
constexpr uint64_t kSlot = uint64_t(0x74) << 56;
/// A longer message travels in parts.
constexpr int64_t kMostPartBytes = int64_t(1) << 30;

/// The names of one group in the shared table.
class Store final : public gloo::rendezvous::Store {
public:
  Store(Rendezvous &table, std::string prefix)
      : table_(table), prefix_(std::move(prefix)) {}

  void set(const std::string &key, const std::vector<char> &data) override {
    demand(table_.put(prefix_ + key, std::string(data.begin(), data.end())));
  }
  std::vector<char> get(const std::string &key) override {
    std::string bytes;
    demand(table_.get(prefix_ + key, bytes));
    return {bytes.begin(), bytes.end()};
  }
  /// get() waits.
  void wait(const std::vector<std::string> &) override {}
  void wait(const std::vector<std::string> &,
            const std::chrono::milliseconds &) override {}

private:
  static void demand(const Status &status) {
    if (!status)
      throw std::runtime_error(status.message());
  }
  Rendezvous &table_;
  const std::string prefix_;
};

class GlooNetwork final : public Network {
public:
  using Context = std::shared_ptr<gloo::rendezvous::Context>;

  explicit GlooNetwork(const NetworkStart &start)
      : start_(start),
        part_(start.mostPartBytes > 0 ? start.mostPartBytes : kMostPartBytes),
        groups_(start.rank, start.ranks) {}

  Status open() {
    if (start_.ranks > 1 && !start_.rendezvous)
      return {Code::Defect, "gloo: there is no table of the ranks"};
    const Status done = guard("CreateDevice", [&] {
      gloo::transport::tcp::attr attributes;
      attributes.hostname = start_.address;
      if (start_.ranks > 1)
        device_ = gloo::transport::tcp::CreateDevice(attributes);
    });
    if (!done)
      return done;
    std::vector<int> members(static_cast<size_t>(start_.ranks));
    for (int i = 0; i < start_.ranks; ++i)
      members[size_t(i)] = i;
    int world = 0;
    return makeGroup(members, world);
  }

  std::string description() const override { return "gloo (tcp)"; }

  Status makeGroup(const std::vector<int> &members, int &group) override {
    if (Status s = groups_.check(members); !s)
      return s;
    group = groups_.find(members);
    if (group >= 0)
      return Status::ok();
    std::string prefix = "gloo";
    for (const int each : members)
      prefix += "/" + std::to_string(each);
    Context context;
    const int rank =
        int(std::find(members.begin(), members.end(), start_.rank) -
            members.begin());
    const Status done = guard("connectFullMesh", [&] {
      if (members.size() == 1)
        return;
      Store store(*start_.rendezvous, prefix + ":");
      context = std::make_shared<gloo::rendezvous::Context>(
          rank, int(members.size()));
      context->setTimeout(kConnectTime);
      context->connectFullMesh(store, device_);
      context->setTimeout(kCallTime);
    });
    if (done)
      group = groups_.add(members, context);
    return done;
  }

  Status gather(int number, void *to, const void *from, int64_t bytes,
                int64_t total) override {
    Group *group = nullptr;
    if (Status s = groups_.prepare(number, to, from, bytes, total, group);
        !s || !group)
      return s;
    if (!group->isEven(bytes, total))
      return gatherLengths(*group, to, from, bytes, total);
    return guard("allgather", [&] {
      gloo::AllgatherOptions options(group->handle);
      char *own = static_cast<char *>(to) + group->rank * bytes;
      if (from != own)
        options.setInput(const_cast<char *>(static_cast<const char *>(from)),
                         size_t(bytes));
      options.setOutput(static_cast<char *>(to),
                        size_t(bytes) * size_t(group->ranks()));
      options.setTimeout(kCallTime);
      gloo::allgather(options);
    });
  }

  Status exchange(int number, void *to, const void *from, int64_t bytes,
                  int64_t total) override {
    Group *group = nullptr;
    if (Status s = groups_.prepare(number, to, from, bytes, total, group);
        !s || !group)
      return s;
    if (!group->isEven(bytes, total))
      return exchangeLengths(*group, to, from, bytes, total);
    return guard("alltoall", [&] {
      gloo::AlltoallOptions options(group->handle);
      const size_t all = size_t(bytes) * size_t(group->ranks());
      options.setInput(const_cast<char *>(static_cast<const char *>(from)),
                       all);
      options.setOutput(static_cast<char *>(to), all);
      options.setTimeout(kCallTime);
      gloo::alltoall(options);
    });
  }

  Status send(int number, int rank, const void *from, int64_t bytes) override {
    return message(number, rank, const_cast<void *>(from), bytes,
                   [](auto &part, int to) {
                     part.send(to, kSlot);
                     return part.waitSend(nullptr, kCallTime);
                   });
  }

  Status receive(int number, int rank, void *to, int64_t bytes) override {
    return message(number, rank, to, bytes, [](auto &part, int from) {
      part.recv(from, kSlot);
      return part.waitRecv(nullptr, kCallTime);
    });
  }

  Status barrier(int number) override {
    Group *group = nullptr;
    char byte = 0;
    int64_t total = kAllPieces;
    if (Status s = groups_.prepare(number, &byte, &byte, 1, total, group);
        !s || !group)
      return s;
    return guard("barrier", [&] {
      gloo::BarrierOptions options(group->handle);
      options.setTimeout(kCallTime);
      gloo::barrier(options);
    });
  }

private:
  using Group = Groups<Context>::Group;

  /// The lengths of all pieces of `total` bytes.
  static std::vector<int64_t> lengthsOf(const Group &group, int64_t bytes,
                                        int64_t total) {
    std::vector<int64_t> lengths;
    for (int r = 0; r < group.ranks(); ++r)
      lengths.push_back(Groups<Context>::lengthOf(r, bytes, total));
    return lengths;
  }

  /// Gloo puts pieces side by side: only the last ones are shorter.
  Status gatherLengths(Group &group, void *to, const void *from, int64_t bytes,
                       int64_t total) {
    return guard("allgatherv", [&] {
      const std::vector<int64_t> lengths = lengthsOf(group, bytes, total);
      const int64_t own = lengths[size_t(group.rank)];
      char *place = static_cast<char *>(to) + group.rank * bytes;
      if (from != place && own > 0)
        std::memcpy(place, from, size_t(own));
      gloo::AllgathervOptions options(group.handle);
      options.setOutput(static_cast<char *>(to),
                        std::vector<size_t>(lengths.begin(), lengths.end()));
      options.setTimeout(kCallTime);
      gloo::allgatherv(options);
    });
  }

  Status exchangeLengths(Group &group, void *to, const void *from,
                         int64_t bytes, int64_t total) {
    return guard("alltoallv", [&] {
      const std::vector<int64_t> lengths = lengthsOf(group, bytes, total);
      const int64_t own = lengths[size_t(group.rank)];
      char *target = static_cast<char *>(to);
      gloo::AlltoallvOptions options(group.handle);
      options.setInput(const_cast<char *>(static_cast<const char *>(from)),
                       lengths);
      options.setOutput(target,
                        std::vector<int64_t>(size_t(group.ranks()), own));
      options.setTimeout(kCallTime);
      gloo::alltoallv(options);
      for (int r = group.ranks() - 1; r > 0 && own < bytes; --r)
        std::memmove(target + r * bytes, target + r * own, size_t(own));
    });
  }

  template <typename Move>
  Status message(int number, int rank, void *data, int64_t bytes,
                 const Move &move) {
    Group *group = nullptr;
    if (Status s = groups_.prepareMessage(number, rank, bytes, group);
        !s || !group)
      return s;
    return guard("message", [&] {
      for (int64_t at = 0; at < bytes; at += part_) {
        const auto part = group->handle->createUnboundBuffer(
            static_cast<char *>(data) + at,
            size_t(std::min(part_, bytes - at)));
        if (!move(*part, rank))
          throw std::runtime_error("it was ended");
      }
    });
  }

  template <typename Call> static Status guard(const char *name, Call call) {
    const WithoutPipeSignal shield;
    try {
      call();
      return Status::ok();
    } catch (const std::exception &error) {
      return {Code::World,
              std::string("gloo: ") + name + " failed: " + error.what()};
    }
  }

  const NetworkStart start_;
  const int64_t part_;
  std::shared_ptr<gloo::transport::Device> device_; // outlives the groups
  Groups<Context> groups_;
};

} // namespace

} // namespace tmc

extern "C" int tmc_network_version() { return tmc::kNetworkVersion; }

extern "C" void tmc_network_open(int version, const tmc::NetworkStart *start,
                                 tmc::Network **network, tmc::Status *status) {
  tmc::openLibrary<tmc::GlooNetwork>("gloo", version, *start, network, *status);
}
