// CutRanksTest.cpp - ranks that share heads and hidden columns make the step of
// one device: loss, their pieces of updated parameters, and the norm. A rank of
// a mesh with several samples has its part of them, too.

#include "test/unit/passes/Validation.h"

#include "dialects/nn/NN.h"
#include "dialects/train/Train.h"

#include "llvm/Support/raw_ostream.h"

#include <gtest/gtest.h>

#include <vector>

using namespace mlir;
using namespace tmc;
using namespace tmc::test;
using reference::Tensor;
using train::TrainDialect;

/// The piece of `whole` that the rank with number `place` of tp has.
static Tensor pieceOf(const Tensor &whole, train::CutAttr cut, Type type,
                      int64_t place) {
  Tensor piece(whole.element, cast<RankedTensorType>(type).getShape());
  const int64_t ranks = whole.size() / piece.size();
  const int64_t chunk =
      llvm::product_of(ArrayRef(piece.shape).drop_front(cut.getDim())) /
      cut.getRuns();
  for (int64_t i = 0; i < piece.size(); ++i)
    piece.set(i, whole, (i / chunk * ranks + place) * chunk + i % chunk);
  return piece;
}

namespace {
/// A mesh, and what it found to cut.
struct Meshed {
  Mesh mesh;
  int64_t sums = 0, spreads = 0, cutParams = 0;
};
} // namespace

/// A rank's value of argument `index` of `own`, the step of one rank.
static Tensor ownOf(FunctionOpInterface own, unsigned index, const Mesh &mesh,
                    int rank, const Tensor &whole) {
  Type type = own.getArgumentTypes()[index];
  if (auto cut =
          own.getArgAttrOfType<train::CutAttr>(index, TrainDialect::kCut))
    return pieceOf(whole, cut, type, mesh.place(Axis::Tensor, rank));
  Tensor part(whole.element, cast<RankedTensorType>(type).getShape());
  const int64_t first = part.size() == whole.size()
                            ? 0
                            : mesh.place(Axis::Data, rank) * part.size();
  for (int64_t i = 0; i < part.size(); ++i)
    part.set(i, whole, first + i);
  return part;
}

/// Compares the step of `whole` with the one that the ranks of `how.mesh` run.
/// False if nothing can be cut.
static bool checkCut(OwningOpRef<ModuleOp> whole, uint64_t seed, Meshed &how,
                     const std::string &split = "") {
  MLIRContext &context = *whole->getContext();
  OwningOpRef<ModuleOp> part = whole->clone();
  std::string text;
  llvm::raw_string_ostream(text) << *whole;
  SCOPED_TRACE(text);
  const std::string autodiff = "tmc-autodiff{optimizer=sgd(clip=0.5)}";
  {
    ScopedDiagnosticHandler quiet(&context,
                                  [](Diagnostic &) { return success(); });
    if (failed(runPipeline(
            *part, "tmc-cut{ranks=" + std::to_string(how.mesh.tensor) + "}")))
      return false;
  }
  how.sums = how.spreads = how.cutParams = 0;
  part->walk([&](nn::SumOverOp) { ++how.sums; });
  part->walk([&](nn::SpreadOp) { ++how.spreads; });
  EXPECT_TRUE(succeeded(runPipeline(*whole, autodiff)));
  EXPECT_TRUE(succeeded(runPipeline(
      *part, "tmc-split{ranks=" + std::to_string(how.mesh.data) + split + "}," +
                 autodiff + ",tmc-expand-composites")));
  FunctionOpInterface step = functionOf(*whole), own = functionOf(*part);
  Random random(seed);
  SmallVector<Tensor> inputs = randomInputs(step, random);
  auto expected = reference::interpret(step, inputs);
  std::vector<SmallVector<Tensor>> mine(how.mesh.ranks());
  for (int rank = 0; rank < int(how.mesh.ranks()); ++rank)
    for (unsigned i = 0, at = 0; i < own.getNumArguments(); ++i) {
      auto feed = own.getArgAttrOfType<StringAttr>(i, TrainDialect::kFeed);
      if (feed && feed.getValue() == "tensor_place") {
        Tensor place(reference::Element::I64, {});
        place.ints[0] = how.mesh.place(Axis::Tensor, rank);
        mine[rank].push_back(place);
        continue;
      }
      mine[rank].push_back(ownOf(own, i, how.mesh, rank, inputs[at++]));
      how.cutParams += own.getArgAttr(i, TrainDialect::kCut) != Attribute();
    }
  auto actual = reference::interpretRanks(own, how.mesh, mine);
  EXPECT_TRUE(succeeded(expected) && succeeded(actual));
  if (failed(expected) || failed(actual))
    return true;
  EXPECT_EQ(step.getNumResults(), own.getNumResults());
  for (int rank = 0; rank < int(how.mesh.ranks()); ++rank)
    for (unsigned i = 0; i < own.getNumResults(); ++i) {
      std::optional<unsigned> argument = train::updatedArg(own, i);
      const Tensor &all = (*expected)[i];
      EXPECT_EQ(
          compare(argument ? ownOf(own, *argument, how.mesh, rank, all) : all,
                  (*actual)[rank][i], 1e-9),
          "")
          << train::resultName(own, i).str() << " of rank " << rank;
    }
  return true;
}

