//===- CudnnGraph.cpp - a stand-in for cuDNN's graphs of attention --------===//
//
// AttentionGraph of runtime/cuda/CudnnGraph.h, over plain loops in double on
// the tensors of PlacedTensor.h.
//
// It doesn't round probabilities; the library does. The library alone knows
// which shapes it takes, and its workspace: test/cuda/CudnnTest.cpp asks it.
//
//===----------------------------------------------------------------------===//

#include "test/cuda/emulator/CudnnGraph.h"

#include "test/cuda/emulator/Counts.h"
#include "test/cuda/emulator/PlacedTensor.h"
#include "test/cuda/emulator/Streams.h"

#include <cmath>
#include <cstring>
#include <vector>

int64_t tmc::emulator::cudnnWorkspaceBytes = -1;

namespace tmc::cuda {

using namespace tmc::emulator;

namespace {

struct Job {
  AttentionPass pass;
  AttentionParams p;
  Placed q, k, v, out, lse, dout, dq, dk, dv;
  void *workspace;
  int64_t workspaceBytes;

  Job(AttentionPass pass, const AttentionParams &p, const AttentionAddresses &a,
      void *workspace, int64_t bytes)
      : pass(pass), p(p), workspace(workspace), workspaceBytes(bytes) {
    const AttentionTensors all(p);
    auto placed = [&](const char *name, const void *at, const GraphTensor &t) {
      return Placed{"attention by cuDNN", name, const_cast<void *>(at), t,
                    p.type};
    };
    q = placed("q", a.q, all.q);
    k = placed("k", a.k, all.k);
    v = placed("v", a.v, all.v);
    out = placed("out", a.out, all.out);
    lse = placed("lse", a.lse, all.lse);
    lse.type = DType::F32;
    dout = placed("dout", a.dout, all.out);
    dq = placed("dq", a.dq, all.dq);
    dk = placed("dk", a.dk, all.dk);
    dv = placed("dv", a.dv, all.dv);
  }

  int64_t keyEnd(int64_t t) const {
    return p.causal ? t + p.keys - p.queries + 1 : p.keys;
  }
  int64_t group(int64_t h) const { return h / (p.heads / p.kvHeads); }
  double score(int64_t b, int64_t h, int64_t t, int64_t s) const {
    double sum = 0;
    for (int64_t d = 0; d < p.headDim; ++d)
      sum += q.get(b, h, t, d) * k.get(b, group(h), s, d);
    return sum * float(p.scale);
  }

  bool touch() const {
    const bool isForward = pass == AttentionPass::Forward;
    if (!spoilWorkspace("attention by cuDNN", workspace, workspaceBytes))
      return false;
    const Touch kind = isForward ? Touch::Write : Touch::Read;
    if (!q.touch(Touch::Read) || !k.touch(Touch::Read) ||
        !v.touch(Touch::Read) || !out.touch(kind) || !lse.touch(kind))
      return false;
    return isForward || (dout.touch(Touch::Read) && dq.touch(Touch::Write) &&
                         dk.touch(Touch::Write) && dv.touch(Touch::Write));
  }

  void forward(int64_t b, int64_t h, int64_t t) const {
    std::vector<double> scores;
    double top = -INFINITY, total = 0;
    for (int64_t s = 0; s < keyEnd(t); ++s) {
      scores.push_back(score(b, h, t, s));
      top = std::fmax(top, scores.back());
    }
    for (double &x : scores)
      total += x = std::exp(x - top);
    for (int64_t d = 0; d < p.headDim; ++d) {
      double sum = 0;
      for (size_t s = 0; s < scores.size(); ++s)
        sum += scores[s] * v.get(b, group(h), int64_t(s), d);
      out.put(b, h, t, d, sum / total);
    }
    lse.put(b, h, t, 0, top + std::log(total));
  }

