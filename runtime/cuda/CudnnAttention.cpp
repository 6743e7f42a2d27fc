//===- CudnnAttention.cpp - attention by cuDNN on cuda --------------------===//

#include "runtime/kernels/CudnnAttention.h"

#include "runtime/cuda/CudnnGraph.h"

namespace tmc {

namespace cuda {
namespace {

/// The prepared state of both classes.
struct CudnnState : Prepared {
  AttentionGraph graph;

  Status prepare(const char *name, Device &on, AttentionPass pass,
                 const AttentionParams &p, int64_t cap) {
    device = &deviceOf(on);
    if (Status s = requireScratch(name, cap, p.scratchBytes); !s)
      return s;
    const bool isGradient = pass == AttentionPass::Gradient;
    Status found;
    if (const char *why =
            whyNotCudnn(p, isGradient, device->computeCapability()))
      (void)(found = {Code::Unsupported, why});
    else
      (void)(found = graph.prepare(*device, pass, p));
    if (!found)
      return {found.code(), std::string(name) + ": " + found.message() +
                                "; compile with --attention=own"};
    if (graph.workspaceBytes() <= p.scratchBytes)
      return Status::ok();
    return {Code::OverBudget,
            std::string(name) + ": this version of cuDNN wants " +
                std::to_string(graph.workspaceBytes()) +
                " bytes of workspace, and " + std::to_string(p.scratchBytes) +
                " were planned; compile with --attention=own"};
  }
};

} // namespace
} // namespace cuda

struct CudnnAttention::State : cuda::CudnnState {};
CudnnAttention::CudnnAttention(const Params &params)
    : params_(params), state_(std::make_unique<State>()) {}
CudnnAttention::~CudnnAttention() = default;

Status CudnnAttention::prepare(Device &device) {
  return state_->prepare("attention by cuDNN", device,
                         cuda::AttentionPass::Forward, params_,
                         scratchCap(params_, Backend::Cuda));
}

void CudnnAttention::run(Stream &stream, In ins, Out outs, void *scratch,
                         bool) {
  state_->graph.run(cuda::Queue(*state_->device, stream, "attention by cuDNN"),
                    {operand(ins, 0), operand(ins, 1), operand(ins, 2),
                     result(outs, 0), result(outs, 1)},
                    scratch);
}

struct CudnnAttentionGrad::State : cuda::CudnnState {};
CudnnAttentionGrad::CudnnAttentionGrad(const Params &params)
    : params_(params), state_(std::make_unique<State>()) {}
CudnnAttentionGrad::~CudnnAttentionGrad() = default;

Status CudnnAttentionGrad::prepare(Device &device) {
  return state_->prepare("gradient of attention by cuDNN", device,
                         cuda::AttentionPass::Gradient, params_,
                         scratchCap(params_, Backend::Cuda));
}

void CudnnAttentionGrad::run(Stream &stream, In ins, Out outs, void *scratch,
                             bool) {
  const AttentionGradResults results(params_, outs);
  state_->graph.run(
      cuda::Queue(*state_->device, stream, "gradient of attention by cuDNN"),
      {operand(ins, 0), operand(ins, 1), operand(ins, 2),
       const_cast<void *>(operand(ins, 3)), const_cast<void *>(operand(ins, 4)),
       operand(ins, 5), results.dq, results.dk, results.dv},
      scratch);
}

} // namespace tmc
