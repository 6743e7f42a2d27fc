// MicroBatchTest.cpp - a step of several micro-batches is the step of the whole
// batch: loss, updated parameters and the gradients' norm, on random graphs
// whose loss is a sum over the batch.

#include "test/unit/passes/Validation.h"

#include "dialects/train/Train.h"

#include "llvm/ADT/StringMap.h"
#include "llvm/Support/raw_ostream.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

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

//===----------------------------------------------------------------------===//
// Batch norms
//===----------------------------------------------------------------------===//

static constexpr int64_t kSamples = 5, kChannels = 2, kPlaces = 3;
static constexpr double kEpsilon = 1e-5, kMomentum = 0.1;
static constexpr const char *kNormalized = R"(func.func @forward(
    %x: tensor<5x2x3xf64> {train.role = #train.role<batch>, train.name = "x"},
    %w: tensor<2xf64> {train.role = #train.role<param>, train.name = "w"},
    %b: tensor<2xf64> {train.role = #train.role<param>, train.name = "b"},
    %m: tensor<2xf64> {train.role = #train.role<state>, train.name = "m"},
    %v: tensor<2xf64> {train.role = #train.role<state>, train.name = "v", test.positive})
    -> (tensor<f64> {train.loss, train.name = "loss"},
        tensor<2xf64> {train.updates = 3 : i64, train.name = "m"},
        tensor<2xf64> {train.updates = 4 : i64, train.name = "v"}) {
  %y, %nm, %nv, %mean, %rstd = nn.batch_norm %x, %w, %b, %m, %v {epsilon = 1.0e-5 : f64, momentum = 0.1 : f64} : (tensor<5x2x3xf64>, tensor<2xf64>, tensor<2xf64>, tensor<2xf64>, tensor<2xf64>) -> (tensor<5x2x3xf64>, tensor<2xf64>, tensor<2xf64>, tensor<2xf64>, tensor<2xf64>)
  %y2 = arith.mulf %y, %y : tensor<5x2x3xf64>
  %y3 = arith.mulf %y2, %y : tensor<5x2x3xf64>
  %loss = nn.reduce sum %y3 over [0, 1, 2] : (tensor<5x2x3xf64>) -> tensor<f64>
  return %loss, %nm, %nv : tensor<f64>, tensor<2xf64>, tensor<2xf64>
})";

namespace {
/// What PyTorch's BatchNorm1d does to the cube's sum and to its statistics, in
/// training mode or in inference mode, called once for each piece.
struct NormModel {
  std::vector<double> scale, shift, mean, variance;
  double loss = 0;

  void run(const Tensor &x, int64_t first, int64_t count, bool trains) {
    for (int64_t c = 0; c < kChannels; ++c) {
      auto at = [&](int64_t i) { // Number i of the channel.
        int64_t sample = first + i / kPlaces;
        return x.floats[(sample * kChannels + c) * kPlaces + i % kPlaces];
      };
      const int64_t n = count * kPlaces;
      double m = 0, squares = 0;
      for (int64_t i = 0; i < n; ++i)
        m += at(i) / double(n);
      for (int64_t i = 0; i < n; ++i)
        squares += (at(i) - m) * (at(i) - m);
      double v = squares / double(n);
      if (trains) {
        mean[c] = (1 - kMomentum) * mean[c] + kMomentum * m;
        variance[c] = (1 - kMomentum) * variance[c] +
                      kMomentum * squares / double(n - 1); // unbiased
      } else {
        m = mean[c];
        v = variance[c];
      }
      for (int64_t i = 0; i < n; ++i) {
        double y = (at(i) - m) / std::sqrt(v + kEpsilon) * scale[c] + shift[c];
        loss += y * y * y;
      }
    }
  }
};
} // namespace

/// The step of `pieces` pieces does what the model does, called for each.
static void checkBatchNorm(MLIRContext &context, int64_t pieces,
                           const std::string &how) {
  SCOPED_TRACE(how + ", " + std::to_string(pieces) + " pieces");
  OwningOpRef<ModuleOp> module = parse(context, kNormalized);
  ASSERT_TRUE(module);
  ASSERT_TRUE(succeeded(runPipeline(
      *module, "tmc-split{micro-batches=" + std::to_string(pieces) +
                   " batch-norm=" + how + "},tmc-autodiff{optimizer=sgd}")));
  Random random(pieces);
  SmallVector<Tensor> inputs = randomInputs(functionOf(*module), random);
  for (double &value : inputs[4].floats)
    value = std::abs(value) + 0.5;
  llvm::StringMap<Tensor> actual = resultsByName(*module, inputs);
  auto list = [&](unsigned i) {
    return std::vector<double>(inputs[i].floats.begin(),
                               inputs[i].floats.end());
  };
  NormModel model{list(1), list(2), list(3), list(4)};
  const int64_t most = (kSamples + pieces - 1) / pieces;
  for (int64_t first = 0; first < kSamples; first += most)
    model.run(inputs[0], first, std::min(most, kSamples - first),
              how != "frozen");
  EXPECT_NEAR(actual["loss"].floats[0], model.loss,
              1e-9 * std::abs(model.loss));
  if (how == "frozen") {
    EXPECT_FALSE(actual.count("m") || actual.count("v"));
    return;
  }
  ASSERT_TRUE(actual.count("m") && actual.count("v"));
  for (int64_t c = 0; c < kChannels; ++c) {
    EXPECT_NEAR(actual["m"].floats[c], model.mean[c], 1e-12);
    EXPECT_NEAR(actual["v"].floats[c], model.variance[c], 1e-12);
  }
}

TEST(MicroBatches, NormalizeByTheirOwnStatistics) {
  std::unique_ptr<MLIRContext> context = makeContext();
  for (int64_t pieces : {1, 2, 3, 5})
    checkBatchNorm(*context, pieces, "per-micro-batch");
}

TEST(MicroBatches, NormalizeByRunningStatistics) {
  std::unique_ptr<MLIRContext> context = makeContext();
  for (int64_t pieces : {1, 2, 3, 5})
    checkBatchNorm(*context, pieces, "frozen");
}

//===----------------------------------------------------------------------===//
// Outputs
//===----------------------------------------------------------------------===//

static constexpr const char *kLogits = R"(func.func @forward(
    %x: tensor<5x4x6xf64> {train.role = #train.role<batch>, train.name = "x"},
    %w: tensor<6x3xf64> {train.role = #train.role<param>, train.name = "w"})
    -> (tensor<f64> {train.loss, train.name = "loss"},
        tensor<20x3xf64> {train.name = "logits"}, tensor<5x4x6xf64> {train.name = "squares"}) {
  %rows = nn.reshape %x : (tensor<5x4x6xf64>) -> tensor<20x6xf64>
  %logits = nn.matmul %rows, %w : (tensor<20x6xf64>, tensor<6x3xf64>) -> tensor<20x3xf64>
  %squares = arith.mulf %x, %x : tensor<5x4x6xf64>
  %y = math.tanh %logits : tensor<20x3xf64>
  %loss = nn.reduce sum %y over [0, 1] : (tensor<20x3xf64>) -> tensor<f64>
  return %loss, %logits, %squares : tensor<f64>, tensor<20x3xf64>, tensor<5x4x6xf64>
})";

TEST(MicroBatches, PutOutputsTogether) {
  std::unique_ptr<MLIRContext> context = makeContext();
  for (int64_t pieces : {2, 3, 5}) {
    OwningOpRef<ModuleOp> whole = parse(*context, kLogits);
    OwningOpRef<ModuleOp> cut = parse(*context, kLogits);
    ASSERT_TRUE(whole && cut);
    std::string autodiff = "tmc-autodiff{optimizer=sgd outputs=logits,squares}";
    ASSERT_TRUE(succeeded(runPipeline(*whole, autodiff)));
    ASSERT_TRUE(succeeded(runPipeline(
        *cut, "tmc-split{micro-batches=" + std::to_string(pieces) + "}," +
                  autodiff + ",canonicalize,tmc-fold-into-kernels")));
    Random random(pieces);
    SmallVector<Tensor> inputs = randomInputs(functionOf(*whole), random);
    llvm::StringMap<Tensor> expected = resultsByName(*whole, inputs);
    llvm::StringMap<Tensor> actual = resultsByName(*cut, inputs);
    for (const char *name : {"logits", "squares", "loss", "w"}) {
      ASSERT_TRUE(expected.count(name) && actual.count(name)) << name;
      EXPECT_EQ(compare(expected[name], actual[name], 1e-12), "") << name;
    }
  }
}
