//===- Typed.h - values of narrow types for kernels' tests ------*- C++ -*-===//
#ifndef TMC_TEST_UNIT_RUNTIME_TYPED_H
#define TMC_TEST_UNIT_RUNTIME_TYPED_H

#include "Testing.h"

namespace tmc::test {

/// Floats rounded to another type: its bytes, and what they stand for.
struct Typed {
  DType type;
  Floats values;
  Buffer<unsigned char> bytes;

  Typed(DType type, const Floats &exact);
  unsigned char *get() const { return bytes.get(); }
  operator void *() const { return get(); }
  /// Makes `values` what the bytes stand for.
  void read();
};

/// A copy that starts one element behind an aligned place.
struct Shifted {
  int64_t element;
  Buffer<unsigned char> bytes;

  explicit Shifted(const Typed &from)
      : element(sizeOf(from.type)), bytes(from.bytes.size() + element) {
    std::memcpy(get(), from.get(), size_t(from.bytes.size()));
  }
  unsigned char *get() const { return bytes.get() + element; }
  operator void *() const { return get(); }
  bool sameBits(const Typed &other) const {
    return !std::memcmp(get(), other.get(), size_t(other.bytes.size()));
  }
};

/// Half of the distance between 1 and the next number of `type`.
double roundingOf(DType type);

} // namespace tmc::test

#endif // TMC_TEST_UNIT_RUNTIME_TYPED_H
