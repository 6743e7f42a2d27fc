// MicroBatchTest.cpp - a step of several micro-batches is the step of the whole
// batch: loss, updated parameters and the gradients' norm, on random graphs
// whose loss is a sum over the batch.

#include "test/unit/passes/Validation.h"

#include "dialects/train/Train.h"

#include "llvm/ADT/StringMap.h"
#include "llvm/Support/raw_ostream.h"

#include <gtest/gtest.h>

using namespace mlir;
using namespace tmc;
using namespace tmc::test;
using reference::Tensor;

static llvm::StringMap<Tensor> resultsByName(ModuleOp module,
                                             ArrayRef<Tensor> inputs) {
  FunctionOpInterface step = functionOf(module);
  auto results = reference::interpret(step, SmallVector<Tensor>(inputs));
  EXPECT_TRUE(succeeded(results));
  llvm::StringMap<Tensor> named;
  for (unsigned i = 0; i < step.getNumResults(); ++i)
    named[train::resultName(step, i)] = (*results)[i];
  return named;
}

/// A random graph of `batch` samples still means the same in `count`
/// micro-batches, of which `looped` are equal.
static void checkSplit(MLIRContext &context, uint64_t seed, int64_t batch,
                       int64_t count, int64_t looped) {
  GraphOptions options;
  options.batchSafe = true;
  options.batch = batch;
  OwningOpRef<ModuleOp> whole = randomGraph(context, seed, options);
  OwningOpRef<ModuleOp> pieces = whole->clone();
  std::string text;
  llvm::raw_string_ostream(text) << *whole;
  SCOPED_TRACE(text);

  std::string split = "tmc-split{micro-batches=" + std::to_string(count) + "},";
  std::string autodiff = "tmc-autodiff{optimizer=sgd}";
  ASSERT_TRUE(succeeded(runPipeline(*whole, autodiff)));
  ASSERT_TRUE(succeeded(runPipeline(*pieces, split + autodiff)));
  int64_t loops = 0;
  pieces->walk([&](train::MicroBatchOp op) {
    EXPECT_EQ(int64_t(op.getCount()), looped);
    ++loops;
  });
  ASSERT_EQ(loops, 1);

  Random random(seed);
  SmallVector<Tensor> inputs = randomInputs(functionOf(*whole), random);
  llvm::StringMap<Tensor> expected = resultsByName(*whole, inputs);
  llvm::StringMap<Tensor> actual = resultsByName(*pieces, inputs);
  ASSERT_TRUE(actual.count("loss") && actual.count("grad_norm"));
  int64_t compared = 0;
  for (auto &entry : actual) {
    // Further outputs of the graph aren't the step's to keep.
    if (!expected.count(entry.getKey()))
      continue;
    ++compared;
    EXPECT_EQ(compare(expected[entry.getKey()], entry.getValue(), 1e-9), "")
        << entry.getKey().str();
  }
  ASSERT_GT(compared, 2); // a parameter too
}

TEST(MicroBatches, AreTheWholeBatch) {
  std::unique_ptr<MLIRContext> context = makeContext();
  for (int64_t seed = 0; seed < 1000 && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    checkSplit(*context, seed, 4, seed % 2 ? 2 : 4, seed % 2 ? 2 : 4);
  }
}

// Of five samples: three and two; or two, two and one.
TEST(MicroBatches, WithASmallerLastOneAreTheWholeBatch) {
  std::unique_ptr<MLIRContext> context = makeContext();
  for (int64_t seed = 0; seed < 1000 && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    checkSplit(*context, seed, 5, seed % 2 ? 2 : 3, seed % 2 ? 1 : 2);
  }
}
