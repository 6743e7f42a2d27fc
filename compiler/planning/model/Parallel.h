// Parallel.h - runs a few independent pieces of work in parallel.
//
// The results must not depend on the timing: planning gives the same answer on
// any machine.

#ifndef TMC_COMPILER_PLANNING_MODEL_PARALLEL_H
#define TMC_COMPILER_PLANNING_MODEL_PARALLEL_H

#include <cstddef>
#include <functional>

namespace tmc::planning {

/// Calls `f(i)` for each i below `count`, on as many threads as there are
/// processors, or fewer if the system gives fewer.
void inParallel(size_t count, const std::function<void(size_t)> &f);

} // namespace tmc::planning

#endif // TMC_COMPILER_PLANNING_MODEL_PARALLEL_H
