// AutodiffTest.cpp - the step's gradients against differences of the loss, in
// one random direction through all parameters at once, on random graphs.
//
// The five-point difference is trusted where two step sizes agree: a graph may
// have an edge (max, select, a comparison) between the points.

#include "test/unit/passes/Validation.h"

#include "dialects/train/Train.h"

#include <gtest/gtest.h>

#include <cmath>

using namespace mlir;
using namespace tmc;
using namespace tmc::test;
using reference::Tensor;

constexpr double kTolerance = 1e-6;

namespace {
/// The forward graph and its step, with values for both.
struct Case {
  OwningOpRef<ModuleOp> forward, step;
  SmallVector<Tensor> inputs; ///< of the step; those of `forward` come first
  SmallVector<unsigned> params;

  Case(MLIRContext &context, uint64_t seed, StringRef optimizer)
      : forward(randomGraph(context, seed)), step(forward->clone()) {
    std::string options =
        ("tmc-autodiff{keep-gradients optimizer=" + optimizer + "}").str();
    if (failed(runPipeline(*step, options)))
      llvm::report_fatal_error("autodiff fails on a random graph");
    Random random(seed);
    inputs = randomInputs(functionOf(*step), random);
    FunctionOpInterface function = functionOf(*forward);
    for (unsigned i = 0; i < function.getNumArguments(); ++i)
      if (train::roleOf(function, i) == train::Role::Param)
        params.push_back(i);
  }

  double lossAt(ArrayRef<Tensor> direction, double distance) const {
    FunctionOpInterface function = functionOf(*forward);
    SmallVector<Tensor> moved(
        ArrayRef<Tensor>(inputs).take_front(function.getNumArguments()));
    for (auto [param, d] :
         llvm::zip(params, direction)) // none: the place itself
      for (int64_t i = 0; i < d.size(); ++i)
        moved[param].floats[i] += distance * d.floats[i];
    auto results = reference::interpret(function, moved);
    return (*results)[*train::lossResult(function)].floats[0];
  }

  double difference(ArrayRef<Tensor> direction, double h) const {
    auto at = [&](double distance) { return lossAt(direction, distance); };
    return (8 * (at(h) - at(-h)) - (at(2 * h) - at(-2 * h))) / (12 * h);
  }
};
} // namespace

/// The step's result of that name.
static const Tensor &resultNamed(FunctionOpInterface step,
                                 ArrayRef<Tensor> results, StringRef name) {
  for (unsigned i = 0; i < step.getNumResults(); ++i)
    if (train::resultName(step, i) == name)
      return results[i];
  llvm::report_fatal_error("the step has no result '" + name + "'");
}

TEST(Autodiff, GradientsAgreeWithDifferencesOfTheLoss) {
  std::unique_ptr<MLIRContext> context = makeContext();
  int64_t graphs = 1000, conclusive = 0;
  for (int64_t seed = 0; seed < graphs; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Case c(*context, seed, "sgd");
    FunctionOpInterface step = functionOf(*c.step);
    FunctionOpInterface forward = functionOf(*c.forward);
    auto results = reference::interpret(step, c.inputs);
    ASSERT_TRUE(succeeded(results));

    // The loss is the forward graph's.
    EXPECT_NEAR((*results)[*train::lossResult(step)].floats[0],
                c.lossAt(SmallVector<Tensor>(), 0), 1e-12);

    Random random(seed + 7);
    SmallVector<Tensor> direction;
    double slope = 0, size = 0;
    for (unsigned param : c.params) {
      std::string name = train::argName(forward, param).str() + ".grad";
      const Tensor &grad = resultNamed(step, *results, name);
      Tensor d(grad.element, grad.shape);
      for (int64_t i = 0; i < d.size(); ++i) {
        d.floats[i] = 2 * random.unit() - 1;
        slope += d.floats[i] * grad.floats[i];
        size += std::fabs(d.floats[i] * grad.floats[i]);
      }
      direction.push_back(std::move(d));
    }
    double coarse = c.difference(direction, 0x1p-12);
    double fine = c.difference(direction, 0x1p-14);
    double allowed = kTolerance * std::max({size, 1e-3, std::fabs(coarse)});
    if (!(std::fabs(coarse - fine) <= allowed))
      continue;
    ++conclusive;
    ASSERT_NEAR(slope, fine, 2 * allowed);
  }
  std::printf("  %lld of %lld graphs are smooth enough to tell\n",
              (long long)conclusive, (long long)graphs);
  EXPECT_GE(conclusive, graphs * 9 / 10);
}

// The interpreter's gradient, taken by the rule of plain SGD.
TEST(Autodiff, UpdatesFollowTheGradients) {
  std::unique_ptr<MLIRContext> context = makeContext();
  for (int64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Case c(*context, seed, "sgd");
    FunctionOpInterface step = functionOf(*c.step);
    auto results = reference::interpret(step, c.inputs);
    ASSERT_TRUE(succeeded(results));
    double lr = 0, squares = 0;
    for (unsigned i = 0; i < step.getNumArguments(); ++i)
      if (train::argName(step, i) == "lr")
        lr = c.inputs[i].floats[0];
    for (unsigned param : c.params) {
      std::string name = train::argName(step, param).str();
      const Tensor &grad = resultNamed(step, *results, name + ".grad");
      const Tensor &updated = resultNamed(step, *results, name);
      for (int64_t i = 0; i < grad.size(); ++i) {
        double scale = std::max(1.0, std::fabs(lr * grad.floats[i]));
        ASSERT_NEAR(updated.floats[i],
                    c.inputs[param].floats[i] - lr * grad.floats[i],
                    1e-12 * scale);
        squares += grad.floats[i] * grad.floats[i];
      }
    }
    double norm = resultNamed(step, *results, "grad_norm").floats[0];
    ASSERT_NEAR(norm, std::sqrt(squares), 1e-9 * std::max(1.0, norm));
  }
}
