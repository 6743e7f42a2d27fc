#include "driver/pipeline/LeverSearch.h"

#include "compiler/planning/model/Parallel.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>

using namespace tmc;

/// Coarse plans differ from full ones by at most this part of a step.
static constexpr double kClose = 0.03;
/// Settings that must take this part longer than the best get no plan.
static constexpr double kUseless = 0.25;

namespace {

/// A point of the grid: for each lever, the index of its value. Micro-batches
/// come last, the other levers in the order of their table.
using Point = std::array<size_t, kLevers>;
constexpr size_t kPieces = kLevers - 1;
/// The places of the other levers in a point.
using Others = std::array<size_t, kPieces>;
/// A point without its number of micro-batches.
using Column = Others;

static_assert(kMicroBatches == 0, "micro-batches have the table's first row");
constexpr size_t leverAt(size_t place) {
  return place == kPieces ? size_t(kMicroBatches) : place + 1;
}
/// The place of a lever with another row than the first.
constexpr size_t placeOf(LeverId lever) { return lever - 1; }

constexpr Others otherPlaces() {
  Others places = {};
  for (size_t i = 0; i < kPieces; ++i)
    places[i] = i;
  return places;
}

Column columnOf(const Point &point) {
  Column column;
  std::copy_n(point.begin(), kPieces, column.begin());
  return column;
}

class LeverSearch {
public:
  LeverSearch(const LeverSpace &space, const PlanSetting &plan,
              const LeverSearchOptions &options)
      : space(space), plan(plan), options(options), sizes(sizesOf(space)) {}

  Expected<LeverChoice> run() {
    std::set<Point> wanted = options.wholeGrid ? grid() : firsts();
    while (!wanted.empty()) {
      TMC_TRY(visit(wanted));
      wanted = options.wholeGrid ? std::set<Point>() : next();
    }
    if (seen.empty())
      return std::move(*failure);
    return choice();
  }

private:
  const LeverSpace &space;
  const PlanSetting &plan;
  const LeverSearchOptions &options;
  const Point sizes; // Numbers of values.
  std::map<Point, CoarsePlan> seen;
  std::map<Point, std::string> refused;
  std::optional<Failure> failure; // The failure of the first refused setting.

  static Point sizesOf(const LeverSpace &space) {
    Point sizes;
    for (size_t place = 0; place < kLevers; ++place)
      sizes[place] = space[leverAt(place)].size();
    return sizes;
  }

  LeverSetting settingOf(const Point &point) const {
    LeverSetting setting;
    for (size_t place = 0; place < kLevers; ++place)
      setting[leverAt(place)] = space[leverAt(place)][point[place]];
    return setting;
  }

  std::set<Point> grid() const {
    std::set<Point> points;
    Point point = {};
    for (;;) {
      points.insert(point);
      size_t lever = 0;
      while (lever < kLevers && ++point[lever] == sizes[lever])
        point[lever++] = 0;
      if (lever == kLevers)
        return points;
    }
  }

  /// The first points: the last precision with the whole batch, a middle number
  /// of pieces and the largest number. A base of frozen parameters is most of a
  /// step's memory, so that its narrowest format is looked at as well.
  std::set<Point> firsts() const {
    std::set<Point> points;
    Point point = {};
    point[placeOf(kPrecision)] = sizes[placeOf(kPrecision)] - 1;
    for (size_t base : {size_t(0), sizes[placeOf(kBase)] - 1})
      for (size_t pieces :
           {size_t(0), sizes[kPieces] / 2, sizes[kPieces] - 1}) {
        point[placeOf(kBase)] = base;
        point[kPieces] = pieces;
        points.insert(point);
      }
    return points;
  }

  bool isKnown(const Point &point) const {
    return seen.count(point) || refused.count(point);
  }

  /// Plans points in parallel.
  Expected<void> visit(const std::set<Point> &wanted) {
    std::vector<Point> points(wanted.begin(), wanted.end());
    std::vector<std::optional<Expected<CoarsePlan>>> made(points.size());
    std::atomic<size_t> done = seen.size() + refused.size();
    const size_t known = done + points.size();
    const auto *best = quickest([](const Point &) { return true; });
    const double useless = best && !options.wholeGrid
                               ? best->second.seconds * (1 + kUseless)
                               : HUGE_VAL;
    planning::inParallel(points.size(), [&](size_t i) {
      made[i].emplace(plan(settingOf(points[i]), useless));
      size_t now = ++done;
      if (options.say)
        options.say(now, known);
    });
    for (auto &&[point, result] : llvm::zip(points, made)) {
      if (*result) {
        seen[point] = **result;
        continue;
      }
      Failure &wrong = result->failure();
      if (!isRefusal(wrong))
        return std::move(wrong);
      refused[point] = wrong.message;
      if (!failure)
        failure = std::move(wrong);
    }
    return {};
  }

