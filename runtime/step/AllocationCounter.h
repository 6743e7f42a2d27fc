//===- AllocationCounter.h - allocations during a step ----------*- C++ -*-===//
//
// A program that links AllocationHook.cpp counts the calls of its malloc family
// while counting is on: the blocks of more than 1 KiB, and the bytes of the
// largest block. The trainer links it, so each log line can say that a step
// allocated nothing outside its arena. Without the hook the figures are -1.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_STEP_ALLOCATIONCOUNTER_H
#define TMC_RUNTIME_STEP_ALLOCATIONCOUNTER_H

#include <atomic>
#include <cstdint>

namespace tmc {

/// A library call may take this many bytes without being counted.
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
