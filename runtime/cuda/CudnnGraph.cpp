//===- CudnnGraph.cpp - graphs of cuDNN -----------------------------------===//
//
// TMC_CUDNN_FRONTEND says that the frontend's headers are there. The emulator
// has this interface over plain loops (test/cuda/emulator/CudnnGraph.cpp).
//
//===----------------------------------------------------------------------===//

#include "runtime/cuda/CudnnGraph.h"

#ifndef TMC_CUDA_EMULATED

#ifdef TMC_CUDNN_FRONTEND
#include "runtime/cuda/CudnnHandle.h"

#include <cudnn_frontend.h>

#include <exception>
#include <unordered_map>

namespace tmc::cuda {

namespace {

namespace graph = cudnn_frontend::graph;
using cudnn_frontend::DataType_t;
using Tensor = std::shared_ptr<graph::Tensor_attributes>;

/// The names of the tensors in a graph.
enum Uid : int64_t { Q = 1, K, V, Out, Lse, DOut, DQ, DK, DV };

Status refusal(const std::string &words) {
  return {Code::Unsupported, "cuDNN has no plan for it: " + words};
}

/// Runs steps until one fails, and records its words.
class Steps {
public:
  bool operator()(cudnn_frontend::error_t error) {
    if (failed_.isOk() && error.is_bad())
      (void)(failed_ = refusal(error.get_message()));
    return failed_.isOk();
  }
  const Status &status() const { return failed_; }

private:
  Status failed_;
};

/// A graph of attention, without plans yet.
struct Described {
  graph::Graph graph;

  /// For a card of `capability`, which operations take when they are added.
  Described(AttentionPass pass, const AttentionParams &p, int capability) {
    graph.set_sm_version(capability)
        .set_io_data_type(p.type == DType::F16 ? DataType_t::HALF
                                               : DataType_t::BFLOAT16)
        .set_intermediate_data_type(DataType_t::FLOAT)
        .set_compute_data_type(DataType_t::FLOAT);
    const AttentionTensors all(p);
    if (pass == AttentionPass::Forward)
      forward(p, all);
    else
      gradient(p, all);
  }

  /// Takes the first plan that can be built. Plans that add in varying order
  /// are left out.
  Status plan(cudnnHandle_t handle) {
    Steps step;
    step(graph.validate()) && step(graph.build_operation_graph(handle)) &&
        step(graph.create_execution_plans({cudnn_frontend::HeurMode_t::A}));
    if (!step.status())
      return step.status();
    graph.deselect_numeric_notes(
        {cudnn_frontend::NumericalNote_t::NONDETERMINISTIC});
    step(graph.check_support()) && step(graph.build_plans());
    return step.status();
  }

  Status workspace(int64_t &bytes) const {
    Steps step;
    step(graph.get_workspace_size(bytes));
    return step.status();
  }

private:
  static graph::Tensor_attributes attributes(Uid uid, const char *name,
                                             const GraphTensor &tensor) {
    graph::Tensor_attributes made;
    made.set_uid(uid).set_name(name);
    made.set_dim({tensor.sizes.begin(), tensor.sizes.end()});
    made.set_stride({tensor.strides.begin(), tensor.strides.end()});
    return made;
  }

  Tensor input(Uid uid, const char *name, const GraphTensor &tensor) {
    return graph.tensor(attributes(uid, name, tensor));
  }

  static void output(const Tensor &made, Uid uid, const GraphTensor &tensor) {
    made->set_output(true).set_uid(uid);
    made->set_dim({tensor.sizes.begin(), tensor.sizes.end()});
    made->set_stride({tensor.strides.begin(), tensor.strides.end()});
  }

  /// Query t sees the keys up to t + keys - queries.
  template <typename Attributes>
  static void mask(const AttentionParams &p, Attributes &attributes) {
    if (p.causal && p.queries == p.keys)
      attributes.set_causal_mask(true);
    else if (p.causal)
      attributes.set_causal_mask_bottom_right(true);
  }

  void forward(const AttentionParams &p, const AttentionTensors &all) {
    graph::SDPA_attributes how;
    how.set_name("attention").set_generate_stats(true);
    how.set_attn_scale(float(p.scale));
    mask(p, how);
    const Tensor q = input(Q, "q", all.q);
    const Tensor k = input(K, "k", all.k);
    const Tensor v = input(V, "v", all.v);
    auto [out, lse] = graph.sdpa(q, k, v, std::move(how));
    output(out, Out, all.out);
    output(lse, Lse, all.lse);
    lse->set_data_type(DataType_t::FLOAT);
  }

