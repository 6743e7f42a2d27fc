//===- Ranks.h - values of the ranks of a mesh ------------------*- C++ -*-===//
//
// A step for several devices is one program, which each rank of a mesh (Mesh.h)
// runs on its own values. The kernels here move bytes between the ranks of a
// group, and add.
//
// A network library moves bytes and never adds: the bits of its sums depend on
// sizes, topology and version. `SumPieces` adds, in the order of the ranks.
//
// If a transfer fails, the step is void: the stream (on cpu) or the device (on
// cuda) keeps the reason, and later kernels of this kind move nothing.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_KERNELS_RANKS_H
#define TMC_RUNTIME_KERNELS_RANKS_H

#include "runtime/kernels/Kernel.h"
#include "runtime/kernels/Mesh.h"

#include <string>

namespace tmc {

/// The card of a rank, of the `cards` that its process sees: `local` is the
/// rank's number on its host. A launcher that gives each rank one card makes it
/// see no other.
constexpr int cardOf(int local, int cards) {
  return cards > 0 && local > 0 ? local % cards : 0;
}

/// The ranks of a device's groups, as kernels reach them. A call blocks until
/// its bytes are there. All ranks of a group make the same calls, in one order.
/// Bytes are the host's, but for calls that are queued.
class Peers {
public:
  virtual ~Peers() = default;
  /// The number of ranks of an axis.
  virtual int size(Axis axis) const = 0;
  /// This rank's number on an axis.
  virtual int place(Axis axis) const = 0;
  /// This rank comes to an entry of the step's list: it is named if the rank
  /// stands still there.
  virtual void computes(int64_t /*entry*/) {}
  /// The thread of the network comes to an entry.
  virtual void calls(int64_t /*entry*/) {}
  /// Kernels wait for the call of an entry that was queued; -1: for none.
  virtual void waits(int64_t /*entry*/) {}
  /// Kernels have waited for the network.
  virtual void waited(double /*seconds*/) {}
  /// Rank r's `bytes` bytes go to `to` + r * bytes, on all ranks of the group.
  /// Those beyond `to` + total don't.
  virtual Status gather(Axis axis, void *to, const void *from, int64_t bytes,
                        int64_t total) = 0;
  /// Piece r of `from` goes to rank r, and piece r of `to` comes from it.
  /// Pieces lie `bytes` bytes apart. `from` has `total` bytes: pieces that go
  /// beyond them are shorter, or empty.
  virtual Status exchange(Axis axis, void *to, const void *from, int64_t bytes,
                          int64_t total) = 0;
  /// The `bytes` bytes of rank `from` of the group, on all its ranks. Between
  /// steps only.
  virtual Status share(Axis axis, int from, void *data, int64_t bytes) = 0;
  /// This rank's number on its host (cardOf).
  virtual int local() const { return 0; }

  /// True if the library moves bytes of cards (NCCL). Then a card's kernels
  /// queue their calls, and make no others within a step.
  virtual bool queues() const { return false; }
  /// As gather() and exchange(), of a card's bytes. The call is queued on
  /// `stream`, a cudaStream_t, and returns.
  virtual Status queueGather(Axis, void * /*to*/, const void * /*from*/,
                             int64_t /*bytes*/, int64_t /*total*/,
                             void * /*stream*/) {
    return {Code::Defect, "the network queues no calls"};
  }
  virtual Status queueExchange(Axis, void * /*to*/, const void * /*from*/,
                               int64_t /*bytes*/, int64_t /*total*/,
                               void * /*stream*/) {
    return {Code::Defect, "the network queues no calls"};
  }
  /// The error of a queued call, as far as the library has noticed one. Then
  /// all queued calls have ended, and later ones move nothing.
  virtual Status queuedFault() { return Status::ok(); }

  /// The reason for the end of this rank, where another one has the error
  /// `status`. May wait for that rank's own words.
  virtual Status explain(const Status &status) { return status; }
};

/// The parameters of a kernel that cuts a value of `total` bytes in pieces of
/// `bytes` bytes, one for each rank of a group. What a piece has beyond `total`
/// is padding.
struct RankPiecesParams {
  Axis axis;
  int64_t ranks, bytes, total;
  int64_t scratchBytes = 0;

  TMC_FIELDS(axis, ranks, bytes, total)
};

/// The bytes of piece `r` that aren't padding.
constexpr int64_t ownBytes(const RankPiecesParams &params, int64_t r) {
  const int64_t left = params.total - r * params.bytes;
  return left < 0 ? 0 : left < params.bytes ? left : params.bytes;
}

/// Code::Usage if `peers`, which may be null, aren't `ranks` ranks on `axis`.
inline Status checkPeers(const Peers *peers, Axis axis, int64_t ranks) {
  const std::string wanted = "the step is for " + std::to_string(ranks) +
                             " ranks along " + nameOf(axis);
  if (!peers)
    return {Code::Usage, wanted + ", and runs without a network: its trainer "
                                  "has one, and a program gives "
                                  "tmc_options.peers"};
  if (peers->size(axis) != ranks)
    return {Code::Usage,
            wanted + ", and runs on " + std::to_string(peers->size(axis))};
  return Status::ok();
}

/// ins: x, `total` bytes. outs: y, `ranks` pieces: piece r is that piece of
/// rank r's x that has the number of this rank, padded with zeros.
class ExchangeRanks : public Kernel {
public:
  using Params = RankPiecesParams;
  static constexpr bool takes(const Params &, Backend) { return true; }
  static int64_t scratchCap(const Params &, Backend) { return 0; }
  TMC_KERNEL(ExchangeRanks)
};

/// ins: x, a piece. outs: y, `total` bytes: piece r is rank r's x, without its
/// padding.
class GatherRanks : public Kernel {
public:
  using Params = RankPiecesParams;
  static constexpr bool takes(const Params &, Backend) { return true; }
  static int64_t scratchCap(const Params &, Backend) { return 0; }
  TMC_KERNEL(GatherRanks)
};

/// ins: x, `total` bytes. outs: y, the piece of x that has the number of this
/// rank, padded with zeros. Nothing travels.
class ShardOf : public Kernel {
public:
  using Params = RankPiecesParams;
  static constexpr bool takes(const Params &, Backend) { return true; }
  static int64_t scratchCap(const Params &, Backend) { return 0; }
  TMC_KERNEL(ShardOf)
};

/// y = ((x[0] + x[1]) + x[2]) + ..., in f32 for narrower floats, rounded once.
///
/// ins: x [pieces, count]. outs: y [count].
class SumPieces : public Kernel {
public:
  struct Params {
    DType type;
    int64_t pieces, count;
    int64_t scratchBytes = 0;

    TMC_FIELDS(type, pieces, count)
  };
  static constexpr bool takes(const Params &p, Backend) {
    return p.type == DType::F32 || p.type == DType::BF16 ||
           p.type == DType::F16 || p.type == DType::I32 || p.type == DType::I64;
  }
  static int64_t scratchCap(const Params &, Backend) { return 0; }
  TMC_KERNEL(SumPieces)
};

} // namespace tmc

#endif // TMC_RUNTIME_KERNELS_RANKS_H
