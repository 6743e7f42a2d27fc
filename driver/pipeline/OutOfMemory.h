// OutOfMemory.h - the end of a process that gets no more memory.
//
// A memory limit of the shell or of a container is an external cause, not a
// defect of tmc: one message says so, the staged files are removed, and the
// process ends with the exit code of external failures.

#ifndef TMC_DRIVER_PIPELINE_OUTOFMEMORY_H
#define TMC_DRIVER_PIPELINE_OUTOFMEMORY_H

namespace tmc {

/// From now on an allocation that fails ends the process with code 74.
void installOutOfMemoryHandler();

} // namespace tmc

#endif // TMC_DRIVER_PIPELINE_OUTOFMEMORY_H
