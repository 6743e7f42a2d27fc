// GradientTest.cpp - derivatives against finite differences.
//
// For each case, the loss is the sum of its results' elements with random
// weights. `buildVjp` writes the gradient of that loss as IR, the interpreter
// evaluates it in double, and a five-point difference of the interpreted case
// says what it should be:
//
//   f'(x) = (8 (f(x+h) - f(x-h)) - (f(x+2h) - f(x-2h))) / 12h + O(h^4)
//
// With h = 2^-10 its error is about 1e-12 from the formula and 1e-12 from
// rounding, for values near 1; a gradient agrees if it is within 1e-6 of the
// difference (relative), or within 1e-9 of the largest.

#include "test/unit/dialects/Cases.h"

#include "dialects/interfaces/Interfaces.h"
#include "dialects/nn/NN.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Verifier.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

using namespace mlir;
using namespace tmc;
using namespace tmc::test;
using reference::Tensor;

constexpr double kStep = 0x1p-10;
constexpr double kRelativeTolerance = 1e-6;
constexpr double kFloor = 1e-9; ///< relative to the largest of a tensor

static bool isFloatTensor(Type type) {
  return isa<FloatType>(cast<ShapedType>(type).getElementType());
}

/// True if a gradient leads to argument `i`.
static bool isVariable(func::FuncOp function, unsigned i) {
  return isFloatTensor(function.getArgumentTypes()[i]) &&
         !function.getArgAttr(i, "test.constant");
}

/// True if a gradient comes from result `i`.
static bool hasGradient(func::FuncOp function, unsigned i) {
  return isFloatTensor(function.getResultTypes()[i]) &&
         !function.getResultAttr(i, "test.constant");
}

namespace {
/// What is asked of `buildVjp`: the results whose gradients are given, and the
/// arguments whose gradients are wanted.
struct Question {
  SmallVector<unsigned> given, wanted;
};
} // namespace

/// A function from the case's arguments, followed by the gradients of the given
/// results, to the gradients of the wanted arguments. Null if there is none.
static OwningOpRef<func::FuncOp> buildGradient(func::FuncOp function,
                                               const Question &question) {
  OwningOpRef<func::FuncOp> gradient = function.clone();
  Block &block = gradient->getBody().front();
  Operation *terminator = block.getTerminator();
  SmallVector<Value> results(terminator->getOperands());
  OpBuilder builder(terminator);

  DenseMap<Value, Value> gradOf;
  for (unsigned i : question.given)
    gradOf[results[i]] =
        block.addArgument(results[i].getType(), function.getLoc());
  // Cases are one op deep; what feeds it is an argument or a constant.
  auto op = dyn_cast<DifferentiableOpInterface>(terminator->getPrevNode());
  if (!op)
    return {};
  SmallVector<Value> resultGrads;
  for (Value result : op->getResults())
    resultGrads.push_back(gradOf.lookup(result));
  SmallVector<bool> wanted;
  for (Value operand : op->getOperands()) {
    auto argument = dyn_cast<BlockArgument>(operand);
    wanted.push_back(argument && llvm::is_contained(question.wanted,
                                                    argument.getArgNumber()));
  }
  SmallVector<Value> grads = op.buildVjp(builder, resultGrads, wanted);
  EXPECT_EQ(grads.size(), op->getNumOperands());

  // One value used twice has the sum of two gradients.
  SmallVector<Value> outputs;
  for (unsigned i : question.wanted) {
    Value argument = block.getArgument(i), sum;
    for (auto [operand, grad] : llvm::zip(op->getOperands(), grads)) {
      if (operand != argument || !grad)
        continue;
      EXPECT_EQ(grad.getType(), operand.getType())
          << "the gradient's type isn't the operand's";
      sum = sum ? Value(arith::AddFOp::create(builder, function.getLoc(), sum,
                                              grad))
                : grad;
    }
    if (!sum) // no gradient is a zero
      sum = arith::ConstantOp::create(
          builder, function.getLoc(),
          cast<TypedAttr>(builder.getZeroAttr(argument.getType())));
    outputs.push_back(sum);
  }
  terminator->setOperands(outputs);
  gradient->setFunctionType(builder.getFunctionType(
      block.getArgumentTypes(), TypeRange(ValueRange(outputs))));
  gradient->removeArgAttrsAttr();
  gradient->removeResAttrsAttr();
  EXPECT_TRUE(succeeded(verify(*gradient)));
  return gradient;
}

