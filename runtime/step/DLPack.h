//===- DLPack.h - tensors for other libraries -------------------*- C++ -*-===//
//
// The layout of DLPack 1.0 and of the version before it, as libraries agree on
// it; the names are those of its dlpack.h, so that a program may include both
// that and tmc.h.
//
// Source: https://github.com/dmlc/dlpack, include/dlpack/dlpack.h
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_STEP_DLPACK_H
#define TMC_RUNTIME_STEP_DLPACK_H

#include "runtime/step/View.h"

#include <cstdint>
#include <memory>

namespace tmc {

struct DLTensor {
  void *data;
  int32_t deviceType, deviceNumber; // 1: cpu, 2: cuda
  int32_t rank;
  uint8_t typeCode, bits; // of an element
  uint16_t lanes;
  int64_t *shape, *strides; // in elements
  uint64_t byteOffset;
};

/// A bit of DLManagedTensorVersioned::flags.
constexpr uint64_t kDLReadOnly = 1;

} // namespace tmc

struct DLManagedTensor {
  tmc::DLTensor tensor;
  void *context;
  void (*deleter)(DLManagedTensor *self);
};

struct DLManagedTensorVersioned {
  uint32_t major, minor;
  void *context;
  void (*deleter)(DLManagedTensorVersioned *self);
  uint64_t flags;
  tmc::DLTensor tensor;
};

namespace tmc {

/// A tensor over the bytes of `view`, whose deleter releases `step`.
DLManagedTensorVersioned *makeDLPack(std::shared_ptr<Step> step,
                                     const TensorView &view);
/// The same of the version before. It has no flags, so the view may not be
/// read-only.
DLManagedTensor *makeUnversionedDLPack(std::shared_ptr<Step> step,
                                       const TensorView &view);

} // namespace tmc

#endif // TMC_RUNTIME_STEP_DLPACK_H
