//===- Mesh.h - ranks in three directions -----------------------*- C++ -*-===//
//
// The ranks of a world form a mesh of dp x tp x pp: data, tensor and pipeline
// parallelism. Tensor parallelism is innermost, since it needs the fastest
// links:
//
//     rank = (pipeline * DP + data) * TP + tensor
//
//     DP = 2, TP = 2, PP = 1:    data 0    0  1     the group of axis Tensor
//                                data 1    2  3     of rank 2 is {2, 3}, and
//                                                   of axis Data is {0, 2}
//
// The group of an axis holds the ranks that differ in that axis alone, in the
// order of their place on it.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_NETWORK_MESH_H
#define TMC_RUNTIME_NETWORK_MESH_H

#include <cstdint>
#include <string>
#include <vector>

namespace tmc {

enum class Axis : uint8_t { Data, Tensor, Pipeline };

struct Mesh {
  int data = 1, tensor = 1, pipeline = 1; // sizes, at least 1

  int64_t ranks() const { return int64_t(data) * tensor * pipeline; }
  int size(Axis axis) const {
    return axis == Axis::Data ? data : axis == Axis::Tensor ? tensor : pipeline;
  }
  /// The distance of two neighbours of an axis, in ranks.
  int stride(Axis axis) const {
    return axis == Axis::Tensor ? 1
           : axis == Axis::Data ? tensor
                                : tensor * data;
  }
  /// The place of `rank` on an axis.
  int place(Axis axis, int rank) const {
    return rank / stride(axis) % size(axis);
  }
  std::vector<int> group(Axis axis, int rank) const {
    const int first = rank - place(axis, rank) * stride(axis);
    std::vector<int> members;
    for (int i = 0; i < size(axis); ++i)
      members.push_back(first + i * stride(axis));
    return members;
  }
  /// "dp=2 tp=2 pp=1".
  std::string text() const {
    return "dp=" + std::to_string(data) + " tp=" + std::to_string(tensor) +
           " pp=" + std::to_string(pipeline);
  }
};

} // namespace tmc

#endif // TMC_RUNTIME_NETWORK_MESH_H
