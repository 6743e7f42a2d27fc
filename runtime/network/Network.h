//===- Network.h - bytes between ranks --------------------------*- C++ -*-===//
//
// A run on several devices is a *world* of processes, the *ranks*. They run one
// program each, and this interface moves the bytes between them. A library
// (MPI, Gloo) moves bytes and never adds: the step adds the pieces by its own
// kernels, in the order of the ranks. So all libraries give the same bits.
//
// A *group* is a list of ranks, which call together. Ranks count from 0 within
// a group. A group of 3 with pieces of `bytes` bytes, by rank:
//
//     gather      from        to            exchange   from        to
//     rank 0      A           A B C         rank 0     a0 a1 a2    a0 b0 c0
//     rank 1      B           A B C         rank 1     b0 b1 b2    a1 b1 c1
//     rank 2      C           A B C         rank 2     c0 c1 c2    a2 b2 c2
//
// An all-reduce is an exchange, a sum of the pieces and a gather. Ranks form a
// mesh of dp x tp x pp (Mesh.h), and a group is mostly an axis of it.
//
//     std::unique_ptr<Network> network;
//     openNetwork("mpi", folder, start, network);       // Library.h
//     int dp = 0;
//     network->makeGroup(mesh.group(Axis::Data, rank), dp);
//     network->exchange(dp, pieces, gradient, bytes);   // one engine's thread
//
// Rules for the caller:
//
//   - All members of a group make the group, and call on it, in one order.
//   - One thread at a time calls a network: the thread of an engine. The thread
//     that opened it closes it.
//   - A call blocks until the caller may use `to` and overwrite `from`. A send
//     may wait for its receive: two ranks that first send to each other may
//     wait forever.
//   - Bytes are those of the host, except in calls of a CardNetwork.
//   - No call has a time limit. Control.h finds ranks that are gone or stand
//     still, and ends the process.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_NETWORK_NETWORK_H
#define TMC_RUNTIME_NETWORK_NETWORK_H

#include "runtime/kernels/Status.h"

#include <cstdint>
#include <string>
#include <vector>

namespace tmc {

/// A `total` that leaves out no byte of any piece.
constexpr int64_t kAllPieces = -1;

/// The calls of a library that moves bytes of cards. They are queued on
/// `stream`, a cudaStream_t of the card that the library was opened on, and
/// return; on the bytes they are those of Network. All ranks of a group queue
/// their calls in one order.
class CardNetwork {
public:
  virtual ~CardNetwork() = default;
  virtual Status gather(int group, void *to, const void *from, int64_t bytes,
                        int64_t total, void *stream) = 0;
  virtual Status exchange(int group, void *to, const void *from, int64_t bytes,
                          int64_t total, void *stream) = 0;
  virtual Status send(int group, int rank, const void *from, int64_t bytes,
                      void *stream) = 0;
  virtual Status receive(int group, int rank, void *to, int64_t bytes,
                         void *stream) = 0;
  /// The error of a queued call, as far as the library has noticed one. All
  /// queued calls then end, and later ones fail.
  virtual Status fault() = 0;
};

class Network {
public:
  virtual ~Network() = default;

  /// "mpi (Open MPI v4.1.4)": for messages.
  virtual std::string description() const = 0;

  /// Makes the group of the world's ranks `members`, which are different and
  /// include this one. `group` gets its number for the calls below; equal lists
  /// get one number. Group 0 is the world. Code::Defect for a wrong list.
  virtual Status makeGroup(const std::vector<int> &members, int &group) = 0;

  /// The `bytes` bytes of each rank r of the group go to `to` + r * bytes on
  /// all ranks. `from` may be this rank's own place in `to`; otherwise the two
  /// don't overlap. All ranks give the same `bytes` and `total`: `to` has
  /// `total` bytes, and what would lie beyond them doesn't travel.
  virtual Status gather(int group, void *to, const void *from, int64_t bytes,
                        int64_t total = kAllPieces) = 0;

  /// Piece r of `from` goes to rank r of the group, and piece r of `to` comes
  /// from it. A piece has `bytes` bytes, which are the same on all ranks. `to`
  /// and `from` don't overlap. `from` has `total` bytes: the last pieces may be
  /// shorter, or empty. Those of `to` lie `bytes` apart in any case.
  virtual Status exchange(int group, void *to, const void *from, int64_t bytes,
                          int64_t total = kAllPieces) = 0;

  /// To and from rank `rank` of the group, another one than this. Both sides
  /// give the same `bytes`. Messages between two ranks arrive in their order.
  virtual Status send(int group, int rank, const void *from, int64_t bytes) = 0;
  virtual Status receive(int group, int rank, void *to, int64_t bytes) = 0;

  /// Returns when all ranks of the group have called it.
  virtual Status barrier(int group) = 0;

  /// The same for the bytes of a card; null: the library doesn't move them.
  virtual CardNetwork *card() { return nullptr; }
};

/// The group of all ranks.
constexpr int kWorld = 0;

/// A table of named bytes that all ranks of the world share (Control.h). A
/// library that has no launcher of its own finds its peers by it.
class Rendezvous {
public:
  virtual ~Rendezvous() = default;
  /// A name is put once.
  virtual Status put(const std::string &name, const std::string &bytes) = 0;
  /// Waits until a rank has put the name.
  virtual Status get(const std::string &name, std::string &bytes) = 0;
};

/// The facts that a library starts from.
struct NetworkStart {
  int rank = 0, ranks = 1;
  int localRank = 0;                // among the ranks of this host
  Rendezvous *rendezvous = nullptr; // outlives the network
  /// The own address of this host, as its peers reach it: "10.0.0.3".
  std::string address;
  /// A longer piece or message travels in parts of this length; 0: the
  /// library's own. For tests.
  int64_t mostPartBytes = 0;
};

/// Increases when something in this file changes its meaning.
constexpr int kNetworkVersion = 2;

/// The two functions of a library libtmc-network-NAME.so. `version` is the
/// caller's kNetworkVersion; another one than the library's is refused.
extern "C" {
using NetworkVersionFunction = int();
using NetworkOpenFunction = void(int version, const NetworkStart *start,
                                 Network **network, Status *status);
}
/// "libtmc-network-mpi.so" of "mpi".
inline std::string networkFile(const std::string &name) {
  return "libtmc-network-" + name + ".so";
}

constexpr const char *kNetworkVersionName = "tmc_network_version";
constexpr const char *kNetworkOpenName = "tmc_network_open";

} // namespace tmc

#endif // TMC_RUNTIME_NETWORK_NETWORK_H
