// RefineKnobs.h - from the best of some knobs to better ones.
//
//   - The price is halved while that helps, then doubled while that helps.
//   - Below the best price too much moves. The two prices are bisected.
//   - If a price moved more than other spaces have room for, all that counts is
//     near the last two: equal layers all move at one price, or none does.
//     Plans with and without walks, and with more and less room, are compared
//     there.

#ifndef TMC_COMPILER_PLANNING_DRIVER_REFINEKNOBS_H
#define TMC_COMPILER_PLANNING_DRIVER_REFINEKNOBS_H

#include "compiler/planning/driver/MovesAmounts.h"

#include <cmath>

namespace tmc::planning {

/// The result of a trial. A plan that doesn't fit has no time to compare.
enum class Trial { Gains, DoesNotGain, DoesNotFit };

/// Tries knobs around `at`, at most `count` prices of each kind.
template <typename Attempt>
void refineKnobs(Knobs at, int count, Attempt &&attempt) {
  bool isTooMuch = false;
  auto gains = [&](const Knobs &k) {
    const Trial made = attempt(k);
    if (made == Trial::Gains)
      at = k;
    isTooMuch |= made == Trial::DoesNotFit;
    return made == Trial::Gains;
  };
  auto withPrice = [&](double price) {
    return Knobs{price, at.pieces, at.walks};
  };
  double low = at.price / 2;
  for (int i = 0; i < count && gains(withPrice(low)); ++i)
    low = at.price / 2;
  for (int i = 0; i < count && gains(withPrice(at.price * 2)); ++i)
    ;
  for (int i = 0; low < at.price && i < count; ++i)
    if (const double middle = std::sqrt(low * at.price);
        !gains(withPrice(middle)))
      low = middle;
  if (!isTooMuch)
    return;
  const Knobs best = at;
  for (double price : {best.price, low})
    for (int64_t pieces : {0, 1, 2, 3, 5})
      for (bool walks : {false, true})
        if (pieces != best.pieces || walks != best.walks)
          gains({price, pieces, walks});
}

} // namespace tmc::planning

#endif // TMC_COMPILER_PLANNING_DRIVER_REFINEKNOBS_H
