// RanksTest.cpp - ranks that each have a part of the batch make the step of the
// whole batch: loss, updated parameters and the gradients' norm, on random
// graphs whose loss is a sum over the batch.

#include "test/unit/passes/Validation.h"

#include "dialects/nn/NN.h"
#include "dialects/train/Train.h"

#include "llvm/ADT/StringMap.h"
#include "llvm/Support/raw_ostream.h"

#include <gtest/gtest.h>

#include <vector>

using namespace mlir;
using namespace tmc;
using namespace tmc::test;
using reference::Tensor;

static llvm::StringMap<Tensor> byName(FunctionOpInterface step,
                                      ArrayRef<Tensor> results) {
  llvm::StringMap<Tensor> named;
  for (unsigned i = 0; i < step.getNumResults(); ++i)
    named[train::resultName(step, i)] = results[i];
  return named;
}

/// Rank `rank`'s part of `whole`, of type `type`: the same first dimension, or
/// an equal part of it.
static Tensor partOf(const Tensor &whole, Type type, int64_t rank) {
  ArrayRef<int64_t> shape = cast<RankedTensorType>(type).getShape();
  Tensor part(whole.element, shape);
  const bool isCut = shape != ArrayRef<int64_t>(whole.shape);
  for (int64_t i = 0; i < part.size(); ++i)
    part.set(i, whole, isCut ? rank * part.size() + i : i);
  return part;
}

namespace {
struct Deal {
  int64_t batch, ranks, microBatches;
  std::string after = ""; // Passes after autodiff.
};
} // namespace

/// The dealt step of `whole` gives each rank the results of the whole.
static void checkDealt(OwningOpRef<ModuleOp> whole, uint64_t seed,
                       const Deal &deal) {
  OwningOpRef<ModuleOp> part = whole->clone();
  std::string text;
  llvm::raw_string_ostream(text) << *whole;
  SCOPED_TRACE(text);

  std::string split = "tmc-split{ranks=" + std::to_string(deal.ranks) +
                      " micro-batches=" + std::to_string(deal.microBatches) +
                      "},";
  std::string autodiff = "tmc-autodiff{optimizer=sgd}";
  ASSERT_TRUE(succeeded(runPipeline(*whole, autodiff)));
  ASSERT_TRUE(succeeded(runPipeline(*part, split + autodiff + deal.after)));
  FunctionOpInterface step = functionOf(*whole), own = functionOf(*part);

  Random random(seed);
  SmallVector<Tensor> inputs = randomInputs(step, random);
  auto expected = reference::interpret(step, inputs);
  Mesh mesh{.data = int(deal.ranks)};
  std::vector<SmallVector<Tensor>> mine(deal.ranks);
  for (auto [rank, list] : llvm::enumerate(mine))
    for (auto [input, type] : llvm::zip_equal(inputs, own.getArgumentTypes()))
      list.push_back(partOf(input, type, rank));
  auto actual = reference::interpretRanks(own, mesh, mine);
  ASSERT_TRUE(succeeded(expected) && succeeded(actual));
  llvm::StringMap<Tensor> wanted = byName(step, *expected);
  for (const SmallVector<Tensor> &results : *actual) {
    llvm::StringMap<Tensor> made = byName(own, results);
    ASSERT_TRUE(made.count("loss") && made.count("grad_norm"));
    int64_t compared = 0;
    for (auto &entry : made)
      if (wanted.count(entry.getKey())) { // Not a further output.
        ++compared;
        EXPECT_EQ(compare(wanted[entry.getKey()], entry.getValue(), 1e-9), "")
            << entry.getKey().str();
      }
    ASSERT_GT(compared, 2); // A parameter, too.
  }
}

/// The same of a random graph.
static void checkRandom(MLIRContext &context, uint64_t seed, const Deal &deal) {
  GraphOptions options;
  options.batchSafe = true;
  options.batch = deal.batch;
  checkDealt(randomGraph(context, seed, options), seed, deal);
}

TEST(Ranks, MakeTheStepOfTheWholeBatch) {
  std::unique_ptr<MLIRContext> context = makeContext();
  for (int64_t seed = 0; seed < 600 && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    checkRandom(*context, seed, {4, seed % 2 ? 2 : 4, 1});
  }
}

