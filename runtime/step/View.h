//===- View.h - the place of a tensor, for programs -------------*- C++ -*-===//
//
// A program may read and write a tensor without a copy if the tensor stays at
// its place between and within steps, and if its bytes are its numbers.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_STEP_VIEW_H
#define TMC_RUNTIME_STEP_VIEW_H

#include "runtime/step/Step.h"

namespace tmc {

struct TensorView {
  const TensorInfo *tensor;
  char *data; // of the device
  Backend backend;
  int deviceNumber;
  /// A step would ignore what a program writes there, or take it for what it
  /// isn't.
  bool readOnly;
};

/// Code::Unsupported, with the reason, if `tensor` has no view. From now on the
/// indices of an input are checked before each step.
Status viewOf(Step &step, const TensorInfo &tensor, TensorView &view);

/// Elements to the next index of each dimension, of a tensor without gaps.
void stridesOf(const TensorInfo &tensor, int64_t *strides);

} // namespace tmc

#endif // TMC_RUNTIME_STEP_VIEW_H
