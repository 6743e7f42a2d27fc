//===- Rank.cpp - one rank of a test's world ------------------------------===//
//
//   tmc-network-rank SCENARIO LIBRARY FOLDER [SECONDS]
//
//     calls     all calls at many sizes, on the world and on the axes of a
//     mesh;
//               prints a hash of all bytes that came
//     parts     the same, with transfers in parts of odd length
//     steps     steps without an end, each with a gather; prints its process
//     stands    the same, but the last rank stands still in step 3
//     waits     each rank waits for a message that no rank sends
//     differs   each rank has its own seed
//     fails     the last rank ends with an error of its own
//     leaves    the last rank ends in the middle, without a word
//
// SECONDS: the limit of silence. TMC_PART_BYTES: the longest part of a
// transfer.
//
//===----------------------------------------------------------------------===//

#include "runtime/kernels/Mesh.h"
#include "runtime/kernels/Names.h"
#include "runtime/network/World.h"

#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

namespace tmc {
namespace {

uint64_t mix(uint64_t x) {
  x ^= x >> 33;
  x *= 0xff51afd7ed558ccdull;
  x ^= x >> 33;
  x *= 0xc4ceb9fe1a85ec53ull;
  return x ^ x >> 33;
}

using Bytes = std::vector<unsigned char>;

/// The bytes that world rank `from` has for world rank `to`, the same on all
/// ranks.
void fill(unsigned char *at, int64_t bytes, int from, int to, int64_t round) {
  uint64_t state =
      mix(uint64_t(round) * 1000003 + uint64_t(from) * 1009 + uint64_t(to) + 1);
  for (int64_t i = 0; i < bytes; ++i) {
    if (i % 8 == 0)
      state = mix(state + 1);
    at[i] = static_cast<unsigned char>(state >> (i % 8 * 8));
  }
}

/// Runs all calls and compares what comes with what must come.
class Calls {
public:
  Calls(Network &network, int rank, int ranks)
      : network_(network), rank_(rank), ranks_(ranks) {}

  Status run() {
    std::vector<std::vector<int>> lists = {all()};
    if (ranks_ == 4) {
      const Mesh mesh{2, 2, 1};
      lists.push_back(mesh.group(Axis::Tensor, rank_));   // {0, 1} and {2, 3}
      lists.push_back(mesh.group(Axis::Data, rank_));     // {0, 2} and {1, 3}
      lists.push_back(mesh.group(Axis::Pipeline, rank_)); // itself alone
    }
    std::vector<int> numbers;
    for (const std::vector<int> &list : lists) {
      int number = -1, again = -1;
      if (Status s = network_.makeGroup(list, number); !s)
        return s;
      if (Status s = network_.makeGroup(list, again); !s)
        return s;
      if (number != again)
        return wrong("an equal group gets another number");
      numbers.push_back(number);
    }
    if (numbers[0] != kWorld)
      return wrong("the world isn't group 0");
    int none = 0;
    if (network_.makeGroup({rank_, rank_}, none) ||
        network_.makeGroup({rank_, ranks_}, none) ||
        network_.gather(99, nullptr, nullptr, 1) ||
        network_.gather(kWorld, nullptr, nullptr, -1) ||
        network_.send(kWorld, rank_, nullptr, 1))
      return wrong("a wrong call succeeds");
    constexpr int64_t kSizes[] = {0, 1, 3, 4097, 65537};
    for (size_t g = 0; g < lists.size(); ++g)
      for (const int64_t bytes : kSizes)
        if (Status s = round(lists[g], numbers[g], bytes); !s)
          return s;
    // On the world of 2, and on the rows of 4.
    const size_t g = lists.size() > 1;
    if (Status s = round(lists[g], numbers[g], (16 << 20) + 13); !s)
      return s;
    for (uint64_t i = 0; i < 200; ++i) {
      const size_t g = mix(i) % lists.size();
      const int64_t bytes = int64_t(mix(i + 1000) % (i % 20 ? 9000 : 300000));
      if (Status s = round(lists[g], numbers[g], bytes); !s)
        return s;
    }
    return Status::ok();
  }

  uint64_t hash() const { return hash_; }

private:
  std::vector<int> all() const {
    std::vector<int> list;
    for (int i = 0; i < ranks_; ++i)
      list.push_back(i);
    return list;
  }

