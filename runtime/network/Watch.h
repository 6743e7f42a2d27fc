//===- Watch.h - which rank is gone or stands still -------------*- C++ -*-===//
//
// Each rank says once a second how far it is: its step, the entry of the step's
// list that it computes, and the call of the network that it is in, if any. The
// lists are static, so these numbers say who waits for whom:
//
//     rank 0   in the call 'gather h.8.attn.w' since 120 s     waits
//     rank 3   at 'h.7.mlp.w' since 120 s, in no call          stands still
//
// This is the judge without sockets and threads: it is given the time.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_NETWORK_WATCH_H
#define TMC_RUNTIME_NETWORK_WATCH_H

#include <cstdint>
#include <string>
#include <vector>

namespace tmc {

struct Progress {
  int64_t step = 0;      // counts from 1; 0: before the first
  int64_t changes = 0;   // of this record so far
  bool isInStep = false; // false: it loads, saves or has ended
  bool isInCall = false; // of the network
  std::string place;     // the name of the entry or the call; "": none
};

/// A process, for messages.
struct Peer {
  std::string host;
  int64_t process = 0;
};

/// "rank 2 (host b, process 311)".
std::string nameOf(int rank, const Peer &peer);

class Watch {
public:
  /// `mostSeconds`: of silence, and of standing still within a step; 0: no
  /// limit.
  Watch(std::vector<Peer> peers, double mostSeconds, double now);

  /// Hears from a rank.
  void hear(int rank, const Progress &progress, double now);
  /// Doesn't watch the rank any more.
  void leave(int rank) { ranks_[size_t(rank)].hasLeft = true; }
  bool hasLeft(int rank) const { return ranks_[size_t(rank)].hasLeft; }

  /// The sentence about a rank whose connection closed.
  std::string gone(int rank) const;
  /// The sentence about a rank that is silent or stands still; "": there is
  /// none. `judgesAll`: false on ranks that hear from one other alone.
  std::string look(double now, bool judgesAll) const;

  const Peer &peer(int rank) const { return peers_[size_t(rank)]; }

private:
  struct State {
    Progress progress;
    double heard = 0, changed = 0;
    bool hasLeft = false;
  };
  std::string standing(double now) const;

  std::vector<Peer> peers_;
  std::vector<State> ranks_;
  double mostSeconds_;
};

} // namespace tmc

#endif // TMC_RUNTIME_NETWORK_WATCH_H
