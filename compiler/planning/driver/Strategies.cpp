#include "compiler/planning/driver/Strategies.h"

#include <algorithm>
#include <cmath>

using namespace tmc::planning;

static constexpr bool isTableInOrder() {
  for (size_t i = 0; i < std::size(kStrategies); ++i)
    if (size_t(kStrategies[i].strategy) != i)
      return false;
  return true;
}
static_assert(isTableInOrder(), "rowOf indexes the table");

Effort Effort::thorough() {
  Effort effort;
  effort.mostWork = 0;
  effort.workPerSmallStage = kMostWorkPerStage;
  effort.leastSmallWork = 0;
  effort.mostSmallWork = 6'000'000'000;
  effort.workPerLargeStage = kWorkTimesStages / (kDenseStages * kDenseStages);
  effort.coldWalks = 3;
  effort.idleWalks = 5;
  effort.fewInstructions = 2000;
  effort.orders = std::numeric_limits<int>::max();
  effort.orderDivisor = 2;
  effort.guardsProgramOrder = true;
  return effort;
}

int64_t Effort::workOf(int64_t stages) const {
  int64_t n = std::max<int64_t>(stages, 1), work = 0;
  if (n <= kDenseStages)
    work = std::min(
        kMostWorkPerStage * n,
        std::clamp(workPerSmallStage * n, leastSmallWork, mostSmallWork));
  else
    work = std::max(std::min(kWorkTimesStages / n, workPerLargeStage * n),
                    kLeastWorkPerStage * n);
  work = int64_t(double(work) * std::max(percent, 0.0) / 100);
  return mostWork > 0 ? std::min(work, mostWork) : work;
}

Effort Effort::scaled(int64_t percent) const {
  Effort effort = *this;
  effort.percent = std::max(1.0, this->percent * double(percent) / 100);
  if (percent < 100)
    effort.leastPercent = leastPercent * double(percent) / 100;
  if (mostWork > 0)
    effort.mostWork = std::max<int64_t>(1, mostWork * percent / 100);
  return effort;
}

Effort Effort::part(int64_t part) const {
  Effort effort = *this;
  double smaller = percent / double(part);
  if (smaller >= 1)
    smaller = std::floor(smaller);
  effort.percent = std::max(leastPercent, smaller);
  if (mostWork > 0)
    effort.mostWork = std::max<int64_t>(1, mostWork / part);
  return effort;
}
