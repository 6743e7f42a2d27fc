//===- DType.h - element types of buffers -----------------------*- C++ -*-===//
//
// The element types that a buffer of a step can have. An i1 takes one byte.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_KERNELS_DTYPE_H
#define TMC_RUNTIME_KERNELS_DTYPE_H

#include <cstdint>

namespace tmc {

enum class DType : uint8_t {
  F32,
  F16,
  BF16,
  F64,
  I1,
  I8,
  U8,
  I16,
  U16,
  I32,
  I64,
  F8E4M3,
  F8E5M2,
  TF32, // Products may read f32 as this; never stored.
};

/// Bytes of one element in memory.
constexpr int64_t sizeOf(DType type) {
  switch (type) {
  case DType::F64:
  case DType::I64:
    return 8;
  case DType::F32:
  case DType::I32:
  case DType::TF32:
    return 4;
  case DType::F16:
  case DType::BF16:
  case DType::I16:
  case DType::U16:
    return 2;
  default:
    return 1;
  }
}

/// The type's name in messages: "f32", "i64".
constexpr const char *nameOf(DType type) {
  constexpr const char *names[] = {"f32", "f16",    "bf16",   "f64", "i1",
                                   "i8",  "u8",     "i16",    "u16", "i32",
                                   "i64", "f8e4m3", "f8e5m2", "tf32"};
  return names[static_cast<int>(type)];
}

constexpr bool isFloat(DType type) {
  return type == DType::F32 || type == DType::F16 || type == DType::BF16 ||
         type == DType::F64 || type == DType::F8E4M3 || type == DType::F8E5M2;
}

constexpr bool isHalf(DType type) {
  return type == DType::BF16 || type == DType::F16;
}
constexpr bool isFloat8(DType type) {
  return type == DType::F8E4M3 || type == DType::F8E5M2;
}

} // namespace tmc

#endif // TMC_RUNTIME_KERNELS_DTYPE_H
