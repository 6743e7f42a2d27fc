// OnnxOperatorTest.cpp - what operators give, and that their gradients are
// those of what they give.
//
// A case is a file of test/unit/frontends/operators: a model in protobuf's text
// format, whose metadata hold the numbers of its inputs and of its outputs, as
// another implementation computes them (make.py).
//
// For gradients, the inputs that the metadata's `gradient` names become
// parameters and the loss is the sum of all outputs' squares. The step's
// gradient along a random direction is compared with the five-point difference
// of the loss, both in double.

#include "test/unit/frontends/Operators.h"

#include "dialects/train/Train.h"
#include "frontends/onnx/Import.h"
#include "frontends/onnx/Model.h"

#include "google/protobuf/text_format.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MemoryBuffer.h"

#include <gtest/gtest.h>

using namespace mlir;
using namespace tmc;
using namespace tmc::test;
using reference::Tensor;

namespace {
struct Case {
  onnx::ModelProto model;
  std::map<std::string, std::vector<double>> numbers;
  SmallVector<std::string> gradient;
};
} // namespace

static std::string directory() {
  return TMC_SOURCE_DIR "/test/unit/frontends/operators";
}

/// All numbers of a line; "inf" and "nan" are among them.
static std::vector<double> numbersOf(StringRef text) {
  std::vector<double> list;
  SmallVector<StringRef> words;
  llvm::SplitString(text, words);
  for (StringRef word : words)
    list.push_back(std::strtod(word.str().c_str(), nullptr));
  return list;
}

static Case readCase(const std::string &name) {
  Case c;
  auto file = llvm::MemoryBuffer::getFile(directory() + "/" + name + ".txt");
  EXPECT_TRUE(bool(file));
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
      (*file)->getBuffer().str(), &c.model));
  for (const auto &entry : c.model.metadata_props()) {
    if (entry.key() != "gradient") {
      c.numbers[entry.key()] = numbersOf(entry.value());
      continue;
    }
    SmallVector<StringRef> words;
    llvm::SplitString(entry.value(), words);
    for (StringRef word : words)
      c.gradient.push_back(word.str());
  }
  return c;
}

static Tensor tensorOf(const std::vector<double> &numbers, Type type) {
  Tensor tensor(cast<ShapedType>(type));
  EXPECT_EQ(tensor.size(), static_cast<int64_t>(numbers.size()));
  if (tensor.size() != static_cast<int64_t>(numbers.size()))
    return tensor;
  for (size_t i = 0; i < numbers.size(); ++i)
    if (tensor.isFloat())
      tensor.floats[i] = numbers[i];
    else
      tensor.ints[i] = static_cast<int64_t>(numbers[i]);
  return tensor;
}

static OwningOpRef<ModuleOp> import(const onnx::ModelProto &model,
                                    bool needLoss, MLIRContext &context) {
  ImportOptions options;
  options.needLoss = needLoss;
  auto imported =
      importOnnxBytes(model.SerializeAsString(), ".", options, context);
  if (!imported) {
    std::string why = imported.failure().message;
    for (const std::string &note : imported.failure().notes)
      why += "\n  " + note;
    ADD_FAILURE() << why;
    return {};
  }
  return std::move(imported->module);
}

/// Values for the arguments: the case's, and whatever else a step has.
static SmallVector<Tensor> inputsOf(FunctionOpInterface function,
                                    const Case &c) {
  Random random(1);
  SmallVector<Tensor> inputs = randomInputs(function, random);
  for (unsigned i = 0; i < function.getNumArguments(); ++i) {
    auto found = c.numbers.find(train::argName(function, i).str());
    if (found != c.numbers.end())
      inputs[i] = tensorOf(found->second, function.getArgumentTypes()[i]);
  }
  return inputs;
}

class OnnxOperator : public testing::TestWithParam<std::string> {};

TEST_P(OnnxOperator, GivesTheNumbers) {
  std::unique_ptr<MLIRContext> context = makeContext();
  Case c = readCase(GetParam());
  OwningOpRef<ModuleOp> module = import(c.model, /*needLoss=*/false, *context);
  ASSERT_TRUE(module);
  FunctionOpInterface function = functionOf(*module);
  auto results = inDouble(function, inputsOf(function, c));
  ASSERT_TRUE(succeeded(results));
  unsigned compared = 0;
  for (unsigned i = 0; i < function.getNumResults(); ++i) {
    std::string name = train::resultName(function, i).str();
    ASSERT_TRUE(c.numbers.count(name)) << name;
    Tensor expected = tensorOf(c.numbers[name], function.getResultTypes()[i]);
    const Tensor &got = (*results)[i];
    for (int64_t k = 0; k < got.size(); ++k)
      EXPECT_TRUE(agree(got.number(k), expected.number(k), 2e-6))
          << name << "[" << k << "] is " << got.number(k) << " instead of "
          << expected.number(k);
    ++compared;
  }
  EXPECT_EQ(compared, static_cast<unsigned>(c.model.graph().output_size()));
}

