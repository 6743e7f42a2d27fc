// FileWords.h - what messages about files of tensors share.

#ifndef TMC_COMPILER_SUPPORT_FILEWORDS_H
#define TMC_COMPILER_SUPPORT_FILEWORDS_H

#include "compiler/support/Failure.h"
#include "runtime/kernels/Status.h"

#include <string>
#include <vector>

namespace tmc {

/// The failure of a reader of the runtime, which has no notes.
inline Failure failureOf(const Status &status) {
  return {FailureKind(status.code()), status.message(), {}};
}

/// "'a', 'b' and 3 more".
std::string listed(const std::vector<std::string> &names);

} // namespace tmc

#endif // TMC_COMPILER_SUPPORT_FILEWORDS_H
