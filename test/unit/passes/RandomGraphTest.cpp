// RandomGraphTest.cpp - the random graphs themselves: the same for the same
// seed, without NaN, and together holding every op.

#include "test/unit/passes/Validation.h"

#include "dialects/interfaces/Interfaces.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <map>
#include <set>

using namespace mlir;
using namespace tmc::test;
using tmc::reference::Tensor;

constexpr int64_t kGraphs = 1000;

static std::string textOf(ModuleOp module) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  module.print(stream);
  return text;
}

TEST(RandomGraph, IsTheSameForTheSameSeed) {
  std::unique_ptr<MLIRContext> context = makeContext();
  std::set<std::string> texts;
  for (uint64_t seed = 0; seed < 50; ++seed) {
    std::string text = textOf(*randomGraph(*context, seed));
    EXPECT_EQ(text, textOf(*randomGraph(*context, seed)));
    texts.insert(text);
  }
  EXPECT_EQ(texts.size(), 50u);
}

TEST(RandomGraph, HasFiniteValues) {
  std::unique_ptr<MLIRContext> context = makeContext();
  for (bool batchSafe : {false, true}) {
    for (uint64_t seed = 0; seed < kGraphs; ++seed) {
      SCOPED_TRACE("seed " + std::to_string(seed));
      GraphOptions options;
      options.batchSafe = batchSafe;
      OwningOpRef<ModuleOp> module = randomGraph(*context, seed, options);
      FunctionOpInterface function = functionOf(*module);
      Random random(seed);
      auto results =
          tmc::reference::interpret(function, randomInputs(function, random));
      ASSERT_TRUE(succeeded(results)) << textOf(*module);
      for (const Tensor &result : *results)
        for (double value : result.floats)
          ASSERT_TRUE(std::isfinite(value)) << textOf(*module);
    }
  }
}

// Every op that a forward graph may hold is in some graph, and every other is
// in some step derived from one. The shape passes alone make the others.
TEST(RandomGraph, TogetherHoldEveryOp) {
  std::unique_ptr<MLIRContext> context = makeContext();
  std::map<std::string, int64_t> count;
  for (uint64_t seed = 0; seed < kGraphs; ++seed) {
    OwningOpRef<ModuleOp> module = randomGraph(*context, seed);
    ASSERT_TRUE(succeeded(runPipeline(*module, "tmc-autodiff")));
    module->walk(
        [&](Operation *op) { ++count[op->getName().getStringRef().str()]; });
  }
  // nn.detach is none of these: no step holds it, and differences of a whole
  // graph would see through it. It has cases of its own. Codes are in narrow
  // graphs, which aren't these. Ops of ranks are in dealt graphs
  // (RanksTest.cpp).
  const std::set<std::string> later = {"nn.detach",
                                       "nn.fused",
                                       "nn.spread",
                                       "nn.sum_over",
                                       "nn.exchange",
                                       "nn.shard_of",
                                       "nn.sum_pieces",
                                       "nn.gather",
                                       "nn.embedding_pieces",
                                       "nn.embedding_grad_shard",
                                       "nn.batch_statistics",
                                       "nn.quantize",
                                       "nn.quantize_both",
                                       "nn.quantize_blocks",
                                       "nn.dequantize",
                                       "nn.matmul_codes",
                                       "nn.cross_entropy_with_grad",
                                       "nn.linear_cross_entropy_with_grad",
                                       "nn.packed_attention_grad"};
  for (RegisteredOperationName op : context->getRegisteredOperations())
    if (op.hasInterface<tmc::CostOpInterface>() &&
        op.getDialectNamespace() != "train" &&
        !later.count(op.getStringRef().str())) {
      EXPECT_GE(count[op.getStringRef().str()], 10) << op.getStringRef().str();
    }
}

// For the curious: --gtest_also_run_disabled_tests --gtest_filter=*Print, with
// the seed in TMC_SEED; TMC_EXPORTED, TMC_BATCH_SAFE, TMC_F32, TMC_NARROW set
// the options.
TEST(RandomGraph, DISABLED_Print) {
  std::unique_ptr<MLIRContext> context = makeContext();
  const char *seed = std::getenv("TMC_SEED");
  GraphOptions options;
  options.exported = std::getenv("TMC_EXPORTED");
  options.batchSafe = std::getenv("TMC_BATCH_SAFE");
  options.f32 = std::getenv("TMC_F32");
  options.narrow = std::getenv("TMC_NARROW");
  llvm::outs() << *randomGraph(*context, seed ? std::atoll(seed) : 0, options)
               << "\n";
  llvm::outs().flush();
}