/// The sum of the given results' elements, weighted.
static double lossOf(func::FuncOp function, const Question &question,
                     const SmallVector<Tensor> &inputs,
                     ArrayRef<Tensor> weights) {
  FailureOr<SmallVector<Tensor>> results = reference::interpret(
      function, inputs, {reference::Rounding::None, nullptr});
  EXPECT_TRUE(succeeded(results));
  double loss = 0;
  for (auto [i, weight] : llvm::zip_equal(question.given, weights))
    for (int64_t j = 0; j < weight.size(); ++j)
      loss += weight.floats[j] * (*results)[i].floats[j];
  return loss;
}

static void checkGradient(func::FuncOp function, const Question &question,
                          Random &random) {
  SmallVector<Tensor> inputs = randomInputs(function, random);
  SmallVector<Tensor> weights;
  for (unsigned i : question.given) {
    Tensor weight(cast<ShapedType>(function.getResultTypes()[i]));
    for (double &w : weight.floats)
      w = 2 * random.unit() - 1;
    weights.push_back(std::move(weight));
  }

  OwningOpRef<func::FuncOp> gradient = buildGradient(function, question);
  ASSERT_TRUE(gradient);
  SmallVector<Tensor> both = inputs;
  llvm::append_range(both, weights);
  FailureOr<SmallVector<Tensor>> actual = reference::interpret(
      gradient->getOperation(), both, {reference::Rounding::None, nullptr});
  ASSERT_TRUE(succeeded(actual));

  for (auto [k, i] : llvm::enumerate(question.wanted)) {
    Tensor expected(inputs[i].element, inputs[i].shape);
    double largest = 1;
    for (int64_t j = 0; j < expected.size(); ++j) {
      auto at = [&](double offset) {
        SmallVector<Tensor> moved = inputs;
        moved[i].floats[j] += offset;
        return lossOf(function, question, moved, weights);
      };
      expected.floats[j] =
          (8 * (at(kStep) - at(-kStep)) - (at(2 * kStep) - at(-2 * kStep))) /
          (12 * kStep);
      largest = std::max(largest, std::fabs(expected.floats[j]));
    }
    for (int64_t j = 0; j < expected.size(); ++j) {
      double want = expected.floats[j], got = (*actual)[k].floats[j];
      ASSERT_NEAR(got, want,
                  kRelativeTolerance * std::fabs(want) + kFloor * largest)
          << "argument " << i << ", element " << j;
    }
  }
}

/// Arguments that take a gradient, and results that give one.
static Question wholeQuestion(func::FuncOp function) {
  Question question;
  for (unsigned i = 0; i < function.getNumArguments(); ++i)
    if (isVariable(function, i))
      question.wanted.push_back(i);
  for (unsigned i = 0; i < function.getNumResults(); ++i)
    if (hasGradient(function, i))
      question.given.push_back(i);
  return question;
}

static bool isDifferentiable(func::FuncOp function) {
  return isa<DifferentiableOpInterface>(Cases::getOp(function));
}

TEST(Gradient, AgreesWithFiniteDifferences) {
  Random random(1);
  int64_t checked = 0;
  for (func::FuncOp function : Cases::get().getFunctions()) {
    Question question = wholeQuestion(function);
    if (!isDifferentiable(function) || question.given.empty() ||
        question.wanted.empty())
      continue;
    SCOPED_TRACE(function.getName().str());
    checkGradient(function, question, random);
    ++checked;
  }
  EXPECT_GT(checked, 80);
}

/// `function` with elements of `type` for those of f64; null where it then
/// isn't valid.
static OwningOpRef<ModuleOp> inType(func::FuncOp function, StringRef type) {
  std::string text;
  llvm::raw_string_ostream(text) << function;
  for (StringRef ending : {"xf64>", "<f64>"})
    for (size_t at = 0; (at = text.find(ending, at)) != std::string::npos;)
      text.replace(at + 1, 3, type);
  ScopedDiagnosticHandler quiet(function.getContext(),
                                [](Diagnostic &) { return success(); });
  return parse(*function.getContext(), text);
}

/// Where the ops of `function` in double give numbers that `type` has, those of
/// `typed` give numbers.
static void checkNumbers(Operation *function, Operation *typed,
                         const SmallVector<Tensor> &inputs, double largest) {
  auto want = reference::interpret(function, inputs,
                                   {reference::Rounding::None, nullptr});
  SmallVector<Tensor> narrow;
  Block &block = typed->getRegion(0).front();
  for (auto [input, argument] : llvm::zip_equal(inputs, block.getArguments())) {
    Tensor tensor(cast<ShapedType>(argument.getType()));
    tensor.floats = input.floats;
    tensor.ints = input.ints;
    narrow.push_back(std::move(tensor));
  }
  auto got = reference::interpret(typed, narrow,
                                  {reference::Rounding::ToType, nullptr});
  ASSERT_TRUE(succeeded(want) && succeeded(got));
  for (auto [i, w, g] : llvm::enumerate(*want, *got))
    for (int64_t j = 0; j < w.size(); ++j)
      if (std::fabs(w.number(j)) <= largest) {
        EXPECT_TRUE(std::isfinite(g.number(j)))
            << "result " << i << ", element " << j << " is " << g.number(j)
            << " instead of " << w.number(j);
      }
}