/// A mean over the rows that count, whose number no rank knows alone, and a
/// term that doesn't depend on the batch.
static constexpr const char *kMean = R"(func.func @forward(
    %x: tensor<8x3xf64> {train.role = #train.role<batch>, train.name = "x"},
    %counts: tensor<8xf64> {train.role = #train.role<batch>, train.name = "counts", test.positive},
    %w: tensor<3x2xf64> {train.role = #train.role<param>, train.name = "w"})
    -> (tensor<f64> {train.loss, train.name = "loss"}) {
  %y = nn.matmul %x, %w : (tensor<8x3xf64>, tensor<3x2xf64>) -> tensor<8x2xf64>
  %t = math.tanh %y : tensor<8x2xf64>
  %rows = nn.reduce sum %t over [1] : (tensor<8x2xf64>) -> tensor<8xf64>
  %kept = arith.mulf %rows, %counts : tensor<8xf64>
  %sum = nn.reduce sum %kept over [0] : (tensor<8xf64>) -> tensor<f64>
  %count = nn.reduce sum %counts over [0] : (tensor<8xf64>) -> tensor<f64>
  %root = math.sqrt %count : tensor<f64>
  %mean = arith.divf %sum, %root : tensor<f64>
  %w2 = arith.mulf %w, %w : tensor<3x2xf64>
  %decay = nn.reduce sum %w2 over [0, 1] : (tensor<3x2xf64>) -> tensor<f64>
  %loss = arith.addf %mean, %decay : tensor<f64>
  return %loss : tensor<f64>
})";

TEST(Ranks, ShareNumbersOfTheWholeBatch) {
  std::unique_ptr<MLIRContext> context = makeContext();
  for (int64_t ranks : {2, 4, 8})
    for (int64_t pieces : {1, 2, 3}) {
      SCOPED_TRACE(std::to_string(ranks) + ", " + std::to_string(pieces));
      if (8 / ranks < pieces)
        continue;
      checkDealt(parse(*context, kMean), ranks, {8, ranks, pieces});
    }
}

TEST(Ranks, MakeItInMicroBatches) {
  std::unique_ptr<MLIRContext> context = makeContext();
  for (int64_t seed = 0; seed < 300 && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    checkRandom(*context, seed, {8, 2, seed % 3 ? 2 : 3});
  }
}

TEST(Ranks, MakeItByExchangeAndGather) {
  std::unique_ptr<MLIRContext> context = makeContext();
  for (int64_t seed = 0; seed < 300 && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    checkRandom(*context, seed, {4, 2, 1, ",tmc-expand-composites"});
  }
}

/// A table that a lookup and a head read, and one that two lookups do.
static constexpr const char *kTables = R"(func.func @forward(
    %ids: tensor<4x5xi64> {train.role = #train.role<batch>, train.name = "ids", test.below = 300},
    %kinds: tensor<4x5xi64> {train.role = #train.role<batch>, train.name = "kinds", test.below = 300},
    %tied: tensor<300x32xf64> {train.role = #train.role<param>, train.name = "tied"},
    %twice: tensor<300x32xf64> {train.role = #train.role<param>, train.name = "twice"})
    -> (tensor<f64> {train.loss, train.name = "loss"}) {
  %a = nn.embedding %tied, %ids : (tensor<300x32xf64>, tensor<4x5xi64>) -> tensor<4x5x32xf64>
  %b = nn.embedding %twice, %ids : (tensor<300x32xf64>, tensor<4x5xi64>) -> tensor<4x5x32xf64>
  %c = nn.embedding %twice, %kinds : (tensor<300x32xf64>, tensor<4x5xi64>) -> tensor<4x5x32xf64>
  %ab = arith.addf %a, %b : tensor<4x5x32xf64>
  %x = arith.mulf %ab, %c : tensor<4x5x32xf64>
  %rows = nn.reshape %x : (tensor<4x5x32xf64>) -> tensor<20x32xf64>
  %head = nn.transpose %tied [1, 0] : (tensor<300x32xf64>) -> tensor<32x300xf64>
  %y = nn.matmul %rows, %head : (tensor<20x32xf64>, tensor<32x300xf64>) -> tensor<20x300xf64>
  %t = math.tanh %y : tensor<20x300xf64>
  %loss = nn.reduce sum %t over [0, 1] : (tensor<20x300xf64>) -> tensor<f64>
  return %loss : tensor<f64>
})";

TEST(Ranks, ExchangeTheRowsOfTables) {
  std::unique_ptr<MLIRContext> context = makeContext();
  for (int64_t ranks : {2, 4})
    for (int64_t pieces : {1, 2})
      for (const char *how : {"level=0", "level=0 shards=true"}) {
        if (4 / ranks < pieces)
          continue;
        SCOPED_TRACE(std::to_string(ranks) + ", " + std::to_string(pieces));
        checkDealt(parse(*context, kTables), ranks,
                   {4, ranks, pieces,
                    std::string(",train.step(tmc-shard{") + how +
                        "}),tmc-expand-composites"});
      }
}

static constexpr const char *kLarge = R"(func.func @sum(
    %x: tensor<8x4096xf64>, %y: tensor<3xi64>) -> (tensor<8x4096xf64>, tensor<3xi64>) {
  %0 = nn.sum_over %x over dp of 4 : tensor<8x4096xf64>
  %1 = nn.sum_over %y over dp of 4 : tensor<3xi64>
  return %0, %1 : tensor<8x4096xf64>, tensor<3xi64>
})";

// Large sums are pieces; each rank holds other numbers.
TEST(Ranks, AddPiecesInTheirOrder) {
  std::unique_ptr<MLIRContext> context = makeContext();
  OwningOpRef<ModuleOp> module = parse(*context, kLarge);
  ASSERT_TRUE(module);
  FunctionOpInterface before = functionOf(*module);
  Random random(1);
  std::vector<SmallVector<Tensor>> inputs;
  for (int rank = 0; rank < 4; ++rank)
    inputs.push_back(randomInputs(before, random));
  const Mesh mesh{.data = 4};
  auto whole = reference::interpretRanks(before, mesh, inputs);
  ASSERT_TRUE(succeeded(runPipeline(*module, "tmc-expand-composites")));
  int64_t exchanges = 0;
  module->walk([&](nn::ExchangeOp) { ++exchanges; });
  EXPECT_EQ(exchanges, 1);
  auto pieces = reference::interpretRanks(functionOf(*module), mesh, inputs);
  ASSERT_TRUE(succeeded(whole) && succeeded(pieces));
  for (int rank = 0; rank < 4; ++rank)
    for (int i = 0; i < 2; ++i)
      EXPECT_EQ(compare((*whole)[rank][i], (*pieces)[rank][i], 0), "");
  double sum = 0;
  for (const SmallVector<Tensor> &each : inputs)
    sum += each[0].floats[4097];
  EXPECT_EQ((*whole)[3][0].floats[4097], sum);
}

// A mesh of another size is an error on all ranks, not a wait without an end.
TEST(Ranks, FailTogether) {
  std::unique_ptr<MLIRContext> context = makeContext();
  OwningOpRef<ModuleOp> module = parse(*context, kLarge);
  ASSERT_TRUE(module);
  Random random(1);
  std::vector<SmallVector<Tensor>> inputs(
      2, randomInputs(functionOf(*module), random));
  ScopedDiagnosticHandler quiet(context.get(),
                                [](Diagnostic &) { return success(); });
  EXPECT_TRUE(failed(
      reference::interpretRanks(functionOf(*module), Mesh{.data = 2}, inputs)));
}

/// A parameter whose last shard is padded, one that is cut evenly and read in
/// two places, and one that is too small to be cut.
static constexpr const char *kWide = R"(func.func @forward(
    %x: tensor<20x128xf64> {train.role = #train.role<batch>, train.name = "x"},
    %w: tensor<128x129xf64> {train.role = #train.role<param>, train.name = "w"},
    %v: tensor<128x128xf64> {train.role = #train.role<param>, train.name = "v"},
    %c: tensor<129xf64> {train.role = #train.role<param>, train.name = "c"})
    -> (tensor<f64> {train.loss, train.name = "loss"}) {
  %a = nn.matmul %x, %v : (tensor<20x128xf64>, tensor<128x128xf64>) -> tensor<20x128xf64>
  %b = nn.matmul %a, %v : (tensor<20x128xf64>, tensor<128x128xf64>) -> tensor<20x128xf64>
  %y = nn.matmul %b, %w bias(%c) : (tensor<20x128xf64>, tensor<128x129xf64>, tensor<129xf64>) -> tensor<20x129xf64>
  %t = math.tanh %y : tensor<20x129xf64>
  %loss = nn.reduce sum %t over [0, 1] : (tensor<20x129xf64>) -> tensor<f64>
  return %loss : tensor<f64>
})";

/// The same in f32, whose products read the large parameters rounded to bf16,
/// and a table that is read as it is, too.
static constexpr const char *kNarrow = R"(func.func @forward(
    %x: tensor<20x128xf32> {train.role = #train.role<batch>, train.name = "x"},
    %w: tensor<128x129xf32> {train.role = #train.role<param>, train.name = "w"},
    %v: tensor<128x128xf32> {train.role = #train.role<param>, train.name = "v"},
    %u: tensor<128x128xf32> {train.role = #train.role<param>, train.name = "u"})
    -> (tensor<f32> {train.loss, train.name = "loss"}) {
  %vn = arith.truncf %v : tensor<128x128xf32> to tensor<128x128xbf16>
  %vr = arith.extf %vn : tensor<128x128xbf16> to tensor<128x128xf32>
  %un = arith.truncf %u : tensor<128x128xf32> to tensor<128x128xbf16>
  %ur = arith.extf %un : tensor<128x128xbf16> to tensor<128x128xf32>
  %wn = arith.truncf %w : tensor<128x129xf32> to tensor<128x129xbf16>
  %wr = arith.extf %wn : tensor<128x129xbf16> to tensor<128x129xf32>
  %a = nn.matmul %x, %vr : (tensor<20x128xf32>, tensor<128x128xf32>) -> tensor<20x128xf32>
  %b = nn.matmul %a, %ur : (tensor<20x128xf32>, tensor<128x128xf32>) -> tensor<20x128xf32>
  %d = nn.matmul %b, %u : (tensor<20x128xf32>, tensor<128x128xf32>) -> tensor<20x128xf32>
  %y = nn.matmul %d, %wr : (tensor<20x128xf32>, tensor<128x129xf32>) -> tensor<20x129xf32>
  %t = math.tanh %y : tensor<20x129xf32>
  %loss = nn.reduce sum %t over [0, 1] : (tensor<20x129xf32>) -> tensor<f32>
  return %loss : tensor<f32>
})";

/// The shard of rank `rank` of `whole`, of `size` elements.
static Tensor shardOf(const Tensor &whole, int64_t size, int64_t rank) {
  Tensor shard(whole.element, {size});
  for (int64_t i = 0; i < size && rank * size + i < whole.size(); ++i)
    shard.set(i, whole, rank * size + i);
  return shard;
}

static Tensor roundedCopy(const Tensor &whole) {
  Tensor copy(reference::Element::BF16, whole.shape);
  for (int64_t i = 0; i < whole.size(); ++i)
    copy.set(i, whole, i);
  copy.roundToElement();
  return copy;
}

/// The step of `optimizer`, cut at a level, has the shards of the whole one's
/// results. Returns how many arguments are shards.
static int64_t checkShards(MLIRContext &context, const std::string &optimizer,
                           int64_t ranks, int64_t level,
                           const std::string &split,
                           const std::string &further = "",
                           const char *model = kWide) {
  SCOPED_TRACE(optimizer + ", level " + std::to_string(level) + further);
  OwningOpRef<ModuleOp> whole = parse(context, model);
  EXPECT_TRUE(succeeded(runPipeline(
      *whole, "tmc-split{ranks=" + std::to_string(ranks) + split +
                  "},tmc-autodiff{optimizer=" + optimizer + "},canonicalize")));
  OwningOpRef<ModuleOp> cut = whole->clone();
  EXPECT_TRUE(succeeded(runPipeline(
      *cut, "train.step(tmc-shard{level=" + std::to_string(level) + further +
                "}),canonicalize,tmc-expand-composites")));
  FunctionOpInterface step = functionOf(*whole), own = functionOf(*cut);
  Random random(ranks);
  SmallVector<Tensor> inputs = randomInputs(step, random);
  auto isShard = [&](unsigned argument) {
    return own.getArgAttr(argument, train::TrainDialect::kWhole) != Attribute();
  };
  auto partFor = [&](const Tensor &value, std::optional<unsigned> argument,
                     int64_t rank) {
    return argument && isShard(*argument)
               ? shardOf(
                     value,
                     cast<RankedTensorType>(own.getArgumentTypes()[*argument])
                         .getNumElements(),
                     rank)
               : value;
  };
  std::vector<SmallVector<Tensor>> all(ranks, inputs), mine(ranks);
  int64_t shards = 0;
  for (unsigned i = 0; i < inputs.size(); ++i) {
    shards += isShard(i);
    for (int64_t rank = 0; rank < ranks; ++rank)
      mine[rank].push_back(partFor(inputs[i], i, rank));
  }
  for (unsigned i = inputs.size(); i < own.getNumArguments(); ++i)
    for (SmallVector<Tensor> &list : mine)
      list.push_back(roundedCopy(inputs[*train::copiedArg(own, i)]));
  const Mesh mesh{.data = int(ranks)};
  auto expected = reference::interpretRanks(step, mesh, all);
  auto actual = reference::interpretRanks(own, mesh, mine);
  EXPECT_TRUE(succeeded(expected) && succeeded(actual));
  if (failed(expected) || failed(actual))
    return 0;
  for (int64_t rank = 0; rank < ranks; ++rank) {
    llvm::DenseMap<unsigned, Tensor> updated; // By argument.
    for (unsigned i = 0; i < step.getNumResults(); ++i) {
      if (std::optional<unsigned> argument = train::updatedArg(step, i))
        updated[*argument] = (*expected)[rank][i];
      EXPECT_EQ(compare(partFor((*expected)[rank][i],
                                train::updatedArg(step, i), rank),
                        (*actual)[rank][i], 1e-12),
                "")
          << train::resultName(step, i).str() << " of rank " << rank;
    }
    for (unsigned i = step.getNumResults(); i < own.getNumResults(); ++i) {
      const unsigned copy = *train::updatedArg(own, i);
      EXPECT_EQ(compare(roundedCopy(updated[*train::copiedArg(own, copy)]),
                        (*actual)[rank][i], 0),
                "")
          << train::resultName(own, i).str() << " of rank " << rank;
    }
  }
  return shards;
}

TEST(Shard, KeepsTheStep) {
  std::unique_ptr<MLIRContext> context = makeContext();
  for (const char *split : {"", " micro-batches=2"})
    for (const char *optimizer :
         {"adamw", "adamw(clip=0.01)", "sgd(momentum=0.9)", "lion"}) {
      const int64_t moments = StringRef(optimizer).starts_with("adamw") ? 2 : 1;
      for (int64_t ranks : {2, 4}) {
        EXPECT_EQ(checkShards(*context, optimizer, ranks, 0, split), 0);
        EXPECT_EQ(checkShards(*context, optimizer, ranks, 1, split),
                  2 * moments);
        EXPECT_EQ(checkShards(*context, optimizer, ranks, 2, split),
                  2 * moments);
        EXPECT_EQ(checkShards(*context, optimizer, ranks, 3, split),
                  2 * moments + 2);
      }
    }
}

// The masters of the two that all readers round are shards; the third is read
// in f32, and so it is whole.
TEST(Shard, KeepsCopiesOfWholeParameters) {
  std::unique_ptr<MLIRContext> context = makeContext();
  for (const char *split : {"", " micro-batches=2"})
    for (const char *optimizer : {"adamw", "adamw(clip=0.01)"})
      for (int64_t level : {0, 2, 3})
        EXPECT_EQ(checkShards(*context, optimizer, 2, level, split,
                              " copies=true", kNarrow),
                  level == 0   ? 0
                  : level == 2 ? 6 + 2
                               : 6 + 3);
  // The first two that the step reads: one of them has a copy.
  EXPECT_EQ(
      checkShards(*context, "adamw", 2, 3, "", " whole=2 copies=true", kNarrow),
      6 + 2);
}

// The last of four micro-batches is smaller, and no part of the loop.
TEST(Shard, AddsShardsOverMicroBatches) {
  std::unique_ptr<MLIRContext> context = makeContext();
  for (const char *split : {" micro-batches=2", " micro-batches=4"})
    for (const char *optimizer : {"adamw", "adamw(clip=0.01)"})
      for (int64_t level : {0, 2, 3})
        EXPECT_EQ(
            checkShards(*context, optimizer, 2, level, split, " shards=true"),
            std::vector<int64_t>({0, 4, 4, 6})[level]);
}

// Its moments are those of rows and columns.
TEST(Shard, LeavesAdafactorWhole) {
  std::unique_ptr<MLIRContext> context = makeContext();
  EXPECT_EQ(checkShards(*context, "adafactor", 2, 3, ""), 0);
}
