// WidenTest.cpp - norms, softmax and GELU of narrow tensors round once, at the
// end, and so do their gradients.
//
// The interpreter computes an op in doubles and rounds its result to its type:
// what a composite of narrow tensors should give. Taken apart without being
// widened it rounds at every step, which the same comparison has to find.

#include "test/unit/passes/Validation.h"

#include "dialects/train/Train.h"
#include "test/unit/reference/Harness.h"

#include "llvm/Support/FormatVariadic.h"

#include <gtest/gtest.h>

using namespace mlir;
using namespace tmc;
using namespace tmc::test;
using reference::Tensor;

namespace {

/// An op that maps %a to %y, both of the type that replaces {0}.
struct Composite {
  const char *name, *text;
};
const Composite kComposites[] = {
    {"layer_norm", "%y = nn.layer_norm %a {{epsilon = 1.0e-5 : f64} : "
                   "(tensor<6x40x{0}>) -> tensor<6x40x{0}>"},
    {"rms_norm", "%y = nn.rms_norm %a {{epsilon = 1.0e-6 : f64} : "
                 "(tensor<6x40x{0}>) -> tensor<6x40x{0}>"},
    {"softmax", "%y = nn.softmax %a : (tensor<6x40x{0}>) -> tensor<6x40x{0}>"},
    {"log_softmax",
     "%y = nn.softmax %a {{log} : (tensor<6x40x{0}>) -> tensor<6x40x{0}>"},
    {"gelu", "%y = nn.gelu %a : (tensor<6x40x{0}>) -> tensor<6x40x{0}>"},
    {"gelu_tanh",
     "%y = nn.gelu %a {{tanh} : (tensor<6x40x{0}>) -> tensor<6x40x{0}>"},
};
const char *const kTypes[] = {"bf16", "f16"};

/// loss = sum(composite(x) c) for parameter x and input c, f32 both, whose
/// values a narrow type has.
std::string forwardText(const Composite &composite, StringRef type) {
  bool narrow = type != "f32";
  std::string text = R"(func.func @forward(
    %x: tensor<6x40xf32> {train.role = #train.role<param>, train.name = "x"},
    %c: tensor<6x40xf32> {train.role = #train.role<batch>, train.name = "c"})
    -> (tensor<f32> {train.name = "loss", train.loss}, tensor<6x40xf32> {train.name = "y"}) {
)";
  std::string inner = llvm::formatv(composite.text, type).str();
  if (!narrow) {
    inner.replace(inner.find("%a"), 2, "%x");
  } else {
    text += llvm::formatv(
        "%a = arith.truncf %x : tensor<6x40xf32> to tensor<6x40x{0}>\n", type);
    inner.replace(inner.find("%y"), 2, "%n");
    inner += llvm::formatv(
        "\n%y = arith.extf %n : tensor<6x40x{0}> to tensor<6x40xf32>", type);
  }
  return text + inner + R"(
  %p = arith.mulf %y, %c : tensor<6x40xf32>
  %l = nn.reduce sum %p over [0, 1] : (tensor<6x40xf32>) -> tensor<f32>
  return %l, %y : tensor<f32>, tensor<6x40xf32>
})";
}

/// The result of that name after `pipeline`.
Tensor resultAfter(MLIRContext &context, const std::string &text,
                   StringRef pipeline, StringRef name,
                   ArrayRef<Tensor> inputs) {
  OwningOpRef<ModuleOp> module = parse(context, text);
  if (!module || failed(runPipeline(*module, pipeline)))
    llvm::report_fatal_error("the test's program fails");
  FunctionOpInterface function = functionOf(*module);
  SmallVector<Tensor> all(inputs);
  Random random(1);
  SmallVector<Tensor> more = randomInputs(function, random);
  for (size_t i = all.size(); i < more.size(); ++i)
    all.push_back(more[i]);
  auto results = reference::interpret(function, all);
  if (failed(results))
    llvm::report_fatal_error("the test's program can't be interpreted");
  for (unsigned i = 0; i < function.getNumResults(); ++i)
    if (train::resultName(function, i) == name)
      return (*results)[i];
  llvm::report_fatal_error("there is no result of that name");
}

/// x and c of that type's values.
SmallVector<Tensor> valuesFor(MLIRContext &context, const Composite &composite,
                              StringRef type, uint64_t seed) {
  OwningOpRef<ModuleOp> module = parse(context, forwardText(composite, type));
  Random random(seed);
  SmallVector<Tensor> inputs = randomInputs(functionOf(*module), random);
  auto element =
      type == "bf16" ? reference::Element::BF16 : reference::Element::F16;
  for (Tensor &input : inputs)
    for (double &value : input.floats)
      value = reference::roundTo(element, 3 * value);
  return inputs;
}

int64_t differing(const Tensor &a, const Tensor &b) {
  int64_t count = 0;
  for (int64_t i = 0; i < a.size(); ++i)
    count += a.floats[i] != b.floats[i];
  return count;
}

constexpr const char *kWiden = "func.func(tmc-widen-composites),";
constexpr const char *kExpand = "tmc-expand-composites,canonicalize,cse";

} // namespace

TEST(WidenComposites, RoundsOnceAtTheEnd) {
  std::unique_ptr<MLIRContext> context = makeContext();
  for (const Composite &composite : kComposites)
    for (const char *type : kTypes) {
      SCOPED_TRACE((llvm::Twine(composite.name) + " in " + type).str());
      int64_t apart = 0;
      for (uint64_t seed = 0; seed < 8; ++seed) {
        SmallVector<Tensor> inputs = valuesFor(*context, composite, type, seed);
        std::string text = forwardText(composite, type);
        Tensor once = resultAfter(*context, text, "", "y", inputs);
        Tensor widened = resultAfter(
            *context, text, (llvm::Twine(kWiden) + kExpand).str(), "y", inputs);
        EXPECT_EQ(differing(once, widened), 0);
        apart +=
            differing(once, resultAfter(*context, text, kExpand, "y", inputs));
      }
      // The planted fault: rounding at every step.
      EXPECT_GT(apart, 8 * 240 / 20);
    }
}

TEST(WidenComposites, GradientsRoundOnceAtTheEnd) {
  std::unique_ptr<MLIRContext> context = makeContext();
  const char *const grad = "tmc-autodiff{optimizer=sgd keep-gradients},";
  for (const Composite &composite : kComposites)
    for (const char *type : kTypes) {
      SCOPED_TRACE((llvm::Twine(composite.name) + " in " + type).str());
      auto element = StringRef(type) == "bf16" ? reference::Element::BF16
                                               : reference::Element::F16;
      int64_t apart = 0;
      for (uint64_t seed = 0; seed < 8; ++seed) {
        SmallVector<Tensor> inputs = valuesFor(*context, composite, type, seed);
        Tensor exact =
            resultAfter(*context, forwardText(composite, "f32"),
                        (llvm::Twine(grad) + kExpand).str(), "x.grad", inputs);
        for (double &value : exact.floats)
          value = reference::roundTo(element, value);
        std::string text = forwardText(composite, type);
        EXPECT_EQ(
            differing(exact,
                      resultAfter(*context, text,
                                  (llvm::Twine(kWiden) + grad + kExpand).str(),
                                  "x.grad", inputs)),
            0);
        apart +=
            differing(exact, resultAfter(*context, text,
                                         (llvm::Twine(grad) + kExpand).str(),
                                         "x.grad", inputs));
      }
      EXPECT_GT(apart, 8 * 240 / 20);
    }
}
