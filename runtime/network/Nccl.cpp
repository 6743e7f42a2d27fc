//===- Nccl.cpp - a network of cards by NCCL ------------------------------===//
//
// libtmc-network-nccl.so. NCCL moves bytes between cards, one for each rank,
// and the ranks find each other by the table that they share (Rendezvous):
//
//     calls of a CardNetwork    queued on the caller's stream
//     calls of a Network        host -> buffer on the card | NCCL | host: the
//                               few bytes of statistics, and shards of files
//
// Pieces of one length travel by ncclAllGather and by a group of sends and
// receives. Where the last pieces are shorter, a gather is a group of
// broadcasts.
//
// NCCL holds buffers for each channel and peer. kChannels bounds them, and so
// the memory that a plan leaves for them (compiler/target/Network.h).
//
//===----------------------------------------------------------------------===//

#include "runtime/kernels/Ranks.h"
#include "runtime/network/Groups.h"
#include "runtime/network/Network.h"

#include <cuda_runtime.h>
#include <nccl.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <unistd.h>

namespace tmc {

namespace {

/// Of NCCL; 32 by default on the newest cards.
constexpr int kChannels = 16;
/// The card's buffer for bytes of the host has two parts of this length.
constexpr int64_t kPartBytes = int64_t(1) << 20;

Status cudaStatus(cudaError_t error, const char *what) {
  return error == cudaSuccess
             ? Status::ok()
             : Status(Code::World, std::string("nccl: ") + what + ": " +
                                       cudaGetErrorString(error));
}

class NcclNetwork final : public Network, public CardNetwork {
public:
  using Group = Groups<ncclComm_t>::Group;

  explicit NcclNetwork(const NetworkStart &start)
      : start_(start), groups_(start.rank, start.ranks) {
    part_ = start.mostPartBytes > 0 ? std::min(start.mostPartBytes, kPartBytes)
                                    : kPartBytes;
    part_ = std::max<int64_t>(part_, start.ranks); // a byte for each
  }
  ~NcclNetwork() override {
    // Nothing can be done about an error here.
    for (const Group &group : groups_.all())
      if (group.handle)
        (void)ncclCommDestroy(group.handle);
    if (buffer_)
      (void)cudaFree(buffer_);
    if (stream_)
      (void)cudaStreamDestroy(stream_);
  }

  Status open() {
    if (start_.ranks > 1 && !start_.rendezvous)
      return {Code::Defect, "nccl: there is no table of the ranks"};
    int cards = 0;
    if (Status s = cudaStatus(cudaGetDeviceCount(&cards), "no card"); !s)
      return s;
    card_ = cardOf(start_.localRank, cards);
    if (Status s = cudaStatus(cudaSetDevice(card_), "a card"); !s)
      return s;
    if (Status s = compareCards(); !s)
      return s;
    if (Status s = cudaStatus(
            cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking),
            "can't create a stream");
        !s)
      return s;
    if (Status s = cudaStatus(
            cudaMalloc(reinterpret_cast<void **>(&buffer_), size_t(2 * part_)),
            "can't allocate device memory");
        !s)
      return s;
    std::vector<int> members(static_cast<size_t>(start_.ranks));
    for (int i = 0; i < start_.ranks; ++i)
      members[size_t(i)] = i;
    int world = 0;
    return makeGroup(members, world);
  }

  std::string description() const override {
    int version = 0;
    if (ncclGetVersion(&version) != ncclSuccess)
      return "nccl";
    return "nccl (" + std::to_string(version / 10000) + "." +
           std::to_string(version / 100 % 100) + "." +
           std::to_string(version % 100) + ")";
  }
  CardNetwork *card() override { return this; }

  Status makeGroup(const std::vector<int> &members, int &group) override {
    if (Status s = groups_.check(members); !s)
      return s;
    group = groups_.find(members);
    if (group >= 0)
      return Status::ok();
    ncclComm_t made = nullptr;
    if (members.size() > 1)
      if (Status s = connect(members, made); !s)
        return s;
    group = groups_.add(members, made);
    return Status::ok();
  }

