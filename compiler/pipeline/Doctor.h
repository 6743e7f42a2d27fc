// Doctor.h - what this machine lacks to compile and run steps, and the fix.
//
// Each check tries the thing itself: a compiler compiles a line that includes
// the runtime's headers, a library is linked. Nothing that `tmc compile` does
// depends on what is found here.

#ifndef TMC_COMPILER_PIPELINE_DOCTOR_H
#define TMC_COMPILER_PIPELINE_DOCTOR_H

#include "compiler/pipeline/HostCompiler.h"

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

#endif // TMC_COMPILER_PIPELINE_DOCTOR_H
