//===- GemmAlgorithms.h - algorithms of cuBLASLt's products -----*- C++ -*-===//
//
// Translates between the library's algorithms and their numbers in a table
// (runtime/kernels/Algorithms.h), and times a product's candidates:
//
//     device's arena   | lhs | rhs | bias | scales | result | workspace |  ...
//     candidate 0 .. 7   one run each, not counted
//     round 0 .. 6       [event run event] for each candidate
//
// Each candidate multiplies the same numbers: the power that a card takes, and
// so its clock, depends on them. A candidate's time is the median of its
// rounds. Rounds alternate between candidates, so that a change of the clock
// meets all of them.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_CUDA_GEMMALGORITHMS_H
#define TMC_RUNTIME_CUDA_GEMMALGORITHMS_H

#include "runtime/cuda/Gemm.h"
#include "runtime/kernels/Algorithms.h"

#include <cublasLt.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace tmc::cuda {

/// The required alignment of the library's workspace, in bytes.
constexpr int64_t kWorkspaceAlign = 256;

/// The library's constant for an element type.
cudaDataType_t dataType(DType type);
cublasComputeType_t computeType(const Matmul::Params &params);
cudaDataType_t scaleType(const Matmul::Params &params);

/// A product by the library's descriptions.
struct GemmCall {
  cublasLtHandle_t handle = nullptr;
  cublasLtMatmulDesc_t operation = nullptr;
  cublasLtMatrixLayout_t a = nullptr, b = nullptr, c = nullptr;
};

/// An algorithm that can run within the planned workspace.
struct GemmAlgorithm {
  cublasLtMatmulAlgo_t algorithm{};
  size_t workspaceBytes = 0;
};

/// The text by which tables know a product: the object of prices
/// (compiler/target/Prices.h), and the stride of lhs if it has one.
std::string productText(const Matmul::Params &params, int64_t lhsStride);

/// The numbers of an algorithm; none if the library doesn't say them.
std::optional<ProductAlgorithm> numbersOf(const cublasLtMatmulAlgo_t &from);

/// The algorithm with these numbers. None if the library doesn't take it for
/// the product, or if it needs more than `limit` bytes.
std::optional<GemmAlgorithm> algorithmOf(const ProductAlgorithm &numbers,
                                         const GemmCall &call,
                                         const Matmul::Params &params,
                                         int64_t limit);

/// A product's operands in the arena, which holds nothing else yet.
struct TunedOperands {
  Gemm::Operands operands;
  char *out = nullptr, *workspace = nullptr;

  /// Fills the operands with numbers in [1/2, 1) of either sign, and scales
  /// with 1. None if the arena is too small.
  static std::optional<TunedOperands>
  place(CudaDevice &device, const Matmul::Params &params, int64_t lhsStride);
};

/// The median seconds of each candidate; a negative number for one that fails.
/// `run` queues one product by a candidate on the device's compute stream.
Status timeCandidates(CudaDevice &device,
                      const std::vector<GemmAlgorithm> &candidates,
                      const std::function<Status(const GemmAlgorithm &)> &run,
                      std::vector<double> &seconds);

} // namespace tmc::cuda

#endif // TMC_RUNTIME_CUDA_GEMMALGORITHMS_H