  //===--------------------------------------------------------------------===//
  // Bytes of the card
  //===--------------------------------------------------------------------===//

  Status gather(int number, void *to, const void *from, int64_t bytes,
                int64_t total, void *stream) override {
    Group *group = nullptr;
    if (Status s = groups_.find(number, bytes, total, group); !s || total == 0)
      return s;
    char *target = static_cast<char *>(to);
    const auto queue = static_cast<cudaStream_t>(stream);
    if (group->ranks() == 1)
      return copy(target, from, total, queue);
    if (group->isEven(bytes, total))
      return check(group->handle,
                   ncclAllGather(from, to, size_t(bytes), ncclInt8,
                                 group->handle, queue),
                   "gather");
    return inGroup(*group, "gather", [&](auto each) {
      for (int r = 0; r < group->ranks(); ++r)
        if (const int64_t length =
                Groups<ncclComm_t>::lengthOf(r, bytes, total);
            length > 0)
          each(ncclBroadcast(r == group->rank ? from : target + r * bytes,
                             target + r * bytes, size_t(length), ncclInt8, r,
                             group->handle, queue));
    });
  }

  Status exchange(int number, void *to, const void *from, int64_t bytes,
                  int64_t total, void *stream) override {
    Group *group = nullptr;
    if (Status s = groups_.find(number, bytes, total, group); !s || total == 0)
      return s;
    char *target = static_cast<char *>(to);
    const char *source = static_cast<const char *>(from);
    const auto queue = static_cast<cudaStream_t>(stream);
    auto lengthOf = [&](int r) {
      return Groups<ncclComm_t>::lengthOf(r, bytes, total);
    };
    const int64_t own = lengthOf(group->rank), at = group->rank * bytes;
    if (Status s = copy(target + at, source + at, own, queue); !s)
      return s;
    return inGroup(*group, "exchange", [&](auto each) {
      for (int r = 0; r < group->ranks(); ++r) {
        if (r == group->rank)
          continue;
        if (const int64_t length = lengthOf(r); length > 0)
          each(ncclSend(source + r * bytes, size_t(length), ncclInt8, r,
                        group->handle, queue));
        if (own > 0)
          each(ncclRecv(target + r * bytes, size_t(own), ncclInt8, r,
                        group->handle, queue));
      }
    });
  }

  Status send(int number, int rank, const void *from, int64_t bytes,
              void *stream) override {
    Group *group = nullptr;
    if (Status s = groups_.prepareMessage(number, rank, bytes, group);
        !s || !group)
      return s;
    return check(group->handle,
                 ncclSend(from, size_t(bytes), ncclInt8, rank, group->handle,
                          static_cast<cudaStream_t>(stream)),
                 "send");
  }

  Status receive(int number, int rank, void *to, int64_t bytes,
                 void *stream) override {
    Group *group = nullptr;
    if (Status s = groups_.prepareMessage(number, rank, bytes, group);
        !s || !group)
      return s;
    return check(group->handle,
                 ncclRecv(to, size_t(bytes), ncclInt8, rank, group->handle,
                          static_cast<cudaStream_t>(stream)),
                 "receive");
  }

  Status fault() override {
    for (const Group &group : groups_.all()) {
      ncclResult_t found = ncclSuccess;
      if (!group.handle || !fault_)
        continue;
      const ncclResult_t asked = ncclCommGetAsyncError(group.handle, &found);
      if (Status s = check(group.handle, asked == ncclSuccess ? found : asked,
                           "a queued call");
          !s)
        abort(s);
    }
    return fault_;
  }

  //===--------------------------------------------------------------------===//
  // Bytes of the host, in parts by the card's buffer
  //===--------------------------------------------------------------------===//

