#include "compiler/planning/model/Parallel.h"

#include <atomic>
#include <system_error>
#include <thread>
#include <vector>

void tmc::planning::inParallel(size_t count,
                               const std::function<void(size_t)> &f) {
  std::atomic<size_t> next{0};
  auto work = [&] {
    for (size_t i = next++; i < count; i = next++)
      f(i);
  };
  size_t most = std::thread::hardware_concurrency();
  std::vector<std::thread> others;
  try {
    for (size_t i = 1; i < count && i < most; ++i)
      others.emplace_back(work);
  } catch (const std::system_error &) { // No more threads.
  }
  work();
  for (std::thread &other : others)
    other.join();
}
