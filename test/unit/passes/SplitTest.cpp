// SplitTest.cpp - the losses of micro-batches add up to that of the whole.
//
// Random graphs whose batch can be cut, with a mean over labels that count put
// on top of some: the whole is interpreted once; after the pass the prologue is
// interpreted on the whole batch and the body on each piece of it.

#include "test/unit/passes/Validation.h"

#include "dialects/nn/Builders.h"
#include "dialects/train/Batch.h"
#include "dialects/train/Train.h"

#include <gtest/gtest.h>

using namespace mlir;
using namespace tmc;
using namespace tmc::test;
using reference::Tensor;

/// Samples [first, first + count) of `batch`, which lie along `dim`.
static Tensor piece(const Tensor &whole, int64_t dim, int64_t first,
                    int64_t count, int64_t batch) {
  SmallVector<int64_t> shape = whole.shape;
  const int64_t perSample = shape[dim] / batch;
  shape[dim] = count * perSample;
  Tensor result(whole.element, shape);
  reference::forEachIndex(shape, [&](ArrayRef<int64_t> index, int64_t i) {
    SmallVector<int64_t> from(index);
    from[dim] += first * perSample;
    result.set(i, whole, reference::linearIndex(from, whole.shape));
  });
  return result;
}

namespace {
struct Outcome {
  bool refused = false;
  bool hasFacts = false;
  std::string difference;
};
} // namespace

/// Interprets @forward, of `batch` samples, whole and in `pieces`, the last of
/// which may be smaller.
static Outcome compareSplit(ModuleOp whole, int64_t batch, int64_t pieces,
                            uint64_t seed) {
  Outcome outcome;
  OwningOpRef<ModuleOp> split = whole.clone();
  {
    ScopedDiagnosticHandler quiet(whole.getContext(),
                                  [](Diagnostic &) { return success(); });
    if (failed(runPipeline(*split, "tmc-split{micro-batches=" +
                                       std::to_string(pieces) + "}"))) {
      outcome.refused = true;
      return outcome;
    }
  }
  auto forward = whole.lookupSymbol<func::FuncOp>("forward");
  auto equal = split->lookupSymbol<func::FuncOp>("forward");
  auto rest = split->lookupSymbol<func::FuncOp>("rest");
  auto prologue = split->lookupSymbol<func::FuncOp>("prologue");
  outcome.hasFacts = bool(prologue);
  Random random(seed);
  SmallVector<Tensor> inputs = randomInputs(forward, random);
  auto expected = reference::interpret(forward, inputs);
  if (failed(expected)) {
    outcome.difference = "the whole can't be interpreted";
    return outcome;
  }

  SmallVector<Tensor> facts;
  if (prologue) {
    SmallVector<Tensor> taken;
    for (unsigned i = 0; i < prologue.getNumArguments(); ++i)
      for (unsigned j = 0; j < forward.getNumArguments(); ++j)
        if (train::argName(prologue, i) == train::argName(forward, j))
          taken.push_back(inputs[j]);
    auto made = reference::interpret(prologue, taken);
    if (failed(made)) {
      outcome.difference = "the prologue can't be interpreted";
      return outcome;
    }
    facts = *made;
  }

  unsigned lossAt = *train::lossResult(forward);
  unsigned pieceLossAt = *train::lossResult(equal);
  Tensor loss((*expected)[lossAt].element, {});
  const int64_t most = (batch + pieces - 1) / pieces;
  for (int64_t first = 0; first < batch; first += most) {
    const int64_t count = std::min(most, batch - first);
    func::FuncOp body = count < most ? rest : equal;
    if (!body) {
      outcome.difference = "there is no @rest";
      return outcome;
    }
    SmallVector<Tensor> mine;
    for (unsigned i = 0; i < forward.getNumArguments(); ++i)
      mine.push_back(train::isCut(equal, i)
                         ? piece(inputs[i], 0, first, count, batch)
                         : inputs[i]);
    mine.append(facts.begin(), facts.end());
    auto results = reference::interpret(body, mine);
    if (failed(results)) {
      outcome.difference = "a piece can't be interpreted";
      return outcome;
    }
    loss.floats[0] += (*results)[pieceLossAt].floats[0];
    // Results that lie side by side are those of the same name of the whole.
    for (unsigned i = 0; i < body.getNumResults(); ++i) {
      auto dim = body.getResultAttrOfType<IntegerAttr>(i, "train.concat");
      for (unsigned j = 0; dim && j < forward.getNumResults(); ++j)
        if (train::resultName(body, i) == train::resultName(forward, j))
          outcome.difference += compare(
              {piece((*expected)[j], dim.getInt(), first, count, batch)},
              {(*results)[i]}, 1e-9);
    }
  }
  outcome.difference += compare({(*expected)[lossAt]}, {loss}, 1e-9);
  return outcome;
}