/// The function of a model: `arguments` and the lines up to %y, whose tanh is
/// added up.
static std::string model(const std::string &arguments, const std::string &lines,
                         const std::string &type, const std::string &dims) {
  return "func.func @forward(" + arguments +
         ") -> (tensor<f64> {train.loss, train.name = \"loss\"}) {\n" + lines +
         "%t = math.tanh %y : " + type + "\n%loss = nn.reduce sum %t over [" +
         dims + "] : (" + type +
         ") -> tensor<f64>\nreturn %loss : tensor<f64>\n}";
}
static std::string batch(const std::string &name, const std::string &type) {
  return "%" + name + ": tensor<" + type +
         "> {train.role = #train.role<batch>, train.name = \"" + name + "\"}";
}
static std::string param(const std::string &name, const std::string &type) {
  return ", %" + name + ": tensor<" + type +
         "> {train.role = #train.role<param>, train.name = \"" + name + "\"}";
}

/// Two products, the second one with a bias, beside their input.
static std::string mlp() {
  return model(batch("x", "8x6xf64") + param("w", "6x8xf64") +
                   param("b", "8xf64") + param("v", "8x6xf64") +
                   param("c", "6xf64"),
               R"(
%h = nn.matmul %x, %w bias(%b) : (tensor<8x6xf64>, tensor<6x8xf64>, tensor<8xf64>) -> tensor<8x8xf64>
%g = nn.gelu %h {tanh} : (tensor<8x8xf64>) -> tensor<8x8xf64>
%p = nn.matmul %g, %v bias(%c) : (tensor<8x8xf64>, tensor<8x6xf64>, tensor<6xf64>) -> tensor<8x6xf64>
%y = arith.addf %p, %x : tensor<8x6xf64>
)",
               "tensor<8x6xf64>", "0, 1");
}

/// One table for the gate and what it is multiplied by, after a norm.
static std::string gated() {
  return model(batch("x", "8x6xf64") + param("s", "6xf64") +
                   param("w", "6x16xf64") + param("v", "6x8xf64"),
               R"(
%n = nn.rms_norm %x scale(%s) {epsilon = 1.0e-6 : f64} : (tensor<8x6xf64>, tensor<6xf64>) -> tensor<8x6xf64>
%h = nn.matmul %n, %w : (tensor<8x6xf64>, tensor<6x16xf64>) -> tensor<8x16xf64>
%a = nn.slice %h [0, 0] step [1, 1] : (tensor<8x16xf64>) -> tensor<8x8xf64>
%b = nn.slice %h [0, 8] step [1, 1] : (tensor<8x16xf64>) -> tensor<8x8xf64>
%e = math.tanh %a : tensor<8x8xf64>
%g = arith.mulf %e, %b : tensor<8x8xf64>
%p = nn.matmul %g, %v transpose_rhs : (tensor<8x8xf64>, tensor<6x8xf64>) -> tensor<8x6xf64>
%y = arith.addf %p, %n : tensor<8x6xf64>
)",
               "tensor<8x6xf64>", "0, 1");
}

