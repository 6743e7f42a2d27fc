// AnyOrderInputs.h - the part of the sum of `AnyOrder.h` that is about inputs.
//
// A moment has *slots*. One is for each value that is certain there and may be
// written again; others are for inputs of these that aren't certain. A *pair*
// is a value's slot and its input's.

#ifndef TMC_COMPILER_PLANNING_BOUND_ANYORDERINPUTS_H
#define TMC_COMPILER_PLANNING_BOUND_ANYORDERINPUTS_H

#include "compiler/planning/bound/AnyOrderGaps.h"
#include "compiler/planning/bound/PrimalDual.h"

#include <algorithm>

namespace tmc::planning {

class AnyOrderSum;

class AnyOrderInputs {
public:
  struct Slot {
    ValueId value = kNone;
    int64_t bytes = 0;
    bool isCertain = false;
    AnyOrderGaps::Range gaps; // G of a certain value, F of an input.
  };
  struct Pair {
    int32_t value = kNone, input = kNone; // Slots of one moment.
  };
  struct Moment {
    InstructionId moment = kNone;
    int64_t need = 0;
    int32_t firstSlot = 0, lastSlot = 0; // The last ones excluded.
    int32_t firstPair = 0, lastPair = 0;
  };
  /// Prices of a byte by moment, and of pairs.
  template <typename N> struct Prices { std::vector<N> bytes, pairs; };

  /// All slots and pairs of rows that need more than `limitBytes`. Adds the
  /// gaps of inputs to `gaps`.
  AnyOrderInputs(AnyOrderGaps &gaps,
                 const std::vector<AnyOrderGraph::Row> &rows,
                 int64_t limitBytes);

  /// The part of the sum but for what gaps are paid back. Adds the rents that
  /// gaps pay.
  template <typename N>
  N addRents(const Prices<N> &at, std::vector<N> &rents) const {
    N sum = N(0);
    std::vector<N> ofSlot(slots.size(), N(0));
    auto pay = [&](AnyOrderGaps::Range range, N rent) {
      for (int32_t g = range.begin; g < range.end; ++g)
        rents[g] += rent;
    };
    for (size_t p = 0; p < pairs.size(); ++p) {
      ofSlot[pairs[p].value] += at.pairs[p];
      ofSlot[pairs[p].input] += at.pairs[p];
      pay(slots[pairs[p].input].gaps, at.pairs[p]);
    }
    for (size_t m = 0; m < moments.size(); ++m) {
      sum += at.bytes[m] * N(moments[m].need);
      for (int32_t s = moments[m].firstSlot; s < moments[m].lastSlot; ++s) {
        const N left = at.bytes[m] * N(slots[s].bytes) - ofSlot[s];
        if (slots[s].isCertain)
          pay(slots[s].gaps, std::max(N(0), left));
        else
          sum += std::min(N(0), left);
      }
    }
    return sum;
  }

  /// The prices that `work` operations find for these rows. `ofSum` receives
  /// those of the rows of `sum`, which has the gaps.
  Prices<double> price(const AnyOrderSum &sum, int64_t work,
                       std::vector<double> &ofSum) const;

  std::vector<Slot> slots;
  std::vector<Pair> pairs;
  std::vector<Moment> moments;

private:
  void addMoment(AnyOrderGaps &gaps, const AnyOrderGraph::Row &row,
                 int64_t need);
};

} // namespace tmc::planning

#endif // TMC_COMPILER_PLANNING_BOUND_ANYORDERINPUTS_H
