#include "compiler/planning/pack/PackSearch.h"

#include "compiler/planning/model/Random.h"

#include <algorithm>
#include <limits>
#include <numeric>

using namespace tmc::planning;

namespace {

// Weights that prefer buffers with an even top in a section; found on random
// cuts of a rectangle.
constexpr double kFitsEdge = 0.3, kFitsTop = 2;
/// A section whose bottom may stay empty has this much of a choice more.
constexpr double kEmpty = 0.3;
/// The search is tight if the room above the fullest section is at most 1/33 of
/// the capacity.
constexpr int64_t kTight = 33;
/// Number of stored failed states; later ones replace earlier ones.
constexpr size_t kFailedStates = size_t(1) << 18;

int64_t luby(int64_t i) {
  int64_t k = 1;
  while ((int64_t(1) << k) - 1 < i)
    ++k;
  return (int64_t(1) << k) - 1 == i ? int64_t(1) << (k - 1)
                                    : luby(i - (int64_t(1) << (k - 1)) + 1);
}

class Searcher {
public:
  Searcher(const std::vector<Box> &boxes, int32_t sections, int64_t capacity,
           int64_t &work)
      : boxes(boxes), capacity(capacity), work(work), low(boxes.size(), 0),
        placed(boxes.size(), 0), left(sections, 0), bottom(sections, 0),
        choices(sections, 0), failures(sections, 1), alive(sections),
        rank(boxes.size(), 0), meets(boxes.size()), offsets(boxes.size(), 0),
        failed(kFailedStates, 0) {
    for (size_t b = 0; b < boxes.size(); ++b)
      for (int32_t s = boxes[b].first; s < boxes[b].last; ++s) {
        left[s] += boxes[b].bytes;
        alive[s].push_back(int32_t(b));
      }
    int64_t fullest = *std::max_element(left.begin(), left.end());
    isTight = capacity - fullest <= capacity / kTight;
    for (int32_t s = 0; s < sections; ++s)
      choices[s] = int32_t(alive[s].size());
    std::vector<int32_t> seen(boxes.size(), -1);
    for (size_t b = 0; b < boxes.size(); ++b)
      for (int32_t s = boxes[b].first; s < boxes[b].last; ++s)
        for (int32_t u : alive[s])
          if (u != int32_t(b) && seen[u] != int32_t(b)) {
            seen[u] = int32_t(b);
            meets[b].push_back(u);
          }
  }

  SearchResult run(Random &random, int64_t nodes, int attempt) {
    // Two rules in turn, each with its own order of buffers.
    fewestFirst = isTight && attempt % 2 == 1;
    int mode = isTight ? attempt / 2 : attempt;
    nodesLeft = nodes;
    gaveUp = false;
    for (size_t b = 0; b < boxes.size(); ++b) {
      double length = boxes[b].last - boxes[b].first,
             size = double(boxes[b].bytes);
      // Long lives first, because others must lie on them.
      rank[b] = mode < 4 ? (mode == 0   ? length * size
                            : mode == 1 ? length
                            : mode == 2 ? size
                                        : length * length * size)
                         : (mode % 2 ? length : length * length * size) *
                               (0.5 + random.unit());
    }
    std::vector<int32_t> all(boxes.size());
    std::iota(all.begin(), all.end(), 0);
    for (int64_t total : left)
      if (total > capacity)
        return SearchResult::Impossible;
    bool found = solveApart(all);
    if (!found)
      undoTo(0);
    return found    ? SearchResult::Found
           : gaveUp ? SearchResult::GaveUp
                    : SearchResult::Impossible;
  }
  const std::vector<int64_t> &answer() const { return offsets; }

private:
  struct Change {
    enum { Low, Place, Bottom, Choices } kind;
    int32_t index;
    int64_t before;
  };

  void undoTo(size_t mark) {
    while (trail.size() > mark) {
      Change c = trail.back();
      trail.pop_back();
      if (c.kind == Change::Low) {
        low[c.index] = c.before;
      } else if (c.kind == Change::Bottom) {
        bottom[c.index] = c.before;
      } else if (c.kind == Change::Choices) {
        choices[c.index] = int32_t(c.before);
      } else {
        placed[c.index] = 0;
        for (int32_t s = boxes[c.index].first; s < boxes[c.index].last; ++s)
          left[s] += boxes[c.index].bytes;
      }
    }
  }

  /// Raises low[u] and marks the sections to check. False: u can't fit.
  bool raise(int32_t u, int64_t to) {
    if (to <= low[u])
      return true;
    trail.push_back({Change::Low, u, low[u]});
    low[u] = to;
    dirtyFirst = std::min(dirtyFirst, boxes[u].first);
    dirtyLast = std::max(dirtyLast, boxes[u].last);
    return to + boxes[u].bytes <= capacity;
  }