  Status wrong(const std::string &what) const {
    return {Code::Defect, "rank " + std::to_string(rank_) + ": " + what};
  }

  void add(const Bytes &bytes) {
    for (const unsigned char each : bytes)
      hash_ = (hash_ ^ each) * 0x100000001b3ull;
  }

  Status round(const std::vector<int> &list, int group, int64_t bytes) {
    const int count = int(list.size());
    int own = 0;
    while (list[size_t(own)] != rank_)
      ++own;
    const int64_t number = ++round_;
    const size_t whole = size_t(bytes) * size_t(count);
    Bytes from(static_cast<size_t>(bytes)), to(whole), wanted(whole);
    fill(from.data(), bytes, rank_, -1, number);
    for (int i = 0; i < count; ++i)
      fill(wanted.data() + i * bytes, bytes, list[size_t(i)], -1, number);
    if (Status s = network_.gather(group, to.data(), from.data(), bytes); !s)
      return s;
    if (to != wanted)
      return wrong("gather of " + std::to_string(bytes) + " bytes is wrong");
    add(to);
    // In its own place.
    Bytes inPlace(whole, 0xee);
    std::copy(from.begin(), from.end(), inPlace.begin() + own * bytes);
    if (Status s = network_.gather(group, inPlace.data(),
                                   inPlace.data() + own * bytes, bytes);
        !s)
      return s;
    if (inPlace != wanted)
      return wrong("gather in place is wrong");
    Bytes pieces(whole);
    for (int i = 0; i < count; ++i) {
      fill(pieces.data() + i * bytes, bytes, rank_, list[size_t(i)], number);
      fill(wanted.data() + i * bytes, bytes, list[size_t(i)], rank_, number);
    }
    if (Status s = network_.exchange(group, to.data(), pieces.data(), bytes);
        !s)
      return s;
    if (to != wanted)
      return wrong("exchange of " + std::to_string(bytes) + " bytes is wrong");
    add(to);
    if (Status s = uneven(list, group, own, bytes, number, pieces); !s)
      return s;
    if (Status s = pass(list, group, own, bytes, number); !s)
      return s;
    return network_.barrier(group);
  }

  /// The same with fewer bytes than all pieces have: nothing else is written.
  Status uneven(const std::vector<int> &list, int group, int own, int64_t bytes,
                int64_t number, const Bytes &pieces) {
    const int count = int(list.size());
    const int64_t whole = bytes * count;
    const int64_t total =
        whole - int64_t(mix(uint64_t(number)) % (2 * uint64_t(bytes) + 1));
    if (total < 0)
      return Status::ok();
    auto lengthOf = [&](int64_t r) {
      return std::clamp<int64_t>(total - r * bytes, 0, bytes);
    };
    Bytes from(static_cast<size_t>(bytes)), to(size_t(whole), 0xee), wanted(to);
    fill(from.data(), bytes, rank_, -1, number);
    for (int i = 0; i < count; ++i) {
      Bytes piece(static_cast<size_t>(bytes));
      fill(piece.data(), bytes, list[size_t(i)], -1, number);
      std::copy_n(piece.begin(), lengthOf(i), wanted.begin() + i * bytes);
    }
    if (Status s = network_.gather(group, to.data(), from.data(), bytes, total);
        !s)
      return s;
    if (to != wanted)
      return wrong("gather of " + std::to_string(total) + " bytes is wrong");
    add(to);
    to.assign(size_t(whole), 0xee);
    if (Status s =
            network_.exchange(group, to.data(), pieces.data(), bytes, total);
        !s)
      return s;
    for (int i = 0; i < count; ++i) {
      Bytes piece(static_cast<size_t>(bytes));
      fill(piece.data(), bytes, list[size_t(i)], rank_, number);
      if (!std::equal(piece.begin(), piece.begin() + lengthOf(own),
                      to.begin() + i * bytes))
        return wrong("exchange of " + std::to_string(total) +
                     " bytes is wrong");
    }
    return Status::ok();
  }

