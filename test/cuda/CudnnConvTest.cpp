//===- CudnnConvTest.cpp - convolutions by cuDNN against our own ----------===//
//
// test/unit/runtime/ConvTest.cpp compares all kernels with naive loops. Here:
// which of them run. The library's stand-in (emulator/CudnnConv.cpp) counts
// its graphs, and wants more workspace than is planned where own kernels have
// to run.
//
//===----------------------------------------------------------------------===//

#include "Typed.h"

#include "test/cuda/emulator/Counts.h"
#include "test/cuda/emulator/CudnnGraph.h"

#include "runtime/kernels/Conv.h"

#include <functional>

using namespace tmc;
using namespace tmc::test;

namespace {

/// Windows of 3 x 3 on 2 images of 9 x 8, padded by 1.
ConvParams shapeOf(DType type, int64_t in, int64_t out, int64_t groups = 1) {
  ConvParams p{};
  p.type = type;
  p.filter = DType::F32;
  p.batch = 2;
  p.inHeight = p.outHeight = 9;
  p.inWidth = p.outWidth = 8;
  p.inChannels = in;
  p.outChannels = out;
  p.kernelHeight = p.kernelWidth = 3;
  p.strideHeight = p.strideWidth = 1;
  p.padTop = p.padLeft = p.padBottom = p.padRight = 1;
  p.dilationHeight = p.dilationWidth = 1;
  p.groups = groups;
  return p;
}

/// A 1 x 1 window.
ConvParams pointOf(DType type, int64_t stride) {
  ConvParams p = shapeOf(type, 16, 24);
  p.kernelHeight = p.kernelWidth = 1;
  p.padTop = p.padLeft = p.padBottom = p.padRight = 0;
  p.strideHeight = p.strideWidth = stride;
  p.outHeight = (p.inHeight - 1) / stride + 1;
  p.outWidth = (p.inWidth - 1) / stride + 1;
  return p;
}

int64_t filterCount(const ConvParams &p) {
  return p.outChannels * (p.inChannels / p.groups) * p.kernelHeight *
         p.kernelWidth;
}
int64_t inCount(const ConvParams &p) {
  return p.batch * p.inHeight * p.inWidth * p.inChannels;
}
int64_t outCount(const ConvParams &p) {
  return p.batch * p.outHeight * p.outWidth * p.outChannels;
}

/// Kernels that were launched, and graphs among them.
struct Work {
  int64_t kernels, graphs;
  bool operator==(const Work &) const = default;

  static Work of(const std::function<void()> &run) {
    const int64_t kernels = emulator::counts().kernels;
    const int64_t graphs = emulator::cudnnConvolutions;
    run();
    return {emulator::counts().kernels - kernels,
            emulator::cudnnConvolutions - graphs};
  }
};
void PrintTo(const Work &w, std::ostream *os) {
  *os << w.kernels << " kernels, " << w.graphs << " of the library";
}

/// The results of the three passes, and their work.
struct Passes {
  Typed y, dx, df;
  Work forward, gradInput, gradFilter;

  explicit Passes(const ConvParams &p)
      : y(p.type, Floats(outCount(p), NAN)),
        dx(p.type, Floats(inCount(p), NAN)),
        df(p.filter, Floats(filterCount(p), NAN)) {
    const Typed x(p.type, randomFloats(inCount(p), 1));
    const Typed f(p.filter, randomFloats(filterCount(p), 2));
    const Typed dout(p.type, randomFloats(outCount(p), 3));
    forward = Work::of([&] { runKernel<Conv>(1, p, {x, f}, {y}); });
    gradInput = Work::of([&] {
      runKernel<ConvGradInput>(1, p, {dout, f}, {dx});
    });
    gradFilter = Work::of([&] {
      runKernel<ConvGradFilter>(1, p, {x, dout}, {df});
    });
    for (Typed *result : {&y, &dx, &df})
      result->read();
  }
};

/// Lets the library want `bytes` of workspace.
class Wanting {
public:
  explicit Wanting(int64_t bytes) { emulator::cudnnWorkspaceBytes = bytes; }
  ~Wanting() { emulator::cudnnWorkspaceBytes = -1; }
};

void expectNear(const Typed &got, const Typed &want, const char *what) {
  double largest = 0, worst = 0;
  for (int64_t i = 0; i < want.values.size(); ++i) {
    largest = std::fmax(largest, std::abs(double(want.values[i])));
    const double error = std::abs(double(got.values[i]) - want.values[i]);
    worst = std::isnan(error) ? INFINITY : std::fmax(worst, error);
  }
  EXPECT_GT(largest, 0) << what;
  EXPECT_LE(worst, std::max(2 * roundingOf(want.type), 1e-6) * largest) << what;
}

/// The work is what the kernels' classes say of it.
void expectSaid(const ConvParams &p, const Passes &did) {
  EXPECT_EQ(did.forward.kernels, Conv::cudaLaunches(p, Wanted(0)));
  EXPECT_EQ(did.gradInput.kernels, ConvGradInput::cudaLaunches(p, Wanted(0)));
  EXPECT_EQ(did.gradFilter.kernels, ConvGradFilter::cudaLaunches(p, Wanted(0)));
}

} // namespace