/// Numbers where functions saturate, that all types have; sometimes equal ones.
static void drawEdges(SmallVector<Tensor> &inputs, Random &random) {
  constexpr double kEdges[] = {0, 1, -1, 0.5, 89, -89, 100, -100, 9984, -9984};
  for (Tensor &input : inputs) {
    for (double &value : input.floats)
      value = kEdges[random.below(std::size(kEdges))];
    if (random.coin())
      for (double &value : input.floats)
        value = input.floats[0];
  }
}

// Of ops that are whole in kernels, or pointwise. What is taken apart computes
// in f32 in any case (WidenComposites.cpp).
TEST(Gradient, IsANumberAtTheEdges) {
  struct Type {
    StringRef name;
    double largest; // Products of a few rounded numbers stay below the type's.
  };
  constexpr int kDraws = 24;
  Random random(3);
  std::map<std::string, int64_t> checked;
  for (func::FuncOp function : Cases::get().getFunctions()) {
    Question question = wholeQuestion(function);
    if (!isDifferentiable(function) || question.given.empty() ||
        question.wanted.empty())
      continue;
    SCOPED_TRACE(function.getName().str());
    OwningOpRef<func::FuncOp> gradient = buildGradient(function, question);
    for (Type type :
         {Type{"f32", 1e30}, Type{"bf16", 1e30}, Type{"f16", 1e3}}) {
      SCOPED_TRACE(type.name.str());
      Operation *op = Cases::getOp(function);
      if (type.name != "f32" && isa<nn::NNDialect>(op->getDialect()) &&
          !isa<PointwiseOpInterface, KernelOpInterface>(op))
        continue;
      OwningOpRef<ModuleOp> module = inType(function, type.name);
      if (!module)
        continue; // An op that keeps sums in f32.
      auto typed = *module->getOps<func::FuncOp>().begin();
      OwningOpRef<func::FuncOp> typedGradient = buildGradient(typed, question);
      ASSERT_TRUE(typedGradient);
      for (int draw = 0; draw < kDraws; ++draw) {
        SmallVector<Tensor> inputs = randomInputs(function, random);
        drawEdges(inputs, random);
        checkNumbers(function, typed, inputs, type.largest);
        for (unsigned i : question.given) {
          Tensor weight(cast<ShapedType>(function.getResultTypes()[i]));
          for (double &w : weight.floats)
            w = random.coin() ? 1 : -0.5;
          inputs.push_back(std::move(weight));
        }
        checkNumbers(*gradient, *typedGradient, inputs, type.largest);
        if (HasFailure())
          return;
      }
      ++checked[type.name.str()];
    }
  }
  EXPECT_GT(checked["f32"], 80);
  EXPECT_GT(checked["bf16"], 40);
  EXPECT_GT(checked["f16"], 40);
}

// A rule may leave out what nobody wants, and must take a missing gradient for
// a zero; neither may change the rest.
TEST(Gradient, OneArgumentAndOneResultAtATime) {
  Random random(2);
  for (func::FuncOp function : Cases::get().getFunctions()) {
    Question whole = wholeQuestion(function);
    if (!isDifferentiable(function) || whole.given.empty())
      continue;
    SCOPED_TRACE(function.getName().str());
    if (whole.wanted.size() > 1)
      for (unsigned wanted : whole.wanted)
        checkGradient(function, {whole.given, {wanted}}, random);
    if (whole.given.size() > 1 && !whole.wanted.empty())
      for (unsigned given : whole.given)
        checkGradient(function, {{given}, whole.wanted}, random);
  }
}

// Every op that says it has a derivative is in some case above.
TEST(Gradient, CoversEveryDifferentiableOp) {
  std::set<std::string> covered;
  for (func::FuncOp function : Cases::get().getFunctions()) {
    Question question = wholeQuestion(function);
    if (!question.given.empty() && !question.wanted.empty())
      covered.insert(Cases::getOp(function)->getName().getStringRef().str());
  }
  for (RegisteredOperationName op :
       Cases::get().getContext().getRegisteredOperations()) {
    if (!op.hasInterface<DifferentiableOpInterface>())
      continue;
    EXPECT_TRUE(covered.count(op.getStringRef().str()))
        << op.getStringRef().str()
        << " is differentiable, and no case of test/unit/dialects/cases "
           "differentiates it";
  }
}
