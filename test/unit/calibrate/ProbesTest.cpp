// ProbesTest.cpp - what a calibration measures compiles, and has the kernels
// that models have.

#include "driver/calibrate/Probes.h"

#include "dialects/mem/Mem.h"
#include "driver/pipeline/Pipeline.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/raw_ostream.h"

#include <gtest/gtest.h>

#include <set>

using namespace tmc;

TEST(Probes, CompileToTheKernelsThatModelsHave) {
  std::set<std::string> families;
  for (const Probe &probe :
       {transformerProbe({2, 16, 32, 4, 64, 50}),
        chunkedLossProbe(16, 32, 50, 8), convolutionProbe(2, 8, 4)}) {
    llvm::SmallString<128> path;
    int fd;
    ASSERT_FALSE(llvm::sys::fs::createTemporaryFile("probe", "mlir", fd, path));
    llvm::raw_fd_ostream(fd, true) << probe.forward;
    CompileOptions options;
    options.model = path.str().str();
    Compiled compiled = compileTo(options, Phase::Place);
    Expected<void> &done = compiled.done;
    llvm::sys::fs::remove(path);
    ASSERT_TRUE(bool(done))
        << probe.name << ": " << done.failure().message
        << (done.failure().notes.empty() ? "" : "\n" + done.failure().notes[0]);
    compiled.module().walk([&](mem::LaunchOp launch) {
      families.insert(launch.getGenerated() ? "Fused"
                                            : launch.getCallee().str());
    });
    for (const ProbeInput &input : probe.inputs)
      EXPECT_NE(probe.forward.find("%" + input.name + ":"), std::string::npos);
  }
  for (const char *family :
       {"AdamW", "Attention", "AttentionGrad", "BatchNorm", "Conv",
        "ConvGradFilter", "CrossEntropyWithGrad", "Embedding", "Fused",
        "LinearCrossEntropyWithGrad", "Matmul"})
    EXPECT_TRUE(families.count(family)) << family;
}
