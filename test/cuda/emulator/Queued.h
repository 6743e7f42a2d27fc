//===- Queued.h - streams, events and what is queued there ------*- C++ -*-===//
//
// The queues that Streams.cpp and Graphs.cpp share.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_TEST_CUDA_EMULATOR_QUEUED_H
#define TMC_TEST_CUDA_EMULATOR_QUEUED_H

#include "test/cuda/emulator/Streams.h"
#include "test/cuda/emulator/Works.h"

#include <atomic>
#include <deque>
#include <string>
#include <vector>

struct CUevent_st {
  bool times = false; // created with timing
  uint64_t recorded = 0, done = 0;
  double seconds = 0;             // when it was reached last
  tmc::emulator::WorkClock clock; // of what was recorded last
  uint64_t capture = 0;           // that recorded it last; 0: none
  size_t place = 0;               // there
};

namespace tmc::emulator {

struct Work {
  std::string what;
  std::function<void()> run;
  WorkKey key = {};
  CUevent_st *waits = nullptr, *records = nullptr;
  uint64_t version = 0;
  WorkClock clock = {};
  /// A word of the host that must have come to a value.
  const std::atomic<uint64_t> *word = nullptr;
  uint64_t value = 0;
  /// Of another process (queueWhenReady).
  std::function<bool()> ready = nullptr;
  void (*idle)() = nullptr;
};

} // namespace tmc::emulator

struct CUstream_st {
  std::deque<tmc::emulator::Work> queue;
  const size_t index = nextIndex();
  tmc::emulator::WorkClock clock; // of all that is queued
  bool isCaptured = false;
  size_t branch = 0; // of the capture

private:
  static size_t nextIndex() {
    static size_t count = 0;
    return count++;
  }
};

namespace tmc::emulator {

CUstream_st *streamOf(cudaStream_t stream);
bool isStream(cudaStream_t stream);
CUstream_st *newStream();
CUevent_st *newEvent(bool times);
/// Work, the record of an event and a wait for it, where no call may fail.
void push(CUstream_st *stream, Work work);
void record(CUevent_st *event, CUstream_st *stream);
cudaError_t wait(CUstream_st *stream, CUevent_st *event);

} // namespace tmc::emulator

#endif // TMC_TEST_CUDA_EMULATOR_QUEUED_H
