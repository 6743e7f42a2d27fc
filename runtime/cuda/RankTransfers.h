//===- RankTransfers.h - a card's bytes to and from other ranks -*- C++ -*-===//
//
// A kernel of the network runs on the network's stream (CudaQueues.h). There
// are two ways from one card to another:
//
//     NCCL        the library queues its own work on the stream
//     MPI, Gloo   card -> pinned memory | thread: the call | pinned -> card
//                 three pieces of work, queued at once. The thread waits for
//                 the stream, and the stream for the thread.
//
// Pinned memory holds one call's bytes at a time, since the stream makes one
// call after the other. So the second way needs no card of its own for each
// rank, but is slower: nothing of a call overlaps with its own copies.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_CUDA_RANKTRANSFERS_H
#define TMC_RUNTIME_CUDA_RANKTRANSFERS_H

#include "runtime/cuda/CudaQueues.h"
#include "runtime/kernels/Ranks.h"

#include <cstddef>
#include <cstdint>

namespace tmc::cuda {

/// A call of a host's library, which the network's thread runs. ins: the bytes
/// to send; outs: room for those that come.
class HostCall final : public Kernel {
public:
  enum class Kind { Exchange, Gather };
  HostCall(Kind kind, const RankPiecesParams &params)
      : kind_(kind), params_(params) {}
  void use(Peers *peers) { peers_ = peers; }
  Status prepare(Device &) override { return Status::ok(); }
  void run(Stream &stream, In ins, Out outs, void *, bool) override;

private:
  const Kind kind_;
  const RankPiecesParams params_;
  Peers *peers_ = nullptr;
};

class RankTransfers {
public:
  RankTransfers(CudaQueues &queues, Peers *peers)
      : queues_(queues), peers_(peers) {}
  ~RankTransfers();
  RankTransfers(const RankTransfers &) = delete;
  RankTransfers &operator=(const RankTransfers &) = delete;

  /// Code::Usage if the device hasn't `ranks` ranks on `axis`.
  Status find(Axis axis, int64_t ranks) const;
  /// The same for a kernel that makes calls.
  Status prepare(const RankPiecesParams &params, HostCall &call);
  /// Call it when all kernels are prepared, before the first call.
  Status start();

  /// This rank's number on an axis.
  int place(Axis axis) const { return peers_->place(axis); }

  /// Queue one call on the network's stream. `from` and `to` are the card's. An
  /// exchange leaves padding as it is, or overwrites it with any bytes.
  Status exchange(cudaStream_t stream, const RankPiecesParams &params,
                  HostCall &call, void *to, const void *from);
  Status gather(cudaStream_t stream, const RankPiecesParams &params,
                HostCall &call, void *to, const void *from);

private:
  /// Copies `sent` bytes to pinned memory, lets the network's thread run
  /// `call`, and copies `received` bytes to the card.
  Status throughHost(cudaStream_t stream, HostCall &call, void *to,
                     const void *from, int64_t sent, int64_t received);

  CudaQueues &queues_;
  Peers *const peers_;
  int64_t sentBytes_ = 0, receivedBytes_ = 0; // of the largest calls
  char *pinned_ = nullptr; // the bytes to send, then those that come
  size_t pinnedBytes_ = 0;
};

} // namespace tmc::cuda

#endif // TMC_RUNTIME_CUDA_RANKTRANSFERS_H
