//===- CublasLtAlgorithm.h - the stand-in's algorithms ----------*- C++ -*-===//
//
// The stand-in's contents of an algorithm's opaque words, and the options that
// its algorithms have. They differ in every option, so that one that is lost or
// mixed up on its way makes an algorithm that doesn't exist:
//
//     way      one sum along k | parts of k, added up in order | blocks of k
//     id                    10 |                            10 | 11
//     splitK, reduction   1, 0 |  3, 2 (in the workspace) or 1 | 1, 0
//
// An algorithm of a query is for one product and for addresses of a known
// alignment. One of numbers is for all products of some types, and for
// addresses of 16 bytes.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_TEST_CUDA_EMULATOR_CUBLASLTALGORITHM_H
#define TMC_TEST_CUDA_EMULATOR_CUBLASLTALGORITHM_H

#include <cublasLt.h>

#include <cstdint>
#include <cstring>
#include <optional>

namespace tmc::emulator {

enum class Way : uint32_t { Whole, Parts, Blocks };
constexpr int kWays = 3;
/// Parts that k is cut into, and how long a block of k is.
constexpr int64_t kParts = 3, kBlock = 32;

struct AlgorithmOptions {
  int32_t id = 0;
  uint32_t tile = 0, splitK = 1, reduction = 0, swizzle = 0, custom = 0,
           stages = 0;
  uint16_t innerShape = 0, clusterShape = 0;

  bool operator==(const AlgorithmOptions &) const = default;
};
AlgorithmOptions optionsOf(Way way);
/// The algorithm with these options, if there is one.
std::optional<Way> wayOf(AlgorithmOptions options);

struct Algorithm {
  uint32_t magic;
  AlgorithmOptions options;
  uint32_t types;       // a hash
  uint64_t shape;       // a hash of what it was chosen for; 0: anything
  uint8_t alignment[4]; // powers of two: of the addresses of A, B, C and D
};
constexpr uint32_t kAlgorithmMagic = 0x6c61676f;
static_assert(sizeof(Algorithm) <= sizeof(cublasLtMatmulAlgo_t));
inline Algorithm algorithmIn(const cublasLtMatmulAlgo_t &words) {
  Algorithm its;
  std::memcpy(static_cast<void *>(&its), &words, sizeof its);
  return its;
}

/// From now on products by this way take at least so long.
void slowProducts(Way way, double seconds);

uint32_t hashOfTypes(cublasComputeType_t compute, cudaDataType_t scale,
                     cudaDataType_t a, cudaDataType_t b, cudaDataType_t c,
                     cudaDataType_t d);

} // namespace tmc::emulator

#endif // TMC_TEST_CUDA_EMULATOR_CUBLASLTALGORITHM_H
