//===- Checks.h - checks of every cpu kernel's prepare() --------*- C++ -*-===//
//
// Common error messages.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_CPU_CHECKS_H
#define TMC_RUNTIME_CPU_CHECKS_H

#include "runtime/kernels/Kernel.h"

#include <string>

namespace tmc::cpu {

/// OverBudget if a kernel needs more scratch than planned.
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
