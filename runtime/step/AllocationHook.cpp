//===- AllocationHook.cpp - counts the malloc family ----------------------===//
//
// Replaces malloc and its relatives for the whole process, libraries included,
// and passes each call to glibc. Link it into executables only. operator new
// calls malloc, so it is counted too.
//
// AddressSanitizer has its own malloc, which must stay; it calls a hook
// instead.
//
//===----------------------------------------------------------------------===//

#include "runtime/step/AllocationCounter.h"

#include <cerrno>
#include <cstddef>

#ifndef __SANITIZE_ADDRESS__
extern "C" {
void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);
void *__libc_memalign(size_t, size_t);
}
#endif

namespace {
tmc::AllocationCounter counter;

void note(size_t bytes) {
  if (!counter.counting.load(std::memory_order_relaxed))
    return;
  const int64_t size = int64_t(bytes);
  if (size > tmc::kSmallAllocationBytes)
    counter.large.fetch_add(1, std::memory_order_relaxed);
  int64_t largest = counter.largestBytes.load(std::memory_order_relaxed);
  while (size > largest && !counter.largestBytes.compare_exchange_weak(
                               largest, size, std::memory_order_relaxed))
    ;
}
} // namespace

extern "C" {
tmc::AllocationCounter *tmc_allocation_counter() { return &counter; }
/// A reference to this function makes the linker take the hook from its
/// library.
tmc::AllocationCounter *tmc_link_allocation_hook() { return &counter; }

#ifdef __SANITIZE_ADDRESS__
void __sanitizer_malloc_hook(const volatile void *, size_t bytes) {
  note(bytes);
}
#else
void *malloc(size_t bytes) {
  note(bytes);
  return __libc_malloc(bytes);
}
void *calloc(size_t count, size_t bytes) {
  note(count * bytes);
  return __libc_calloc(count, bytes);
}
void *realloc(void *old, size_t bytes) {
  note(bytes);
  return __libc_realloc(old, bytes);
}
void *memalign(size_t alignment, size_t bytes) {
  note(bytes);
  return __libc_memalign(alignment, bytes);
}
void *aligned_alloc(size_t alignment, size_t bytes) {
  note(bytes);
  return __libc_memalign(alignment, bytes);
}
int posix_memalign(void **out, size_t alignment, size_t bytes) {
  note(bytes);
  void *block = __libc_memalign(alignment, bytes);
  if (!block)
    return ENOMEM;
  *out = block;
  return 0;
}
#endif
}
