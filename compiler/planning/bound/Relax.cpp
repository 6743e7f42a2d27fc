#include "compiler/planning/bound/GapModel.h"

#include <algorithm>

namespace tmc::planning {

namespace {

/// Takes the choices of a model apart, on the device.
class Relaxing {
public:
  explicit Relaxing(const GapModel &model)
      : model(model), held(model.numMoments() + 1, 0), gapped(held) {}
  Relaxation run();

private:
  void addGap(int32_t g, int64_t avoid);
  void addChoice(const GapModel::Choice &choice);

  const GapModel &model;
  Relaxation out;
  /// Differences: bytes of unbreakable gaps, and of breakable ones.
  std::vector<int64_t> held, gapped;
};

/// Adds a gap; `avoid`: the least cost of not reading its value; -1: it is
/// read.
void Relaxing::addGap(int32_t g, int64_t avoid) {
  const GapModel::Gap &gap = model.gaps[g];
  const Value &value = model.problem.values[gap.value];
  if (value.space != 0 || value.bytes == 0 || gap.moments.size() != 1)
    return;
  int64_t cost = avoid;
  for (int32_t c = gap.charges.begin; c < gap.charges.end; ++c)
    if (cost < 0 || model.charges[c].cost < cost)
      cost = model.charges[c].cost;
  const GapModel::Range range = model.ranges[gap.moments.begin];
  std::vector<int64_t> &sums = cost < 0 ? held : gapped;
  sums[range.begin] += value.bytes;
  sums[range.end] -= value.bytes;
  if (cost >= 0)
    out.gaps.push_back({gap.value, range.begin, range.end - 1, value.bytes,
                        cost, avoid < 0 ? gap.within : kNone});
}

void Relaxing::addChoice(const GapModel::Choice &choice) {
  const GapModel::Variant *variants = &model.variants[choice.variants.begin];
  const int32_t count = choice.variants.size();
  int64_t least = variants[0].cost, bytes = -1;
  std::vector<int32_t> all; // Gaps of any variant.
  for (int32_t r = 0; r < count; ++r) {
    least = std::min(least, variants[r].cost);
    const int64_t own = model.bytesOf(variants[r], 0);
    bytes = bytes < 0 ? own : std::min(bytes, own);
    all.insert(all.end(), model.endingGaps.begin() + variants[r].gaps.begin,
               model.endingGaps.begin() + variants[r].gaps.end);
  }
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  out.cheaperRecipes += least - variants[0].cost;
  out.floor[choice.moment] += bytes;
  for (int32_t g : all) {
    int64_t avoid = -1;
    for (int32_t r = 0; r < count; ++r) {
      auto begin = model.endingGaps.begin();
      const GapModel::Range own = variants[r].gaps;
      if (std::find(begin + own.begin, begin + own.end, g) != begin + own.end)
        continue;
      const int64_t spared = int64_t(all.size()) - own.size();
      const int64_t extra = (variants[r].cost - least) / spared;
      avoid = avoid < 0 ? extra : std::min(avoid, extra);
    }
    if (avoid != 0 && !model.gaps[g].isOwed)
      addGap(g, avoid);
  }
}

Relaxation Relaxing::run() {
  out.floor = model.floor[0];
  for (size_t g = 0; g < model.plainGaps; ++g)
    addGap(int32_t(g), -1);
  for (const GapModel::Choice &choice : model.choices)
    addChoice(choice);
  out.live = out.floor;
  int64_t fixed = 0, all = 0;
  for (size_t k = 0; k < out.live.size(); ++k) {
    fixed += held[k];
    all += gapped[k];
    out.floor[k] += fixed;
    out.live[k] += fixed + all;
  }
  return std::move(out);
}

} // namespace

Relaxation relax(const GapModel &model) { return Relaxing(model).run(); }

} // namespace tmc::planning
