//===- Kernel.h - the interface of kernel classes ---------------*- C++ -*-===//
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
// Parameters: each Params lists its fields (Fields.h). The compiler fills the
// struct itself, so a field that it misspells or forgets doesn't compile.
//
// Types: `takes(params, backend)` of each class states the element types that
// it supports. The compiler checks it before it prints such an object; there is
// no later check.
//
// Cuda's work: a class whose run is more than one kernel of the device says how
// many, by `cudaLaunches(params, wanted)`; a library's product counts as one,
// and setting bytes as none. One that multiplies matrices says by
// `unalignedProducts(params)` how many of a run's products have a row, of a
// factor or of the result, that isn't a multiple of 16 bytes: the library's
// fast kernels want such rows, unless it copies its operands. Both are for the
// plan's figures; tests compare them with what runs.
//
// Scratch: each Params ends with `scratchBytes`, the planned bytes of one run.
// `scratchCap(params, backend)` of each class computes it from the shape, for
// compiler and runtime. prepare() fails if the library needs more. Scratch
// keeps nothing between runs; its initial content is undefined.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_KERNELS_KERNEL_H
#define TMC_RUNTIME_KERNELS_KERNEL_H

#include "runtime/kernels/DType.h"
#include "runtime/kernels/Fields.h"
#include "runtime/kernels/Status.h"

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>

namespace tmc {

class Device;
class Stream;

enum class Backend : uint8_t { Cpu, Cuda };

/// A short list of addresses that it doesn't own: a braced list in a call, or
/// the operands of an entry of a queue.
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

/// Which results a run writes, by their place.
class Wanted {
public:
  constexpr explicit Wanted(uint64_t places) : places_(places) {}
  constexpr bool operator[](size_t place) const { return places_ >> place & 1; }

private:
  uint64_t places_;
};

/// Scratch regions start at multiples of this.
constexpr int64_t kScratchAlign = 64;
constexpr int64_t alignScratch(int64_t bytes) {
  return (bytes + kScratchAlign - 1) / kScratchAlign * kScratchAlign;
}

/// Kernels that need scratch per worker get it for this many workers; further
/// threads stay idle in these kernels. It is a constant, so that the plan
/// doesn't depend on the machine.
constexpr int64_t kScratchWorkers = 16;

class Kernel {
public:
  virtual ~Kernel() = default;
  Kernel() = default;
  Kernel(const Kernel &) = delete;
  Kernel &operator=(const Kernel &) = delete;

  /// Creates library primitives and descriptors, once, at load. Fails if a
  /// library doesn't support the operation (Code::Unsupported) or needs more
  /// scratch than planned (Code::OverBudget, with both figures).
  virtual Status prepare(Device &device) = 0;

  /// Queues the kernel. The runtime allocates nothing here. `accumulate` adds
  /// to the results that the class names, instead of overwriting them.
  virtual void run(Stream &stream, In ins, Out outs, void *scratch,
                   bool accumulate = false) = 0;
};

/// The operand at `index`, or nullptr if the list is shorter.
inline const void *operand(In ins, size_t index) {
  return index < ins.size() ? ins.begin()[index] : nullptr;
}
inline void *result(Out outs, size_t index) {
  return index < outs.size() ? outs.begin()[index] : nullptr;
}

/// Declares the common members of a kernel class: its name in emitted code, its
/// Params, a hidden state of the backend, and the two entry points.
#define TMC_KERNEL(NAME)                                                       \
public:                                                                        \
  static constexpr const char *kSymbol = #NAME;                                \
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
