// Ranks.h - axes of a mesh, in the dialect and in the runtime.

#ifndef TMC_DIALECTS_NN_RANKS_H
#define TMC_DIALECTS_NN_RANKS_H

#include "dialects/nn/NN.h"
#include "runtime/kernels/Mesh.h"

namespace tmc::nn {

/// The runtime's axis of the dialect's.
constexpr tmc::Axis runtimeAxis(Axis axis) {
  static_assert(int(Axis::Data) == int(tmc::Axis::Data) &&
                int(Axis::Tensor) == int(tmc::Axis::Tensor) &&
                int(Axis::Pipeline) == int(tmc::Axis::Pipeline));
  return tmc::Axis(axis);
}

} // namespace tmc::nn

#endif // TMC_DIALECTS_NN_RANKS_H
