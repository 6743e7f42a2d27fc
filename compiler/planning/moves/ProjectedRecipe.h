// ProjectedRecipe.h - recipes of a problem that has fewer spaces or engines.
//
// Projections see a problem without its spaces (Projection.h) or without its
// networks (NetworkProjection.h). Each value of the whole problem has one
// there, and a recipe is the same on other numbers.

#ifndef TMC_COMPILER_PLANNING_MOVES_PROJECTEDRECIPE_H
#define TMC_COMPILER_PLANNING_MOVES_PROJECTEDRECIPE_H

#include "compiler/planning/model/Problem.h"

#include <algorithm>

namespace tmc::planning {

inline bool contains(const std::vector<ValueId> &list, ValueId v) {
  return std::find(list.begin(), list.end(), v) != list.end();
}

/// `r` on the values `at(v)`.
template <typename At> Recipe onValues(Recipe r, At &&at) {
  for (std::vector<ValueId> *list : {&r.reads, &r.writes})
    for (ValueId &v : *list)
      v = at(v);
  for (Overwrite &o : r.overwrites)
    o = {at(o.read), at(o.written), o.must};
  return r;
}

/// Makes `r`, which writes a new version, write it in the old one's place: with
/// one space, every update is in place.
inline void updateInPlace(const Problem &problem, Recipe &r, ValueId written) {
  const ValueId old = problem.values[written].updates;
  if (!contains(r.reads, old))
    r.reads.push_back(old);
  for (Overwrite &o : r.overwrites)
    if (o.read == old && o.written == written) {
      o.must = true;
      return;
    }
  r.overwrites.push_back({old, written, true});
}

} // namespace tmc::planning

#endif // TMC_COMPILER_PLANNING_MOVES_PROJECTEDRECIPE_H
