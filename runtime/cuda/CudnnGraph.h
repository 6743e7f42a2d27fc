//===- CudnnGraph.h - graphs of cuDNN ---------------------------*- C++ -*-===//
//
// A graph says what is to be computed: the operation, and each tensor by its
// sizes and strides. The library answers with plans, kernels that compute it,
// and each plan with the workspace that it wants.
//
//     describe   q, k, v, .. as [batch, heads, time, channels] -> attention
//                x, filter, y as [batch, channels, height, width] ->
//                convolution
//     ask        plans, the library's favourite first; none that adds in
//                varying order
//     prepare    the first plan that can be built, and its workspace
//     run        addresses of the tensors, and the workspace
//
// Nothing is timed. So the plan depends on the description, the card and the
// library's version alone. The library compiles some plans when they are built,
// which takes seconds for each.
//
// CudnnGraph.cpp is the one file that includes cuDNN's headers and its
// header-only frontend (PyPI's nvidia-cudnn-frontend). Without them prepare()
// refuses.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_CUDA_CUDNNGRAPH_H
#define TMC_RUNTIME_CUDA_CUDNNGRAPH_H

#include "runtime/cuda/Cuda.h"
#include "runtime/kernels/CudnnAttention.h"
#include "runtime/kernels/CudnnConv.h"

#include <array>

namespace tmc::cuda {

/// A tensor in memory; strides in elements.
struct GraphTensor {
  std::array<int64_t, 4> sizes, strides;
};

/// The tensors of attention, [batch, heads, time, channels], where the classes
/// of CudnnAttention.h have them. dq, dk and dv are those of the gradient,
/// alone or in one buffer.
struct AttentionTensors {
  GraphTensor q, k, v, out, lse, dq, dk, dv;

  explicit AttentionTensors(const AttentionParams &p) {
    const int64_t b = p.batch, h = p.heads, g = p.kvHeads, d = p.headDim;
    const int64_t t = p.queries, s = p.keys;
    auto strided = [&](int64_t heads, int64_t time, AttentionStrides by) {
      return GraphTensor{{b, heads, time, d}, {by.batch, by.head, by.time, 1}};
    };
    auto rows = [&](int64_t heads, int64_t time, int64_t stride) {
      return strided(heads, time, {time * stride, stride, d});
    };
    q = strided(h, t, p.q);
    k = strided(g, s, p.k);
    v = strided(g, s, p.v);
    out = rows(h, t, h * d);
    lse = {{b, h, t, 1}, {h * t, t, 1, 1}};
    dq = rows(h, t, dqStride(p));
    dk = rows(g, s, dkStride(p));
    dv = dk;
  }
};

/// Their addresses on the device. The forward pass reads q, k and v and writes
/// out and lse; the gradient reads these and dout, which lies as out does.
struct AttentionAddresses {
  const void *q, *k, *v;
  void *out, *lse;
  const void *dout = nullptr;
  void *dq = nullptr, *dk = nullptr, *dv = nullptr;
};

enum class AttentionPass { Forward, Gradient };

/// One attention, or its gradient.
class AttentionGraph {
public:
  AttentionGraph();
  ~AttentionGraph();
  AttentionGraph(const AttentionGraph &) = delete;
  AttentionGraph &operator=(const AttentionGraph &) = delete;

  /// Takes a plan for the device. Code::Unsupported, with the library's words,
  /// if it has none.
  Status prepare(CudaDevice &device, AttentionPass pass,
                 const AttentionParams &params);
  /// The workspace of the plan.
  int64_t workspaceBytes() const;
  void run(const Queue &queue, const AttentionAddresses &at, void *workspace);

private:
  struct State;
  std::unique_ptr<State> state_;
};

/// The tensors of a convolution, [batch, channels, height, width], and the
/// steps of its window, height before width. In memory channels are innermost,
/// also those of the filter, [outChannels, inChannels / groups, ..].
struct ConvTensors {
  GraphTensor x, filter, y;
  std::array<int64_t, 2> before, after, strides, dilations; // first: padding

  /// For parameters with sizes in 64 bits (whyNotCudnn).
  explicit ConvTensors(const ConvParams &p)
      : x(channelsLast(p.batch, p.inChannels, p.inHeight, p.inWidth)),
        filter(channelsLast(p.outChannels, p.inChannels / p.groups,
                            p.kernelHeight, p.kernelWidth)),
        y(channelsLast(p.batch, p.outChannels, p.outHeight, p.outWidth)),
        before{p.padTop, p.padLeft}, after{p.padBottom, p.padRight},
        strides{p.strideHeight, p.strideWidth}, dilations{p.dilationHeight,
                                                          p.dilationWidth} {}

private:
  static GraphTensor channelsLast(int64_t n, int64_t c, int64_t h, int64_t w) {
    return {{n, c, h, w}, {h * w * c, 1, w * c, c}};
  }
};

/// A convolution, or one of its gradients. Activations and the filter have the
/// type of the activations, a filter's gradient f32.
class ConvGraph {
public:
  ConvGraph();
  ~ConvGraph();
  ConvGraph(const ConvGraph &) = delete;
  ConvGraph &operator=(const ConvGraph &) = delete;

  /// Takes a plan for the device that wants at most `workspaceBytes`.
  /// Code::Unsupported if there is none; whyNotCudnn() has to be null.
  Status prepare(CudaDevice &device, ConvPass pass, const ConvParams &params,
                 int64_t workspaceBytes);
  /// The workspace of the plan. Zero without one.
  int64_t workspaceBytes() const;
  /// The two operands and the result, in the order of the kernel's class:
  /// (x, filter) -> y, (dy, filter) -> dx, (x, dy) -> dfilter.
  void run(const Queue &queue, const void *first, const void *second,
           void *result, void *workspace);

private:
  struct State;
  std::unique_ptr<State> state_;
};

/// The workspace that the library wants on a card, which may be absent: cuDNN's
/// JSON of its properties stands for it (cuDNN 9.8 and newer).
/// Code::Unsupported, with the library's words, if it has no plan.
Status askCudnn(const std::string &cardJson, AttentionPass pass,
                const AttentionParams &params, int capability,
                int64_t &workspaceBytes);
/// The same of a plan for a convolution that wants at most `mostBytes`.
Status askCudnn(const std::string &cardJson, ConvPass pass,
                const ConvParams &params, int capability, int64_t mostBytes,
                int64_t &workspaceBytes);

} // namespace tmc::cuda

#endif // TMC_RUNTIME_CUDA_CUDNNGRAPH_H
