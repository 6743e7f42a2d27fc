//===- CudnnConv.cpp - a stand-in for cuDNN's graphs of convolutions ------===//
//
// ConvGraph of runtime/cuda/CudnnGraph.h, over plain loops on the tensors of
// PlacedTensor.h. Sums are in double, and results are rounded to f32, then to
// their type.
//
// There are two plans for each shape. They differ in whether products are
// rounded to f32 before they are added. A hash of the shape chooses one. Which
// shapes have no f32 filter gradient is as the library answers
// (test/cuda/CudnnTest.cpp).
//
//===----------------------------------------------------------------------===//

#include "test/cuda/emulator/CudnnGraph.h"

#include "test/cuda/emulator/Counts.h"
#include "test/cuda/emulator/PlacedTensor.h"
#include "test/cuda/emulator/Streams.h"

#include <vector>

int64_t tmc::emulator::cudnnConvolutions = 0;

namespace tmc::cuda {

using namespace tmc::emulator;

namespace {

constexpr int64_t kExactBytes = 1000, kRoundedBytes = 2000; // of workspace

struct ConvJob {
  ConvPass pass = ConvPass::Forward;
  ConvTensors all;
  Placed x, filter, y;
  bool isRounded = false;
  void *workspace = nullptr;
  int64_t workspaceBytes = 0;

  ConvJob(ConvPass pass, const ConvParams &p) : pass(pass), all(p) {
    auto placed = [&](const char *name, const GraphTensor &tensor) {
      return Placed{"convolution by cuDNN", name, nullptr, tensor, p.type};
    };
    x = placed("x", all.x);
    filter = placed("filter", all.filter);
    y = placed("y", all.y);
    if (pass == ConvPass::GradFilter)
      filter.type = DType::F32;
    uint64_t hash = 0;
    for (const GraphTensor &tensor : {all.x, all.filter, all.y})
      for (int64_t size : tensor.sizes)
        hash = (hash ^ uint64_t(size)) * 0x9e3779b97f4a7c15u + 1;
    isRounded = hash >> 40 & 1;
    workspaceBytes = cudnnWorkspaceBytes >= 0 ? cudnnWorkspaceBytes
                     : isRounded              ? kRoundedBytes
                                              : kExactBytes;
  }

  void place(const void *first, const void *second, void *result) {
    auto any = [](const void *at) { return const_cast<void *>(at); };
    x.at = pass == ConvPass::GradInput ? result : any(first);
    filter.at = pass == ConvPass::GradFilter ? result : any(second);
    y.at = pass == ConvPass::Forward     ? result
           : pass == ConvPass::GradInput ? any(first)
                                         : any(second);
  }

  const Placed &result() const {
    return pass == ConvPass::Forward     ? y
           : pass == ConvPass::GradInput ? x
                                         : filter;
  }

  double product(double a, double b) const {
    return isRounded ? double(float(a) * float(b)) : a * b;
  }

  /// Adds the products of one element of y.
  void addTo(std::vector<double> &sums, int64_t n, int64_t k, int64_t p,
             int64_t q) const {
    const auto &taps = filter.tensor.sizes;
    const int64_t perGroup = y.tensor.sizes[1] / (x.tensor.sizes[1] / taps[1]);
    const int64_t c0 = k / perGroup * taps[1];
    for (int64_t r = 0; r < taps[2]; ++r)
      for (int64_t s = 0; s < taps[3]; ++s) {
        const int64_t h =
            p * all.strides[0] - all.before[0] + r * all.dilations[0];
        const int64_t w =
            q * all.strides[1] - all.before[1] + s * all.dilations[1];
        if (h < 0 || h >= x.tensor.sizes[2] || w < 0 || w >= x.tensor.sizes[3])
          continue;
        for (int64_t c = 0; c < taps[1]; ++c)
          if (pass == ConvPass::Forward)
            sums[size_t(y.place(n, k, p, q))] +=
                product(x.get(n, c0 + c, h, w), filter.get(k, c, r, s));
          else if (pass == ConvPass::GradInput)
            sums[size_t(x.place(n, c0 + c, h, w))] +=
                product(y.get(n, k, p, q), filter.get(k, c, r, s));
          else
            sums[size_t(filter.place(k, c, r, s))] +=
                product(x.get(n, c0 + c, h, w), y.get(n, k, p, q));
      }
  }

  void run() const {
    if (!spoilWorkspace("convolution by cuDNN", workspace, workspaceBytes))
      return;
    for (const Placed *tensor : {&x, &filter, &y})
      if (!tensor->touch(tensor == &result() ? Touch::Write : Touch::Read))
        return;
    const Placed &to = result();
    const auto &n = to.tensor.sizes;
    const int64_t last = to.place(n[0] - 1, n[1] - 1, n[2] - 1, n[3] - 1);
    std::vector<double> sums(size_t(last + 1), 0);
    y.each([&](int64_t n, int64_t k, int64_t p, int64_t q) {
      addTo(sums, n, k, p, q);
    });
    to.each([&](int64_t i, int64_t j, int64_t k, int64_t l) {
      to.put(i, j, k, l, float(sums[size_t(to.place(i, j, k, l))]));
    });
  }
};

/// True if the window slides from the first of y's elements to the last.
bool hasSizes(const ConvTensors &all) {
  for (size_t i = 0; i < 2; ++i) {
    const int64_t reach = (all.filter.sizes[i + 2] - 1) * all.dilations[i] + 1;
    const int64_t padded = all.x.sizes[i + 2] + all.before[i] + all.after[i];
    if ((padded - reach) / all.strides[i] + 1 != all.y.sizes[i + 2])
      return false;
  }
  return true;
}

/// True if the library has an f32 filter gradient of these 16-bit operands.
bool hasSums(const ConvParams &p) {
  return p.groups == 1 && p.inChannels % 2 == 0 && p.outChannels % 2 == 0;
}

} // namespace

struct ConvGraph::State {
  std::unique_ptr<ConvJob> job;
};

ConvGraph::ConvGraph() : state_(std::make_unique<State>()) {}
ConvGraph::~ConvGraph() = default;

Status ConvGraph::prepare(CudaDevice &, ConvPass pass, const ConvParams &p,
                          int64_t workspaceBytes) {
  if (pass == ConvPass::GradFilter && isHalf(p.type) && !hasSums(p))
    return {Code::Unsupported, "the stand-in has no such sums"};
  auto job = std::make_unique<ConvJob>(pass, p);
  if (!hasSizes(job->all))
    return {Code::BadInput, "the stand-in finds another size of the result"};
  if (job->workspaceBytes > workspaceBytes)
    return {Code::Unsupported, "the stand-in wants more workspace"};
  state_->job = std::move(job);
  return Status::ok();
}

int64_t ConvGraph::workspaceBytes() const {
  return state_->job ? state_->job->workspaceBytes : 0;
}

void ConvGraph::run(const Queue &queue, const void *first, const void *second,
                    void *result, void *workspace) {
  const TimedLaunch timed = queue.time("cudnn");
  ConvJob job = *state_->job;
  job.place(first, second, result);
  job.workspace = workspace;
  ++counts().kernels;
  ++cudnnConvolutions;
  queueWork(queue.native(), "convolution by cuDNN",
            keyOf(job.pass, first, second, result, workspace),
            [job] { job.run(); });
}

Status askCudnn(const std::string &, ConvPass, const ConvParams &, int, int64_t,
                int64_t &) {
  return {Code::Unsupported, "the stand-in knows no cards"};
}

} // namespace tmc::cuda
