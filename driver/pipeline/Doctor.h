// Doctor.h - the tools that this machine lacks to compile and run steps, and
// fixes.
//
// Each check tries the real operation: a compiler compiles a line that includes
// the runtime's headers, a library is linked. `tmc compile` does not use the
// results.

#ifndef TMC_DRIVER_PIPELINE_DOCTOR_H
#define TMC_DRIVER_PIPELINE_DOCTOR_H

#include "driver/pipeline/HostCompiler.h"

#include <string>
#include <vector>

namespace tmc {

struct Finding {
  /// Fact: neither good nor bad. Doubt: works, but look at it.
  enum State { Good, Fact, Doubt, Missing };
  State state = Good;
  std::string name, detail;
  std::string fix; // Where something is missing or in doubt.
};

struct Diagnosis {
  std::vector<Finding> machine, cpu, cuda;

  /// Whether steps for `backend` can be compiled here.
  bool works(Backend backend) const;
};

Diagnosis examine();

/// The table that `tmc doctor` prints; `isColoured`: for a terminal.
std::string diagnosisTable(const Diagnosis &diagnosis, bool isColoured);

} // namespace tmc

#endif // TMC_DRIVER_PIPELINE_DOCTOR_H
