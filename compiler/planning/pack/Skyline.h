// Skyline.h - the highest top over ranges of time, in a segment tree.
//
// A node holds the maximum over its range, and a floor for all of its range.
// Raising a range and asking for its maximum take O(log n) steps.

#ifndef TMC_COMPILER_PLANNING_PACK_SKYLINE_H
#define TMC_COMPILER_PLANNING_PACK_SKYLINE_H

#include <algorithm>
#include <cstdint>
#include <vector>

namespace tmc::planning {

/// Highest top over ranges of sections: raise a range, ask for its maximum.
class Skyline {
public:
  explicit Skyline(size_t sections) {
    while (size < sections)
      size *= 2;
    most.assign(2 * size, 0);
    floor.assign(2 * size, 0);
  }
  int64_t top(size_t first, size_t last) const {
    return ask(1, 0, size, first, last);
  }
  void raise(size_t first, size_t last, int64_t to) {
    put(1, 0, size, first, last, to);
  }

private:
  int64_t ask(size_t node, size_t lo, size_t hi, size_t first,
              size_t last) const {
    if (first >= hi || last <= lo)
      return 0;
    if (first <= lo && hi <= last)
      return most[node];
    size_t mid = (lo + hi) / 2;
    return std::max({floor[node], ask(2 * node, lo, mid, first, last),
                     ask(2 * node + 1, mid, hi, first, last)});
  }
  void put(size_t node, size_t lo, size_t hi, size_t first, size_t last,
           int64_t to) {
    if (first >= hi || last <= lo)
      return;
    most[node] = std::max(most[node], to);
    if (first <= lo && hi <= last) {
      floor[node] = std::max(floor[node], to);
      return;
    }
    size_t mid = (lo + hi) / 2;
    put(2 * node, lo, mid, first, last, to);
    put(2 * node + 1, mid, hi, first, last, to);
  }
  size_t size = 1;
  std::vector<int64_t> most;  // Over the node's range.
  std::vector<int64_t> floor; // A lower bound for all of the node's range.
};

} // namespace tmc::planning

#endif // TMC_COMPILER_PLANNING_PACK_SKYLINE_H
