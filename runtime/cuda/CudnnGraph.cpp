//===- CudnnGraph.cpp - graphs of cuDNN -----------------------------------===//
//
// TMC_CUDNN_FRONTEND says that the frontend's headers are there. The emulator
// has this interface over plain loops (test/cuda/emulator/CudnnGraph.cpp).
//
//===----------------------------------------------------------------------===//

#include "runtime/cuda/CudnnGraph.h"

#ifndef TMC_CUDA_EMULATED

#ifdef TMC_CUDNN_FRONTEND
#include <cudnn.h>
#include <cudnn_frontend.h>

#include <exception>
#include <unordered_map>

namespace tmc::cuda {

namespace {

namespace graph = cudnn_frontend::graph;
using cudnn_frontend::DataType_t;
using cudnn_frontend::HeurMode_t;
using cudnn_frontend::NumericalNote_t;
using Tensor = std::shared_ptr<graph::Tensor_attributes>;
using Addresses = std::unordered_map<int64_t, void *>;

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

/// Which plans may be taken.
struct PlanRules {
  std::vector<HeurMode_t> modes = {HeurMode_t::A};
  std::vector<NumericalNote_t> without = {NumericalNote_t::NONDETERMINISTIC};
  int64_t mostBytes = INT64_MAX; // of workspace
};

/// A graph, and the plan that was taken for it.
struct Planned {
  graph::Graph graph;
  int64_t workspaceBytes = 0;

  /// For a card of `capability`, which operations take when they are added.
  Planned(DType type, int capability) {
    graph.set_sm_version(capability)
        .set_io_data_type(typeOf(type))
        .set_intermediate_data_type(DataType_t::FLOAT)
        .set_compute_data_type(DataType_t::FLOAT);
  }
  virtual ~Planned() = default;

  /// Takes the first plan that can be built.
  Status plan(cudnnHandle_t handle, const PlanRules &rules) {
    Steps step;
    step(graph.validate()) && step(graph.build_operation_graph(handle)) &&
        step(graph.create_execution_plans(rules.modes));
    if (!step.status())
      return step.status();
    graph.deselect_numeric_notes(rules.without);
    if (rules.mostBytes < INT64_MAX)
      graph.deselect_workspace_greater_than(rules.mostBytes);
    step(graph.check_support()) && step(graph.build_plans()) &&
        step(graph.get_workspace_size(workspaceBytes));
    if (step.status() && workspaceBytes > rules.mostBytes)
      return refusal("it wants " + std::to_string(workspaceBytes) +
                     " bytes of workspace");
    return step.status();
  }

protected:
  static DataType_t typeOf(DType type) {
    return type == DType::F16    ? DataType_t::HALF
           : type == DType::BF16 ? DataType_t::BFLOAT16
                                 : DataType_t::FLOAT;
  }

  Tensor input(int64_t uid, const char *name, const GraphTensor &tensor) {
    graph::Tensor_attributes made;
    made.set_uid(uid).set_name(name);
    made.set_dim({tensor.sizes.begin(), tensor.sizes.end()});
    made.set_stride({tensor.strides.begin(), tensor.strides.end()});
    return graph.tensor(made);
  }

  static void output(const Tensor &made, int64_t uid,
                     const GraphTensor &tensor) {
    made->set_output(true).set_uid(uid);
    place(made, tensor);
  }
  static void place(const Tensor &made, const GraphTensor &tensor) {
    made->set_dim({tensor.sizes.begin(), tensor.sizes.end()});
    made->set_stride({tensor.strides.begin(), tensor.strides.end()});
  }
};

/// A graph of attention.
struct PlannedAttention : Planned {
  enum Uid : int64_t { Q = 1, K, V, Out, Lse, DOut, DQ, DK, DV };
  using Params = AttentionParams;
  using Pass = AttentionPass;

  PlannedAttention(AttentionPass pass, const AttentionParams &p, int capability)
      : Planned(p.type, capability) {
    const AttentionTensors all(p);
    if (pass == AttentionPass::Forward)
      forward(p, all);
    else
      gradient(p, all);
  }

private:
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

/// A graph of a convolution.
struct PlannedConv : Planned {
  enum Uid : int64_t { First = 1, Second, Result };
  using Params = ConvParams;
  using Pass = ConvPass;

  PlannedConv(ConvPass pass, const ConvParams &p, int capability)
      : Planned(p.type, capability) {
    const ConvTensors all(p);
    if (pass == ConvPass::Forward)
      forward(all);
    else if (pass == ConvPass::GradInput)
      gradInput(all);
    else
      gradFilter(all, isHalf(p.type));
  }

