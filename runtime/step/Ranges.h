//===- Ranges.h - the elements of a box of an input -------------*- C++ -*-===//
#ifndef TMC_RUNTIME_STEP_RANGES_H
#define TMC_RUNTIME_STEP_RANGES_H

#include "runtime/kernels/Status.h"
#include "runtime/step/Homes.h"
#include "runtime/step/Program.h"

#include <vector>

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

/// Code::BadInput if an element of `data`, the values of `tensor`, is outside
/// of its range.
Status checkRange(const TensorInfo &tensor, const void *data);

/// The same for the values that tensors have now, for those that are `chosen`,
/// by tensor.
Status checkRanges(const StepProgram &program, const Homes &homes,
                   const std::vector<bool> &chosen);

} // namespace tmc

#endif // TMC_RUNTIME_STEP_RANGES_H
