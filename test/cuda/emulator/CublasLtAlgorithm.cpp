//===- CublasLtAlgorithm.cpp - the stand-in's algorithms ------------------===//

#include "test/cuda/emulator/CublasLtAlgorithm.h"

namespace tmc::emulator {

AlgorithmOptions optionsOf(Way way) {
  switch (way) {
  case Way::Whole:
    return {.id = 10,
            .tile = 20,
            .swizzle = 1,
            .stages = 5,
            .innerShape = 3,
            .clusterShape = 2};
  case Way::Parts:
    return {.id = 10,
            .tile = 18,
            .splitK = uint32_t(kParts),
            .reduction = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE,
            .custom = 1,
            .stages = 4,
            .innerShape = 4,
            .clusterShape = 1};
  case Way::Blocks:
    return {.id = 11,
            .tile = 15,
            .custom = 2,
            .stages = 6,
            .innerShape = 5,
            .clusterShape = 7};
  }
  return {};
}

std::optional<Way> wayOf(AlgorithmOptions options) {
  if (options.splitK > 1 &&
      options.reduction == CUBLASLT_REDUCTION_SCHEME_INPLACE)
    options.reduction = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
  for (int way = 0; way < kWays; ++way)
    if (options == optionsOf(Way(way)))
      return Way(way);
  return std::nullopt;
}

uint32_t hashOfTypes(cublasComputeType_t compute, cudaDataType_t scale,
                     cudaDataType_t a, cudaDataType_t b, cudaDataType_t c,
                     cudaDataType_t d) {
  uint32_t hash = uint32_t(compute) + 1;
  for (cudaDataType_t type : {scale, a, b, c, d})
    hash = hash * 31 + uint32_t(type);
  return hash;
}

namespace {

/// Calls `access` with the option that `attribute` names.
template <typename Options, typename F>
cublasStatus_t withOption(Options &options,
                          cublasLtMatmulAlgoConfigAttributes_t attribute,
                          F access) {
  switch (attribute) {
  case CUBLASLT_ALGO_CONFIG_ID:
    return access(options.id);
  case CUBLASLT_ALGO_CONFIG_TILE_ID:
    return access(options.tile);
  case CUBLASLT_ALGO_CONFIG_SPLITK_NUM:
    return access(options.splitK);
  case CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME:
    return access(options.reduction);
  case CUBLASLT_ALGO_CONFIG_CTA_SWIZZLING:
    return access(options.swizzle);
  case CUBLASLT_ALGO_CONFIG_CUSTOM_OPTION:
    return access(options.custom);
  case CUBLASLT_ALGO_CONFIG_STAGES_ID:
    return access(options.stages);
  case CUBLASLT_ALGO_CONFIG_INNER_SHAPE_ID:
    return access(options.innerShape);
  case CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID:
    return access(options.clusterShape);
  }
  return CUBLAS_STATUS_INVALID_VALUE;
}

} // namespace

} // namespace tmc::emulator

using namespace tmc::emulator;

extern "C" {

size_t cublasLtGetVersion() { return CUBLAS_VERSION; }

cublasStatus_t cublasLtMatmulAlgoInit(cublasLtHandle_t,
                                      cublasComputeType_t compute,
                                      cudaDataType_t scale, cudaDataType_t a,
                                      cudaDataType_t b, cudaDataType_t c,
                                      cudaDataType_t d, int id,
                                      cublasLtMatmulAlgo_t *algo) {
  if (!algo ||
      (id != optionsOf(Way::Whole).id && id != optionsOf(Way::Blocks).id))
    return CUBLAS_STATUS_INVALID_VALUE;
  const Algorithm made{kAlgorithmMagic,
                       {.id = id},
                       hashOfTypes(compute, scale, a, b, c, d),
                       0,
                       {16, 16, 16, 16}};
  std::memcpy(algo, &made, sizeof made);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoConfigSetAttribute(
    cublasLtMatmulAlgo_t *algo, cublasLtMatmulAlgoConfigAttributes_t attribute,
    const void *value, size_t bytes) {
  Algorithm its = algorithmIn(*algo);
  if (its.magic != kAlgorithmMagic || !value ||
      attribute == CUBLASLT_ALGO_CONFIG_ID) // read only
    return CUBLAS_STATUS_INVALID_VALUE;
  const cublasStatus_t done =
      withOption(its.options, attribute, [&](auto &option) {
        if (bytes != sizeof option)
          return CUBLAS_STATUS_INVALID_VALUE;
        std::memcpy(&option, value, bytes);
        return CUBLAS_STATUS_SUCCESS;
      });
  std::memcpy(algo, &its, sizeof its);
  return done;
}

cublasStatus_t cublasLtMatmulAlgoConfigGetAttribute(
    const cublasLtMatmulAlgo_t *algo,
    cublasLtMatmulAlgoConfigAttributes_t attribute, void *value, size_t bytes,
    size_t *written) {
  Algorithm its = algorithmIn(*algo);
  if (its.magic != kAlgorithmMagic || !value)
    return CUBLAS_STATUS_INVALID_VALUE;
  return withOption(its.options, attribute, [&](const auto &option) {
    if (bytes != sizeof option)
      return CUBLAS_STATUS_INVALID_VALUE;
    std::memcpy(value, &option, bytes);
    if (written)
      *written = bytes;
    return CUBLAS_STATUS_SUCCESS;
  });
}
}