  void gradient(const AttentionParams &p, const AttentionTensors &all) {
    graph::SDPA_backward_attributes how;
    how.set_name("attention_grad").set_deterministic_algorithm(true);
    how.set_attn_scale(float(p.scale));
    mask(p, how);
    const Tensor q = input(Q, "q", all.q);
    const Tensor k = input(K, "k", all.k);
    const Tensor v = input(V, "v", all.v);
    const Tensor out = input(Out, "out", all.out);
    const Tensor dout = input(DOut, "dout", all.out);
    const Tensor lse = input(Lse, "lse", all.lse);
    lse->set_data_type(DataType_t::FLOAT);
    auto [dq, dk, dv] =
        graph.sdpa_backward(q, k, v, out, dout, lse, std::move(how));
    output(dq, DQ, all.dq);
    output(dk, DK, all.dk);
    output(dv, DV, all.dv);
  }
};

/// The frontend's containers may throw.
template <typename F> Status withoutThrowing(F body) {
  try {
    return body();
  } catch (const std::exception &thrown) {
    return refusal(thrown.what());
  }
}

} // namespace

struct AttentionGraph::State {
  cudnnHandle_t handle = nullptr;
  std::unique_ptr<Described> described;
  int64_t workspaceBytes = 0;
};

AttentionGraph::AttentionGraph() : state_(std::make_unique<State>()) {}
AttentionGraph::~AttentionGraph() = default;

Status AttentionGraph::prepare(CudaDevice &device, AttentionPass pass,
                               const AttentionParams &p) {
  return withoutThrowing([&] {
    State &s = *state_;
    if (Status status = cudnnHandleOf(device, s.handle); !status)
      return status;
    s.described =
        std::make_unique<Described>(pass, p, device.computeCapability());
    if (Status status = s.described->plan(s.handle); !status)
      return status;
    return s.described->workspace(s.workspaceBytes);
  });
}

int64_t AttentionGraph::workspaceBytes() const {
  return state_->workspaceBytes;
}

void AttentionGraph::run(const Queue &queue, const AttentionAddresses &at,
                         void *workspace) {
  std::unordered_map<int64_t, void *> addresses = {
      {Q, const_cast<void *>(at.q)},
      {K, const_cast<void *>(at.k)},
      {V, const_cast<void *>(at.v)},
      {Out, at.out},
      {Lse, at.lse}};
  if (at.dout) {
    addresses[DOut] = const_cast<void *>(at.dout);
    addresses[DQ] = at.dq;
    addresses[DK] = at.dk;
    addresses[DV] = at.dv;
  }
  const TimedLaunch timed = queue.time("cudnn");
  const Status status = withoutThrowing([&]() -> Status {
    cudnn_frontend::error_t error =
        state_->described->graph.execute(state_->handle, addresses, workspace);
    if (error.is_bad())
      return {Code::World, "cuDNN: " + error.get_message()};
    return Status::ok();
  });
  if (!status)
    queue.device().fail(status.code(),
                        std::string(queue.name()) + ": " + status.message());
}

Status askCudnn(const std::string &cardJson, AttentionPass pass,
                const AttentionParams &p, int capability,
                int64_t &workspaceBytes) {
  return withoutThrowing([&] {
    auto card = std::make_shared<cudnn_frontend::DeviceProperties>();
    Steps step;
    if (!step(card->deserialize({cardJson.begin(), cardJson.end()})))
      return step.status();
    Described described(pass, p, capability);
    described.graph.set_device_properties(card);
    if (Status status = described.plan(/*handle=*/nullptr); !status)
      return status;
    return described.workspace(workspaceBytes);
  });
}

} // namespace tmc::cuda

#else

namespace tmc::cuda {

struct AttentionGraph::State {};
AttentionGraph::AttentionGraph() = default;
AttentionGraph::~AttentionGraph() = default;
Status AttentionGraph::prepare(CudaDevice &, AttentionPass,
                               const AttentionParams &) {
  return {Code::Unsupported, "the runtime was built without the headers of "
                             "cuDNN's frontend (nvidia-cudnn-frontend)"};
}
int64_t AttentionGraph::workspaceBytes() const { return 0; }
void AttentionGraph::run(const Queue &, const AttentionAddresses &, void *) {}

Status askCudnn(const std::string &, AttentionPass, const AttentionParams &,
                int, int64_t &) {
  return {Code::Unsupported, "the runtime was built without the headers of "
                             "cuDNN's frontend (nvidia-cudnn-frontend)"};
}

} // namespace tmc::cuda

#endif // TMC_CUDNN_FRONTEND
#endif // TMC_CUDA_EMULATED
