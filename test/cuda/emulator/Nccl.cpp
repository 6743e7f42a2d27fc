//===- Nccl.cpp - a stand-in for NCCL -------------------------------------===//
//
// Ranks are processes, and their bytes go through files in a folder of shared
// memory, which the unique id names. A call, or a group of calls, is two pieces
// of work on its stream:
//
//     post   reads what it sends, and publishes it with the words of the call
//     take   runs when all that it needs was published, and what it sent was
//            taken; compares the words of both sides, and writes what it
//            receives
//
// Other streams run between the two, and what they touch there is a race
// (Works.h). What a call will write holds garbage meanwhile.
//
//     g<n>-<rank>        rank's n-th collective call of the communicator
//     m<from>-<to>-<n>   the n-th message between two ranks; its receiver
//                        removes it, for which its sender waits
//     at-<rank>          the call in which a rank waits for others
//     rank-<rank>        its process
//
// The user guide's rules are faults of kind Library: all ranks make the same
// collective calls in one order, with one count, type and root; both sides of a
// message have one count and type; in place means in its own place. Ranks that
// all wait for each other are a Deadlock, with the words of all of them. Calls
// end with ncclRemoteError when a rank's process is gone.
//
//===----------------------------------------------------------------------===//

#include <nccl.h>

#include "test/cuda/emulator/Counts.h"
#include "test/cuda/emulator/Queued.h"
#include "test/cuda/emulator/Report.h"
#include "test/cuda/emulator/Shadow.h"
#include "test/cuda/emulator/Streams.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

using namespace tmc::emulator;

struct ncclComm {
  std::string folder;
  int rank = 0, ranks = 0;
  uint64_t collectives = 0;                         // called so far
  std::map<std::pair<int, int>, uint64_t> messages; // by sender and receiver
  std::vector<pid_t> processes;
  int queued = 0;                        // calls that haven't ended
  std::vector<std::string> older, newer; // of the last two collective groups
  ncclResult_t error = ncclSuccess;
  bool isAborted = false;
};

