// Interrupt.h - the cleanup of a process that a signal ends.
//
// While a step directory is being written, its staging directory is known here.
// SIGINT, SIGTERM and SIGHUP end the host compiler, remove the staging
// directory, and end the process with the exit code of the signal. The handler
// uses only async-signal-safe calls.

#ifndef TMC_DRIVER_PIPELINE_INTERRUPT_H
#define TMC_DRIVER_PIPELINE_INTERRUPT_H

#include <string>

namespace tmc {

void installInterruptHandler();

/// From now on a signal that ends the process removes `staging`, a directory of
/// plain files, and then `parent`, if that isn't "" and is empty.
void removeWhenStopped(const std::string &staging, const std::string &parent);

/// Nothing is removed from now on.
void keepWhenStopped();

/// Removes at once the directories that a signal would remove.
void removeStaged();

/// Ends a process group, given its first process. That process may not have
/// created the group yet.
void killGroup(int group);

/// The most process groups that may run for this process at a time.
constexpr int kMostRunningGroups = 16;

/// Sets the process group that runs in place `slot`; 0: none.
void setRunningGroup(int slot, int group);

} // namespace tmc

#endif // TMC_DRIVER_PIPELINE_INTERRUPT_H
