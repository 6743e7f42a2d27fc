//===- RankTransfers.cpp - a card's bytes to and from other ranks ---------===//

#include "runtime/cuda/RankTransfers.h"

#include "runtime/cuda/Pinned.h"

#include <algorithm>
#include <string>

namespace tmc::cuda {

namespace {

/// Both parts of pinned memory begin at a multiple of it.
constexpr int64_t kPart = 256;
int64_t rounded(int64_t bytes) { return (bytes + kPart - 1) / kPart * kPart; }

} // namespace

void HostCall::run(Stream &stream, In ins, Out outs, void *, bool) {
  const RankPiecesParams &p = params_;
  stream.failure = kind_ == Kind::Exchange
                       ? peers_->exchange(p.axis, result(outs, 0),
                                          operand(ins, 0), p.bytes, p.total)
                       : peers_->gather(p.axis, result(outs, 0),
                                        operand(ins, 0), p.bytes, p.total);
}

RankTransfers::~RankTransfers() {
  if (pinned_)
    unmapPinned(pinned_, pinnedBytes_);
}

Status RankTransfers::find(Axis axis, int64_t ranks) const {
  return checkPeers(peers_, axis, ranks);
}

Status RankTransfers::prepare(const RankPiecesParams &params, HostCall &call) {
  if (Status s = find(params.axis, params.ranks); !s)
    return s;
  call.use(peers_);
  // An exchange sends the whole and receives pieces, a gather sends a piece.
  sentBytes_ = std::max({sentBytes_, params.total, params.bytes});
  receivedBytes_ = std::max(receivedBytes_, params.ranks * params.bytes);
  return Status::ok();
}

Status RankTransfers::start() {
  if (!peers_ || peers_->queues() || receivedBytes_ == 0)
    return Status::ok();
  return mapPinned(SpaceKind::Host, rounded(sentBytes_) + receivedBytes_,
                   pinned_, pinnedBytes_);
}

Status RankTransfers::throughHost(cudaStream_t stream, HostCall &call, void *to,
                                  const void *from, int64_t sent,
                                  int64_t received) {
  auto copy = [&](void *target, const void *source, int64_t bytes) {
    const cudaError_t e = cudaMemcpyAsync(target, source, size_t(bytes),
                                          cudaMemcpyDefault, stream);
    return e == cudaSuccess
               ? Status::ok()
               : Status(Code::World, std::string("a copy for the network: ") +
                                         cudaGetErrorString(e));
  };
  char *arrived = pinned_ + rounded(sentBytes_);
  if (Status s = copy(pinned_, from, sent); !s)
    return s;
  if (Status s = queues_.callFromStream(call, pinned_, arrived); !s)
    return s;
  return copy(to, arrived, received);
}

Status RankTransfers::exchange(cudaStream_t stream,
                               const RankPiecesParams &params, HostCall &call,
                               void *to, const void *from) {
  if (peers_->queues())
    return peers_->queueExchange(params.axis, to, from, params.bytes,
                                 params.total, stream);
  return throughHost(stream, call, to, from, params.total,
                     params.ranks * params.bytes);
}

Status RankTransfers::gather(cudaStream_t stream,
                             const RankPiecesParams &params, HostCall &call,
                             void *to, const void *from) {
  if (peers_->queues())
    return peers_->queueGather(params.axis, to, from, params.bytes,
                               params.total, stream);
  return throughHost(stream, call, to, from,
                     ownBytes(params, place(params.axis)), params.total);
}

} // namespace tmc::cuda
