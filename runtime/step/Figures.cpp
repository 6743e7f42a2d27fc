//===- Figures.cpp - the numbers that a step reports ----------------------===//

#include "runtime/step/Figures.h"

#include <bit>
#include <iterator>
#include <limits>

namespace tmc {

const TensorInfo *Figures::tensorOf(Figure figure) const {
  const int64_t tensors[] = {
      program_.lossTensor, program_.gradNormTensor, program_.lossScaleTensor,
      program_.updateCountTensor, program_.saturationsTensor};
  static_assert(std::size(tensors) == kStepNumbers);
  return tensors[figure] < 0 ? nullptr : program_.tensors + tensors[figure];
}

void Figures::place(const Device &device) {
  for (size_t i = 0; i < numbers_.size(); ++i)
    if (const TensorInfo *tensor = tensorOf(Figure(i))) {
      numbers_[i].bytes = sizeOf(tensor->type) == 8 ? 8 : 4;
      if (onDevice(tensor->space))
        numbers_[i].at = device.arena(tensor->space) + tensor->offset;
    }
}

void Figures::finish(const Homes &homes) {
  constexpr uint64_t kUnknown = ~uint64_t(0); // a NaN
  for (size_t i = 0; i < numbers_.size(); ++i) {
    Number &number = numbers_[i];
    const TensorInfo *tensor = tensorOf(Figure(i));
    if (tensor && !number.at &&
        !homes.read(*tensor, 0, &number.bits, number.bytes))
      number.bits = kUnknown;
  }
  isCurrent_ = true;
}

double Figures::number(Figure figure) const {
  const TensorInfo *tensor = tensorOf(figure);
  if (!tensor)
    return std::numeric_limits<double>::quiet_NaN();
  const uint64_t bits = numbers_[figure].bits;
  return tensor->type == DType::F64
             ? std::bit_cast<double>(bits)
             : double(std::bit_cast<float>(uint32_t(bits)));
}

Status Figures::readLoss(const Homes &homes, double &loss) const {
  const TensorInfo &tensor = *tensorOf(Loss);
  uint64_t bits = 0;
  if (Status s = homes.read(tensor, 0, &bits, sizeOf(tensor.type)); !s)
    return s;
  loss = tensor.type == DType::F64
             ? std::bit_cast<double>(bits)
             : double(std::bit_cast<float>(uint32_t(bits)));
  return Status::ok();
}

int64_t Figures::count(Figure figure, const Homes &homes) const {
  if (isCurrent_)
    return int64_t(numbers_[figure].bits);
  int64_t count = 0;
  (void)homes.read(*tensorOf(figure), 0, &count, sizeof count).isOk();
  return count;
}

} // namespace tmc