/// Heads of one table of queries, keys and values, with dropout.
static std::string fusedHeads() {
  return model(batch("x", "4x3x8xf64") +
                   ", %seed: tensor<2xi64> {train.role = #train.role<scalar>, "
                   "train.name = \"seed\"}, " +
                   batch("samples", "4xi64") + param("w", "8x24xf64") +
                   param("b", "24xf64") + param("o", "8x8xf64") +
                   param("c", "8xf64"),
               R"(
%f = nn.reshape %x : (tensor<4x3x8xf64>) -> tensor<12x8xf64>
%h = nn.matmul %f, %w bias(%b) : (tensor<12x8xf64>, tensor<8x24xf64>, tensor<24xf64>) -> tensor<12x24xf64>
%r = nn.reshape %h : (tensor<12x24xf64>) -> tensor<4x3x24xf64>
%q0 = nn.slice %r [0, 0, 0] step [1, 1, 1] : (tensor<4x3x24xf64>) -> tensor<4x3x8xf64>
%k0 = nn.slice %r [0, 0, 8] step [1, 1, 1] : (tensor<4x3x24xf64>) -> tensor<4x3x8xf64>
%v0 = nn.slice %r [0, 0, 16] step [1, 1, 1] : (tensor<4x3x24xf64>) -> tensor<4x3x8xf64>
%q = nn.reshape %q0 : (tensor<4x3x8xf64>) -> tensor<4x3x4x2xf64>
%k = nn.reshape %k0 : (tensor<4x3x8xf64>) -> tensor<4x3x4x2xf64>
%v = nn.reshape %v0 : (tensor<4x3x8xf64>) -> tensor<4x3x4x2xf64>
%out, %lse = nn.attention %q, %k, %v random(%seed, %samples) {causal, dropout = 2.5e-01 : f64, scale = 7.0e-01 : f64, stream = 1 : i64} : (tensor<4x3x4x2xf64>, tensor<4x3x4x2xf64>, tensor<4x3x4x2xf64>, tensor<2xi64>, tensor<4xi64>) -> (tensor<4x3x4x2xf64>, tensor<4x4x3xf64>)
%m = nn.reshape %out : (tensor<4x3x4x2xf64>) -> tensor<12x8xf64>
%p = nn.matmul %m, %o bias(%c) : (tensor<12x8xf64>, tensor<8x8xf64>, tensor<8xf64>) -> tensor<12x8xf64>
%y = arith.addf %p, %f : tensor<12x8xf64>
)",
               "tensor<12x8xf64>", "0, 1");
}

/// Dropout between two products.
static std::string dropped() {
  return model(batch("x", "4x3x6xf64") +
                   ", %seed: tensor<2xi64> {train.role = #train.role<scalar>, "
                   "train.name = \"seed\"}, " +
                   batch("samples", "4xi64") + param("w", "6x8xf64") +
                   param("v", "8x6xf64"),
               R"(
%half = arith.constant dense<5.0e-01> : tensor<4x3x8xf64>
%zero = arith.constant dense<0.0> : tensor<4x3x8xf64>
%f = nn.reshape %x : (tensor<4x3x6xf64>) -> tensor<12x6xf64>
%h = nn.matmul %f, %w : (tensor<12x6xf64>, tensor<6x8xf64>) -> tensor<12x8xf64>
%r = nn.reshape %h : (tensor<12x8xf64>) -> tensor<4x3x8xf64>
%u = nn.random %seed, %samples {stream = 3 : i64} : (tensor<2xi64>, tensor<4xi64>) -> tensor<4x3x8xf64>
%k = arith.cmpf oge, %u, %half : tensor<4x3x8xf64>
%d = arith.select %k, %r, %zero : tensor<4x3x8xi1>, tensor<4x3x8xf64>
%g = nn.reshape %d : (tensor<4x3x8xf64>) -> tensor<12x8xf64>
%y = nn.matmul %g, %v : (tensor<12x8xf64>, tensor<8x6xf64>) -> tensor<12x6xf64>
)",
               "tensor<12x6xf64>", "0, 1");
}