  /// The section bound for the marked sections.
  bool sectionsFit() {
    for (int32_t s = dirtyFirst; s < dirtyLast; ++s) {
      if (left[s] == 0)
        continue;
      int64_t least = std::numeric_limits<int64_t>::max();
      int32_t many = 0;
      for (int32_t u : alive[s])
        if (!placed[u] && low[u] <= least) {
          many = low[u] < least ? 1 : many + 1;
          least = low[u];
        }
      work += int64_t(alive[s].size());
      if (many != choices[s]) {
        trail.push_back({Change::Choices, s, choices[s]});
        choices[s] = many;
      }
      if (least != bottom[s]) {
        trail.push_back({Change::Bottom, s, bottom[s]});
        bottom[s] = least;
      }
      if (least + left[s] > capacity) {
        failures[s] += 1;
        return false;
      }
    }
    return true;
  }

  bool place(int32_t b) {
    trail.push_back({Change::Place, b, 0});
    placed[b] = 1;
    offsets[b] = low[b];
    dirtyFirst = boxes[b].first;
    dirtyLast = boxes[b].last;
    for (int32_t s = boxes[b].first; s < boxes[b].last; ++s)
      left[s] -= boxes[b].bytes;
    int64_t top = low[b] + boxes[b].bytes;
    work += int64_t(meets[b].size());
    for (int32_t u : meets[b])
      if (!placed[u] && !raise(u, top))
        return false;
    return sectionsFit();
  }

  bool lift(int32_t b) {
    int64_t to = std::numeric_limits<int64_t>::max();
    for (int32_t u : meets[b])
      if (!placed[u])
        to = std::min(to, low[u] + boxes[u].bytes);
    work += int64_t(meets[b].size());
    if (to == std::numeric_limits<int64_t>::max())
      return false; // No buffer left to lie on.
    dirtyFirst = boxes[b].first;
    dirtyLast = boxes[b].last;
    return raise(b, to) && sectionsFit();
  }

  /// Splits the unplaced buffers into components and solves each.
  bool solveApart(std::vector<int32_t> &group) {
    std::sort(group.begin(), group.end(), [&](int32_t a, int32_t b) {
      return boxes[a].first < boxes[b].first;
    });
    size_t begin = 0;
    std::vector<std::vector<int32_t>> parts;
    while (begin < group.size()) {
      int32_t end = boxes[group[begin]].last;
      size_t next = begin + 1;
      while (next < group.size() && boxes[group[next]].first < end)
        end = std::max(end, boxes[group[next++]].last);
      parts.emplace_back(group.begin() + begin, group.begin() + next);
      begin = next;
    }
    // The smallest first, because its failure is found soonest.
    std::sort(parts.begin(), parts.end(),
              [](const auto &a, const auto &b) { return a.size() < b.size(); });
    for (std::vector<int32_t> &part : parts)
      if (!solve(part))
        return false;
    return true;
  }

  /// A hash of the buffers of a part and their least offsets, which determine
  /// the remaining problem.
  uint64_t stateOf(const std::vector<int32_t> &part) const {
    uint64_t sum = 0;
    for (int32_t u : part) {
      uint64_t z = uint64_t(u) * 0x9e3779b97f4a7c15 ^
                   uint64_t(low[u]) * 0xd1342543de82ef95;
      z = (z ^ (z >> 32)) * 0xbf58476d1ce4e5b9;
      z = (z ^ (z >> 29)) * 0x94d049bb133111eb;
      sum += z ^ (z >> 32);
    }
    return sum ? sum : 1;
  }

  /// If a run of sections lies lower than both its neighbours, the buffers that
  /// can lie at its bottom are alive nowhere else. The result is the section of
  /// such runs with the fewest choices per failure.
  int32_t section(int32_t first, int32_t last) {
    int32_t where = -1;
    double fewest = 0;
    for (int32_t s = first, end; s < last; s = end) {
      end = endOfRun(s, last);
      if ((s > first && bottom[s - 1] < bottom[s]) ||
          (end < last && bottom[end] < bottom[s]))
        continue;
      for (int32_t k = s; k < end; ++k) {
        bool tight = bottom[k] + left[k] >= capacity;
        double score = (choices[k] + (tight ? 0 : kEmpty)) / failures[k];
        if (where < 0 || score < fewest)
          where = k, fewest = score;
      }
    }
    work += last - first;
    return where;
  }
  int32_t endOfRun(int32_t s, int32_t last) const {
    int32_t end = s + 1;
    while (end < last && bottom[end] == bottom[s])
      ++end;
    return end;
  }