  /// The fastest point seen; null: none fits.
  const std::pair<const Point, CoarsePlan> *
  quickest(const std::function<bool(const Point &)> &among) const {
    const std::pair<const Point, CoarsePlan> *best = nullptr;
    for (const auto &entry : seen)
      if (entry.second.fits && among(entry.first) &&
          (!best || entry.second.seconds < best->second.seconds))
        best = &entry;
    return best;
  }

  /// Whether the kernels of `point` alone take longer than `seconds`, by the
  /// kernels of a point with no more pieces.
  bool isTooSlow(const Point &point, double seconds) const {
    for (const auto &[other, made] : seen)
      if (columnOf(other) == columnOf(point) &&
          other[kPieces] <= point[kPieces] && !made.moves &&
          made.baseSeconds > seconds)
        return true;
    return false;
  }

  /// Whether `value` of a lever was left out before, and its kernels take too
  /// long to come close to the best.
  bool isHopeless(size_t lever, size_t value,
                  const std::pair<const Point, CoarsePlan> &best) const {
    const double limit = best.second.seconds * (1 + kClose);
    for (const auto &[point, made] : seen) {
      if (point[lever] != value || !made.isLeftOut)
        continue;
      Point other = point;
      other[lever] = best.first[lever];
      auto found = seen.find(other);
      if (found != seen.end() && best.second.baseSeconds + made.baseSeconds -
                                         found->second.baseSeconds >
                                     limit)
        return true;
    }
    return false;
  }

  std::set<Point> next() const {
    const auto *best = quickest([](const Point &) { return true; });
    std::set<Point> points;
    const double limit =
        best ? best->second.seconds * (1 + kAsGoodPart) : HUGE_VAL;
    auto want = [&](const Point &point) {
      if (!isKnown(point) && !isTooSlow(point, limit))
        points.insert(point);
    };
    if (!best) { // First find any point that fits.
      for (Point point : grid())
        if (point[kPieces] == sizes[kPieces] - 1 || point[kPieces] == 0)
          want(point);
      if (!points.empty())
        return points;
    }
    if (best)
      for (size_t lever : otherPlaces())
        for (size_t value = 0; value < sizes[lever]; ++value) {
          Point point = best->first;
          point[lever] = value;
          if (!isHopeless(lever, value, *best))
            want(point);
        }
    wantNeighbours(best ? best->second.seconds * (1 + kClose) : HUGE_VAL, want);
    if (points.empty() && best)
      wantTogether(*best, want);
    if (points.empty() && best)
      wantAlternatives(best->first, points);
    return points;
  }

  /// Estimates the time of the kernels of an unseen `point`: the time at
  /// another number of pieces, plus the difference in a column that has both
  /// numbers.
  double estimate(const Point &known, const CoarsePlan &made,
                  const Point &point) const {
    double difference = HUGE_VAL;
    for (const auto &[there, plan] : seen) {
      Point here = there;
      here[kPieces] = known[kPieces];
      auto other = seen.find(here);
      if (there[kPieces] == point[kPieces] && other != seen.end())
        difference =
            std::min(difference, plan.baseSeconds - other->second.baseSeconds);
    }
    return made.baseSeconds + difference;
  }

  /// In each column that is close, or may be by its kernels, the points next to
  /// its best; in a column without a plan, one point with more pieces.
  template <typename F> void wantNeighbours(double close, F &&want) const {
    std::set<Column> columns;
    for (const auto &entry : seen)
      columns.insert(columnOf(entry.first));
    for (const Column &column : columns) {
      auto isHere = [&](const Point &p) { return columnOf(p) == column; };
      Point at = {};
      llvm::copy(column, at.begin());
      if (const auto *best = quickest(isHere)) {
        for (int step : {-1, 1}) {
          at[kPieces] = best->first[kPieces] + size_t(step);
          if (at[kPieces] < sizes[kPieces] &&
              (best->second.seconds <= close ||
               estimate(best->first, best->second, at) * (1 + kClose) < close))
            want(at);
        }
        continue;
      }
      bool isLeftOut = false;
      for (const auto &entry : seen)
        if (isHere(entry.first)) {
          at[kPieces] = std::max(at[kPieces], entry.first[kPieces]);
          isLeftOut |= entry.second.isLeftOut;
        }
      if (isLeftOut)
        continue;
      size_t left = sizes[kPieces] - 1 - at[kPieces];
      at[kPieces] += (left + 1) / 2;
      want(at);
    }
  }

