//===- View.cpp - the place of a tensor, for programs ---------------------===//

#include "runtime/step/View.h"

namespace tmc {

/// Moments of one byte are codes of their optimizer's table.
static bool isCodes(const TensorInfo &tensor) {
  return tensor.stored || tensor.maximaOf >= 0 ||
         (tensor.role == Role::Moment && sizeOf(tensor.type) == 1);
}

static bool hasCopies(const StepProgram &program, int64_t index) {
  for (int64_t i = 0; i < program.tensorCount; ++i)
    if (program.tensors[i].copyOf == index)
      return true;
  return false;
}

/// Why `tensor` has no view; "": it has one.
static std::string whyNone(const TensorInfo &tensor) {
  if (!onDevice(tensor.space))
    return std::string("the plan keeps it on the ") + nameOf(tensor.space) +
           " and moves it in each step";
  if (tensor.isOverwritten)
    return "the plan keeps other values at its place within a step";
  if (isCodes(tensor))
    return "it is stored as codes";
  return "";
}

Status viewOf(Step &step, const TensorInfo &tensor, TensorView &view) {
  if (!step.lost_)
    return step.lost_;
  if (const std::string reason = whyNone(tensor); !reason.empty())
    return {Code::Unsupported,
            std::string("'") + tensor.name + "' has no view: " + reason};
  const StepProgram &program = step.program_;
  const int64_t index = &tensor - program.tensors;
  const bool isInput = tensor.feed == Feed::Data;
  if (isInput)
    step.viewed_[size_t(index)] = true;
  view = {&tensor, step.device_->arena(tensor.space) + tensor.offset,
          program.backend, step.device_->number(),
          tensor.role == Role::Output || tensor.role == Role::Copy ||
              (tensor.feed != Feed::None && !isInput) ||
              hasCopies(program, index)};
  return Status::ok();
}

void stridesOf(const TensorInfo &tensor, int64_t *strides) {
  int64_t stride = 1;
  for (int32_t dim = tensor.rank; dim-- > 0;) {
    strides[dim] = stride;
    stride *= tensor.dims[dim];
  }
}

} // namespace tmc