TEST(CudnnConv, GivesOurResults) {
  ConvParams uneven = shapeOf(DType::BF16, 16, 8);
  uneven.padBottom = 2;
  uneven.padLeft = 0;
  uneven.outHeight = 10;
  uneven.outWidth = 7;
  ConvParams spread = shapeOf(DType::F16, 8, 16);
  spread.padTop = spread.padBottom = spread.padLeft = spread.padRight = 2;
  spread.dilationHeight = spread.dilationWidth = 2;
  for (const ConvParams &p :
       {shapeOf(DType::F32, 5, 6), shapeOf(DType::F32, 8, 12, 4),
        shapeOf(DType::BF16, 16, 24), uneven, spread,
        pointOf(DType::BF16, 2)}) {
    SCOPED_TRACE(std::to_string(p.inChannels) + " channels of " +
                 nameOf(p.type));
    const Passes its(p);
    EXPECT_EQ(its.forward.graphs, 1);
    EXPECT_EQ(its.gradInput.graphs, 1);
    EXPECT_EQ(its.gradFilter.graphs, 1);
    expectSaid(p, its);
    const Wanting more(kCudaConvScratchBytes - kCudaConvAlign + 1);
    const Passes own(p);
    EXPECT_EQ(own.forward.graphs + own.gradInput.graphs + own.gradFilter.graphs,
              0);
    expectNear(its.y, own.y, "y");
    expectNear(its.dx, own.dx, "dx");
    expectNear(its.df, own.df, "dfilter");
  }
}

TEST(CudnnConv, FillsTheWholeWorkspace) {
  const Wanting all(kCudaConvScratchBytes - kCudaConvAlign);
  const ConvParams p = shapeOf(DType::BF16, 8, 8);
  const Passes did(p);
  EXPECT_EQ(did.forward, (Work{2, 1}));
  EXPECT_EQ(did.gradFilter, (Work{2, 1}));
}

/// Filter gradients of 16 bits that the library hasn't, or that are products.
TEST(CudnnConv, LeavesSumsToOwnKernels) {
  const ConvParams first = shapeOf(DType::BF16, 3, 16);
  const ConvParams groups = shapeOf(DType::F16, 16, 16, 2);
  const ConvParams point = pointOf(DType::BF16, 1);
  for (const ConvParams &p : {first, groups, point}) {
    SCOPED_TRACE(std::to_string(p.inChannels) + " channels in " +
                 std::to_string(p.groups) + " groups");
    EXPECT_NE(whyNotCudnn(p, ConvPass::GradFilter), nullptr);
    EXPECT_EQ(whyNotCudnn(p, ConvPass::Forward), nullptr);
    const Passes did(p);
    EXPECT_EQ(did.forward.graphs, 1);
    EXPECT_EQ(did.gradInput.graphs, 1);
    EXPECT_EQ(did.gradFilter.graphs, 0);
    expectSaid(p, did);
  }
  EXPECT_TRUE(gathersWindows(first));
  EXPECT_FALSE(gathersWindows(groups));
  EXPECT_TRUE(gathersNothing(point));
  EXPECT_FALSE(gathersWindows(shapeOf(DType::BF16, 8, 16)));
}

