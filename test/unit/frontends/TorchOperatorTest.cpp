// TorchOperatorTest.cpp - what ATen's operators give, and their gradients,
// beside PyTorch.
//
// A family is test/unit/frontends/programs/NAME.pt2, a program with an output
// for each of its operators, and NAME.json, the numbers that PyTorch gives in
// double (make.py). The program is interpreted in double.

#include "test/unit/frontends/Operators.h"

#include "dialects/train/Train.h"
#include "frontends/torch/Import.h"

#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"

#include <gtest/gtest.h>

using namespace mlir;
using namespace tmc;
using namespace tmc::test;
using reference::Tensor;

static constexpr StringRef kDirectory =
    TMC_SOURCE_DIR "/test/unit/frontends/programs";

static std::string pathOf(StringRef name, StringRef ending) {
  return (kDirectory + "/" + name + ending).str();
}

static std::optional<ImportedModel> import(const std::string &name,
                                           MLIRContext &context) {
  ImportOptions options;
  options.loss = "loss";
  auto imported = importTorch(pathOf(name, ".pt2"), options, context);
  if (imported)
    return std::move(*imported);
  std::string why = imported.failure().message;
  for (const std::string &note : imported.failure().notes)
    why += "\n  " + note;
  ADD_FAILURE() << why;
  return std::nullopt;
}

/// The stored values of the arguments that have some.
static SmallVector<Tensor> inputsOf(FunctionOpInterface function,
                                    ImportedModel &model) {
  Random random(1);
  SmallVector<Tensor> inputs = randomInputs(function, random);
  for (unsigned i = 0; i < function.getNumArguments(); ++i) {
    std::optional<train::Role> role = train::roleOf(function, i);
    if (role != train::Role::Param && role != train::Role::State)
      continue;
    std::string name = train::argName(function, i).str();
    auto bytes = model.weights->read(name);
    if (!bytes) {
      ADD_FAILURE() << "no value of " << name;
      continue;
    }
    auto type = cast<RankedTensorType>(function.getArgumentTypes()[i]);
    inputs[i] = Tensor::fromBytes(reference::elementOf(type.getElementType()),
                                  type.getShape(), bytes->data());
  }
  return inputs;
}

/// Constants of the program are rounded to f32, those of make.py aren't.
static constexpr double kRounding = 1e-6;

static void compare(const std::string &name, const Tensor &got,
                    const llvm::json::Array &wanted) {
  ASSERT_EQ(got.size(), static_cast<int64_t>(wanted.size())) << name;
  for (int64_t k = 0; k < got.size(); ++k) {
    auto number = wanted[k].getAsNumber();
    ASSERT_TRUE(number) << name;
    EXPECT_TRUE(agree(got.number(k), *number, kRounding))
        << name << "[" << k << "] is " << got.number(k) << " instead of "
        << *number;
  }
}

class TorchOperators : public testing::TestWithParam<std::string> {};

TEST_P(TorchOperators, GiveTheNumbersAndTheirGradients) {
  std::unique_ptr<MLIRContext> context = makeContext();
  auto model = import(GetParam(), *context);
  ASSERT_TRUE(model);
  auto file = llvm::MemoryBuffer::getFile(pathOf(GetParam(), ".json"));
  ASSERT_TRUE(bool(file));
  auto wanted = llvm::json::parse((*file)->getBuffer());
  ASSERT_TRUE(bool(wanted));
  const llvm::json::Object &outputs =
      *wanted->getAsObject()->getObject("outputs");
  const llvm::json::Object &gradients =
      *wanted->getAsObject()->getObject("gradients");

  FunctionOpInterface function = functionOf(*model->module);
  auto results = inDouble(function, inputsOf(function, *model));
  ASSERT_TRUE(succeeded(results));
  unsigned compared = 0;
  for (unsigned i = 0; i < function.getNumResults(); ++i)
    if (const llvm::json::Array *numbers =
            outputs.getArray(train::resultName(function, i))) {
      compare(train::resultName(function, i).str(), (*results)[i], *numbers);
      ++compared;
    }
  EXPECT_EQ(compared, outputs.size());

  ASSERT_TRUE(succeeded(runPipeline(
      *model->module, "tmc-autodiff{keep-gradients optimizer=sgd}")));
  FunctionOpInterface step = functionOf(*model->module);
  auto stepped = inDouble(step, inputsOf(step, *model));
  ASSERT_TRUE(succeeded(stepped));
  compared = 0;
  for (unsigned i = 0; i < step.getNumResults(); ++i) {
    StringRef name = train::resultName(step, i);
    if (!name.consume_back(".grad") || !name.consume_front("of."))
      continue;
    const llvm::json::Array *numbers = gradients.getArray(name);
    ASSERT_TRUE(numbers) << name.str();
    compare(("the gradient of " + name).str(), (*stepped)[i], *numbers);
    ++compared;
  }
  EXPECT_EQ(compared, gradients.size());
}

// Each op rounds to f32, as kernels do: no part of a formula may overflow, or
// be 0 times infinity, where the whole is a number.
TEST_P(TorchOperators, AreNumbersInFloatsToo) {
  std::unique_ptr<MLIRContext> context = makeContext();
  auto model = import(GetParam(), *context);
  ASSERT_TRUE(model);
  ASSERT_TRUE(succeeded(runPipeline(
      *model->module, "tmc-autodiff{keep-gradients optimizer=sgd}")));
  FunctionOpInterface step = functionOf(*model->module);
  SmallVector<Tensor> inputs = inputsOf(step, *model);
  auto wide = inDouble(step, inputs);
  auto floats = reference::interpret(step, std::move(inputs),
                                     {reference::Rounding::ToType, nullptr});
  ASSERT_TRUE(succeeded(wide) && succeeded(floats));
  for (unsigned i = 0; i < step.getNumResults(); ++i)
    expectNumbers(train::resultName(step, i), (*wide)[i], (*floats)[i]);
}

static std::vector<std::string> families() {
  return stemsIn(kDirectory.str(), ".pt2");
}

INSTANTIATE_TEST_SUITE_P(Families, TorchOperators,
                         testing::ValuesIn(families()), testName);

// A directory that has gone would leave nothing to fail.
TEST(TorchOperatorFamilies, AreThere) { EXPECT_GE(families().size(), 6u); }