  /// Points that differ from the best in several levers, which together may
  /// gain more than each lever alone: in each column the point of the most
  /// pieces whose kernels may be fast enough, by the sum of the differences of
  /// single levers.
  template <typename F>
  void wantTogether(const std::pair<const Point, CoarsePlan> &best,
                    F &&want) const {
    auto difference = [&](size_t lever, size_t value) {
      Point single = best.first;
      single[lever] = value;
      auto found = seen.find(single);
      return found == seen.end()
                 ? HUGE_VAL
                 : found->second.baseSeconds - best.second.baseSeconds;
    };
    std::set<Column> done;
    const std::set<Point> all = grid();
    for (auto at = all.rbegin(); at != all.rend(); ++at) {
      double base = best.second.baseSeconds;
      for (size_t place = 0; place < kLevers; ++place)
        base += difference(place, (*at)[place]);
      if (base < best.second.seconds && done.insert(columnOf(*at)).second)
        want(*at);
    }
  }

  /// The setting without micro-batches, for the report of alternatives. The
  /// whole batch doesn't fit if pieces of it don't fit.
  void wantAlternatives(const Point &best, std::set<Point> &points) const {
    for (const auto &[point, made] : seen)
      if (point[placeOf(kPrecision)] == best[placeOf(kPrecision)] &&
          point[kPieces] < best[kPieces] && !made.fits)
        return;
    Point whole = best;
    whole[kPieces] = 0;
    if (!isKnown(whole))
      points.insert(whole);
  }

  Expected<LeverChoice> choice() const {
    LeverChoice made;
    made.space = space;
    for (const auto &[point, coarse] : seen) {
      made.seen[settingOf(point)] = coarse;
      if (coarse.fits)
        made.ranked.push_back(settingOf(point));
    }
    for (const auto &[point, why] : refused)
      made.refused.push_back({settingOf(point), why});
    for (const Point &point : firsts())
      if (seen.count(point) && !made.reference)
        made.reference = settingOf(point);
    auto secondsOf = [&](const LeverSetting &setting) {
      return made.seen.at(setting).seconds;
    };
    llvm::stable_sort(made.ranked,
                      [&](const LeverSetting &a, const LeverSetting &b) {
                        return secondsOf(a) < secondsOf(b);
                      });
    if (made.ranked.empty())
      return made;
    // Among the best, the least harmful comes first.
    const double asGood = secondsOf(made.ranked.front()) * (1 + kAsGoodPart);
    auto end = llvm::find_if(made.ranked, [&](const LeverSetting &setting) {
      return secondsOf(setting) > asGood;
    });
    std::stable_sort(made.ranked.begin(), end,
                     [&](const LeverSetting &a, const LeverSetting &b) {
                       return std::pair(harmOf(a), a[kMicroBatches]) <
                              std::pair(harmOf(b), b[kMicroBatches]);
                     });
    return made;
  }
};

} // namespace

std::vector<ChosenLever>
LeverChoice::alternatives(const LeverSetting &chosen) const {
  std::vector<ChosenLever> levers;
  for (size_t id = 0; id < kLevers; ++id) {
    // Their harm rises.
    const std::vector<LeverValue> &values = space[id];
    if (values.size() < 2)
      continue;
    const Lever &row = leverTable()[id];
    ChosenLever lever{row.flag, row.text(chosen[id]), "", -1};
    const auto at = llvm::find(values, chosen[id]);
    auto isAnswer = [&](const LeverSetting &setting) {
      const auto other = llvm::find(values, setting[id]);
      return at == values.begin() ? other != at : other < at;
    };
    for (const LeverSetting &setting : ranked) {
      if (!isAnswer(setting))
        continue;
      if (lever.seconds >= 0 && seen.at(setting).seconds >= lever.seconds)
        continue;
      lever.instead = row.text(setting[id]);
      lever.seconds = seen.at(setting).seconds;
    }
    // A setting without a plan may still take less.
    for (const auto &[setting, plan] : seen) {
      const double least = lever.atLeast >= 0 ? lever.atLeast : lever.seconds;
      if (!plan.isLeftOut || !isAnswer(setting) ||
          (least >= 0 && plan.provenSeconds >= least))
        continue;
      lever.instead = row.text(setting[id]);
      lever.atLeast = plan.provenSeconds;
    }
    if (lever.atLeast >= 0)
      lever.seconds = -1;
    levers.push_back(std::move(lever));
  }
  return levers;
}

int64_t LeverChoice::impossibleBelowBytes() const {
  if (seen.size() + refused.size() < space.size())
    return -1;
  int64_t least = -1;
  for (const auto &[setting, plan] : seen)
    if (least < 0 || plan.impossibleBelowBytes < least)
      least = plan.impossibleBelowBytes;
  return least;
}

bool tmc::isRefusal(const Failure &failure) {
  return failure.kind == FailureKind::Unsupported ||
         failure.kind == FailureKind::Usage;
}

Expected<LeverChoice> tmc::chooseLevers(const LeverSpace &space,
                                        const PlanSetting &plan,
                                        const LeverSearchOptions &options) {
  return LeverSearch(space, plan, options).run();
}
