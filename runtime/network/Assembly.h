//===- Assembly.h - the ranks come together ---------------------*- C++ -*-===//
//
// Rank 0 listens, and the others connect and say who they are and what they
// run. When all have come, rank 0 compares, and lets all start or none:
//
//     rank 1 -> rank 0   Hello    rank, ranks, process, host, facts
//     rank 0 -> rank 1   Welcome  host and process of each rank
//                        Verdict  the reason why no rank starts
//                        Refused  the reason why this process can't take part
//
// A stranger that connects is sent away, and the ranks are still waited for.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_NETWORK_ASSEMBLY_H
#define TMC_RUNTIME_NETWORK_ASSEMBLY_H

#include "runtime/kernels/Status.h"
#include "runtime/network/Frame.h"
#include "runtime/network/Place.h"
#include "runtime/network/Socket.h"
#include "runtime/network/Watch.h"

#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace tmc {

/// Something that must be the same on all ranks: {"seed", "7"}. Values are at
/// most 256 bytes: of long ones give a hash.
using SharedFact = std::pair<std::string, std::string>;

struct AssemblySettings {
  Place place;
  /// In one order on all ranks: fingerprint of the step, mesh, data, seed.
  std::vector<SharedFact> facts;
  double startSeconds = 60; // until all ranks have come
  /// Gives rank 0's addresses and port to the other ranks, if place.host is
  /// unknown.
  std::function<Status(std::vector<std::string> &hosts, int &port)>
      shareAddress;
};

struct Connection {
  Socket socket;
  FrameBuffer buffer{kMostHelloBytes};
};

struct Assembly {
  /// Rank 0: to each rank, and none to itself. Others: to rank 0 alone.
  std::vector<Connection> connections;
  std::vector<Peer> peers; // by rank
  /// This host's address, as the other ranks reach it; "": there is one rank.
  std::string address;
};

/// Connects the ranks. Code::World if a rank doesn't come, Code::Usage if the
/// facts differ; all ranks that came get the same sentence.
Status assemble(const AssemblySettings &settings, Assembly &assembly);

/// The bytes of a verdict.
std::string verdictFrame(const Status &status);
/// Reads a verdict; Code::World if it is malformed.
Status readVerdict(const std::string &body);

/// Time for one frame to go out to a peer that doesn't read.
constexpr double kSendSeconds = 5;

/// Ends the sending side and waits until the peers have closed theirs, so that
/// the last frames arrive. Connections that were closed at once would lose
/// them.
void linger(std::vector<Connection> &connections, double seconds);

} // namespace tmc

#endif // TMC_RUNTIME_NETWORK_ASSEMBLY_H
