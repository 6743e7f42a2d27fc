// OutOfMemory.h - the end of a process that gets no more memory.
//
// A limit of the shell or of a container is the world's, not a defect of ours:
// one message says so, the process ends with the world's code, and what it has
// staged is removed.

#ifndef TMC_COMPILER_PIPELINE_OUTOFMEMORY_H
#define TMC_COMPILER_PIPELINE_OUTOFMEMORY_H

namespace tmc {

/// From now on an allocation that fails ends the process with code 74.
void installOutOfMemoryHandler();

} // namespace tmc

#endif // TMC_COMPILER_PIPELINE_OUTOFMEMORY_H