/// The case's model, to be trained: the sum of its float outputs' squares.
static onnx::ModelProto trained(const Case &c) {
  onnx::ModelProto model = c.model;
  auto &graph = *model.mutable_graph();
  for (const std::string &name : c.gradient)
    for (int i = 0; i < graph.input_size(); ++i) {
      if (graph.input(i).name() != name)
        continue;
      auto &stored = *graph.add_initializer();
      const auto &type = graph.input(i).type().tensor_type();
      stored.set_name(name);
      stored.set_data_type(type.elem_type());
      for (const auto &dim : type.shape().dim())
        stored.add_dims(dim.dim_value());
      stored.set_data_location(onnx::TensorProto::EXTERNAL);
      auto &where = *stored.add_external_data();
      where.set_key("location");
      where.set_value("absent.data");
      graph.mutable_input()->DeleteSubrange(i, 1);
      break;
    }
  auto add = [&](const char *op, const std::string &a, const std::string &b,
                 const std::string &result) {
    auto &node = *graph.add_node();
    node.set_op_type(op);
    node.add_input(a);
    if (!b.empty())
      node.add_input(b);
    node.add_output(result);
    return &node;
  };
  std::string total;
  for (const auto &output : c.model.graph().output()) {
    const std::string &y = output.name();
    if (output.type().tensor_type().elem_type() != onnx::TensorProto::FLOAT)
      continue;
    add("Mul", y, y, y + ".squares");
    auto &keep =
        *add("ReduceSum", y + ".squares", "", y + ".sum")->add_attribute();
    keep.set_name("keepdims");
    keep.set_type(onnx::AttributeProto::INT);
    keep.set_i(0);
    if (!total.empty())
      add("Add", total, y + ".sum", y + ".total");
    total = total.empty() ? y + ".sum" : y + ".total";
  }
  add("Identity", total, "", "loss");
  graph.clear_output();
  auto &output = *graph.add_output();
  output.set_name("loss");
  output.mutable_type()->mutable_tensor_type()->set_elem_type(1);
  output.mutable_type()->mutable_tensor_type()->mutable_shape();
  return model;
}

TEST_P(OnnxOperator, HasTheGradient) {
  std::unique_ptr<MLIRContext> context = makeContext();
  Case c = readCase(GetParam());
  if (c.gradient.empty())
    return;
  OwningOpRef<ModuleOp> forward = import(trained(c), true, *context);
  ASSERT_TRUE(forward);
  OwningOpRef<ModuleOp> step = forward->clone();
  ASSERT_TRUE(succeeded(
      runPipeline(*step, "tmc-autodiff{keep-gradients optimizer=sgd}")));
  FunctionOpInterface function = functionOf(*forward),
                      stepFunction = functionOf(*step);
  auto grads = inDouble(stepFunction, inputsOf(stepFunction, c));
  ASSERT_TRUE(succeeded(grads));

  // One parameter at a time, each in a direction of its own.
  Random random(7);
  SmallVector<Tensor> inputs = inputsOf(function, c);
  unsigned checked = 0;
  for (unsigned i = 0; i < function.getNumArguments(); ++i) {
    if (train::roleOf(function, i) != train::Role::Param)
      continue;
    std::string name = train::argName(function, i).str();
    const Tensor *grad = nullptr;
    for (unsigned k = 0; k < stepFunction.getNumResults(); ++k)
      if (train::resultName(stepFunction, k) == name + ".grad")
        grad = &(*grads)[k];
    ASSERT_TRUE(grad) << name;
    std::vector<double> direction;
    double slope = 0, size = 0;
    for (int64_t k = 0; k < grad->size(); ++k) {
      direction.push_back(2 * random.unit() - 1);
      slope += direction[k] * grad->floats[k];
      size += std::fabs(direction[k] * grad->floats[k]);
    }
    EXPECT_GT(size, 0) << name << " has no gradient";
    auto at = [&](double distance) {
      SmallVector<Tensor> moved = inputs;
      for (size_t k = 0; k < direction.size(); ++k)
        moved[i].floats[k] += distance * direction[k];
      return (*inDouble(function, moved))[*train::lossResult(function)]
          .floats[0];
    };
    double h = 0x1p-13;
    double fine = (8 * (at(h) - at(-h)) - (at(2 * h) - at(-2 * h))) / (12 * h);
    EXPECT_NEAR(slope, fine, 1e-6 * std::max(size, 1e-3)) << name;
    ++checked;
  }
  EXPECT_EQ(checked, c.gradient.size());
}

// Each op rounds to f32, as kernels do: no part of a formula may overflow, or
// be 0 times infinity, where the whole is a number.
TEST_P(OnnxOperator, IsANumberInFloatsToo) {
  std::unique_ptr<MLIRContext> context = makeContext();
  Case c = readCase(GetParam());
  if (c.gradient.empty())
    return;
  OwningOpRef<ModuleOp> module = import(trained(c), true, *context);
  ASSERT_TRUE(module);
  ASSERT_TRUE(succeeded(
      runPipeline(*module, "tmc-autodiff{keep-gradients optimizer=sgd}")));
  FunctionOpInterface step = functionOf(*module);
  SmallVector<Tensor> inputs = inputsOf(step, c);
  auto wide = inDouble(step, inputs);
  auto floats = reference::interpret(step, std::move(inputs),
                                     {reference::Rounding::ToType, nullptr});
  ASSERT_TRUE(succeeded(wide) && succeeded(floats));
  for (unsigned i = 0; i < step.getNumResults(); ++i)
    expectNumbers(train::resultName(step, i), (*wide)[i], (*floats)[i]);
}

static std::vector<std::string> caseNames() {
  return stemsIn(directory(), ".txt");
}

INSTANTIATE_TEST_SUITE_P(Cases, OnnxOperator, testing::ValuesIn(caseNames()),
                         testName);

// A directory that has gone would leave nothing to fail.
TEST(OnnxOperators, AreThere) { EXPECT_GE(caseNames().size(), 20u); }
