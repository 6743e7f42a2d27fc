//===- Mpi.cpp - a network by MPI -----------------------------------------===//
//
// libtmc-network-mpi.so. Compiled by mpicxx of the MPI that mpirun comes from:
// each MPI has a binary interface of its own.
//
//===----------------------------------------------------------------------===//

#include "runtime/network/Groups.h"
#include "runtime/network/Network.h"

// The interface of C alone: no other is in the standard any more.
#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>
#include <thread>

namespace tmc {

namespace {

/// Counts are of type int. A longer piece travels in parts of this length.
constexpr int64_t kMostPartBytes = int64_t(1) << 30;
/// A call asks MPI without a pause for this time, and then with pauses. The
/// pauses bound the rate of a transfer that MPI cuts up: 32 KiB in each are
/// 1.6 GB/s.
constexpr auto kSpinTime = std::chrono::microseconds(200);
constexpr auto kSleepTime = std::chrono::microseconds(20);
/// All messages have one tag: between two ranks they arrive in their order.
constexpr int kTag = 7;

Status check(const char *call, int code) {
  if (code == MPI_SUCCESS)
    return Status::ok();
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  (void)MPI_Error_string(code, text, &length);
  return {Code::World, std::string("mpi: ") + call + " failed: " + text};
}

class MpiNetwork final : public Network {
public:
  explicit MpiNetwork(const NetworkStart &start)
      : rank_(start.rank), ranks_(start.ranks),
        part_(start.mostPartBytes > 0
                  ? std::min(start.mostPartBytes, kMostPartBytes)
                  : kMostPartBytes),
        groups_(start.rank, start.ranks) {}

  ~MpiNetwork() override {
    if (!isOpen_)
      return;
    for (auto &group : groups_.all())
      if (group.handle != MPI_COMM_NULL)
        (void)MPI_Comm_free(&group.handle);
    (void)MPI_Finalize();
  }

  Status open() {
    int isOpen = 0, level = 0;
    if (Status s = check("MPI_Initialized", MPI_Initialized(&isOpen)); !s)
      return s;
    if (isOpen)
      return {Code::Defect, "mpi: a process has one network of MPI"};
    if (Status s = check(
            "MPI_Init_thread",
            MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &level));
        !s)
      return s;
    isOpen_ = true;
    if (level < MPI_THREAD_SERIALIZED)
      return {Code::Unsupported, "mpi: this MPI allows no threads"};
    (void)MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm world = MPI_COMM_NULL;
    if (Status s = check("MPI_Comm_dup", MPI_Comm_dup(MPI_COMM_WORLD, &world));
        !s)
      return s;
    (void)MPI_Comm_set_errhandler(world, MPI_ERRORS_RETURN);
    int own = 0, all = 0;
    (void)MPI_Comm_rank(world, &own);
    (void)MPI_Comm_size(world, &all);
    std::vector<int> members(static_cast<size_t>(all));
    for (int i = 0; i < all; ++i)
      members[size_t(i)] = i;
    groups_.add(members, world);
    if (own == rank_ && all == ranks_)
      return Status::ok();
    return {Code::World,
            "mpi: this process is rank " + std::to_string(own) + " of " +
                std::to_string(all) + " to MPI, and rank " +
                std::to_string(rank_) + " of " + std::to_string(ranks_) +
                " to its launcher: the library is of another MPI than mpirun"};
  }

