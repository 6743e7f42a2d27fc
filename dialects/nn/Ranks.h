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

/// The elements of a shard are a multiple of this number: a page of f32, and
/// whole blocks of codes.
constexpr int64_t kShardUnit = 4096;

/// The elements of each rank's shard of a value of `elements`, padding
/// included.
int64_t shardElements(int64_t elements, int64_t ranks);
/// True if a tensor is large enough to be cut in shards.
bool hasShards(mlir::Type tensor, int64_t ranks);

} // namespace tmc::nn

#endif // TMC_DIALECTS_NN_RANKS_H
