//===- AlgorithmFields.h - the numbers of an algorithm by name --*- C++ -*-===//
//
// Apart from Algorithms.h, which steps include: g++ warns about pointers to
// members in the text that nvcc makes of a step.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_KERNELS_ALGORITHMFIELDS_H
#define TMC_RUNTIME_KERNELS_ALGORITHMFIELDS_H

#include "runtime/kernels/Algorithms.h"

namespace tmc {

/// A number of an algorithm, by name: in files and in steps.
struct AlgorithmField {
  const char *name;
  int32_t ProductAlgorithm::*number;
  int32_t most; // The least is 0.
};
constexpr AlgorithmField kAlgorithmFields[] = {
    {"id", &ProductAlgorithm::id, INT32_MAX},
    {"tile", &ProductAlgorithm::tile, INT32_MAX},
    {"stages", &ProductAlgorithm::stages, INT32_MAX},
    {"splitK", &ProductAlgorithm::splitK, INT32_MAX},
    {"reduction", &ProductAlgorithm::reduction, INT32_MAX},
    {"swizzle", &ProductAlgorithm::swizzle, INT32_MAX},
    {"custom", &ProductAlgorithm::custom, INT32_MAX},
    {"innerShape", &ProductAlgorithm::innerShape, UINT16_MAX},
    {"clusterShape", &ProductAlgorithm::clusterShape, UINT16_MAX}};

} // namespace tmc

#endif // TMC_RUNTIME_KERNELS_ALGORITHMFIELDS_H
