//===- Checks.h - what every cpu kernel's prepare() asks --------*- C++ -*-===//
//
// Refusals in one wording.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_CPU_CHECKS_H
#define TMC_RUNTIME_CPU_CHECKS_H

#include "runtime/kernels/Kernel.h"

#include <string>

namespace tmc::cpu {

/// Unsupported, unless `type` is f32.
inline Status requireType(const char *kernel, DType type) {
  if (type == DType::F32)
    return Status::ok();
  return {Code::Unsupported, std::string(kernel) +
                                 " on cpu has no kernel for " + nameOf(type) +
                                 ", only for f32"};
}

/// Unsupported, unless `type` is i32 or i64.
inline Status requireIndexType(const char *kernel, DType type) {
  if (type == DType::I32 || type == DType::I64)
    return Status::ok();
  return {Code::Unsupported, std::string(kernel) + " on cpu takes i32 or i64 " +
                                 "indices, not " + nameOf(type)};
}

/// OverBudget, if more scratch is wanted than was planned.
inline Status requireScratch(const char *kernel, int64_t wanted,
                             int64_t planned) {
  if (wanted <= planned)
    return Status::ok();
  return {Code::OverBudget, std::string(kernel) + " on cpu wants " +
                                std::to_string(wanted) + " bytes of scratch; " +
                                std::to_string(planned) + " were planned"};
}

/// Element i of an index buffer of either type.
inline int64_t indexAt(const void *indices, DType type, int64_t i) {
  return type == DType::I64 ? static_cast<const int64_t *>(indices)[i]
                            : static_cast<const int32_t *>(indices)[i];
}

} // namespace tmc::cpu

#endif // TMC_RUNTIME_CPU_CHECKS_H