  /// The buffer to branch on next.
  int32_t choose(const std::vector<int32_t> &part) {
    int32_t first = boxes[part.front()].first, last = first;
    for (int32_t u : part) // Sorted by their first section.
      last = std::max(last, boxes[u].last);
    int32_t where = section(first, last), begin = where;
    while (begin > first && bottom[begin - 1] == bottom[where])
      --begin;
    int32_t end = endOfRun(where, last);
    int32_t best = -1;
    double bestRank = 0;
    for (int32_t u : alive[where]) {
      if (placed[u] || low[u] != bottom[where])
        continue;
      int64_t top = low[u] + boxes[u].bytes;
      bool atLeft = boxes[u].first == begin, atRight = boxes[u].last == end;
      int edges = atLeft + atRight;
      int tops = (atLeft && begin > first && bottom[begin - 1] == top) +
                 (atRight && end < last && bottom[end] == top);
      double now = rank[u] * (1 + kFitsEdge * edges) * (1 + kFitsTop * tops);
      if (best < 0 || now > bestRank)
        best = u, bestRank = now;
    }
    work += int64_t(part.size() + alive[where].size());
    return best;
  }

  /// Another rule, better if there is room: among the lowest buffers, one in
  /// the section with the least room.
  int32_t chooseTightest(const std::vector<int32_t> &part) {
    int64_t least = std::numeric_limits<int64_t>::max();
    for (int32_t u : part)
      least = std::min(least, low[u]);
    int32_t best = -1;
    int64_t bestSpare = 0;
    for (int32_t u : part) {
      if (low[u] != least)
        continue;
      int64_t spare = std::numeric_limits<int64_t>::max();
      for (int32_t s = boxes[u].first; s < boxes[u].last; ++s)
        spare = std::min(spare, capacity - left[s] - bottom[s]);
      work += boxes[u].last - boxes[u].first;
      if (best < 0 || spare < bestSpare ||
          (spare == bestSpare && rank[u] > rank[best]))
        best = u, bestSpare = spare;
    }
    work += int64_t(part.size());
    return best;
  }

  bool solve(std::vector<int32_t> &part) {
    if (part.size() < 2)
      return search(part);
    uint64_t state = stateOf(part);
    work += int64_t(part.size());
    uint64_t &slot = failed[state % kFailedStates];
    if (slot == state)
      return false;
    bool found = search(part);
    if (!found && !gaveUp)
      slot = state;
    return found;
  }

  bool search(std::vector<int32_t> &part) {
    for (;;) {
      if (part.empty())
        return true;
      if (nodesLeft-- <= 0) {
        gaveUp = true;
        return false;
      }
      int32_t best = fewestFirst ? choose(part) : chooseTightest(part);
      size_t mark = trail.size();
      if (place(best)) {
        std::vector<int32_t> rest;
        for (int32_t u : part)
          if (u != best)
            rest.push_back(u);
        if (solveApart(rest))
          return true;
      }
      undoTo(mark);
      if (gaveUp)
        return false;
      if (!lift(best))
        return false; // The caller undoes the changes.
    }
  }

  const std::vector<Box> &boxes;
  int64_t capacity;
  int64_t &work;
  std::vector<int64_t> low;
  std::vector<char> placed;
  std::vector<int64_t> left;    // Per section: bytes not yet placed.
  std::vector<int64_t> bottom;  // Per section: the least `low`.
  std::vector<int32_t> choices; // Per section: buffers at `bottom`.
  std::vector<double> failures; // Per section: failures of the bound.
  std::vector<std::vector<int32_t>> alive;
  std::vector<double> rank;
  std::vector<std::vector<int32_t>> meets;
  std::vector<int64_t> offsets;
  std::vector<uint64_t> failed; // Hashes of states.
  std::vector<Change> trail;
  int32_t dirtyFirst = 0, dirtyLast = 0;
  int64_t nodesLeft = 0;
  bool gaveUp = false, fewestFirst = true, isTight = true;
};

} // namespace

SearchResult tmc::planning::searchPacking(const std::vector<Box> &boxes,
                                          int32_t sections, int64_t capacity,
                                          uint64_t seed, int64_t &work,
                                          std::vector<int64_t> &offsets) {
  int64_t used = 0;
  Searcher searcher(boxes, sections, capacity, used);
  Random random(seed);
  int64_t limit = work;
  for (int attempt = 0; used < limit; ++attempt) {
    // Attempts alternate between rules and share the failed states. Restart
    // lengths follow Luby, Sinclair and Zuckerman (1993): most are short, and
    // the longest length grows without bound.
    int64_t nodes = int64_t(boxes.size()) * 4 + 500 * luby(attempt / 2 + 1);
    SearchResult result = searcher.run(random, nodes, attempt);
    if (result == SearchResult::GaveUp)
      continue;
    work = used;
    if (result == SearchResult::Found)
      offsets = searcher.answer();
    return result;
  }
  work = used;
  return SearchResult::GaveUp;
}
