// FusedSliceTest.cpp - a part of a fused kernel gives what the whole gives.

#include "dialects/nn/FusedSlice.h"

#include "test/unit/passes/Validation.h"

#include "mlir/IR/Verifier.h"

#include <gtest/gtest.h>

using namespace mlir;
using namespace tmc;
using namespace tmc::test;
using reference::Tensor;

namespace {

constexpr StringLiteral kFusedSteps =
    "func.func(tmc-layout),canonicalize,cse,tmc-autodiff{optimizer=sgd},"
    "canonicalize,cse,tmc-expand-composites,canonicalize,cse,"
    "tmc-fold-into-kernels,canonicalize,cse,tmc-fuse";

/// Lets each result of each group with several come from a part of its own;
/// counts the parts and those that start from other results.
struct Slicer {
  int64_t parts = 0, chained = 0;
  DenseSet<Operation *> made;

  void run(ModuleOp module) {
    SmallVector<nn::FusedOp> groups;
    module.walk([&](nn::FusedOp op) { groups.push_back(op); });
    for (nn::FusedOp op : groups) {
      if (op.getNumResults() < 2)
        continue;
      for (unsigned i = 0; i < op.getNumResults(); ++i)
        for (bool chain : {false, true})
          slice(op, i, chain);
    }
  }

  void slice(nn::FusedOp op, unsigned wanted, bool chain) {
    SmallVector<unsigned> given;
    if (chain)
      given = nn::resultsBehind(op, wanted);
    if (chain && given.empty())
      return;
    OpBuilder b(op->getContext());
    b.setInsertionPointAfter(op);
    nn::FusedOp part = nn::sliceFused(b, op, wanted, given);
    if (!part)
      return;
    ++parts;
    chained += chain;
    made.insert(part);
    // What parts start from stays the whole's.
    op->getResult(wanted).replaceUsesWithIf(
        part->getResult(0),
        [&](OpOperand &use) { return !made.contains(use.getOwner()); });
  }
};

} // namespace

TEST(FusedSlice, GivesWhatTheWholeGives) {
  std::unique_ptr<MLIRContext> context = makeContext();
  Slicer slicer;
  for (uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    GraphOptions options;
    options.f32 = true;
    OwningOpRef<ModuleOp> module = randomGraph(*context, seed, options);
    ASSERT_TRUE(succeeded(runPipeline(*module, kFusedSteps)));
    Random random(seed);
    SmallVector<Tensor> inputs = randomInputs(functionOf(*module), random);
    auto expected = reference::interpret(functionOf(*module), inputs);
    ASSERT_TRUE(succeeded(expected));
    slicer.run(*module);
    ASSERT_TRUE(succeeded(mlir::verify(*module)));
    auto actual = reference::interpret(functionOf(*module), inputs);
    ASSERT_TRUE(succeeded(actual));
    // The same operations on the same values.
    ASSERT_EQ(compare(*expected, *actual, 0), "");
  }
  std::printf("  parts: %lld, %lld of them from other results\n",
              (long long)slicer.parts, (long long)slicer.chained);
  EXPECT_GE(slicer.parts, 100);
  EXPECT_GE(slicer.chained, 100);
}