namespace {

constexpr int kVersion = 22809;
constexpr unsigned kMagic = 0x6e63636c;
/// As long all ranks must wait, and say the same, to be called a deadlock.
constexpr double kDeadlockSeconds = 3;
constexpr double kJoinSeconds = 60;
constexpr unsigned char kGarbage = 0xa5;

double now() {
  return std::chrono::duration<double>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

std::optional<std::string> contentOf(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  if (!file)
    return std::nullopt;
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}
/// The file appears whole.
void publish(const std::string &path, const std::string &text) {
  const std::string own = path + ".tmp" + std::to_string(getpid());
  std::ofstream(own, std::ios::binary) << text;
  std::filesystem::rename(own, path);
}
bool exists(const std::string &path) { return access(path.c_str(), F_OK) == 0; }

const char *nameOf(ncclDataType_t type) {
  switch (type) {
  case ncclInt8:
    return "ncclInt8";
  case ncclInt32:
    return "ncclInt32";
  case ncclFloat32:
    return "ncclFloat32";
  case ncclBfloat16:
    return "ncclBfloat16";
  }
  return "no type";
}
size_t sizeOf(ncclDataType_t type) {
  return type == ncclInt8 ? 1 : type == ncclBfloat16 ? 2 : 4;
}

enum class Kind { AllGather, Broadcast, Send, Recv };

struct Call {
  Kind kind;
  const char *from; // null: it sends nothing
  char *to;
  size_t count;
  ncclDataType_t type;
  int peer; // or the root
  ncclComm *comm;
  cudaStream_t stream;
  std::string file = {}; // of its own; in Recv its peer's
  uint64_t number = 0;
  bool isTaken = false; // a message that has come

  size_t bytes() const { return count * sizeOf(type); }
  bool isCollective() const {
    return kind == Kind::AllGather || kind == Kind::Broadcast;
  }
  /// Both sides of a collective call say the same, or both of a message.
  std::string words() const {
    const char *name = kind == Kind::AllGather   ? "ncclAllGather"
                       : kind == Kind::Broadcast ? "ncclBroadcast"
                                                 : "a message";
    return std::string(name) + " of " + std::to_string(count) + " " +
           nameOf(type) +
           (kind == Kind::Broadcast ? " from root " + std::to_string(peer)
                                    : "");
  }
  /// For people, as one side calls it.
  std::string text() const {
    if (isCollective())
      return "collective call " + std::to_string(number) + ", " + words();
    return (kind == Kind::Send ? "ncclSend to rank " : "ncclRecv from rank ") +
           std::to_string(peer) + ", message " + std::to_string(number) +
           " of " + std::to_string(count) + " " + nameOf(type);
  }
};

/// Calls of one communicator on one stream, which are one piece of its work.
struct Group {
  ncclComm *comm;
  std::vector<Call> calls;
};

int depth = 0;
std::vector<Call> open; // between ncclGroupStart and ncclGroupEnd
std::vector<std::shared_ptr<Group>> waiting;
std::vector<ncclComm *> &comms() {
  static auto *all = new std::vector<ncclComm *>;
  return *all;
}
bool isComm(ncclComm *comm) {
  return std::find(comms().begin(), comms().end(), comm) != comms().end();
}

std::string fileOf(const ncclComm &comm, uint64_t number, int rank) {
  return comm.folder + "/g" + std::to_string(number) + "-" +
         std::to_string(rank);
}
std::string placeOf(const ncclComm &comm, int rank) {
  return comm.folder + "/at-" + std::to_string(rank);
}

ncclResult_t refuse(const std::string &text, ncclResult_t result) {
  report(FaultKind::Library, 0, text);
  endIfFaulty();
  return result;
}

/// "rank 0 (of 2)"
std::string nameOf(const ncclComm &comm) {
  return "rank " + std::to_string(comm.rank) + " (of " +
         std::to_string(comm.ranks) + ")";
}

//===----------------------------------------------------------------------===//
// Work
//===----------------------------------------------------------------------===//

/// All others have taken the calls of the group before the last: this rank took
/// those of the last one, which they posted behind it.
void forgetOldest(const Group &group) {
  std::vector<std::string> files;
  for (const Call &call : group.calls)
    if (call.isCollective())
      files.push_back(call.file);
  if (files.empty())
    return;
  ncclComm &comm = *group.comm;
  for (const std::string &file : comm.older)
    unlink(file.c_str());
  comm.older = std::exchange(comm.newer, std::move(files));
}

void post(Group &group) {
  for (Call &call : group.calls) {
    const ncclComm &comm = *call.comm;
    const bool sends = call.kind == Kind::Send ||
                       call.kind == Kind::AllGather ||
                       (call.kind == Kind::Broadcast && call.peer == comm.rank);
    std::string text = call.words() + "\n";
    if (sends) {
      if (!touchAll(call.from, call.bytes(), Touch::Read, "NCCL"))
        return;
      text.append(call.from, call.bytes());
    }
    if (call.kind != Kind::Recv)
      publish(call.file, text);
  }
  forgetOldest(group);
  for (const Call &call : group.calls) {
    if (!call.to)
      continue;
    const size_t all =
        call.bytes() *
        (call.kind == Kind::AllGather ? size_t(call.comm->ranks) : 1);
    if (!touchAll(call.to, all, Touch::Write, "NCCL"))
      return;
    for (size_t i = 0; i < all; ++i) {
      const bool isOwn = call.from && call.to + i >= call.from &&
                         call.to + i < call.from + call.bytes();
      if (!isOwn)
        call.to[i] = char(kGarbage);
    }
  }
}

/// The bytes that `file` holds for `call`; null, and a fault, if its words are
/// others.
std::optional<std::string> receive(const Call &call, const std::string &file,
                                   int from) {
  const std::string text = contentOf(file).value_or("\n");
  const size_t end = text.find('\n');
  const std::string words = text.substr(0, end);
  if (words == call.words())
    return text.substr(end + 1);
  const ncclComm &comm = *call.comm;
  report(FaultKind::Library, 0,
         "NCCL: " + nameOf(comm) + " is in " + call.text() + ", where rank " +
             std::to_string(from) + " makes " + words);
  return std::nullopt;
}

void takeMessage(const Call &call) {
  if (const auto bytes = receive(call, call.file, call.peer))
    std::memcpy(call.to, bytes->data(), bytes->size());
  unlink(call.file.c_str()); // Its sender goes on.
}

void takePieces(const Call &call) {
  const ncclComm &comm = *call.comm;
  for (int r = 0; r < comm.ranks; ++r) {
    const auto bytes = receive(call, fileOf(comm, call.number, r), r);
    if (!bytes)
      return;
    std::memcpy(
        call.to + (call.kind == Kind::AllGather ? size_t(r) * call.bytes() : 0),
        bytes->data(), bytes->size());
  }
}

/// Whether a call can end. A message is taken when it is there, also if the
/// rest of its group isn't: the other side may send first.
bool isReady(Call &call) {
  const ncclComm &comm = *call.comm;
  if (call.kind == Kind::Recv) {
    if (!call.isTaken && exists(call.file)) {
      call.isTaken = true;
      takeMessage(call);
    }
    return call.isTaken;
  }
  if (call.kind == Kind::Send)
    return !exists(call.file);
  for (int r = 0; r < comm.ranks; ++r)
    if (!exists(fileOf(comm, call.number, r)))
      return false;
  return true;
}

bool hasDied(ncclComm &comm) {
  for (const pid_t process : comm.processes)
    if (kill(process, 0) && errno == ESRCH)
      return true;
  return false;
}

bool isReady(const std::shared_ptr<Group> &group) {
  ncclComm &comm = *group->comm;
  bool ready = true;
  for (Call &call : group->calls)
    ready = (isReady(call) || comm.isAborted) && ready;
  const auto found = std::find(waiting.begin(), waiting.end(), group);
  if (ready && found != waiting.end()) {
    waiting.erase(found);
    unlink(placeOf(comm, comm.rank).c_str());
  } else if (!ready && found == waiting.end()) {
    waiting.push_back(group);
  }
  return ready;
}

/// Says what this rank waits for, and ends all where everybody waits.
void idle() {
  static std::map<ncclComm *, std::pair<std::string, double>> seen;
  for (const std::shared_ptr<Group> &group : waiting) {
    ncclComm &comm = *group->comm;
    if (hasDied(comm) && comm.error == ncclSuccess)
      comm.error = ncclRemoteError;
    std::string own;
    for (Call &call : group->calls)
      if (!isReady(call) && own.empty())
        own = call.text();
    if (contentOf(placeOf(comm, comm.rank)) != own)
      publish(placeOf(comm, comm.rank), own);
    std::string all;
    bool everybody = true;
    for (int r = 0; r < comm.ranks; ++r) {
      const auto its = contentOf(placeOf(comm, r));
      everybody = everybody && its;
      all += (r ? "; rank " : "rank ") + std::to_string(r) + " in " +
             its.value_or("?");
    }
    auto &[text, since] = seen[&comm];
    if (!everybody || text != all) {
      text = all;
      since = now();
    } else if (now() - since > kDeadlockSeconds) {
      report(FaultKind::Deadlock, 0, "NCCL: all ranks wait: " + all);
      since = now();
      comm.isAborted = true; // A test goes on.
      endIfFaulty();
    }
  }
}

//===----------------------------------------------------------------------===//
// Calls
//===----------------------------------------------------------------------===//

void queueGroup(ncclComm *comm, cudaStream_t stream, std::vector<Call> calls) {
  for (Call &call : calls) {
    if (call.isCollective()) {
      call.number = comm->collectives++;
      call.file = fileOf(*comm, call.number, comm->rank);
    } else {
      const bool sends = call.kind == Kind::Send;
      const std::pair<int, int> ends = {sends ? comm->rank : call.peer,
                                        sends ? call.peer : comm->rank};
      call.number = comm->messages[ends]++;
      call.file = comm->folder + "/m" + std::to_string(ends.first) + "-" +
                  std::to_string(ends.second) + "-" +
                  std::to_string(call.number);
    }
  }
  auto group = std::make_shared<Group>(Group{comm, std::move(calls)});
  ++comm->queued;
  ++counts().kernels;
  queueWork(stream, "a call of NCCL", {}, [group] {
    if (!group->comm->isAborted)
      post(*group);
  });
  queueWhenReady(
      stream, "a call of NCCL", {},
      [group] {
        --group->comm->queued;
        if (!group->comm->isAborted)
          for (const Call &call : group->calls)
            if (call.isCollective())
              takePieces(call);
      },
      [group] { return isReady(group); }, idle);
}

/// All calls of a group, one piece of work for each communicator and stream.
void queueOpen() {
  std::vector<Call> calls = std::exchange(open, {});
  while (!calls.empty()) {
    std::vector<Call> together, rest;
    for (Call &call : calls)
      (call.comm == calls[0].comm && call.stream == calls[0].stream ? together
                                                                    : rest)
          .push_back(call);
    ncclComm *comm = together[0].comm;
    const cudaStream_t stream = together[0].stream;
    queueGroup(comm, stream, std::move(together));
    calls = std::move(rest);
  }
}

ncclResult_t add(const char *name, Call call) {
  const std::string head = std::string(name) + ": ";
  if (!isComm(call.comm))
    return refuse(head + "the communicator doesn't exist", ncclInvalidArgument);
  ncclComm &comm = *call.comm;
  if (comm.isAborted || comm.error != ncclSuccess)
    return comm.error == ncclSuccess ? ncclInvalidUsage : comm.error;
  if (!isStream(call.stream))
    return refuse(head + "the stream doesn't exist", ncclInvalidArgument);
  if (call.count == 0)
    return ncclSuccess;
  const bool hasPeer = call.kind != Kind::AllGather;
  if (hasPeer && (call.peer < 0 || call.peer >= comm.ranks))
    return refuse(head + "there is no rank " + std::to_string(call.peer) +
                      " of " + std::to_string(comm.ranks),
                  ncclInvalidArgument);
  for (const void *p : {static_cast<const void *>(call.from),
                        static_cast<const void *>(call.to)})
    if (p && !isDevice(reinterpret_cast<uintptr_t>(p)))
      return refuse(head + "a buffer isn't in device memory",
                    ncclInvalidArgument);
  if (call.kind == Kind::AllGather) {
    const char *own = call.to + size_t(comm.rank) * call.bytes();
    const bool overlaps =
        call.from < call.to + size_t(comm.ranks) * call.bytes() &&
        call.from + call.bytes() > call.to;
    if (overlaps && call.from != own)
      return refuse(head + "the buffers overlap, and what is sent isn't at its "
                           "own place of what is received",
                    ncclInvalidUsage);
  }
  open.push_back(call);
  if (depth == 0)
    queueOpen();
  return ncclSuccess;
}

} // namespace

extern "C" {

ncclResult_t ncclGetVersion(int *version) {
  *version = kVersion;
  return ncclSuccess;
}

ncclResult_t ncclGetUniqueId(ncclUniqueId *id) {
  static int count = 0;
  const std::string folder = "/dev/shm/tmc-nccl-" + std::to_string(getpid()) +
                             "-" + std::to_string(count++);
  std::filesystem::remove_all(folder);
  if (mkdir(folder.c_str(), 0700))
    return ncclSystemError;
  std::memset(id->internal, 0, sizeof id->internal);
  std::memcpy(id->internal, folder.c_str(), folder.size());
  return ncclSuccess;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t *made, int ranks,
                                    ncclUniqueId id, int rank,
                                    ncclConfig_t *config) {
  if (config->magic != kMagic)
    return refuse("ncclCommInitRankConfig: the configuration has no initial "
                  "values",
                  ncclInvalidArgument);
  if (rank < 0 || rank >= ranks)
    return refuse("ncclCommInitRankConfig: there is no rank " +
                      std::to_string(rank) + " of " + std::to_string(ranks),
                  ncclInvalidArgument);
  auto comm = std::make_unique<ncclComm>();
  comm->folder = id.internal;
  comm->rank = rank;
  comm->ranks = ranks;
  const std::string own = comm->folder + "/rank-" + std::to_string(rank);
  if (mkdir((own + "-taken").c_str(), 0700))
    return refuse("ncclCommInitRankConfig: another process is rank " +
                      std::to_string(rank),
                  ncclInvalidUsage);
  publish(own, std::to_string(ranks) + " " + std::to_string(getpid()));
  const double until = now() + kJoinSeconds;
  for (int r = 0; r < ranks; ++r) {
    std::optional<std::string> its;
    while (!(its = contentOf(comm->folder + "/rank-" + std::to_string(r)))) {
      if (now() > until)
        return ncclSystemError;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    std::istringstream text(*its);
    int itsRanks = 0;
    pid_t process = 0;
    text >> itsRanks >> process;
    std::pair<int, int> sides[] = {{rank, ranks}, {r, itsRanks}};
    std::sort(std::begin(sides), std::end(sides));
    if (itsRanks != ranks)
      return refuse("ncclCommInitRankConfig: rank " +
                        std::to_string(sides[0].first) + " is one of " +
                        std::to_string(sides[0].second) + ", and rank " +
                        std::to_string(sides[1].first) + " one of " +
                        std::to_string(sides[1].second),
                    ncclInvalidUsage);
    comm->processes.push_back(process);
  }
  comms().push_back(comm.get());
  *made = comm.release();
  return ncclSuccess;
}

ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  if (!isComm(comm))
    return refuse("ncclCommDestroy: the communicator doesn't exist",
                  ncclInvalidArgument);
  if (comm->queued > 0)
    return refuse("ncclCommDestroy: " + std::to_string(comm->queued) +
                      " calls haven't ended",
                  ncclInvalidUsage);
  comms().erase(std::find(comms().begin(), comms().end(), comm));
  // The last one cleans up: others may still read.
  publish(comm->folder + "/left-" + std::to_string(comm->rank), "");
  bool all = true;
  for (int r = 0; r < comm->ranks; ++r)
    all = all && exists(comm->folder + "/left-" + std::to_string(r));
  std::error_code ignored; // Another rank may do the same.
  if (all)
    std::filesystem::remove_all(comm->folder, ignored);
  delete comm;
  return ncclSuccess;
}

ncclResult_t ncclCommAbort(ncclComm_t comm) {
  if (!isComm(comm))
    return refuse("ncclCommAbort: the communicator doesn't exist",
                  ncclInvalidArgument);
  comm->isAborted = true; // Queued calls still name it.
  comms().erase(std::find(comms().begin(), comms().end(), comm));
  return ncclSuccess;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *error) {
  if (!isComm(comm))
    return refuse("ncclCommGetAsyncError: the communicator doesn't exist",
                  ncclInvalidArgument);
  *error = comm->error;
  return ncclSuccess;
}

const char *ncclGetErrorString(ncclResult_t result) {
  return result == ncclSuccess       ? "no error"
         : result == ncclRemoteError ? "remote process exited"
                                     : "an emulated failure";
}
const char *ncclGetLastError(ncclComm_t) { return ""; }

ncclResult_t ncclAllGather(const void *from, void *to, size_t count,
                           ncclDataType_t type, ncclComm_t comm,
                           cudaStream_t stream) {
  return add("ncclAllGather",
             {Kind::AllGather, static_cast<const char *>(from),
              static_cast<char *>(to), count, type, 0, comm, stream});
}
ncclResult_t ncclBroadcast(const void *from, void *to, size_t count,
                           ncclDataType_t type, int root, ncclComm_t comm,
                           cudaStream_t stream) {
  return add("ncclBroadcast",
             {Kind::Broadcast,
              isComm(comm) && comm->rank == root
                  ? static_cast<const char *>(from)
                  : nullptr,
              static_cast<char *>(to), count, type, root, comm, stream});
}
ncclResult_t ncclSend(const void *from, size_t count, ncclDataType_t type,
                      int peer, ncclComm_t comm, cudaStream_t stream) {
  return add("ncclSend", {Kind::Send, static_cast<const char *>(from), nullptr,
                          count, type, peer, comm, stream});
}
ncclResult_t ncclRecv(void *to, size_t count, ncclDataType_t type, int peer,
                      ncclComm_t comm, cudaStream_t stream) {
  return add("ncclRecv", {Kind::Recv, nullptr, static_cast<char *>(to), count,
                          type, peer, comm, stream});
}

ncclResult_t ncclGroupStart() {
  ++depth;
  return ncclSuccess;
}
ncclResult_t ncclGroupEnd() {
  if (depth == 0)
    return refuse("ncclGroupEnd: no group has begun", ncclInvalidUsage);
  if (--depth == 0)
    queueOpen();
  return ncclSuccess;
}
}
