//===- Groups.h - the list of a network's groups ----------------*- C++ -*-===//
//
// For the libraries: the groups that exist, the checks of a call on one, and
// the function by which a library is opened. All of it is in this header, since
// each library is compiled by itself.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_NETWORK_GROUPS_H
#define TMC_RUNTIME_NETWORK_GROUPS_H

#include "runtime/network/Network.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

namespace tmc {

/// `Handle`: the library's own object of a group.
template <typename Handle> class Groups {
public:
  struct Group {
    std::vector<int> members; // ranks of the world
    int rank = 0;             // of this process in it
    Handle handle;

    int ranks() const { return int(members.size()); }
    bool isEven(int64_t bytes, int64_t total) const {
      return total == bytes * ranks();
    }
  };

  /// The length of piece `r`, of `bytes` bytes at most, of `total`.
  static int64_t lengthOf(int64_t r, int64_t bytes, int64_t total) {
    return std::clamp<int64_t>(total - r * bytes, 0, bytes);
  }

  explicit Groups(int rank, int ranks) : rank_(rank), ranks_(ranks) {}

  /// The number of an equal group; -1: there is none.
  int find(const std::vector<int> &members) const {
    for (size_t i = 0; i < groups_.size(); ++i)
      if (groups_[i].members == members)
        return int(i);
    return -1;
  }

  /// Code::Defect if `members` aren't different ranks of the world, or this one
  /// isn't among them.
  Status check(const std::vector<int> &members) const {
    std::vector<int> sorted = members;
    std::sort(sorted.begin(), sorted.end());
    const bool isSet =
        std::adjacent_find(sorted.begin(), sorted.end()) == sorted.end();
    if (isSet && !sorted.empty() && sorted.front() >= 0 &&
        sorted.back() < ranks_ &&
        std::binary_search(sorted.begin(), sorted.end(), rank_))
      return Status::ok();
    std::string text;
    for (const int each : members)
      text += (text.empty() ? "" : ", ") + std::to_string(each);
    return {Code::Defect, "{" + text + "} is no group of rank " +
                              std::to_string(rank_) + " of " +
                              std::to_string(ranks_)};
  }

  int add(const std::vector<int> &members, Handle handle) {
    const auto own = std::find(members.begin(), members.end(), rank_);
    groups_.push_back({members, int(own - members.begin()), std::move(handle)});
    return int(groups_.size()) - 1;
  }

  /// Code::Defect if there is no group of this number, or no such length.
  /// kAllPieces becomes the number.
  Status find(int number, int64_t bytes, int64_t &total, Group *&group) {
    if (Status s = check(number, bytes); !s)
      return s;
    group = &groups_[size_t(number)];
    const int64_t most = bytes * group->ranks();
    if (total == kAllPieces)
      total = most;
    if (total >= 0 && total <= most)
      return Status::ok();
    return {Code::Defect, std::to_string(total) + " bytes aren't " +
                              std::to_string(group->ranks()) + " pieces of " +
                              std::to_string(bytes)};
  }

  /// The same of bytes of the host. `group` is null where there is nothing to
  /// do: no bytes, or this rank alone, and then its own bytes are in `to`.
  Status prepare(int number, void *to, const void *from, int64_t bytes,
                 int64_t &total, Group *&group) {
    Group *named = nullptr;
    group = nullptr;
    if (Status s = find(number, bytes, total, named); !s || total == 0)
      return s;
    if (named->ranks() > 1)
      group = named;
    else if (to != from)
      std::memcpy(to, from, size_t(total));
    return Status::ok();
  }

  /// The same of a message to or from the group's rank `peer`.
  Status prepareMessage(int number, int peer, int64_t bytes, Group *&group) {
    group = nullptr;
    if (Status s = check(number, bytes); !s)
      return s;
    Group &named = groups_[size_t(number)];
    if (peer < 0 || peer >= named.ranks() || peer == named.rank)
      return {Code::Defect, "rank " + std::to_string(peer) + " of a group of " +
                                std::to_string(named.ranks()) +
                                " is no peer of rank " +
                                std::to_string(named.rank)};
    group = bytes > 0 ? &named : nullptr;
    return Status::ok();
  }

  std::vector<Group> &all() { return groups_; }

private:
  Status check(int number, int64_t bytes) const {
    if (number < 0 || number >= int(groups_.size()))
      return {Code::Defect,
              "there is no group " + std::to_string(number) + " of ranks"};
    int64_t whole = 0;
    if (bytes < 0 ||
        __builtin_mul_overflow(bytes, int64_t(groups_[size_t(number)].ranks()),
                               &whole))
      return {Code::Defect, std::to_string(bytes) + " is no length of a piece"};
    return Status::ok();
  }

  const int rank_, ranks_;
  std::vector<Group> groups_;
};

/// The function tmc_network_open of the library `name`, whose network is a
/// `Library`.
template <typename Library>
void openLibrary(const char *name, int version, const NetworkStart &start,
                 Network **network, Status &status) {
  if (version != kNetworkVersion) {
    status = {Code::World,
              std::string(name) + ": another version of the network"};
    return;
  }
  auto made = std::make_unique<Library>(start);
  status = made->open();
  if (status)
    *network = made.release();
}

} // namespace tmc

#endif // TMC_RUNTIME_NETWORK_GROUPS_H
