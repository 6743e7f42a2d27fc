//===- Matmul.cpp - batched matrix products on cuda ----------------------===//

#include "runtime/kernels/Matmul.h"

#include "runtime/cuda/Gemm.h"

namespace tmc {

struct Matmul::State {
  cuda::CudaDevice *device = nullptr;
  cuda::Gemm gemm;
};
Matmul::Matmul(const Params &params)
    : params_(params), state_(std::make_unique<State>()) {}
Matmul::~Matmul() = default;

Status Matmul::prepare(Device &device) {
  state_->device = &cuda::deviceOf(device);
  return state_->gemm.prepare("matmul", *state_->device, params_);
}

void Matmul::run(Stream &stream, In ins, Out outs, void *scratch,
                 bool accumulate) {
  cuda::Queue queue(*state_->device, stream, "matmul");
  cuda::Gemm::Operands operands{operand(ins, 0), operand(ins, 1),
                                operand(ins, 2)};
  if (params_.scaled) {
    operands.lhsScale = operand(ins, 3);
    operands.rhsScale = operand(ins, 4);
  }
  state_->gemm.run(queue, operands, result(outs, 0), scratch, accumulate);
}

} // namespace tmc
