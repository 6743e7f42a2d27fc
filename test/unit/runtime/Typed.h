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

/// Half of the distance between 1 and the next number of `type`.
double roundingOf(DType type);

} // namespace tmc::test

#endif // TMC_TEST_UNIT_RUNTIME_TYPED_H