  Status gather(int number, void *to, const void *from, int64_t bytes,
                int64_t total) override {
    Group *group = nullptr;
    if (Status s = groups_.prepare(number, to, from, bytes, total, group);
        !s || !group)
      return s;
    const char *source = static_cast<const char *>(from);
    char *target = static_cast<char *>(to);
    const int64_t most = part_ / group->ranks();
    for (int64_t at = 0; at < bytes; at += most) {
      const int64_t some = std::min(most, bytes - at);
      auto left = [&](int r) {
        return std::clamp<int64_t>(total - r * bytes - at, 0, some);
      };
      if (Status s = copy(buffer_, source + at, left(group->rank)); !s)
        return s;
      if (Status s = gather(number, buffer_ + part_, buffer_, some,
                            some * group->ranks(), stream_);
          !s)
        return s;
      for (int r = 0; r < group->ranks(); ++r)
        if (Status s = copy(target + r * bytes + at, buffer_ + part_ + r * some,
                            left(r));
            !s)
          return s;
    }
    return wait();
  }

  Status exchange(int number, void *to, const void *from, int64_t bytes,
                  int64_t total) override {
    Group *group = nullptr;
    if (Status s = groups_.prepare(number, to, from, bytes, total, group);
        !s || !group)
      return s;
    const char *source = static_cast<const char *>(from);
    char *target = static_cast<char *>(to);
    const int64_t most = part_ / group->ranks();
    for (int64_t at = 0; at < bytes; at += most) {
      const int64_t some = std::min(most, bytes - at);
      auto left = [&](int r) {
        return std::clamp<int64_t>(total - r * bytes - at, 0, some);
      };
      for (int r = 0; r < group->ranks(); ++r)
        if (Status s =
                copy(buffer_ + r * some, source + r * bytes + at, left(r));
            !s)
          return s;
      if (Status s = exchange(number, buffer_ + part_, buffer_, some,
                              some * group->ranks(), stream_);
          !s)
        return s;
      for (int r = 0; r < group->ranks(); ++r)
        if (Status s = copy(target + r * bytes + at, buffer_ + part_ + r * some,
                            left(group->rank));
            !s)
          return s;
    }
    return wait();
  }

  Status send(int number, int rank, const void *from, int64_t bytes) override {
    const char *source = static_cast<const char *>(from);
    return inParts(bytes, [&](int64_t at, int64_t some) {
      const Status done = copy(buffer_, source + at, some);
      return done ? send(number, rank, buffer_, some, stream_) : done;
    });
  }

  Status receive(int number, int rank, void *to, int64_t bytes) override {
    char *target = static_cast<char *>(to);
    return inParts(bytes, [&](int64_t at, int64_t some) {
      const Status done = receive(number, rank, buffer_, some, stream_);
      return done ? copy(target + at, buffer_, some) : done;
    });
  }

  Status barrier(int number) override {
    Group *group = nullptr;
    int64_t total = kAllPieces;
    if (Status s = groups_.find(number, 1, total, group); !s)
      return s;
    std::string all(size_t(group->ranks()), '\0');
    return gather(number, all.data(), all.data() + group->rank, 1, kAllPieces);
  }

private:
  /// Two ranks on one card are an error of NCCL's, which doesn't name the cure.
  Status compareCards() {
    char host[256] = "", card[64] = "";
    (void)gethostname(host, sizeof host - 1);
    if (Status s = cudaStatus(cudaDeviceGetPCIBusId(card, sizeof card, card_),
                              "a card");
        !s)
      return s;
    const std::string own = std::string(host) + " " + card;
    const std::string prefix = "nccl/card/";
    if (start_.ranks == 1)
      return Status::ok();
    if (Status s =
            start_.rendezvous->put(prefix + std::to_string(start_.rank), own);
        !s)
      return s;
    for (int r = 0; r < start_.ranks; ++r) {
      std::string its;
      if (r == start_.rank)
        continue;
      if (Status s = start_.rendezvous->get(prefix + std::to_string(r), its);
          !s)
        return s;
      if (its == own)
        return {Code::Usage,
                "ranks " + std::to_string(std::min(r, start_.rank)) + " and " +
                    std::to_string(std::max(r, start_.rank)) +
                    " have the same card (" + own +
                    "), and nccl wants one for each: --network gloo shares it"};
    }
    return Status::ok();
  }