  /// Adds a query's part to the sums of its group.
  void gradient(int64_t b, int64_t h, int64_t t, std::vector<double> &ofK,
                std::vector<double> &ofV) const {
    double dots = 0;
    for (int64_t d = 0; d < p.headDim; ++d)
      dots += dout.get(b, h, t, d) * out.get(b, h, t, d);
    std::vector<double> ofQ(size_t(p.headDim), 0);
    for (int64_t s = 0; s < keyEnd(t); ++s) {
      const double prob = std::exp(score(b, h, t, s) - lse.get(b, h, t));
      double dP = 0;
      for (int64_t d = 0; d < p.headDim; ++d)
        dP += dout.get(b, h, t, d) * v.get(b, group(h), s, d);
      const double dS = prob * (dP - dots) * float(p.scale);
      for (int64_t d = 0; d < p.headDim; ++d) {
        const size_t at = size_t(s * p.headDim + d);
        ofQ[size_t(d)] += dS * k.get(b, group(h), s, d);
        ofK[at] += dS * q.get(b, h, t, d);
        ofV[at] += prob * dout.get(b, h, t, d);
      }
    }
    for (int64_t d = 0; d < p.headDim; ++d)
      dq.put(b, h, t, d, ofQ[size_t(d)]);
  }

  void gradients() const {
    const int64_t perGroup = p.heads / p.kvHeads;
    for (int64_t b = 0; b < p.batch; ++b)
      for (int64_t g = 0; g < p.kvHeads; ++g) {
        std::vector<double> ofK(size_t(p.keys * p.headDim), 0), ofV(ofK);
        for (int64_t h = g * perGroup; h < (g + 1) * perGroup; ++h)
          for (int64_t t = 0; t < p.queries; ++t)
            gradient(b, h, t, ofK, ofV);
        for (int64_t s = 0; s < p.keys; ++s)
          for (int64_t d = 0; d < p.headDim; ++d) {
            dk.put(b, g, s, d, ofK[size_t(s * p.headDim + d)]);
            dv.put(b, g, s, d, ofV[size_t(s * p.headDim + d)]);
          }
      }
  }

  void run() const {
    if (!touch())
      return;
    if (pass == AttentionPass::Gradient)
      return gradients();
    for (int64_t b = 0; b < p.batch; ++b)
      for (int64_t h = 0; h < p.heads; ++h)
        for (int64_t t = 0; t < p.queries; ++t)
          forward(b, h, t);
  }
};

} // namespace

struct AttentionGraph::State {
  AttentionPass pass = AttentionPass::Forward;
  AttentionParams p{};
  int64_t workspaceBytes = 0;
};

AttentionGraph::AttentionGraph() : state_(std::make_unique<State>()) {}
AttentionGraph::~AttentionGraph() = default;

Status AttentionGraph::prepare(CudaDevice &, AttentionPass pass,
                               const AttentionParams &p) {
  state_->pass = pass;
  state_->p = p;
  const int64_t cap = pass == AttentionPass::Forward
                          ? CudnnAttention::scratchCap(p, Backend::Cuda)
                          : CudnnAttentionGrad::scratchCap(p, Backend::Cuda);
  state_->workspaceBytes =
      cudnnWorkspaceBytes < 0 ? cap - 1 : cudnnWorkspaceBytes;
  return Status::ok();
}

int64_t AttentionGraph::workspaceBytes() const {
  return state_->workspaceBytes;
}

void AttentionGraph::run(const Queue &queue, const AttentionAddresses &at,
                         void *workspace) {
  const State &s = *state_;
  const TimedLaunch timed = queue.time("cudnn");
  const Job job(s.pass, s.p, at, workspace, s.workspaceBytes);
  const bool isForward = s.pass == AttentionPass::Forward;
  // The kernels of a plan, as CudnnAttentionGrad counts them.
  counts().kernels += isForward ? 1 : 3;
  queueWork(queue.native(),
            isForward ? "attention by cuDNN" : "gradient by cuDNN",
            keyOf(isForward, at.q, at.k, at.v, at.out, at.lse, at.dout, at.dq,
                  at.dk, at.dv, workspace),
            [job] { job.run(); });
}

Status askCudnn(const std::string &, AttentionPass, const AttentionParams &,
                int, int64_t &) {
  return {Code::Unsupported, "the stand-in knows no cards"};
}

} // namespace tmc::cuda
