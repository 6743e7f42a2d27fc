//===- ParallelTest.cpp - the pool of threads -----------------------------===//

#include "Testing.h"

#include "runtime/cpu/Parallel.h"

#include <atomic>
#include <chrono>
#include <thread>

using namespace tmc;
using namespace tmc::test;

TEST(ThreadPool, RunsEachTileOnce) {
  for (int threads : {1, 2, 5}) {
    ThreadPool pool(threads);
    Stream stream(&pool);
    EXPECT_EQ(threadCount(stream), threads);
    for (int64_t tiles : {0, 1, 2, 3, 100, 1000})
      for (int64_t workers : {1, 2, 3, 64}) {
        std::vector<std::atomic<int>> seen(size_t(tiles) + 1);
        std::atomic<int64_t> highest{-1};
        parallelFor(stream, tiles, workers, [&](int64_t tile, int64_t worker) {
          ++seen[size_t(tile)];
          int64_t old = highest.load();
          while (worker > old && !highest.compare_exchange_weak(old, worker))
            ;
        });
        for (int64_t tile = 0; tile < tiles; ++tile)
          ASSERT_EQ(seen[size_t(tile)], 1);
        EXPECT_LT(highest, std::min<int64_t>(workers, threads));
      }
  }
}

TEST(ThreadPool, SurvivesManyShortRunsAndPauses) {
  ThreadPool pool(3);
  Stream stream(&pool);
  int64_t total = 0;
  for (int i = 0; i < 5000; ++i) {
    std::atomic<int64_t> sum{0};
    parallelFor(stream, 7, [&](int64_t tile, int64_t) { sum += tile; });
    total += sum;
    if (i % 500 == 0) // long enough that the workers fall asleep
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  EXPECT_EQ(total, 5000 * 21);
}

TEST(ThreadPool, EndsWhileItsThreadsSleepOrSpin) {
  for (int i = 0; i < 50; ++i) {
    ThreadPool pool(4);
    if (i % 2)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}
