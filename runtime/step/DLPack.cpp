//===- DLPack.cpp - tensors for other libraries ---------------------------===//

#include "runtime/step/DLPack.h"

#include <cstddef>

namespace tmc {

static_assert(sizeof(DLTensor) == 48 && offsetof(DLTensor, rank) == 16 &&
              offsetof(DLTensor, typeCode) == 20 &&
              offsetof(DLTensor, shape) == 24);
static_assert(sizeof(DLManagedTensor) == 64 &&
              offsetof(DLManagedTensor, context) == 48);
static_assert(sizeof(DLManagedTensorVersioned) == 80 &&
              offsetof(DLManagedTensorVersioned, flags) == 24 &&
              offsetof(DLManagedTensorVersioned, tensor) == 32);

/// DLDataTypeCode.
static uint8_t typeCodeOf(DType type) {
  switch (type) {
  case DType::F32:
  case DType::F16:
  case DType::F64:
  case DType::TF32:
    return 2;
  case DType::BF16:
    return 4;
  case DType::I1:
    return 6;
  case DType::U8:
  case DType::U16:
    return 1;
  case DType::I8:
  case DType::I16:
  case DType::I32:
  case DType::I64:
    return 0;
  case DType::F8E4M3:
    return 10;
  case DType::F8E5M2:
    return 12;
  }
  return 0;
}

namespace {
/// A managed tensor with all that it points to.
template <typename Managed> struct Holder {
  Managed managed = {};
  std::shared_ptr<Step> step;
  int64_t shape[kMaxRank] = {}, strides[kMaxRank] = {};

  static Managed *make(std::shared_ptr<Step> step, const TensorView &view) {
    auto *holder = new Holder;
    holder->step = std::move(step);
    const TensorInfo &info = *view.tensor;
    for (int32_t i = 0; i < info.rank; ++i)
      holder->shape[i] = info.dims[i];
    stridesOf(info, holder->strides);
    holder->managed.tensor = {info.elements() ? view.data : nullptr,
                              view.backend == Backend::Cuda ? 2 : 1,
                              view.deviceNumber,
                              info.rank,
                              typeCodeOf(info.type),
                              uint8_t(8 * sizeOf(info.type)),
                              1,
                              holder->shape,
                              holder->strides,
                              0};
    holder->managed.context = holder;
    holder->managed.deleter = [](Managed *self) {
      if (self)
        delete static_cast<Holder *>(self->context);
    };
    return &holder->managed;
  }
};
} // namespace

DLManagedTensorVersioned *makeDLPack(std::shared_ptr<Step> step,
                                     const TensorView &view) {
  auto *managed = Holder<DLManagedTensorVersioned>::make(std::move(step), view);
  managed->major = 1;
  managed->minor = 0;
  managed->flags = view.readOnly ? kDLReadOnly : 0;
  return managed;
}

DLManagedTensor *makeUnversionedDLPack(std::shared_ptr<Step> step,
                                       const TensorView &view) {
  return Holder<DLManagedTensor>::make(std::move(step), view);
}

} // namespace tmc
