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

/// The most directories that are staged at a time.
constexpr int kMostStaged = 16;

/// From now on a signal that ends the process removes `staging`, a directory of
/// plain files, and then `parent`, if that isn't "" and is empty. The last one
/// goes first. More than kMostStaged are left to the next compilation there.
void removeWhenStopped(const std::string &staging, const std::string &parent);

/// A signal doesn't remove `staging` and its parent from now on.
void keepWhenStopped(const std::string &staging);

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
