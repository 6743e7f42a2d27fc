// JoinProductsTest.cpp - the products of queries, keys and values with rotary
// positions are one, with the same results and gradients.
//
// The interpreter computes a program and its gradients with three products and
// with one. Then the gradient of the one parameter is that of the three, one
// after another, no gradients are put side by side by a copy, and one rotation
// each way stands for two.

#include "test/unit/passes/Validation.h"

#include "dialects/nn/NN.h"
#include "dialects/train/Train.h"
#include "test/unit/reference/Harness.h"

#include "llvm/Support/FormatVariadic.h"

#include <gtest/gtest.h>

#include <map>

using namespace mlir;
using namespace tmc;
using namespace tmc::test;
using reference::Tensor;

namespace {

struct Form {
  const char *name;
  /// Heads of queries, and of keys and of values; the columns that turn in a
  /// head of 6.
  int64_t heads, groups, rotated;
  /// Attributes of the rotations.
  const char *attributes;
};
const Form kForms[] = {
    {"halves", 2, 2, 6, ""},
    {"neighbours", 2, 2, 6, "{interleaved}"},
    {"adjoint", 2, 2, 6, "{transposed}"},
    {"grouped", 4, 2, 6, ""},
    {"one group", 3, 1, 6, "{interleaved, transposed}"},
    {"a part of each head", 4, 2, 4, ""},
    {"neighbours in a part", 4, 1, 2, "{interleaved}"},
};

/// Attention of 2 x 3 positions, to whose products x, tables and biases, all of
/// them trained, lead.
std::string forwardText(const Form &form) {
  std::string table = llvm::formatv("tensor<1x3x1x{0}xf64>", form.rotated);
  auto project = [](StringRef name, int64_t heads) {
    return llvm::formatv(R"(
  %{0} = nn.matmul %x, %w{0} transpose_rhs bias(%b{0}) : (tensor<6x8xf64>, tensor<{1}x8xf64>, tensor<{1}xf64>) -> tensor<6x{1}xf64>
  %{0}4 = nn.reshape %{0} : (tensor<6x{1}xf64>) -> tensor<2x3x{2}x6xf64>)",
                         name, heads * 6, heads)
        .str();
  };
  auto rotate = [&](StringRef name, int64_t heads) {
    return llvm::formatv(R"(
  %{0}r = nn.rotary_embedding %{0}4, %cos, %sin {1} : (tensor<2x3x{2}x6xf64>, {3}, {3}) -> tensor<2x3x{2}x6xf64>)",
                         name, form.attributes, heads, table)
        .str();
  };
  std::string params;
  for (const char *rows : {"x8", ""})
    for (const char *part : {"q", "k", "v"})
      params += llvm::formatv(
          R"(%{0}{1}: tensor<{2}{3}xf64> {{train.role = #train.role<param>, train.name = "{1}.{0}"},
    )",
          *rows ? "w" : "b", part,
          6 * (*part == 'q' ? form.heads : form.groups), rows);
  std::string head = llvm::formatv(R"(func.func @forward(
    %x: tensor<6x8xf64> {{train.role = #train.role<param>, train.name = "x"},
    {0}%cos: {1} {{train.role = #train.role<param>, train.name = "cos"},
    %sin: {1} {{train.role = #train.role<param>, train.name = "sin"},
    %c: tensor<2x3x{2}x6xf64> {{train.role = #train.role<batch>, train.name = "c"})
    -> (tensor<f64> {{train.name = "loss", train.loss}) {{)",
                                   params, table, form.heads);
  std::string tail = llvm::formatv(
      R"(
  %o, %l = nn.attention %qr, %kr, %v4 {{causal, scale = 0.5 : f64} : (tensor<2x3x{0}x6xf64>, tensor<2x3x{1}x6xf64>, tensor<2x3x{1}x6xf64>) -> (tensor<2x3x{0}x6xf64>, tensor<2x{0}x3xf64>)
  %p = arith.mulf %o, %c : tensor<2x3x{0}x6xf64>
  %s = nn.reduce sum %p over [0, 1, 2, 3] : (tensor<2x3x{0}x6xf64>) -> tensor<f64>
  return %s : tensor<f64>
})",
      form.heads, form.groups);
  return head + project("v", form.groups) + project("q", form.heads) +
         project("k", form.groups) + rotate("k", form.groups) +
         rotate("q", form.heads) + tail;
}

/// The rows of several tensors, one after another.
Tensor joined(ArrayRef<Tensor> parts) {
  Tensor all = parts[0];
  for (const Tensor &part : parts.drop_front()) {
    all.shape[0] += part.shape[0];
    all.floats.insert(all.floats.end(), part.floats.begin(), part.floats.end());
  }
  return all;
}

struct Computed {
  std::map<std::string, Tensor> results;
  int64_t rotations = 0, products = 0, concats = 0, packed = 0;
};

/// The results of the step for `inputs`, after `first` and the passes that
/// differentiate and fold.
Computed compute(MLIRContext &context, const std::string &text,
                 const std::string &first, SmallVector<Tensor> inputs) {
  OwningOpRef<ModuleOp> module = parse(context, text);
  if (!module ||
      failed(runPipeline(*module,
                         first + "tmc-autodiff{optimizer=sgd keep-gradients},"
                                 "canonicalize,cse,tmc-fold-into-kernels")))
    llvm::report_fatal_error("the test's program fails");
  FunctionOpInterface function = functionOf(*module);
  Random random(1);
  SmallVector<Tensor> more = randomInputs(function, random);
  for (size_t i = inputs.size(); i < more.size(); ++i)
    inputs.push_back(more[i]);
  auto results = reference::interpret(function, inputs);
  if (failed(results))
    llvm::report_fatal_error("the test's program can't be interpreted");
  Computed computed;
  for (unsigned i = 0; i < function.getNumResults(); ++i)
    computed.results[train::resultName(function, i).str()] = (*results)[i];
  module->walk([&](Operation *op) {
    computed.rotations += isa<nn::RotaryEmbeddingOp>(op);
    computed.products += isa<nn::MatmulOp>(op);
    computed.concats += isa<nn::ConcatOp>(op);
    computed.packed += isa<nn::PackedAttentionGradOp>(op);
  });
  return computed;
}

} // namespace

TEST(JoinProducts, RotatedHeadsComputeAlike) {
  std::unique_ptr<MLIRContext> context = makeContext();
  for (const Form &form : kForms) {
    SCOPED_TRACE(form.name);
    std::string text = forwardText(form);
    OwningOpRef<ModuleOp> module = parse(*context, text);
    ASSERT_TRUE(module);
    Random random(7);
    SmallVector<Tensor> own = randomInputs(functionOf(*module), random);
    ArrayRef<Tensor> all(own); // x, 3 weights, 3 biases, cos, sin, c
    SmallVector<Tensor> fewer = {all[0],
                                 joined(all.slice(1, 3)),
                                 joined(all.slice(4, 3)),
                                 all[7],
                                 all[8],
                                 all[9]};
    Computed apart = compute(*context, text, "", own);
    Computed whole =
        compute(*context, text, "tmc-join-products{optimizer=sgd},", fewer);
    for (const char *kind : {"w", "b"}) {
      SmallVector<Tensor> parts;
      for (const char *part : {"q.", "k.", "v."})
        parts.push_back(
            apart.results[(llvm::Twine(part) + kind + ".grad").str()]);
      EXPECT_EQ(
          compare(
              {joined(parts)},
              {whole.results[(llvm::Twine("{q,k,v}.") + kind + ".grad").str()]},
              1e-12),
          "");
    }
    for (const char *name : {"loss", "x.grad", "cos.grad", "sin.grad"})
      EXPECT_EQ(compare({apart.results[name]}, {whole.results[name]}, 1e-12),
                "")
          << name;
    // Forward, by x and by the weights; the gradient of sin turns once more.
    EXPECT_EQ(apart.products, 9);
    EXPECT_EQ(whole.products, 3);
    EXPECT_EQ(apart.rotations, 6);
    EXPECT_EQ(whole.rotations, 3);
    EXPECT_EQ(whole.packed, 1);
    EXPECT_EQ(whole.concats, 0);
  }
}
