//===- Watch.cpp - which rank is gone or stands still ---------------------===//

#include "runtime/network/Watch.h"

#include <algorithm>
#include <utility>

namespace tmc {

namespace {

std::string secondsText(double seconds) {
  return std::to_string(int64_t(seconds)) + " s";
}

/// " in step 41", " before the first step".
std::string stepText(const Progress &progress) {
  if (progress.step <= 0)
    return " before the first step";
  return (progress.isInStep ? " in step " : " after step ") +
         std::to_string(progress.step);
}

std::string placeText(const Progress &progress) {
  return progress.place.empty() ? "" : ", at '" + progress.place + "'";
}

} // namespace

std::string nameOf(int rank, const Peer &peer) {
  return "rank " + std::to_string(rank) + " (host " + peer.host + ", process " +
         std::to_string(peer.process) + ")";
}

Watch::Watch(std::vector<Peer> peers, double mostSeconds, double now)
    : peers_(std::move(peers)), ranks_(peers_.size()),
      mostSeconds_(mostSeconds) {
  for (State &state : ranks_)
    state.heard = state.changed = now;
}

void Watch::hear(int rank, const Progress &progress, double now) {
  State &state = ranks_[size_t(rank)];
  if (progress.changes != state.progress.changes)
    state.changed = now;
  state.heard = now;
  state.progress = progress;
}

std::string Watch::gone(int rank) const {
  return nameOf(rank, peer(rank)) + " is gone" +
         stepText(ranks_[size_t(rank)].progress);
}

std::string Watch::look(double now, bool judgesAll) const {
  if (mostSeconds_ <= 0)
    return "";
  for (size_t rank = 0; rank < ranks_.size(); ++rank) {
    const State &state = ranks_[rank];
    if (!state.hasLeft && now - state.heard >= mostSeconds_)
      return nameOf(int(rank), peers_[rank]) + " has been silent for " +
             secondsText(now - state.heard) + stepText(state.progress) +
             placeText(state.progress);
  }
  return judgesAll ? standing(now) : "";
}

std::string Watch::standing(double now) const {
  const auto isStill = [&](const State &state) {
    return !state.hasLeft && state.progress.isInStep &&
           now - state.changed >= mostSeconds_;
  };
  const auto isInCall = [](const State &state) {
    return !state.hasLeft && state.progress.isInCall;
  };
  const auto waiting = std::find_if(ranks_.begin(), ranks_.end(), isInCall);
  for (size_t rank = 0; rank < ranks_.size(); ++rank) {
    const State &state = ranks_[rank];
    if (!isStill(state) || isInCall(state))
      continue;
    std::string text = nameOf(int(rank), peers_[rank]) +
                       " has stood still for " +
                       secondsText(now - state.changed) +
                       stepText(state.progress) + placeText(state.progress);
    if (waiting != ranks_.end())
      text += "; rank " + std::to_string(waiting - ranks_.begin()) +
              " waits in '" + waiting->progress.place + "'";
    return text;
  }
  // A rank that isn't in a step, or that goes on, may still come.
  if (!std::all_of(ranks_.begin(), ranks_.end(), [&](const State &state) {
        return isStill(state) && isInCall(state);
      }))
    return "";
  std::string text = "all ranks wait for each other";
  constexpr size_t kMostShown = 4;
  for (size_t rank = 0; rank < std::min(ranks_.size(), kMostShown); ++rank)
    text += (rank ? ", " : ": ") + std::string("rank ") + std::to_string(rank) +
            stepText(ranks_[rank].progress) + " in '" +
            ranks_[rank].progress.place + "'";
  return text;
}

} // namespace tmc
