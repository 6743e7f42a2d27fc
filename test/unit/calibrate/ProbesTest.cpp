// ProbesTest.cpp - what a calibration measures compiles, and has the kernels
// that models have.

#include "driver/calibrate/Probes.h"

#include "compiler/analysis/KernelObject.h"
#include "dialects/mem/Mem.h"
#include "driver/calibrate/ProfileLaunches.h"
#include "driver/pipeline/Pipeline.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/raw_ostream.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

using namespace tmc;

namespace {

/// A probe, compiled up to a phase, in its precision.
Compiled compiled(const Probe &probe, const std::string &target, Phase last) {
  llvm::SmallString<128> path;
  int fd;
  EXPECT_FALSE(llvm::sys::fs::createTemporaryFile("probe", "mlir", fd, path));
  llvm::raw_fd_ostream(fd, true) << probe.forward;
  CompileOptions options;
  options.model = path.str().str();
  options.target = target;
  options.levers[kPrecision].name = probe.precision;
  options.levers[kLossChunk].count = 0;
  Compiled made = compileTo(options, last);
  llvm::sys::fs::remove(path);
  Expected<void> &done = made.done;
  EXPECT_TRUE(bool(done)) << probe.name << ": " << done.failure().message
                          << (done.failure().notes.empty()
                                  ? ""
                                  : "\n" + done.failure().notes[0]);
  return made;
}

} // namespace

TEST(Probes, CompileToTheKernelsThatModelsHave) {
  std::set<std::string> families;
  for (const Probe &probe :
       {transformerProbe({2, 16, 32, 4, 64, 50}),
        chunkedLossProbe(16, 32, 50, 8), convolutionProbe(2, 8, 4)}) {
    Compiled step = compiled(probe, "cpu", Phase::Place);
    ASSERT_TRUE(bool(step.done));
    step.module().walk([&](mem::LaunchOp launch) {
      families.insert(launch.getGenerated() ? "Fused"
                                            : launch.getCallee().str());
    });
    for (const ProbeInput &input : probe.inputs)
      EXPECT_NE(probe.forward.find("%" + input.name + ":"), std::string::npos);
  }
  for (const char *family :
       {"AdamW", "Attention", "AttentionGrad", "BatchStatistics", "Conv",
        "ConvGradFilter", "CrossEntropyWithGrad", "Embedding", "Fused",
        "LinearCrossEntropyWithGrad", "Matmul"})
    EXPECT_TRUE(families.count(family)) << family;
}

TEST(Probes, EachTypeOfACardIsMeasured) {
  auto precisions = [](const char *target) {
    std::map<std::string, int> counts;
    for (const Probe &probe : calibrationProbes(*findTarget(target)))
      ++counts[probe.precision];
    return counts;
  };
  using Counts = std::map<std::string, int>;
  EXPECT_EQ(precisions("cpu:v4"), (Counts{{"f32", 7}}));
  EXPECT_EQ(precisions("cuda:h100"),
            (Counts{{"f32", 7}, {"tf32", 5}, {"bf16", 7}, {"fp8", 3}}));
  EXPECT_EQ(precisions("cuda:a100-40"),
            (Counts{{"f32", 7}, {"tf32", 5}, {"bf16", 7}}));
  EXPECT_EQ(precisions("cuda:t4"), (Counts{{"f32", 7}, {"fp16", 7}}));
}

/// A profile tells the type of products by the kernel's text, and a plan by the
/// op: they must agree.
TEST(Probes, TypesOfProductsAreThoseOfThePlan) {
  std::map<ProductType, std::set<std::string>> found;
  for (const char *precision : {"f32", "tf32", "bf16", "fp16", "fp8"})
    for (Probe probe :
         {transformerProbe({2, 16, 128, 2, 256, 64}),
          chunkedLossProbe(16, 32, 64, 8), convolutionProbe(2, 8, 8)}) {
      probe.precision = precision;
      Compiled step = compiled(probe, "cuda:h100", Phase::Shape);
      ASSERT_TRUE(bool(step.done));
      step.module().walk([&](KernelOpInterface op) {
        llvm::SmallVector<mlir::MemRefType> layouts;
        for (mlir::Value operand : op->getOperands())
          if (auto type =
                  mlir::dyn_cast<mlir::RankedTensorType>(operand.getType()))
            layouts.push_back(
                mlir::MemRefType::get(type.getShape(), type.getElementType()));
        if (layouts.size() != op->getNumOperands())
          return;
        const KernelWork work =
            kernelWork(op, op.getKernel(layouts, Backend::Cuda));
        EXPECT_EQ(productsOf(work.object), work.products)
            << precision << ": " << work.object;
        if (work.family == "Matmul" || work.family == "Attention" ||
            work.family == "Conv")
          found[work.products].insert(work.family);
      });
    }
  EXPECT_EQ(found[ProductType::F32].size(), 3u);
  EXPECT_TRUE(found[ProductType::TF32].contains("Matmul"));
  EXPECT_TRUE(found[ProductType::TF32].contains("Attention"));
  EXPECT_EQ(found[ProductType::Bits16].size(), 3u);
  EXPECT_TRUE(found[ProductType::Bits8].contains("Matmul"));
}
