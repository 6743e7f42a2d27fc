//===- Ranges.h - the elements of a box of an input -------------*- C++ -*-===//
#ifndef TMC_RUNTIME_STEP_RANGES_H
#define TMC_RUNTIME_STEP_RANGES_H

#include "runtime/step/Program.h"

namespace tmc {

/// Calls holds(index) with the row-major number of each element of the box
/// `range` of `tensor`, in order, until one call returns false. True if all
/// calls return true.
template <typename F>
bool allOfRange(const IndexRange &range, const TensorInfo &tensor, F &&holds) {
  int64_t count = 1;
  for (int32_t dim = 0; dim < tensor.rank; ++dim)
    count *= range.sizes[dim];
  for (int64_t i = 0; i < count; ++i) {
    int64_t rest = i, index = 0, stride = 1;
    for (int32_t dim = tensor.rank; dim-- > 0;) {
      index +=
          (range.offsets[dim] + rest % range.sizes[dim] * range.steps[dim]) *
          stride;
      rest /= range.sizes[dim];
      stride *= tensor.dims[dim];
    }
    if (!holds(index))
      return false;
  }
  return true;
}

} // namespace tmc

#endif // TMC_RUNTIME_STEP_RANGES_H
