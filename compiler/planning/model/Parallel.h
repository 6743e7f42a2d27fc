// Parallel.h - a few independent pieces of work at the same time.
//
// What they find must not depend on when they run: planning gives the same
// answer on any machine.

#ifndef TMC_COMPILER_PLANNING_MODEL_PARALLEL_H
#define TMC_COMPILER_PLANNING_MODEL_PARALLEL_H

#include <atomic>
#include <cstddef>
#include <system_error>
#include <thread>
#include <vector>

namespace tmc::planning {

/// Calls `f(i)` for each i below `count`, on as many threads as there are
/// processors, or as the system gives.
template <typename F> void inParallel(size_t count, F &&f) {
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
  } catch (const std::system_error &) { // No more of them.
  }
  work();
  for (std::thread &other : others)
    other.join();
}

} // namespace tmc::planning

#endif // TMC_COMPILER_PLANNING_MODEL_PARALLEL_H
