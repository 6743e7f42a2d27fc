//===- RankTimes.cpp - the slowest of a run's ranks -----------------------===//

#include "runtime/step/RankTimes.h"

#include "runtime/step/File.h"

#include <algorithm>
#include <cstdio>
#include <numeric>

namespace tmc {

void RankTimes::add(const std::vector<RankStep> &ranks) {
  if (ranks.empty())
    return;
  if (steps_++ <= 1)
    sums_.assign(ranks.size(), {});
  slowest_ = int(std::max_element(ranks.begin(), ranks.end(),
                                  [](const RankStep &a, const RankStep &b) {
                                    return a.ownSeconds() < b.ownSeconds();
                                  }) -
                 ranks.begin());
  slowestSeconds_ = ranks[size_t(slowest_)].ownSeconds();
  for (size_t i = 0; i < ranks.size(); ++i) {
    Sums &sums = sums_[i];
    sums.own += ranks[i].ownSeconds();
    sums.network += ranks[i].networkSeconds;
    sums.slowestIn += int(i) == slowest_;
    sums.deviceBytes = ranks[i].highWaterBytes.device();
  }
}

std::string RankTimes::table() const {
  if (!steps_)
    return "";
  const int64_t count = std::max<int64_t>(1, steps_ - 1);
  std::vector<size_t> order(sums_.size());
  std::iota(order.begin(), order.end(), size_t(0));
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return sums_[a].own > sums_[b].own;
  });
  char line[160];
  std::snprintf(line, sizeof line, "%lld step%s%s, the slowest rank first:\n",
                static_cast<long long>(count), count == 1 ? "" : "s",
                steps_ > 1 ? " after the first" : "");
  std::string text = line;
  text += "  rank   own time    network  slowest in  device memory\n";
  constexpr size_t kMostRows = 8;
  for (size_t i = 0; i < std::min(order.size(), kMostRows); ++i) {
    const Sums &sums = sums_[order[i]];
    std::snprintf(
        line, sizeof line, "%6zu  %7.4f s  %7.4f s  %10lld  %13s\n", order[i],
        sums.own / double(count), sums.network / double(count),
        static_cast<long long>(sums.slowestIn),
        sums.deviceBytes < 0 ? "" : formatBytes(sums.deviceBytes).c_str());
    text += line;
  }
  if (order.size() > kMostRows)
    text += "  and " + std::to_string(order.size() - kMostRows) + " more\n";
  return text;
}

} // namespace tmc
