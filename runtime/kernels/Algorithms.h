//===- Algorithms.h - measured algorithms of products -----------*- C++ -*-===//
//
// cuBLASLt has many algorithms for a product, and its heuristic guesses which
// one is the fastest. A table has the fastest ones by measurement:
//
//     train --tune-algorithms=FILE     times the heuristic's candidates
//     tmc compile --algorithms FILE    puts the table into the step
//     Gemm::prepare (runtime/cuda)     takes a product's algorithm from it
//
// A product is known by its types, sizes, layout and epilogue, as one line of
// text (runtime/cuda/GemmAlgorithms.h). The text doesn't depend on the plan, so
// with one table a step has the same bits under each budget.
//
// An algorithm is a number of the library, and numbers of its options. They
// mean something only to one version of the library and to one card, so a table
// names both.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_KERNELS_ALGORITHMS_H
#define TMC_RUNTIME_KERNELS_ALGORITHMS_H

#include <cstdint>

namespace tmc {

/// An algorithm's number and options, as cublasLtMatmulAlgoConfigAttributes_t
/// lists them.
struct ProductAlgorithm {
  int32_t id = 0, tile = 0, stages = 0, splitK = 1, reduction = 0, swizzle = 0,
          custom = 0, innerShape = 0, clusterShape = 0;

  bool operator==(const ProductAlgorithm &) const = default;
};

/// The reduction schemes that a step may use: no parts of k, or parts whose
/// sums are added in a fixed order from the workspace, in the type of the sums.
/// Others add the parts up in the result as they come.
constexpr int32_t kNoReduction = 0, kReductionInWorkspace = 2;
constexpr bool isReproducible(const ProductAlgorithm &algorithm) {
  return algorithm.reduction == kNoReduction ||
         algorithm.reduction == kReductionInWorkspace;
}

struct AlgorithmRow {
  const char *product;
  ProductAlgorithm algorithm;
};

/// The table of a step.
struct AlgorithmTable {
  const char *device = ""; // The card's name.
  int64_t library = 0;     // The version of cuBLASLt: 130100 for 13.1.0.
  const AlgorithmRow *rows = nullptr;
  int64_t count = 0;
};

} // namespace tmc

#endif // TMC_RUNTIME_KERNELS_ALGORITHMS_H
