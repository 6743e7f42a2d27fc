//===- Stored.h - floats in memory as f32, bf16 or f16, on cuda -*- C++ -*-===//
//
// Kernels that compute in f32 widen loaded values and round stored ones, once.
// They get the type at run time. It selects a loop of loads or a store, but
// never changes the arithmetic, and all threads take the same branch. A
// template would compile each kernel three times, for every architecture.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_CUDA_STORED_H
#define TMC_RUNTIME_CUDA_STORED_H

#include "runtime/kernels/DType.h"
#include "runtime/kernels/Storage.h"

#include <type_traits>

namespace tmc::cuda {

/// Floats of type F32, BF16 or F16. Void is `void` or `const void`.
template <typename Void> struct StoredFloats {
  Void *data;
  DType type;

  __device__ StoredFloats shifted(int64_t elements) const {
    using Byte = std::conditional_t<std::is_const_v<Void>, const unsigned char,
                                    unsigned char>;
    const int64_t bytes = type == DType::F32 ? 4 : 2;
    return {static_cast<Byte *>(data) + elements * bytes, type};
  }

  /// Element i, widened.
  __device__ float at(int64_t i) const {
    if (type == DType::F32)
      return static_cast<const float *>(data)[i];
    const uint32_t bits = static_cast<const uint16_t *>(data)[i];
    return type == DType::BF16 ? widenBits<bf16>(bits) : widenBits<f16>(bits);
  }

  /// Rounds `value` to element i.
  __device__ void put(int64_t i, float value) const {
    visit([&](auto *p) { storeLanes<1>(p + i, value); });
  }

  /// Calls body with the data as a pointer to float, bf16 or f16. loadLanes<1>
  /// reads it and storeLanes<1> writes it.
  template <typename F> __device__ void visit(F &&body) const {
    if (type == DType::BF16)
      body(as<bf16>());
    else if (type == DType::F16)
      body(as<f16>());
    else
      body(as<float>());
  }

private:
  template <typename T> __device__ auto as() const {
    using Element = std::conditional_t<std::is_const_v<Void>, const T, T>;
    return static_cast<Element *>(data);
  }
};

/// On the host: calls body with a value of the storage type of `type`, to
/// select a template.
template <typename F> void withStored(DType type, F &&body) {
  if (type == DType::BF16)
    body(bf16{});
  else if (type == DType::F16)
    body(f16{});
  else
    body(float{});
}

using StoredIn = StoredFloats<const void>;
using StoredOut = StoredFloats<void>;

} // namespace tmc::cuda

#endif // TMC_RUNTIME_CUDA_STORED_H
