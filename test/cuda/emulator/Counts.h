//===- Counts.h - what a card was asked to do -------------------*- C++ -*-===//
//
// Counts of the whole process, for tests that compare a step's work with what
// its plan says. A C interface, so that a script can ask a loaded step.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_TEST_CUDA_EMULATOR_COUNTS_H
#define TMC_TEST_CUDA_EMULATOR_COUNTS_H

#include <cstdint>

namespace tmc::emulator {

struct Counts {
  int64_t kernels = 0; // a library's product or convolution is one
  /// Products by tensor cores that break a condition of cuBLASLt's
  /// documentation ("Tensor Core Usage"): sizes, leading dimensions and
  /// addresses of whole 16 bytes.
  int64_t unalignedProducts = 0;
  /// By the ways of CublasLtAlgorithm.h.
  int64_t productsByWay[3] = {};
  int64_t graphs = 0; // launches of graphs; their kernels count, too

  Counts &add(const Counts &other, int64_t sign) {
    kernels += sign * other.kernels;
    unalignedProducts += sign * other.unalignedProducts;
    for (int way = 0; way < 3; ++way)
      productsByWay[way] += sign * other.productsByWay[way];
    graphs += sign * other.graphs;
    return *this;
  }
  Counts operator+(const Counts &other) const {
    return Counts(*this).add(other, 1);
  }
  Counts operator-(const Counts &other) const {
    return Counts(*this).add(other, -1);
  }
};
Counts &counts();

} // namespace tmc::emulator

extern "C" {
int64_t tmc_emulator_kernels();
int64_t tmc_emulator_unaligned_products();
int64_t tmc_emulator_products_by_way(int way);
int64_t tmc_emulator_graphs();
}

#endif // TMC_TEST_CUDA_EMULATOR_COUNTS_H
