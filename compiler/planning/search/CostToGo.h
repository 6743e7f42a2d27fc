// CostToGo.h - what is yet to be paid from a stage on, by what is in memory
// then.
//
// Prices per byte for each stage (`Bound.h`) put a price on holding a value. So
// of each value that is read later at least this is paid until then:
//
//     in memory       the lesser of holding it and of recomputing it
//     not in memory   recomputing it, and so for each of its inputs that isn't
//                     in memory either, and for theirs
//
// and for each of its later gaps the lesser of the two, as well as the prices
// times what each stage needs beyond the limit. With the bytes that the limit
// leaves taken off, the sum is a bound from below on what a plan still costs,
// where each value is made by one recipe; it ranks the states of a beam
// (`Beam.h`) and proves nothing to anybody.

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

/// Calls `visit` with each value of a set; it may change the set.
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

  /// The least that is yet to be paid by a state that has `set` before `stage`.
  /// Also, if asked for, what is missing and will have to be recomputed.
  double bound(const Word *set, int32_t stage, Word *toMake = nullptr);

  /// What `bound` grows by if `v` leaves a set.
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
  /// The last stage in which a value can be of any use.
  std::vector<int32_t> useful;
  int64_t steps = 0;

private:
  struct Wanted { // Made before a stage and read in it or later.
    ValueId value;
    double held; // Until then, or recomputed if that is cheaper.
  };
  std::vector<std::vector<int32_t>> uses; // Stages that read a value.
  std::vector<double> recomputeCost;      // Cost of recomputing a value.
  std::vector<std::vector<ValueId>> inputs;
  std::vector<std::vector<Wanted>> wanted; // Of each stage.
  std::vector<double> rest; // Of what begins at a stage or later.
  std::vector<ValueId> stack;
  std::vector<Word> seen;
};

} // namespace tmc::planning

#endif // TMC_COMPILER_PLANNING_SEARCH_COSTTOGO_H