  /// Products of f32 are exact before they are added up, and numbers of 16 bits
  /// aren't rounded again. Transforms of windows do both less well: f32 may
  /// have them.
  static PlanRules rules(const ConvParams &p, int64_t mostBytes) {
    PlanRules rules;
    rules.modes.push_back(HeurMode_t::FALLBACK);
    rules.mostBytes = mostBytes;
    auto forbid = [&](std::initializer_list<NumericalNote_t> notes) {
      rules.without.insert(rules.without.end(), notes);
    };
    if (isHalf(p.type))
      forbid({NumericalNote_t::REDUCED_PRECISION_REDUCTION,
              NumericalNote_t::WINOGRAD, NumericalNote_t::FFT});
    else
      forbid(
          {NumericalNote_t::DOWN_CONVERT_INPUTS, NumericalNote_t::TENSOR_CORE});
    return rules;
  }

private:
  template <typename Attributes>
  static Attributes slide(const char *name, const ConvTensors &all) {
    auto pair = [](const std::array<int64_t, 2> &of) {
      return std::vector<int64_t>(of.begin(), of.end());
    };
    Attributes how;
    how.set_name(name);
    how.set_pre_padding(pair(all.before)).set_post_padding(pair(all.after));
    how.set_stride(pair(all.strides)).set_dilation(pair(all.dilations));
    return how;
  }

  void forward(const ConvTensors &all) {
    const Tensor x = input(First, "x", all.x);
    const Tensor filter = input(Second, "filter", all.filter);
    output(graph.conv_fprop(x, filter,
                            slide<graph::Conv_fprop_attributes>("conv", all)),
           Result, all.y);
  }

  void gradInput(const ConvTensors &all) {
    const Tensor dy = input(First, "dy", all.y);
    const Tensor filter = input(Second, "filter", all.filter);
    output(graph.conv_dgrad(
               dy, filter,
               slide<graph::Conv_dgrad_attributes>("conv_grad_input", all)),
           Result, all.x);
  }

  /// The identity keeps the sums of 16-bit operands in f32 (CudnnConv.h).
  void gradFilter(const ConvTensors &all, bool isNarrow) {
    const Tensor x = input(First, "x", all.x);
    const Tensor dy = input(Second, "dy", all.y);
    Tensor sums = graph.conv_wgrad(
        dy, x, slide<graph::Conv_wgrad_attributes>("conv_grad_filter", all));
    place(sums, all.filter);
    sums->set_data_type(DataType_t::FLOAT);
    if (isNarrow) {
      graph::Pointwise_attributes identity;
      identity.set_mode(cudnn_frontend::PointwiseMode_t::IDENTITY);
      identity.set_name("sums").set_compute_data_type(DataType_t::FLOAT);
      sums = graph.pointwise(sums, std::move(identity));
    }
    output(sums, Result, all.filter);
    sums->set_data_type(DataType_t::FLOAT);
  }
};

/// The device's handle, which queues on its compute stream. Code::World, with
/// the library's words, if it can't be made.
Status handleOf(CudaDevice &device, cudnnHandle_t &handle) {
  cudnnStatus_t status = CUDNN_STATUS_SUCCESS;
  if (!device.dnn) {
    status = cudnnCreate(&handle);
    if (status == CUDNN_STATUS_SUCCESS) {
      device.dnn = std::shared_ptr<void>(handle, [](void *p) {
        (void)cudnnDestroy(static_cast<cudnnHandle_t>(p));
      });
      status = cudnnSetStream(handle, nativeOf(device.compute()));
    }
  }
  handle = static_cast<cudnnHandle_t>(device.dnn.get());
  if (status == CUDNN_STATUS_SUCCESS)
    return Status::ok();
  return {Code::World,
          std::string("can't start cuDNN: ") + cudnnGetErrorString(status)};
}

/// The frontend's containers may throw.
template <typename F> Status withoutThrowing(F body) {
  try {
    return body();
  } catch (const std::exception &thrown) {
    return refusal(thrown.what());
  }
}

/// What a kernel keeps of its graph.
struct Kept {
  cudnnHandle_t handle = nullptr;
  std::unique_ptr<Planned> planned;

