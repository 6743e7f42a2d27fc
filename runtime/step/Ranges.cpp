//===- Ranges.cpp - the elements of a box of an input ---------------------===//

#include "runtime/step/Ranges.h"

#include <string>

namespace tmc {

static Status checkElement(const TensorInfo &tensor, const void *data,
                           int64_t index, const IndexRange &range) {
  const int64_t value = tensor.type == DType::I64
                            ? static_cast<const int64_t *>(data)[index]
                            : static_cast<const int32_t *>(data)[index];
  if ((value >= 0 && value < range.limit) ||
      (range.allowIgnore && value == range.ignore))
    return Status::ok();
  return {Code::BadInput, "element " + std::to_string(index) + " of '" +
                              tensor.name + "' is " + std::to_string(value) +
                              ", outside [0, " + std::to_string(range.limit) +
                              ")"};
}

Status checkRange(const TensorInfo &tensor, const void *data) {
  if (tensor.type != DType::I64 && tensor.type != DType::I32)
    return Status::ok();
  const IndexRange all{{},           {}, {}, tensor.limit, tensor.allowIgnore,
                       tensor.ignore};
  const int64_t count = tensor.limit > 0 ? tensor.elements() : 0;
  for (int64_t i = 0; i < count; ++i)
    if (Status s = checkElement(tensor, data, i, all); !s)
      return s;
  for (int32_t k = 0; k < tensor.rangeCount; ++k) {
    const IndexRange &range = tensor.ranges[k];
    Status status;
    if (!allOfRange(range, tensor, [&](int64_t index) {
          status = checkElement(tensor, data, index, range);
          return status.isOk();
        }))
      return status;
  }
  return Status::ok();
}

Status checkRanges(const StepProgram &program, const Homes &homes,
                   const std::vector<bool> &chosen) {
  for (int64_t i = 0; i < program.tensorCount; ++i) {
    const TensorInfo &tensor = program.tensors[i];
    if (!chosen[size_t(i)] || (tensor.limit <= 0 && tensor.rangeCount == 0))
      continue;
    const char *data = homes.device().arena(tensor.space) + tensor.offset;
    std::vector<char> copy;
    if (program.backend != Backend::Cpu || !onDevice(tensor.space)) {
      copy.resize(size_t(tensor.bytes()));
      if (Status s = homes.read(tensor, 0, copy.data(), tensor.bytes()); !s)
        return s;
      data = copy.data();
    }
    if (Status s = checkRange(tensor, data); !s)
      return s;
  }
  return Status::ok();
}

} // namespace tmc
