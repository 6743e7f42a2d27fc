// ScheduleCheck.h - proves that a placed program's engines never meet.
//
// A program says which engine does what, and which events order them. This
// checker knows nothing of the plan: it unrolls the program, gives every entry
// a vector clock, and looks at bytes alone.
//
//     mem.copy %a to %b on d2h      reads  device [0x1000, 0x2000)
//     mem.launch ... -> (%c)        writes device [0x1000, 0x2000)
//                                   unless a wait stands between them, that is
//                                   an error: 'c' is written on compute while
//                                   d2h may still read 'a'
//
// For every access to every byte of every arena:
//
//     - what wrote the byte last is over before it is read or written,
//     - all that has read it since is over before it is written,
//     - what is read is what its buffer was written with, by this step or the
//       one before, and not what another buffer left there.
//
// The step runs twice, so that what is at home between steps is checked around
// its end, and a loop's body up to three times. At the end of a step all
// engines are idle. At the done of work that touches the device the kernels
// have waited for it.

#ifndef TMC_COMPILER_ANALYSIS_SCHEDULECHECK_H
#define TMC_COMPILER_ANALYSIS_SCHEDULECHECK_H

#include "dialects/mem/Mem.h"

#include <optional>
#include <string>

namespace tmc {

struct ScheduleFault {
  mlir::Operation *at = nullptr;
  std::string message;
  mlir::Operation *other = nullptr; // What it meets, or null.
};

/// The first fault of a placed program, in the order in which it runs.
std::optional<ScheduleFault> checkSchedule(mem::ProgramOp program);

} // namespace tmc

#endif // TMC_COMPILER_ANALYSIS_SCHEDULECHECK_H