/// Four heads of queries and two of keys and values, whose queries are
/// normalized by a scale that all heads share.
static std::string groupedHeads() {
  return model(batch("x", "4x3x8xf64") + param("wq", "8x8xf64") +
                   param("wk", "4x8xf64") + param("wv", "4x8xf64") +
                   param("s", "2xf64") + param("o", "8x8xf64"),
               R"(
%f = nn.reshape %x : (tensor<4x3x8xf64>) -> tensor<12x8xf64>
%q0 = nn.matmul %f, %wq transpose_rhs : (tensor<12x8xf64>, tensor<8x8xf64>) -> tensor<12x8xf64>
%k0 = nn.matmul %f, %wk transpose_rhs : (tensor<12x8xf64>, tensor<4x8xf64>) -> tensor<12x4xf64>
%v0 = nn.matmul %f, %wv transpose_rhs : (tensor<12x8xf64>, tensor<4x8xf64>) -> tensor<12x4xf64>
%q1 = nn.reshape %q0 : (tensor<12x8xf64>) -> tensor<4x3x4x2xf64>
%q = nn.rms_norm %q1 scale(%s) {epsilon = 1.0e-6 : f64} : (tensor<4x3x4x2xf64>, tensor<2xf64>) -> tensor<4x3x4x2xf64>
%k = nn.reshape %k0 : (tensor<12x4xf64>) -> tensor<4x3x2x2xf64>
%v = nn.reshape %v0 : (tensor<12x4xf64>) -> tensor<4x3x2x2xf64>
%out, %lse = nn.attention %q, %k, %v {causal, scale = 7.0e-01 : f64} : (tensor<4x3x4x2xf64>, tensor<4x3x2x2xf64>, tensor<4x3x2x2xf64>) -> (tensor<4x3x4x2xf64>, tensor<4x4x3xf64>)
%m = nn.reshape %out : (tensor<4x3x4x2xf64>) -> tensor<12x8xf64>
%p = nn.matmul %m, %o transpose_rhs : (tensor<12x8xf64>, tensor<8x8xf64>) -> tensor<12x8xf64>
%y = arith.addf %p, %f : tensor<12x8xf64>
)",
               "tensor<12x8xf64>", "0, 1");
}

/// Channels between two convolutions.
static std::string channels() {
  return model(batch("x", "4x3x5x5xf64") + param("w", "8x3x3x3xf64") +
                   param("v", "3x8x1x1xf64"),
               R"(
%h = nn.conv %x, %w {strides = array<i64: 1, 1>, padding = array<i64: 1, 1, 1, 1>, dilations = array<i64: 1, 1>, groups = 1 : i64} : (tensor<4x3x5x5xf64>, tensor<8x3x3x3xf64>) -> tensor<4x8x5x5xf64>
%g = math.tanh %h : tensor<4x8x5x5xf64>
%p = nn.conv %g, %v {strides = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, groups = 1 : i64} : (tensor<4x8x5x5xf64>, tensor<3x8x1x1xf64>) -> tensor<4x3x5x5xf64>
%y = arith.addf %p, %x : tensor<4x3x5x5xf64>
)",
               "tensor<4x3x5x5xf64>", "0, 1, 2, 3");
}

namespace {
struct Case {
  const char *name;
  std::string text;
  int64_t sums;
  int64_t spreads; // Of what depends on parameters.
  int64_t cutParams;
};
} // namespace

static std::vector<Case> cases() {
  return {{"mlp", mlp(), 1, 0, 3},
          {"gated", gated(), 1, 1, 2},
          {"fused heads", fusedHeads(), 1, 0, 3},
          {"dropped", dropped(), 1, 0, 2},
          {"grouped heads", groupedHeads(), 1, 1, 4},
          {"channels", channels(), 1, 0, 2}};
}

TEST(CutRanks, MakeTheStepOfOneDevice) {
  std::unique_ptr<MLIRContext> context = makeContext();
  for (const Case &each : cases())
    for (const Mesh mesh : {Mesh{.tensor = 2}, Mesh{.data = 2, .tensor = 2}}) {
      SCOPED_TRACE(std::string(each.name) + ", " + mesh.text());
      Meshed how{mesh};
      ASSERT_TRUE(checkCut(parse(*context, each.text.c_str()), 1, how));
      EXPECT_EQ(how.sums, each.sums);
      EXPECT_EQ(how.spreads, each.spreads);
      EXPECT_EQ(how.cutParams, each.cutParams * mesh.ranks());
    }
}

TEST(CutRanks, MakeItInMicroBatches) {
  std::unique_ptr<MLIRContext> context = makeContext();
  for (const Case &each : cases()) {
    SCOPED_TRACE(each.name);
    Meshed how{{.tensor = 2}};
    EXPECT_TRUE(checkCut(parse(*context, each.text.c_str()), 2, how,
                         " micro-batches=2"));
  }
}

TEST(CutRanks, RandomGraphs) {
  std::unique_ptr<MLIRContext> context = makeContext();
  int64_t cut = 0;
  for (int64_t seed = 0; seed < 1500 && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Meshed how{{.tensor = 2}};
    cut += checkCut(randomGraph(*context, seed, {}), seed, how);
  }
  EXPECT_GT(cut, 20);
  std::printf("  %lld of 1500 graphs are cut\n", (long long)cut);
}
