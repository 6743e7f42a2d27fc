// ScheduleCheck.h - proves that a placed program has no races between engines.
//
// A program states the engine of each entry and the events that order the
// engines. This checker doesn't use the plan: it unrolls the program, gives
// every entry a vector clock, and looks only at bytes.
//
//     mem.copy %a to %b on d2h      reads  device [0x1000, 0x2000)
//     mem.launch ... -> (%c)        writes device [0x1000, 0x2000)
//                                   unless a wait stands between them, that is
//                                   an error: 'c' is written on compute while
//                                   d2h may still read 'a'
//
// For every access to every byte of every arena:
//
//   - the last write of the byte is over before the byte is read or written,
//   - all reads since that write are over before the byte is written,
//   - a read finds the bytes that this step or the one before wrote to the
//     buffer that is read, and not the bytes of another buffer.
//
// The step runs twice, so that buffers that last between steps are checked
// across its end, and a loop's body runs up to three times. At the end of a
// step all engines are idle. At the done of work that touches the device the
// kernels have waited for it.

#ifndef TMC_COMPILER_ANALYSIS_SCHEDULECHECK_H
#define TMC_COMPILER_ANALYSIS_SCHEDULECHECK_H

#include "dialects/mem/Mem.h"

#include <optional>
#include <string>

namespace tmc {

struct ScheduleFault {
  mlir::Operation *at = nullptr;
  std::string message;
  mlir::Operation *other = nullptr; // The op that it conflicts with, or null.
};

/// The first fault of a placed program, in the order in which it runs.
std::optional<ScheduleFault> checkSchedule(mem::ProgramOp program);

} // namespace tmc

#endif // TMC_COMPILER_ANALYSIS_SCHEDULECHECK_H
