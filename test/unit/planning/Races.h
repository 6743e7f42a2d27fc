// Races.h - whether pieces of work that share an address ever overlap.
//
// Knows pieces, what each waits for, and the addresses that it touches; nothing
// of values, lists or rules. Durations are given anew for each run.

#ifndef TMC_TEST_UNIT_PLANNING_RACES_H
#define TMC_TEST_UNIT_PLANNING_RACES_H

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

namespace tmc::planning {

struct Touch {
  int32_t space = 0;
  int64_t begin = 0, end = 0; // Addresses.
  bool writes = false;
  int32_t content = 0; // What a read must find, what a write leaves.
};

struct Piece {
  std::vector<int32_t> waits; // Earlier pieces.
  std::vector<Touch> touches;
};

enum class RunResult { Clean, Race, WrongBytes };

/// Runs the pieces, each for its duration as soon as all it waits for have
/// ended. Two that overlap in time and in a byte that one of them writes are a
/// race, however short the overlap; a read that finds other bytes than its own
/// is wrong. `memory` holds what was there before, by space and address.
inline RunResult
runPieces(const std::vector<Piece> &pieces,
          const std::vector<int64_t> &durations,
          std::map<std::pair<int32_t, int64_t>, int32_t> memory) {
  size_t n = pieces.size();
  std::vector<int64_t> begin(n, 0), end(n, 0);
  for (size_t i = 0; i < n; ++i) {
    for (int32_t w : pieces[i].waits)
      begin[i] = std::max(begin[i], end[w]);
    end[i] = begin[i] + durations[i];
  }
  for (size_t i = 0; i < n; ++i)
    for (size_t j = 0; j < i; ++j) {
      if (begin[i] >= end[j] || begin[j] >= end[i])
        continue;
      for (const Touch &a : pieces[i].touches)
        for (const Touch &b : pieces[j].touches)
          if (a.space == b.space && (a.writes || b.writes) && a.begin < b.end &&
              b.begin < a.end)
            return RunResult::Race;
    }
  std::vector<size_t> order(n);
  for (size_t i = 0; i < n; ++i)
    order[i] = i;
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return begin[a] < begin[b]; });
  for (size_t i : order)
    for (bool writes : {false, true})
      for (const Touch &t : pieces[i].touches)
        for (int64_t at = t.begin; at < t.end && t.writes == writes; ++at) {
          int32_t &byte = memory[{t.space, at}];
          if (!writes && byte != t.content)
            return RunResult::WrongBytes;
          byte = t.content;
        }
  return RunResult::Clean;
}

} // namespace tmc::planning

#endif // TMC_TEST_UNIT_PLANNING_RACES_H