TEST(CudnnConv, ReadsAPointwiseFilterWhereItIs) {
  ConvParams p = pointOf(DType::BF16, 2);
  p.filter = p.type;
  const Passes same(p);
  EXPECT_EQ(same.forward, (Work{1, 1}));
  EXPECT_EQ(same.gradInput, (Work{1, 1}));
  expectSaid(p, same);
  p.filter = DType::F32; // rounded in a copy
  const Passes wide(p);
  EXPECT_EQ(wide.forward, (Work{2, 1}));
  // One that isn't at a multiple of 16 bytes is copied.
  p = pointOf(DType::F32, 1);
  const Typed x(p.type, randomFloats(inCount(p), 1));
  const Typed f(p.type, randomFloats(filterCount(p), 2));
  const Shifted moved(f);
  Typed y(p.type, Floats(outCount(p), NAN)), again(y);
  EXPECT_EQ(Work::of([&] {
              runKernel<Conv>(1, p, {x, f}, {y});
            }),
            (Work{1, 1}));
  EXPECT_EQ(Work::of([&] {
              runKernel<Conv>(1, p, {x, moved.get()}, {again});
            }),
            (Work{2, 1}));
  EXPECT_TRUE(y.bytes.sameBits(again.bytes));
}

TEST(CudnnConv, RefusesWhatIsntAligned) {
  const ConvParams p = shapeOf(DType::F32, 8, 8);
  const Typed x(p.type, randomFloats(inCount(p), 1));
  const Typed f(p.type, randomFloats(filterCount(p), 2));
  Typed y(p.type, Floats(outCount(p), NAN));
  auto device = makeDevice(1);
  ConvParams planned = p;
  planned.scratchBytes = Conv::scratchCap(p, Backend::Cuda);
  Conv kernel(planned);
  ASSERT_TRUE(kernel.prepare(*device));
  Buffer<unsigned char> scratch(planned.scratchBytes, 0xff);
  const Shifted moved(x);
  kernel.run(device->compute(), {moved.get(), f.get()}, {y.get()},
             scratch.get(), false);
  const Status status = device->synchronize();
  EXPECT_EQ(status.code(), Code::Defect);
  EXPECT_NE(status.message().find("multiple of 16 bytes"), std::string::npos)
      << status.message();
}

TEST(CudnnConv, ChecksSizes) {
  auto why = [](const std::function<void(ConvParams &)> &change,
                ConvPass pass = ConvPass::Forward) {
    ConvParams p = shapeOf(DType::BF16, 16, 16);
    change(p);
    const char *reason = whyNotCudnn(p, pass);
    return std::string(reason ? reason : "");
  };
  constexpr int64_t kHuge = int64_t(1) << 40;
  EXPECT_EQ(why([](ConvParams &) {}), "");
  EXPECT_EQ(why([](ConvParams &) {}, ConvPass::GradFilter), "");
  EXPECT_NE(why([](ConvParams &p) { p.batch = INT64_MAX / 4; }), "");
  EXPECT_NE(why([](ConvParams &p) { p.batch = int64_t(1) << 52; }), "");
  EXPECT_NE(why([](ConvParams &p) { p.batch = 0; }), "");
  EXPECT_NE(why([](ConvParams &p) { p.padTop = INT64_MAX; }), "");
  EXPECT_NE(why([](ConvParams &p) { p.padTop = -1; }), "");
  EXPECT_NE(why([](ConvParams &p) { p.dilationHeight = kHuge << 22; }), "");
  EXPECT_NE(why([](ConvParams &p) { p.strideWidth = 0; }), "");
  EXPECT_NE(why([](ConvParams &p) { p.outWidth += 1; }), "");
  EXPECT_NE(why([](ConvParams &p) { p.outHeight -= 1; }), "");
  EXPECT_NE(why([](ConvParams &p) { p.kernelHeight = 12; }), "");
  EXPECT_NE(why([](ConvParams &p) { p.groups = 3; }), "");
  EXPECT_NE(why([](ConvParams &p) { p.groups = 0; }), "");
  auto filter = [&](int64_t in, int64_t out) {
    return why(
        [=](ConvParams &p) {
          p.inChannels = in;
          p.outChannels = out;
        },
        ConvPass::GradFilter);
  };
  EXPECT_EQ(filter(8, 24), "");
  EXPECT_NE(filter(12, 24), "");
  EXPECT_NE(filter(8, 20), "");
}
