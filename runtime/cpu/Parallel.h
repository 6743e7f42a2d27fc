//===- Parallel.h - the cpu backend's threads -------------------*- C++ -*-===//
//
// A pool of threads that lives as long as its device. Kernels use it only by
// parallelFor:
//
//     parallelFor(stream, tiles, [&](int64_t tile, int64_t worker) {...});
//
// The number of tiles must depend on the shape alone, and a tile's results must
// not depend on the worker; then results have the same bits for every number of
// threads. `worker` is below `threadCount(stream)`, and below `maxWorkers` if
// given: it selects a piece of scratch.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_CPU_PARALLEL_H
#define TMC_RUNTIME_CPU_PARALLEL_H

#include "runtime/kernels/Stream.h"

#include <cstdint>
#include <memory>
#include <type_traits>

namespace tmc {

class ThreadPool {
public:
  /// Starts threads - 1 threads; the caller of run() is the last one.
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool &) = delete;
  ThreadPool &operator=(const ThreadPool &) = delete;

  int threads() const { return threads_; }

  using Body = void (*)(void *context, int64_t tile, int64_t worker);
  /// Runs body for each tile in [0, tiles), in any order, on at most maxWorkers
  /// threads, and returns when all have finished. Allocates nothing.
  void run(int64_t tiles, int64_t maxWorkers, Body body, void *context);

private:
  struct Shared;
  int threads_;
  std::unique_ptr<Shared> shared_;
};

inline ThreadPool &poolOf(Stream &stream) {
  return *static_cast<ThreadPool *>(stream.native());
}
inline int64_t threadCount(Stream &stream) { return poolOf(stream).threads(); }

template <typename F>
void parallelFor(Stream &stream, int64_t tiles, int64_t maxWorkers, F &&body) {
  using Fn = std::remove_reference_t<F>;
  poolOf(stream).run(
      tiles, maxWorkers,
      [](void *context, int64_t tile, int64_t worker) {
        (*static_cast<Fn *>(context))(tile, worker);
      },
      const_cast<void *>(static_cast<const void *>(&body)));
}

template <typename F>
void parallelFor(Stream &stream, int64_t tiles, F &&body) {
  parallelFor(stream, tiles, INT64_MAX, body);
}

} // namespace tmc

#endif // TMC_RUNTIME_CPU_PARALLEL_H
