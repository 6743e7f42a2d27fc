//===- AllocationCounter.h - allocations during a step ----------*- C++ -*-===//
//
// A program that links AllocationHook.cpp has its malloc family counted while
// counting is on: how many blocks of more than 1 KiB were asked for, and the
// largest. The trainer links it, so that each log line can say that a step
// allocated nothing outside its arena. Without the hook the figures are -1.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_STEP_ALLOCATIONCOUNTER_H
#define TMC_RUNTIME_STEP_ALLOCATIONCOUNTER_H

#include <atomic>
#include <cstdint>

namespace tmc {

/// What a library call may take without being counted as an allocation.
constexpr int64_t kSmallAllocationBytes = 1024;

struct AllocationCounter {
  std::atomic<bool> counting{false};
  std::atomic<int64_t> large{0};        // blocks over kSmallAllocationBytes
  std::atomic<int64_t> largestBytes{0}; // of any block
};

/// The hook's counter, or nullptr where it isn't linked.
AllocationCounter *allocationCounter();

} // namespace tmc

/// Defined by AllocationHook.cpp only.
extern "C" __attribute__((weak)) tmc::AllocationCounter *
tmc_allocation_counter();

#endif // TMC_RUNTIME_STEP_ALLOCATIONCOUNTER_H