  /// Two messages go around the group, each from a rank to the next one.
  Status pass(const std::vector<int> &list, int group, int own, int64_t bytes,
              int64_t number) {
    const int count = int(list.size());
    const int next = (own + 1) % count, before = (own + count - 1) % count;
    Bytes from(static_cast<size_t>(bytes)), to(from), wanted(from);
    fill(from.data(), bytes, rank_, -2, number);
    fill(wanted.data(), bytes, list[size_t(before)], -2, number);
    for (int time = 0; time < 2 && count > 1; ++time)
      for (int turn = 0; turn < 2; ++turn) {
        const bool sends = (own == 0) == (turn == 0);
        const Status done =
            sends ? network_.send(group, next, from.data(), bytes)
                  : network_.receive(group, before, to.data(), bytes);
        if (!done)
          return done;
        if (!sends && to != wanted)
          return wrong("a message of " + std::to_string(bytes) +
                       " bytes is wrong");
      }
    add(to);
    return Status::ok();
  }

  Network &network_;
  const int rank_, ranks_;
  int64_t round_ = 0;
  uint64_t hash_ = 0xcbf29ce484222325ull;
};

/// Longer than the time after which a new step is said to rank 0.
constexpr auto kStepTime = std::chrono::milliseconds(150);

std::string entryName(int64_t entry) {
  return entry == 1 ? "h.8.attn.w gather" : "h.7.mlp.w";
}

/// Runs steps until something happens.
Status steps(World &world, const std::string &scenario) {
  const bool isLast = world.place.rank == world.place.ranks - 1;
  std::vector<char> all(static_cast<size_t>(world.place.ranks));
  for (int64_t step = 1;; ++step) {
    world.control->computes(step, 0);
    if (isLast && step == 3) {
      std::this_thread::sleep_for(kStepTime);
      if (scenario == "stands")
        std::this_thread::sleep_for(std::chrono::hours(1));
      if (scenario == "fails")
        return {Code::BadInput, "the data ends"};
      if (scenario == "leaves")
        _exit(9);
    }
    world.control->calls(1);
    const char own = char(step);
    const Status done =
        scenario == "waits"
            ? world.network->receive(kWorld,
                                     (world.place.rank + 1) % world.place.ranks,
                                     all.data(), 1)
            : world.network->gather(kWorld, all.data(), &own, 1);
    if (!done)
      return world.control->explain(done);
    world.control->calls(-1);
    if (step == 2) {
      std::printf("rank %d is process %d\n", world.place.rank, int(getpid()));
      std::fflush(stdout);
    }
    std::this_thread::sleep_for(kStepTime);
  }
}

Status calls(World &world) {
  int64_t largest = 0;
  if (Status s = world.control->meet("start", world.place.rank * 3, largest);
      !s)
    return s;
  if (largest != (world.place.ranks - 1) * 3)
    return {Code::Defect, "a meeting has the wrong number"};
  Calls calls(*world.network, world.place.rank, world.place.ranks);
  if (Status s = calls.run(); !s)
    return s;
  std::printf("rank %d of %d: %016llx by %s\n", world.place.rank,
              world.place.ranks, static_cast<unsigned long long>(calls.hash()),
              world.network->description().c_str());
  std::fflush(stdout);
  return Status::ok();
}

int end(const Status &status) {
  if (status)
    return 0;
  std::fprintf(stderr, "error: %s\n", visible(status.message()).c_str());
  return static_cast<int>(status.code());
}

int run(const std::vector<std::string> &words) {
  const std::string scenario = words[0];
  // As the trainer does: mpirun sends it to ranks whose peer is gone.
  std::signal(SIGTERM, SIG_IGN);
  Place place;
  if (Status s = findPlace(place); !s)
    return end(s);
  WorldSettings settings;
  settings.library = words[1];
  settings.folder = words[2];
  settings.mostSeconds = words.size() > 3 ? std::atof(words[3].c_str()) : 60;
  settings.startSeconds = 30;
  if (scenario == "parts")
    settings.mostPartBytes = 99991;
  settings.facts = {
      {"step", "1f"},
      {"seed", scenario == "differs" ? std::to_string(place.rank) : "0"}};
  settings.entryName = entryName;
  World world;
  if (Status s = joinWorld(settings, place, world); !s)
    return end(s);
  const Status done = scenario == "calls" || scenario == "parts"
                          ? calls(world)
                          : steps(world, scenario);
  const int code = end(leaveWorld(world, done));
  // A network that was left as it is may hang at a usual end.
  if (code)
    _exit(code);
  return 0;
}

} // namespace
} // namespace tmc

int main(int count, char **words) {
  if (count < 4)
    return 2;
  return tmc::run({words + 1, words + count});
}
