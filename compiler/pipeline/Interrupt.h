// Interrupt.h - what a process that is told to stop leaves behind: nothing.
//
// While a step directory is being written, its staging directory is known here.
// SIGINT, SIGTERM and SIGHUP end the host compiler, remove the staging
// directory, and the process with the exit code of the signal. Only calls that
// a signal handler may make are used.

#ifndef TMC_COMPILER_PIPELINE_INTERRUPT_H
#define TMC_COMPILER_PIPELINE_INTERRUPT_H

#include <string>

namespace tmc {

void installInterruptHandler();

/// From now on `staging`, a directory of plain files, is removed when the
/// process is stopped, and then `parent`, if that isn't "" and is empty.
void removeWhenStopped(const std::string &staging, const std::string &parent);

/// Nothing is removed from now on.
void keepWhenStopped();

/// Removes at once what would be removed when the process is stopped.
void removeStaged();

/// Ends a group by its first process, which may not have founded it yet.
void killGroup(int group);

/// How many process groups may run for us at a time.
constexpr int kMostRunningGroups = 16;

/// The process group that runs for us in place `slot`; 0: none.
void setRunningGroup(int slot, int group);

} // namespace tmc

#endif // TMC_COMPILER_PIPELINE_INTERRUPT_H
