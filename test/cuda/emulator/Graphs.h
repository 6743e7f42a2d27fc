//===- Graphs.h - work that is recorded and queued as a whole ---*- C++ -*-===//
//
// A stream that captures records what is queued on it, and so does a stream
// that waits for a captured event. A launch of the graph queues all of it
// again: on the stream of the launch, and on a stream of the graph's for each
// further one. So a graph's work is ordered by what was recorded, and by that
// alone; it runs late, in random orders and watched for races, as work that is
// queued directly.
//
//     captured   A: k0 | record e | k1 | wait f        B: wait e | copy |
//     record f launched   the same on the launch's stream, and on one of the
//     graph's
//
// Rules that are checked: an event of before can't be waited for, all streams
// must have joined the first one at the end, and nothing may wait for captured
// work, or allocate, meanwhile. A call that breaks one fails, and the capture
// with it. One capture at a time; copies are of device and registered memory.
//
// Code that captures may say how the work is queued again (setAgain). Each
// launch then compares: the work that is queued again must be that of the
// graph. A fault is another kernel, size, number or address. Arguments that are
// structures aren't compared: their padding has any bits.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_TEST_CUDA_EMULATOR_GRAPHS_H
#define TMC_TEST_CUDA_EMULATOR_GRAPHS_H

#include "test/cuda/emulator/Queued.h"

namespace tmc::emulator {

bool isCapturing(cudaStream_t stream);
/// For the capture that is running: how its work is queued again, and what runs
/// before all of it.
void setAgain(std::function<void()> again, std::function<void()> start);

// Defined in Streams.cpp.

/// Takes the work if it is to be recorded or compared.
bool takesWork(CUstream_st *stream, Work &work);
/// The same of an event's record and of a wait for it; `error` is the call's.
bool takesRecord(CUevent_st *event, CUstream_st *stream);
bool takesWait(CUstream_st *stream, CUevent_st *event, cudaError_t &error);
/// A call that isn't allowed while a stream captures: true if one does, and
/// then the capture has failed.
bool breaksCapture();
/// The same of a call that this stream doesn't record.
bool isRefused(cudaStream_t stream);

} // namespace tmc::emulator

#endif // TMC_TEST_CUDA_EMULATOR_GRAPHS_H
