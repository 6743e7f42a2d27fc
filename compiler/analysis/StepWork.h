// StepWork.h - what a placed step makes its device do, in numbers.
//
// The figures of reports that need no clock: kernels that the device runs,
// bytes that these read and write, and two defects of matrix products that cost
// more than their bytes.

#ifndef TMC_COMPILER_ANALYSIS_STEPWORK_H
#define TMC_COMPILER_ANALYSIS_STEPWORK_H

#include "dialects/mem/Mem.h"
#include "dialects/train/Train.h"

#include <map>
#include <string>

namespace tmc {

/// The work of one step on the device's engine for kernels, all trips of its
/// loops together. On the cpu only the bytes are known; -1: unknown.
struct StepWork {
  struct Family {
    int64_t launches = 0, bytes = 0;
  };
  /// By the runtime's class, generated kernels as "Fused".
  std::map<std::string, Family> families;
  int64_t deviceLaunches = -1; // Kernels of the device; a product is one.
  int64_t bytesMoved = -1;     // Operands and results of all launches.
  int64_t productBytes = -1;   // Those of matrix products.
  /// Products of factors in 16 bits, 8 bits or TF32 with a row or an address
  /// that isn't a multiple of 16 bytes. cuBLASLt's fast kernels want all of
  /// them so: m, n, k, three leading dimensions, three addresses.
  int64_t unalignedProducts = -1;
};

StepWork workOf(mem::ProgramOp program, Backend backend);

/// The number of products of `step` to whose result another kernel adds a
/// vector that a product could add itself: one of the step's arguments, along
/// the innermost dimension.
int64_t unfoldedBiases(train::StepOp step);

} // namespace tmc

#endif // TMC_COMPILER_ANALYSIS_STEPWORK_H