TEST(Split, RandomGraphs) {
  std::unique_ptr<MLIRContext> context = makeContext();
  GraphOptions options;
  options.batchSafe = true;
  int64_t cut = 0, refused = 0, cutNarrow = 0;
  for (uint64_t seed = 0; seed < 1000; ++seed) {
    options.narrow = seed % 2;
    options.batch = seed % 4 < 2 ? 4 : 5;
    OwningOpRef<ModuleOp> whole = randomGraph(*context, seed, options);
    Outcome outcome =
        compareSplit(*whole, options.batch, seed % 8 < 4 ? 2 : 3, seed + 1);
    refused += outcome.refused;
    cut += !outcome.refused;
    cutNarrow += !outcome.refused && options.narrow;
    if (!outcome.difference.empty()) {
      std::string text;
      llvm::raw_string_ostream(text) << *whole;
      FAIL() << "seed " << seed << ": " << outcome.difference << "\n" << text;
    }
  }
  // Those with a state to update, or a batch norm, can't be cut.
  EXPECT_GE(cut, 500) << refused << " are refused";
  EXPECT_GE(cutNarrow, 200);
}

/// Functions that are there to be cut, and how often: a mean over labels that
/// count, one of weighted squares, a penalty on the parameters.
static constexpr const char *functions[] = {
    R"(func.func @forward(
    %x: tensor<8x6xf64> {train.role = #train.role<batch>, train.name = "x"},
    %labels: tensor<8xi64> {train.role = #train.role<batch>, train.name = "labels", test.below = 3},
    %w: tensor<6x3xf64> {train.role = #train.role<param>, train.name = "w"})
    -> (tensor<f64> {train.loss, train.name = "loss"}, tensor<8x3xf64> {train.name = "logits"}) {
  %logits = nn.matmul %x, %w : (tensor<8x6xf64>, tensor<6x3xf64>) -> tensor<8x3xf64>
  %none = arith.constant dense<2> : tensor<8xi64>
  %counts = arith.cmpi ne, %labels, %none : tensor<8xi64>
  %ones = arith.uitofp %counts : tensor<8xi1> to tensor<8xf64>
  %count = nn.reduce sum %ones over [0] : (tensor<8xf64>) -> tensor<f64>
  %one = arith.constant dense<1.0> : tensor<f64>
  %weight = arith.divf %one, %count : tensor<f64>
  %loss, %lse = nn.cross_entropy %logits, %labels, %weight {ignore_index = 2 : i64} : (tensor<8x3xf64>, tensor<8xi64>, tensor<f64>) -> (tensor<f64>, tensor<8xf64>)
  return %loss, %logits : tensor<f64>, tensor<8x3xf64>
})",
    R"(func.func @forward(
    %x: tensor<8x5xf64> {train.role = #train.role<batch>, train.name = "x"},
    %weights: tensor<8xf64> {train.role = #train.role<batch>, train.name = "weights", test.positive},
    %b: tensor<5xf64> {train.role = #train.role<param>, train.name = "b"})
    -> (tensor<f64> {train.loss, train.name = "loss"}) {
  %total = nn.reduce sum %weights over [0] : (tensor<8xf64>) -> tensor<f64>
  %root = math.sqrt %total : tensor<f64>
  %wb = nn.broadcast %weights to [0] : (tensor<8xf64>) -> tensor<8x5xf64>
  %bb = nn.broadcast %b to [1] : (tensor<5xf64>) -> tensor<8x5xf64>
  %d = arith.subf %x, %bb : tensor<8x5xf64>
  %d2 = arith.mulf %d, %d : tensor<8x5xf64>
  %y = arith.mulf %d2, %wb : tensor<8x5xf64>
  %s = nn.reduce sum %y over [0, 1] : (tensor<8x5xf64>) -> tensor<f64>
  %t = arith.mulf %total, %s : tensor<f64>
  %u = arith.divf %t, %root : tensor<f64>
  %b2 = arith.mulf %b, %b : tensor<5xf64>
  %penalty = nn.reduce sum %b2 over [0] : (tensor<5xf64>) -> tensor<f64>
  %loss = arith.subf %penalty, %u : tensor<f64>
  return %loss : tensor<f64>
})",
    R"(func.func @forward(
    %x: tensor<8x3x5xf64> {train.role = #train.role<batch>, train.name = "x"},
    %seed: tensor<2xi64> {train.role = #train.role<scalar>, train.name = "seed"},
    %samples: tensor<8xi64> {train.role = #train.role<batch>, train.name = "samples", test.below = 100},
    %table: tensor<7x5xf64> {train.role = #train.role<param>, train.name = "table"})
    -> (tensor<f64> {train.loss, train.name = "loss"}) {
  %ids = arith.constant dense<[[0, 1, 2], [0, 1, 2], [0, 1, 2], [0, 1, 2], [0, 1, 2], [0, 1, 2], [0, 1, 2], [0, 1, 2]]> : tensor<8x3xi64>
  %e = nn.embedding %table, %ids : (tensor<7x5xf64>, tensor<8x3xi64>) -> tensor<8x3x5xf64>
  %u = nn.random %seed, %samples {stream = 7 : i64} : (tensor<2xi64>, tensor<8xi64>) -> tensor<8x3x5xf64>
  %y = arith.mulf %x, %u : tensor<8x3x5xf64>
  %z = arith.addf %y, %e : tensor<8x3x5xf64>
  %f = nn.reshape %z : (tensor<8x3x5xf64>) -> tensor<24x5xf64>
  %g = math.tanh %f : tensor<24x5xf64>
  %loss = nn.reduce sum %g over [0, 1] : (tensor<24x5xf64>) -> tensor<f64>
  return %loss : tensor<f64>
})"};

/// Functions in which the batch isn't the outermost part of each dimension, or
/// in which some inputs have none.
static constexpr const char *orders[] = {
    // Samples last in time's rows: [L, B, E] as [L * B, E], and back.
    R"(func.func @forward(
    %x: tensor<8x3x5xf64> {train.role = #train.role<batch>, train.name = "x"},
    %w: tensor<5x4xf64> {train.role = #train.role<param>, train.name = "w"})
    -> (tensor<f64> {train.loss, train.name = "loss"}, tensor<8x3x4xf64> {train.name = "y"}) {
  %t = nn.transpose %x [1, 0, 2] : (tensor<8x3x5xf64>) -> tensor<3x8x5xf64>
  %r = nn.reshape %t : (tensor<3x8x5xf64>) -> tensor<24x5xf64>
  %p = nn.matmul %r, %w : (tensor<24x5xf64>, tensor<5x4xf64>) -> tensor<24x4xf64>
  %mask = arith.constant dense<[1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 2.0, 2.0, 2.0, 2.0, 2.0, 2.0, 2.0, 2.0, 3.0, 3.0, 3.0, 3.0, 3.0, 3.0, 3.0, 3.0]> : tensor<24xf64>
  %m = nn.broadcast %mask to [0] : (tensor<24xf64>) -> tensor<24x4xf64>
  %q = arith.mulf %p, %m : tensor<24x4xf64>
  %s = nn.reshape %q : (tensor<24x4xf64>) -> tensor<3x8x4xf64>
  %y = nn.transpose %s [1, 0, 2] : (tensor<3x8x4xf64>) -> tensor<8x3x4xf64>
  %e = math.tanh %q : tensor<24x4xf64>
  %loss = nn.reduce sum %e over [0, 1] : (tensor<24x4xf64>) -> tensor<f64>
  return %loss, %y : tensor<f64>, tensor<8x3x4xf64>
})",
    // Gates of experts: places that count over the whole batch.
    R"(func.func @forward(
    %g: tensor<8x2xf64> {train.role = #train.role<batch>, train.name = "g"},
    %choice: tensor<8x2xi64> {train.role = #train.role<batch>, train.name = "choice", test.below = 4},
    %w: tensor<4x3xf64> {train.role = #train.role<param>, train.name = "w"})
    -> (tensor<f64> {train.loss, train.name = "loss"}, tensor<8x4xf64> {train.name = "gates"}) {
  %row = arith.constant dense<[[0, 0], [4, 4], [8, 8], [12, 12], [16, 16], [20, 20], [24, 24], [28, 28]]> : tensor<8x2xi64>
  %place = arith.addi %choice, %row : tensor<8x2xi64>
  %places = nn.reshape %place : (tensor<8x2xi64>) -> tensor<16xi64>
  %updates = nn.reshape %g : (tensor<8x2xf64>) -> tensor<16xf64>
  %table = nn.embedding_grad %places, %updates : (tensor<16xi64>, tensor<16xf64>) -> tensor<32xf64>
  %gates = nn.reshape %table : (tensor<32xf64>) -> tensor<8x4xf64>
  %y = nn.matmul %gates, %w : (tensor<8x4xf64>, tensor<4x3xf64>) -> tensor<8x3xf64>
  %e = math.tanh %y : tensor<8x3xf64>
  %loss = nn.reduce sum %e over [0, 1] : (tensor<8x3xf64>) -> tensor<f64>
  return %loss, %gates : tensor<f64>, tensor<8x4xf64>
})",
    // One row of each sample, by the samples' numbers.
    R"(func.func @forward(
    %x: tensor<8x3x5xf64> {train.role = #train.role<batch>, train.name = "x"},
    %last: tensor<8xi64> {train.role = #train.role<batch>, train.name = "last", test.below = 3},
    %w: tensor<5xf64> {train.role = #train.role<param>, train.name = "w"})
    -> (tensor<f64> {train.loss, train.name = "loss"}, tensor<8x5xf64> {train.name = "rows"}) {
  %i = nn.iota {dim = 0 : i64} : () -> tensor<8xi64>
  %three = arith.constant dense<3> : tensor<8xi64>
  %first = arith.muli %i, %three : tensor<8xi64>
  %at = arith.addi %last, %first : tensor<8xi64>
  %flat = nn.reshape %x : (tensor<8x3x5xf64>) -> tensor<24x5xf64>
  %rows = nn.embedding %flat, %at : (tensor<24x5xf64>, tensor<8xi64>) -> tensor<8x5xf64>
  %b = nn.broadcast %w to [1] : (tensor<5xf64>) -> tensor<8x5xf64>
  %y = arith.mulf %rows, %b : tensor<8x5xf64>
  %e = math.tanh %y : tensor<8x5xf64>
  %loss = nn.reduce sum %e over [0, 1] : (tensor<8x5xf64>) -> tensor<f64>
  return %loss, %rows : tensor<f64>, tensor<8x5xf64>
})",
    // A temperature, a vector of one, and weights of classes.
    R"(func.func @forward(
    %temperature: tensor<f64> {train.role = #train.role<batch>, train.name = "temperature", test.positive},
    %x: tensor<8x6xf64> {train.role = #train.role<batch>, train.name = "x"},
    %one: tensor<1xf64> {train.role = #train.role<batch>, train.name = "one"},
    %classes: tensor<3xf64> {train.role = #train.role<batch>, train.name = "classes"},
    %w: tensor<6x3xf64> {train.role = #train.role<param>, train.name = "w"})
    -> (tensor<f64> {train.loss, train.name = "loss"}, tensor<8x3xf64> {train.name = "logits"}) {
  %p = nn.matmul %x, %w : (tensor<8x6xf64>, tensor<6x3xf64>) -> tensor<8x3xf64>
  %t = nn.broadcast %temperature to [] : (tensor<f64>) -> tensor<8x3xf64>
  %c = nn.broadcast %classes to [1] : (tensor<3xf64>) -> tensor<8x3xf64>
  %q = arith.divf %p, %t : tensor<8x3xf64>
  %logits = arith.mulf %q, %c : tensor<8x3xf64>
  %e = math.tanh %logits : tensor<8x3xf64>
  %sum = nn.reduce sum %e over [0, 1] : (tensor<8x3xf64>) -> tensor<f64>
  %number = nn.reshape %one : (tensor<1xf64>) -> tensor<f64>
  %scaled = arith.mulf %sum, %number : tensor<f64>
  %loss = arith.addf %scaled, %temperature : tensor<f64>
  return %loss, %logits : tensor<f64>, tensor<8x3xf64>
})"};

TEST(Split, OrdersOfSamples) {
  std::unique_ptr<MLIRContext> context = makeContext();
  for (auto [i, text] : llvm::enumerate(orders))
    for (int64_t pieces : {2, 3, 4, 5, 8}) {
      OwningOpRef<ModuleOp> whole = parse(*context, text);
      ASSERT_TRUE(whole) << text;
      Outcome outcome = compareSplit(*whole, 8, pieces, i + 1);
      EXPECT_FALSE(outcome.refused) << pieces << " pieces of\n" << text;
      EXPECT_EQ(outcome.difference, "") << pieces << " pieces of\n" << text;
    }
}

/// Whatever looks alike and counts otherwise stays whole.
TEST(Split, PlacesOfOtherSamples) {
  std::unique_ptr<MLIRContext> context = makeContext();
  const char *text = R"(func.func @forward(
    %x: tensor<8x3xf64> {train.role = #train.role<batch>, train.name = "x"},
    %last: tensor<8xi64> {train.role = #train.role<batch>, train.name = "last", test.below = 2})
    -> (tensor<f64> {train.loss, train.name = "loss"}) {
  %row = arith.constant dense<[ROWS]> : tensor<8xi64>
  %at = arith.addi %last, %row : tensor<8xi64>
  %flat = nn.reshape %x : (tensor<8x3xf64>) -> tensor<24xf64>
  %y = nn.embedding %flat, %at : (tensor<24xf64>, tensor<8xi64>) -> tensor<8xf64>
  %loss = nn.reduce sum %y over [0] : (tensor<8xf64>) -> tensor<f64>
  return %loss : tensor<f64>
})";
  // Each sample's own rows; two rows a sample of three; the samples turned.
  const std::pair<const char *, bool> rows[] = {
      {"0, 3, 6, 9, 12, 15, 18, 21", true},
      {"0, 2, 4, 6, 8, 10, 12, 14", false},
      {"21, 18, 15, 12, 9, 6, 3, 0", false}};
  for (auto [numbers, isOwn] : rows) {
    std::string source(text);
    source.replace(source.find("ROWS"), 4, numbers);
    OwningOpRef<ModuleOp> whole = parse(*context, source);
    ASSERT_TRUE(whole);
    Outcome outcome = compareSplit(*whole, 8, 2, 1);
    EXPECT_EQ(outcome.refused, !isOwn) << numbers;
    EXPECT_EQ(outcome.difference, "") << numbers;
  }
}

TEST(Split, Facts) {
  std::unique_ptr<MLIRContext> context = makeContext();
  for (auto [i, text] : llvm::enumerate(functions))
    for (int64_t pieces : {2, 3, 4, 5, 8}) {
      OwningOpRef<ModuleOp> whole = parse(*context, text);
      ASSERT_TRUE(whole);
      Outcome outcome = compareSplit(*whole, 8, pieces, i + 1);
      EXPECT_FALSE(outcome.refused) << text;
      EXPECT_EQ(outcome.hasFacts, i < 2) << text;
      EXPECT_EQ(outcome.difference, "") << pieces << " pieces of\n" << text;
    }
}