  std::string description() const override {
    char text[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    int length = 0;
    (void)MPI_Get_library_version(text, &length);
    std::string whole(text);
    whole.resize(std::min(whole.size(), whole.find_first_of(",\n")));
    std::replace(whole.begin(), whole.end(), '\t', ' ');
    return "mpi (" + whole + ")";
  }

  Status makeGroup(const std::vector<int> &members, int &group) override {
    if (Status s = groups_.check(members); !s)
      return s;
    group = groups_.find(members);
    if (group >= 0)
      return Status::ok();
    const MPI_Comm world = groups_.all()[kWorld].handle;
    MPI_Group all = MPI_GROUP_NULL, some = MPI_GROUP_NULL;
    MPI_Comm made = MPI_COMM_NULL;
    Status done = check("MPI_Comm_group", MPI_Comm_group(world, &all));
    if (done)
      done = check("MPI_Group_incl", MPI_Group_incl(all, int(members.size()),
                                                    members.data(), &some));
    if (done) // The members alone take part.
      done = check("MPI_Comm_create_group",
                   MPI_Comm_create_group(world, some, kTag, &made));
    if (some != MPI_GROUP_NULL)
      (void)MPI_Group_free(&some);
    if (all != MPI_GROUP_NULL)
      (void)MPI_Group_free(&all);
    if (!done)
      return done;
    (void)MPI_Comm_set_errhandler(made, MPI_ERRORS_RETURN);
    group = groups_.add(members, made);
    return Status::ok();
  }

  Status gather(int number, void *to, const void *from, int64_t bytes,
                int64_t total) override {
    Group *group = nullptr;
    if (Status s = groups_.prepare(number, to, from, bytes, total, group);
        !s || !group)
      return s;
    if (!group->isEven(bytes, total))
      return eachPeer(*group, bytes, [&](int64_t rank, Piece &out, Piece &in) {
        out = {const_cast<void *>(from), lengthOf(group->rank, bytes, total)};
        in = {static_cast<char *>(to) + rank * bytes,
              lengthOf(rank, bytes, total)};
      });
    const bool isInPlace =
        from == static_cast<char *>(to) + group->rank * bytes;
    return inParts(bytes, [&](int64_t at, int count, MPI_Datatype strided) {
      char *target = static_cast<char *>(to) + at;
      MPI_Request request = MPI_REQUEST_NULL;
      const int code =
          isInPlace ? MPI_Iallgather(MPI_IN_PLACE, 0, MPI_BYTE, target, 1,
                                     strided, group->handle, &request)
                    : MPI_Iallgather(static_cast<const char *>(from) + at,
                                     count, MPI_BYTE, target, 1, strided,
                                     group->handle, &request);
      return finish("MPI_Iallgather", code, request);
    });
  }

  Status exchange(int number, void *to, const void *from, int64_t bytes,
                  int64_t total) override {
    Group *group = nullptr;
    if (Status s = groups_.prepare(number, to, from, bytes, total, group);
        !s || !group)
      return s;
    if (!group->isEven(bytes, total))
      return eachPeer(*group, bytes, [&](int64_t rank, Piece &out, Piece &in) {
        char *source = static_cast<char *>(const_cast<void *>(from));
        out = {source + rank * bytes, lengthOf(rank, bytes, total)};
        in = {static_cast<char *>(to) + rank * bytes,
              lengthOf(group->rank, bytes, total)};
      });
    return inParts(bytes, [&](int64_t at, int, MPI_Datatype strided) {
      MPI_Request request = MPI_REQUEST_NULL;
      const int code = MPI_Ialltoall(static_cast<const char *>(from) + at, 1,
                                     strided, static_cast<char *>(to) + at, 1,
                                     strided, group->handle, &request);
      return finish("MPI_Ialltoall", code, request);
    });
  }

  Status send(int number, int rank, const void *from, int64_t bytes) override {
    Group *group = nullptr;
    if (Status s = groups_.prepareMessage(number, rank, bytes, group);
        !s || !group)
      return s;
    for (int64_t at = 0; at < bytes; at += part_) {
      MPI_Request request = MPI_REQUEST_NULL;
      const int code = MPI_Isend(static_cast<const char *>(from) + at,
                                 int(std::min(part_, bytes - at)), MPI_BYTE,
                                 rank, kTag, group->handle, &request);
      if (Status s = finish("MPI_Isend", code, request); !s)
        return s;
    }
    return Status::ok();
  }

  Status receive(int number, int rank, void *to, int64_t bytes) override {
    Group *group = nullptr;
    if (Status s = groups_.prepareMessage(number, rank, bytes, group);
        !s || !group)
      return s;
    for (int64_t at = 0; at < bytes; at += part_) {
      const int wanted = int(std::min(part_, bytes - at));
      MPI_Status state;
      MPI_Request request = MPI_REQUEST_NULL;
      int count = 0;
      const int code = MPI_Irecv(static_cast<char *>(to) + at, wanted, MPI_BYTE,
                                 rank, kTag, group->handle, &request);
      if (Status s = finish("MPI_Irecv", code, request, &state); !s)
        return s;
      (void)MPI_Get_count(&state, MPI_BYTE, &count);
      if (count != wanted)
        return {Code::Defect, "mpi: a message has " + std::to_string(count) +
                                  " bytes, and its receiver asks for " +
                                  std::to_string(wanted)};
    }
    return Status::ok();
  }

  Status barrier(int number) override {
    Group *group = nullptr;
    // One byte, so that there is something to do where a group has peers.
    char byte = 0;
    int64_t total = kAllPieces;
    if (Status s = groups_.prepare(number, &byte, &byte, 1, total, group);
        !s || !group)
      return s;
    MPI_Request request = MPI_REQUEST_NULL;
    const int code = MPI_Ibarrier(group->handle, &request);
    return finish("MPI_Ibarrier", code, request);
  }

private:
  using Group = Groups<MPI_Comm>::Group;
  struct Piece {
    void *data = nullptr;
    int64_t bytes = 0;
  };
  static int64_t lengthOf(int64_t rank, int64_t bytes, int64_t total) {
    return Groups<MPI_Comm>::lengthOf(rank, bytes, total);
  }

  /// Moves pieces of different lengths: `name(rank, out, in)` says what goes to
  /// a rank, and what comes from it.
  template <typename Name>
  Status eachPeer(Group &group, int64_t bytes, const Name &name) {
    std::vector<MPI_Request> requests;
    Status done;
    auto begin = [&](const Piece &piece, int rank, bool isIn) {
      for (int64_t at = 0; at < piece.bytes && done; at += part_) {
        char *data = static_cast<char *>(piece.data) + at;
        const int count = int(std::min(part_, piece.bytes - at));
        MPI_Request &request = requests.emplace_back(MPI_REQUEST_NULL);
        done =
            isIn ? check("MPI_Irecv", MPI_Irecv(data, count, MPI_BYTE, rank,
                                                kTag, group.handle, &request))
                 : check("MPI_Isend", MPI_Isend(data, count, MPI_BYTE, rank,
                                                kTag, group.handle, &request));
      }
    };
    requests.reserve(size_t(2 * group.ranks() * (bytes / part_ + 1)));
    for (int i = 1; i < group.ranks(); ++i) {
      Piece out, in;
      const int rank = (group.rank + i) % group.ranks();
      name(rank, out, in);
      begin(in, rank, /*isIn=*/true);
      begin(out, rank, /*isIn=*/false);
    }
    Piece out, in;
    name(group.rank, out, in);
    if (in.bytes > 0 && in.data != out.data)
      std::memcpy(in.data, out.data, size_t(in.bytes));
    for (MPI_Request &request : requests)
      if (Status s = finish("MPI_Wait", MPI_SUCCESS, request); !s && done)
        done = s;
    return done;
  }

  /// Waits for a request that a call with the result `code` has made. MPI's own
  /// waits take a whole core, which the step's kernels need.
  static Status finish(const char *call, int code, MPI_Request &request,
                       MPI_Status *state = MPI_STATUS_IGNORE) {
    if (Status s = check(call, code); !s)
      return s;
    const auto begin = std::chrono::steady_clock::now();
    for (int isDone = 0;;) {
      if (Status s = check(call, MPI_Test(&request, &isDone, state));
          !s || isDone)
        return s;
      if (std::chrono::steady_clock::now() - begin > kSpinTime)
        std::this_thread::sleep_for(kSleepTime);
    }
  }

  /// Calls `move` for each part of pieces of `bytes` bytes: with its place in a
  /// piece, its length, and a type that is one part in each piece.
  template <typename Move> Status inParts(int64_t bytes, const Move &move) {
    for (int64_t at = 0; at < bytes; at += part_) {
      const int count = int(std::min(part_, bytes - at));
      MPI_Datatype whole = MPI_DATATYPE_NULL, strided = MPI_DATATYPE_NULL;
      Status done = check("MPI_Type_contiguous",
                          MPI_Type_contiguous(count, MPI_BYTE, &whole));
      if (done)
        done =
            check("MPI_Type_create_resized",
                  MPI_Type_create_resized(whole, 0, MPI_Aint(bytes), &strided));
      if (done)
        done = check("MPI_Type_commit", MPI_Type_commit(&strided));
      if (done)
        done = move(at, count, strided);
      if (strided != MPI_DATATYPE_NULL)
        (void)MPI_Type_free(&strided);
      if (whole != MPI_DATATYPE_NULL)
        (void)MPI_Type_free(&whole);
      if (!done)
        return done;
    }
    return Status::ok();
  }

  const int rank_, ranks_; // To the launcher.
  const int64_t part_;
  Groups<MPI_Comm> groups_;
  bool isOpen_ = false;
};

} // namespace

} // namespace tmc

extern "C" int tmc_network_version() { return tmc::kNetworkVersion; }

extern "C" void tmc_network_open(int version, const tmc::NetworkStart *start,
                                 tmc::Network **network, tmc::Status *status) {
  tmc::openLibrary<tmc::MpiNetwork>("mpi", version, *start, network, *status);
}