  template <typename G>
  Status prepare(CudaDevice &device, typename G::Pass pass,
                 const typename G::Params &p, const PlanRules &rules) {
    return withoutThrowing([&] {
      if (Status status = handleOf(device, handle); !status)
        return status;
      auto made = std::make_unique<G>(pass, p, device.computeCapability());
      Status status = made->plan(handle, rules);
      if (status)
        planned = std::move(made);
      return status;
    });
  }
  int64_t workspaceBytes() const {
    return planned ? planned->workspaceBytes : 0;
  }
  void run(const Queue &queue, Addresses addresses, void *workspace) {
    const TimedLaunch timed = queue.time("cudnn");
    const Status status = withoutThrowing([&]() -> Status {
      cudnn_frontend::error_t error =
          planned->graph.execute(handle, addresses, workspace);
      if (error.is_bad())
        return {Code::World, "cuDNN: " + error.get_message()};
      return Status::ok();
    });
    if (!status)
      queue.device().fail(status.code(),
                          std::string(queue.name()) + ": " + status.message());
  }
};

void *anyOf(const void *address) { return const_cast<void *>(address); }

/// Asks about a card that may be absent.
template <typename G>
Status ask(const std::string &cardJson, typename G::Pass pass,
           const typename G::Params &p, int capability, const PlanRules &rules,
           int64_t &workspaceBytes) {
  return withoutThrowing([&] {
    auto card = std::make_shared<cudnn_frontend::DeviceProperties>();
    Steps step;
    if (!step(card->deserialize({cardJson.begin(), cardJson.end()})))
      return step.status();
    G planned(pass, p, capability);
    planned.graph.set_device_properties(card);
    Status status = planned.plan(/*handle=*/nullptr, rules);
    workspaceBytes = planned.workspaceBytes;
    return status;
  });
}

} // namespace

struct AttentionGraph::State : Kept {};
AttentionGraph::AttentionGraph() : state_(std::make_unique<State>()) {}
AttentionGraph::~AttentionGraph() = default;

Status AttentionGraph::prepare(CudaDevice &device, AttentionPass pass,
                               const AttentionParams &p) {
  return state_->prepare<PlannedAttention>(device, pass, p, {});
}

int64_t AttentionGraph::workspaceBytes() const {
  return state_->workspaceBytes();
}

void AttentionGraph::run(const Queue &queue, const AttentionAddresses &at,
                         void *workspace) {
  using G = PlannedAttention;
  Addresses addresses = {{G::Q, anyOf(at.q)},
                         {G::K, anyOf(at.k)},
                         {G::V, anyOf(at.v)},
                         {G::Out, at.out},
                         {G::Lse, at.lse}};
  if (at.dout) {
    addresses[G::DOut] = anyOf(at.dout);
    addresses[G::DQ] = at.dq;
    addresses[G::DK] = at.dk;
    addresses[G::DV] = at.dv;
  }
  state_->run(queue, std::move(addresses), workspace);
}

struct ConvGraph::State : Kept {};
ConvGraph::ConvGraph() : state_(std::make_unique<State>()) {}
ConvGraph::~ConvGraph() = default;

Status ConvGraph::prepare(CudaDevice &device, ConvPass pass,
                          const ConvParams &p, int64_t workspaceBytes) {
  return state_->prepare<PlannedConv>(device, pass, p,
                                      PlannedConv::rules(p, workspaceBytes));
}

int64_t ConvGraph::workspaceBytes() const { return state_->workspaceBytes(); }

void ConvGraph::run(const Queue &queue, const void *first, const void *second,
                    void *result, void *workspace) {
  using G = PlannedConv;
  state_->run(queue,
              {{G::First, anyOf(first)},
               {G::Second, anyOf(second)},
               {G::Result, result}},
              workspace);
}

Status askCudnn(const std::string &cardJson, AttentionPass pass,
                const AttentionParams &p, int capability,
                int64_t &workspaceBytes) {
  return ask<PlannedAttention>(cardJson, pass, p, capability, {},
                               workspaceBytes);
}

Status askCudnn(const std::string &cardJson, ConvPass pass, const ConvParams &p,
                int capability, int64_t mostBytes, int64_t &workspaceBytes) {
  return ask<PlannedConv>(cardJson, pass, p, capability,
                          PlannedConv::rules(p, mostBytes), workspaceBytes);
}

} // namespace tmc::cuda

#else

namespace tmc::cuda {

namespace {
Status refusal() {
  return {Code::Unsupported, "the runtime was built without the headers of "
                             "cuDNN's frontend (nvidia-cudnn-frontend)"};
}
} // namespace

struct AttentionGraph::State {};
AttentionGraph::AttentionGraph() = default;
AttentionGraph::~AttentionGraph() = default;
Status AttentionGraph::prepare(CudaDevice &, AttentionPass,
                               const AttentionParams &) {
  return refusal();
}
int64_t AttentionGraph::workspaceBytes() const { return 0; }
void AttentionGraph::run(const Queue &, const AttentionAddresses &, void *) {}

struct ConvGraph::State {};
ConvGraph::ConvGraph() = default;
ConvGraph::~ConvGraph() = default;
Status ConvGraph::prepare(CudaDevice &, ConvPass, const ConvParams &, int64_t) {
  return refusal();
}
int64_t ConvGraph::workspaceBytes() const { return 0; }
void ConvGraph::run(const Queue &, const void *, const void *, void *, void *) {
}

Status askCudnn(const std::string &, AttentionPass, const AttentionParams &,
                int, int64_t &) {
  return refusal();
}
Status askCudnn(const std::string &, ConvPass, const ConvParams &, int, int64_t,
                int64_t &) {
  return refusal();
}

} // namespace tmc::cuda

#endif // TMC_CUDNN_FRONTEND
#endif // TMC_CUDA_EMULATED
