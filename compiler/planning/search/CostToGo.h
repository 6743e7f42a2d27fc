// CostToGo.h - bounds the cost of a plan from a stage on, given the values in
// memory there.
//
// Prices per byte for each stage (`Bound.h`) give holding a value a cost. Each
// value that is read later costs until then at least
//
//     in memory       the lesser of holding it and recomputing it
//     not in memory   its recomputation, and that of each of its inputs that
//                     isn't in memory either, and so on
//
// Each later gap of a value costs the lesser of the two, and each stage costs
// its price times the bytes that it needs beyond the limit. The sum, less the
// price of the bytes that the limit leaves free, is a lower bound on the future
// cost of a plan if each value is made by one recipe. It ranks the states of a
// beam (`Beam.h`); it isn't used as a proof.

#ifndef TMC_COMPILER_PLANNING_SEARCH_COSTTOGO_H
#define TMC_COMPILER_PLANNING_SEARCH_COSTTOGO_H

#include "compiler/planning/search/LinearProblem.h"

#include <algorithm>

namespace tmc::planning {

/// A set of values is an array of words, a bit for each.
using Word = uint64_t;
inline bool contains(const Word *set, ValueId v) {
  return set[v / 64] >> v % 64 & 1;
}
inline void add(Word *set, ValueId v) { set[v / 64] |= Word(1) << v % 64; }
inline void drop(Word *set, ValueId v) { set[v / 64] &= ~(Word(1) << v % 64); }

/// Calls `visit` with each value of a set; `visit` may change the set.
template <typename Visit>
void forEach(const Word *set, size_t words, Visit &&visit) {
  for (size_t w = 0; w < words; ++w)
    for (Word rest = set[w]; rest; rest &= rest - 1)
      visit(ValueId(w * 64 + size_t(__builtin_ctzll(rest))));
}

class CostToGo {
public:
  CostToGo(const LinearProblem &linear, int64_t limit,
           const std::vector<double> &prices);

  /// The least future cost of a state that holds `set` before `stage`. Fills
  /// `toMake`, if not null, with missing values that must be recomputed.
  double bound(const Word *set, int32_t stage, Word *toMake = nullptr);

  /// Growth of `bound` if `v` leaves a set.
  double loss(Word *set, ValueId v, int32_t stage, double before) {
    drop(set, v);
    double after = bound(set, stage);
    add(set, v);
    return after - before;
  }
  int32_t nextUse(ValueId v, int32_t stage) const {
    auto at = std::lower_bound(uses[v].begin(), uses[v].end(), stage);
    return at == uses[v].end() ? n : *at;
  }

  const LinearProblem &linear;
  int32_t n;
  size_t words;
  /// The last stage in which a value can be of use.
  std::vector<int32_t> useful;
  int64_t steps = 0;

private:
  struct Wanted { // A value made before a stage and read in it or later.
    ValueId value;
    double held; // Cost to hold it until then, or to recompute it if cheaper.
  };
  std::vector<std::vector<int32_t>> uses; // Stages that read a value.
  std::vector<double> recomputeCost;      // Cost of recomputing a value.
  std::vector<std::vector<ValueId>> inputs;
  std::vector<std::vector<Wanted>> wanted; // Per stage.
  std::vector<double> rest; // Cost of gaps that begin at a stage or later.
  std::vector<ValueId> stack;
  std::vector<Word> seen;
};

} // namespace tmc::planning

#endif // TMC_COMPILER_PLANNING_SEARCH_COSTTOGO_H
