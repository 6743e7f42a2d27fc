//===- Kernel.h - what every kernel class is --------------------*- C++ -*-===//
//
// A kernel class is declared once, in runtime/kernels/<Family>.h, and defined
// per backend, in runtime/cpu/<Family>.cpp and runtime/cuda/<Family>.cu. An
// emitted step holds one object per distinct kernel:
//
//     Matmul matmul_0{{.lhs = DType::F32, .rhs = DType::F32, ...}};
//
// and calls `run` with pointers into the arena. Absent optional operands are
// nullptr; trailing absent operands may be left out. All buffers are contiguous
// and row-major unless the class says otherwise, and aligned to 64 bytes (views
// into a buffer: to their element).
//
// Types: `takes` of each class says for which element types it has code. The
// compiler asks before it prints such an object; nothing asks again.
//
// Scratch: each Params ends with `scratchBytes`, what the compiler planned for
// one run. `scratchCap(params, backend)` of each class is the closed formula of
// the shape that both sides use; prepare() refuses where the library wants
// more. Scratch holds nothing between runs and starts as garbage.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_KERNELS_KERNEL_H
#define TMC_RUNTIME_KERNELS_KERNEL_H

#include "runtime/kernels/DType.h"
#include "runtime/kernels/Status.h"

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>

namespace tmc {

class Device;
class Stream;

enum class Backend : uint8_t { Cpu, Cuda };

/// A few addresses, which somebody else holds: those between braces in a call,
/// or those of an entry of a queue.
template <typename P> class Addresses {
public:
  constexpr Addresses(std::initializer_list<P> list) : size_(list.size()) {
    first_ = list.begin(); // lives as long as the call
  }
  static constexpr Addresses of(const P *first, size_t size) {
    Addresses made(std::initializer_list<P>{});
    made.first_ = first;
    made.size_ = size;
    return made;
  }
  constexpr const P *begin() const { return first_; }
  constexpr const P *end() const { return first_ + size_; }
  constexpr size_t size() const { return size_; }

private:
  const P *first_ = nullptr;
  size_t size_;
};
using In = Addresses<const void *>;
using Out = Addresses<void *>;

/// Scratch regions start at multiples of this.
constexpr int64_t kScratchAlign = 64;
constexpr int64_t alignScratch(int64_t bytes) {
  return (bytes + kScratchAlign - 1) / kScratchAlign * kScratchAlign;
}

/// Kernels that need scratch per worker get it for this many workers; with more
/// threads the others stay idle in them. A constant, so that the plan doesn't
/// depend on the machine.
constexpr int64_t kScratchWorkers = 16;

class Kernel {
public:
  virtual ~Kernel() = default;
  Kernel() = default;
  Kernel(const Kernel &) = delete;
  Kernel &operator=(const Kernel &) = delete;

  /// Creates library primitives and descriptors, once, at load. Refuses where a
  /// library has no such operation (Code::Unsupported) or wants more scratch
  /// than was planned (Code::OverBudget, with both figures).
  virtual Status prepare(Device &device) = 0;

  /// Queues the kernel. Allocates nothing of ours. `accumulate` adds to the
  /// results that the class names, in place of overwriting them.
  virtual void run(Stream &stream, In ins, Out outs, void *scratch,
                   bool accumulate = false) = 0;
};

/// The operand at `index`, or nullptr where the list is shorter.
inline const void *operand(In ins, size_t index) {
  return index < ins.size() ? ins.begin()[index] : nullptr;
}
inline void *result(Out outs, size_t index) {
  return index < outs.size() ? outs.begin()[index] : nullptr;
}

/// Declares what every kernel class has: its Params, a hidden state of the
/// backend, and the two entry points.
#define TMC_KERNEL(NAME)                                                       \
public:                                                                        \
  explicit NAME(const Params &params);                                         \
  ~NAME() override;                                                            \
  Status prepare(Device &device) override;                                     \
  void run(Stream &stream, In ins, Out outs, void *scratch,                    \
           bool accumulate = false) override;                                  \
                                                                               \
private:                                                                       \
  struct State;                                                                \
  Params params_;                                                              \
  std::unique_ptr<State> state_;

} // namespace tmc

#endif // TMC_RUNTIME_KERNELS_KERNEL_H
