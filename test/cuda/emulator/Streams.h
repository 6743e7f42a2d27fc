//===- Streams.h - queued work, run late and in random orders ---*- C++ -*-===//
//
// What is queued on a stream runs when the host waits, or earlier: a device may
// do either. With seed 0 each piece runs when it is queued, with seed 1 as late
// as possible; other seeds draw how much runs at each call, and from which
// stream. An event makes one stream wait for another; without it the order is
// free, and what both touch is a race (Works.h).
//
// Copies follow the runtime's rules of synchronization:
//
//   pinned host memory     read and written when the copy runs. What it will
//                          read is compared with what was there at the call;
//                          what it will write holds garbage until it ran, and
//                          must then still hold it: the host has to wait
//   pageable to device     the bytes are taken at the call
//   device to pageable     waits for the stream
//
// An event that times is reached at a moment of the host's steady clock. So the
// times of one stream's events never go back, and their differences are the
// host's times of the emulated work.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_TEST_CUDA_EMULATOR_STREAMS_H
#define TMC_TEST_CUDA_EMULATOR_STREAMS_H

#include <cuda_runtime.h>

#include <functional>
#include <string>

namespace tmc::emulator {

/// Identifies what a piece of work does, for comparison (Graphs.h).
struct WorkKey {
  std::string bytes;            // Empty: of the emulator itself.
  const void *kernel = nullptr; // for reports

  bool operator==(const WorkKey &) const = default;
};
/// The key of values without padding.
template <typename... T> WorkKey keyOf(const T &...values) {
  WorkKey key;
  (key.bytes.append(reinterpret_cast<const char *>(&values), sizeof values),
   ...);
  return key;
}

/// Queues work; `what` names it in reports.
void queueWork(cudaStream_t stream, const char *what, WorkKey key,
               std::function<void()> run);
/// The same of work that waits for another process: it runs when `ready` says
/// so. Meanwhile `idle`, if it isn't null, is called about once a millisecond
/// while the host waits and nothing can run. It may end the process.
void queueWhenReady(cudaStream_t stream, const char *what, WorkKey key,
                    std::function<void()> run, std::function<bool()> ready,
                    void (*idle)());
/// Runs all that is queued anywhere.
void runAll();

/// Called with each piece of work before it is queued; returns what runs in its
/// place (Steps.h).
using Wrap = std::function<void()> (*)(std::function<void()> run);
void setWrap(Wrap wrap);
/// While held, work runs only where the host waits for it.
void holdWork(bool held);

} // namespace tmc::emulator

#endif // TMC_TEST_CUDA_EMULATOR_STREAMS_H
