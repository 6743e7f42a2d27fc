//===- Dequantize.cu - frozen weights back from codes on cuda -------------===//

#include "runtime/kernels/Dequantize.h"

#include "runtime/cuda/FrozenCodes.h"
#include "runtime/kernels/Storage.h"

namespace tmc {

struct Dequantize::State : cuda::Prepared {};
Dequantize::Dequantize(const Params &params)
    : params_(params), state_(std::make_unique<State>()) {}
Dequantize::~Dequantize() = default;

Status Dequantize::prepare(Device &device) {
  state_->device = &cuda::deviceOf(device);
  return Status::ok();
}

void Dequantize::run(Stream &stream, In ins, Out outs, void *, bool) {
  const Params &p = params_;
  cuda::Queue queue(*state_->device, stream, "dequantize");
  auto decodeAs = [&](auto like) {
    auto *out = static_cast<decltype(like) *>(result(outs, 0));
    if (p.byRows)
      return cuda::decodeRows(
          queue, static_cast<const int8_t *>(operand(ins, 0)),
          static_cast<const float *>(operand(ins, 1)), p.rows, p.columns, out);
    cuda::CodedTensor from{};
    from.codes = static_cast<const uint8_t *>(operand(ins, 0));
    from.count = p.rows * p.columns;
    if (p.nested) {
      from.maxima = static_cast<const uint8_t *>(operand(ins, 1));
      from.nested = static_cast<const float *>(operand(ins, 2));
    } else {
      from.absmax = static_cast<const float *>(operand(ins, 1));
    }
    cuda::decode(queue, from, out);
  };
  if (p.out == DType::BF16)
    return decodeAs(bf16());
  if (p.out == DType::F16)
    return decodeAs(f16());
  decodeAs(float());
}

} // namespace tmc
