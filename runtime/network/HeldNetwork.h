//===- HeldNetwork.h - a network held to a rate -----------------*- C++ -*-===//
//
// For tests of overlap and of predicted times: a machine's loopback is faster
// than any network. A call takes at least the time that its bytes would take.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_NETWORK_HELDNETWORK_H
#define TMC_RUNTIME_NETWORK_HELDNETWORK_H

#include "runtime/network/Network.h"

#include <memory>

namespace tmc {

/// The network `inner` of a world of `ranks` ranks. A call on n ranks with
/// pieces of `bytes` bytes takes at least (n - 1) * bytes / bytesPerSecond
/// seconds, as the planner predicts it, and a message bytes / bytesPerSecond.
/// One thread makes the calls.
std::unique_ptr<Network> holdNetwork(std::unique_ptr<Network> inner, int ranks,
                                     double bytesPerSecond);

} // namespace tmc

#endif // TMC_RUNTIME_NETWORK_HELDNETWORK_H