  Status connect(const std::vector<int> &members, ncclComm_t &made) {
    std::string name = "nccl";
    for (const int each : members)
      name.append("/").append(std::to_string(each));
    const int rank =
        int(std::find(members.begin(), members.end(), start_.rank) -
            members.begin());
    ncclUniqueId id = {};
    if (rank == 0) {
      if (Status s = check(nullptr, ncclGetUniqueId(&id), "an identity"); !s)
        return s;
      if (Status s = start_.rendezvous->put(
              name, std::string(id.internal, sizeof id.internal));
          !s)
        return s;
    } else {
      std::string bytes;
      if (Status s = start_.rendezvous->get(name, bytes); !s)
        return s;
      if (bytes.size() != sizeof id.internal)
        return {Code::World, "nccl: the identity of a group is malformed"};
      std::memcpy(id.internal, bytes.data(), bytes.size());
    }
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.maxCTAs = kChannels;
    return check(
        nullptr,
        ncclCommInitRankConfig(&made, int(members.size()), id, rank, &config),
        "can't connect the ranks");
  }

  static Status check(ncclComm_t comm, ncclResult_t result, const char *what) {
    if (result == ncclSuccess || result == ncclInProgress)
      return Status::ok();
    const char *more = ncclGetLastError(comm);
    return {
        Code::World,
        std::string("nccl: ") + what + ": " + ncclGetErrorString(result) +
            (more && *more ? std::string(" (") + more + ")" : std::string())};
  }

  /// Calls body(each) between the begin and the end of a group of calls. `each`
  /// takes the result of a call.
  template <typename F>
  static Status inGroup(const Group &group, const char *what, F &&body) {
    Status first = check(group.handle, ncclGroupStart(), what);
    if (!first)
      return first;
    body([&](ncclResult_t result) {
      if (first)
        first = check(group.handle, result, what);
    });
    // The group ends in any case.
    const Status ended = check(group.handle, ncclGroupEnd(), what);
    return first ? ended : first;
  }

  template <typename F> Status inParts(int64_t bytes, F &&body) {
    for (int64_t at = 0; at < bytes; at += part_)
      if (Status s = body(at, std::min(part_, bytes - at)); !s)
        return s;
    return wait();
  }

  Status copy(void *to, const void *from, int64_t bytes, cudaStream_t stream) {
    if (bytes <= 0 || to == from)
      return Status::ok();
    return cudaStatus(
        cudaMemcpyAsync(to, from, size_t(bytes), cudaMemcpyDefault, stream),
        "a copy");
  }
  /// On the stream for bytes of the host, whose memory is pageable: its bytes
  /// are taken, or there, when the call returns.
  Status copy(void *to, const void *from, int64_t bytes) {
    return copy(to, from, bytes, stream_);
  }
  /// Waits for the calls on bytes of the host.
  Status wait() { return cudaStatus(cudaStreamSynchronize(stream_), "a call"); }

  /// Ends all queued calls: they may wait for a rank that is gone.
  void abort(const Status &why) {
    fault_ = why;
    for (Group &group : groups_.all())
      if (ncclComm_t ended = group.handle) {
        group.handle = nullptr;
        (void)ncclCommAbort(ended);
      }
  }

  const NetworkStart start_;
  int64_t part_;
  int card_ = 0;
  cudaStream_t stream_ = nullptr; // of the calls on bytes of the host
  char *buffer_ = nullptr;        // on the card: what is sent, what comes
  Groups<ncclComm_t> groups_;
  Status fault_;
};

} // namespace

} // namespace tmc

extern "C" int tmc_network_version() { return tmc::kNetworkVersion; }

extern "C" void tmc_network_open(int version, const tmc::NetworkStart *start,
                                 tmc::Network **network, tmc::Status *status) {
  tmc::openLibrary<tmc::NcclNetwork>("nccl", version, *start, network, *status);
}
