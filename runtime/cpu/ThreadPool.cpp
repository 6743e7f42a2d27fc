//===- ThreadPool.cpp - the cpu backend's threads -------------------------===//
//
// Workers spin for a short time before they sleep: the parts of a step follow
// each other within microseconds, and a wake-up through the kernel costs more
// time than many parts take.
//
//===----------------------------------------------------------------------===//

#include "runtime/cpu/Parallel.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace tmc {

namespace {
/// Iterations of the spin loop before a worker sleeps: about 50 microseconds.
constexpr int kSpins = 4000;

void pause() {
#if defined(__x86_64__)
  _mm_pause();
#endif
}
} // namespace

struct ThreadPool::Shared {
  // The work; run() writes it before `generation` increases.
  Body body = nullptr;
  void *context = nullptr;
  int64_t tiles = 0, maxWorkers = 0;

  alignas(64) std::atomic<uint64_t> generation{0};
  alignas(64) std::atomic<int64_t> next{0};
  alignas(64) std::atomic<int> busy{0};
  std::atomic<int> sleepers{0};
  std::atomic<bool> stop{false};
  std::mutex mutex;
  std::condition_variable wake;
  std::vector<std::thread> threads;

  void work(int64_t worker) {
    if (worker >= maxWorkers)
      return;
    for (int64_t tile;
         (tile = next.fetch_add(1, std::memory_order_relaxed)) < tiles;)
      body(context, tile, worker);
  }

  void serve(int64_t worker) {
    uint64_t seen = 0;
    while (true) {
      int spins = 0;
      while (generation.load(std::memory_order_acquire) == seen) {
        if (++spins < kSpins) {
          pause();
          continue;
        }
        std::unique_lock lock(mutex);
        sleepers.fetch_add(1);
        wake.wait(lock, [&] { return generation.load() != seen; });
        sleepers.fetch_sub(1);
      }
      ++seen;
      if (stop.load())
        return;
      work(worker);
      busy.fetch_sub(1, std::memory_order_release);
    }
  }

  /// Announces a new generation to all workers.
  void announce() {
    generation.fetch_add(1);
    if (sleepers.load() > 0) {
      std::lock_guard lock(mutex);
      wake.notify_all();
    }
  }
};

ThreadPool::ThreadPool(int threads)
    : threads_(std::max(1, threads)), shared_(std::make_unique<Shared>()) {
  for (int i = 1; i < threads_; ++i)
    shared_->threads.emplace_back([this, i] { shared_->serve(i); });
}

ThreadPool::~ThreadPool() {
  shared_->stop = true;
  shared_->announce();
  for (std::thread &thread : shared_->threads)
    thread.join();
}

void ThreadPool::run(int64_t tiles, int64_t maxWorkers, Body body,
                     void *context) {
  if (threads_ == 1 || tiles <= 1 || maxWorkers <= 1) {
    for (int64_t tile = 0; tile < tiles; ++tile)
      body(context, tile, 0);
    return;
  }
  Shared &shared = *shared_;
  shared.body = body;
  shared.context = context;
  shared.tiles = tiles;
  shared.maxWorkers = maxWorkers;
  shared.next.store(0, std::memory_order_relaxed);
  shared.busy.store(threads_ - 1, std::memory_order_relaxed);
  shared.announce();
  shared.work(0);
  for (int spins = 0; shared.busy.load(std::memory_order_acquire) > 0;)
    if (++spins < kSpins)
      pause();
    else
      std::this_thread::yield();
}

} // namespace tmc
