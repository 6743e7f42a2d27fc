#include "test/unit/passes/Validation.h"

#include "dialects/train/Train.h"
#include "passes/OnTarget.h"

#include "mlir/IR/OperationSupport.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/Support/raw_ostream.h"

#include <gtest/gtest.h>

using namespace mlir;
using namespace tmc::test;
using tmc::reference::Tensor;

static void registerOnce() {
  static bool once = [] {
    tmc::registerPasses(tmc::findTarget);
    registerTransformsPasses();
    return true;
  }();
  (void)once;
}

LogicalResult tmc::test::runPipeline(ModuleOp module, StringRef pipeline) {
  registerOnce();
  if (pipeline.empty())
    return success();
  PassManager manager(module.getContext());
  if (failed(parsePassPipeline(pipeline, manager, llvm::errs())))
    return failure();
  return manager.run(module);
}

FunctionOpInterface tmc::test::functionOf(ModuleOp module) {
  auto functions = module.getOps<FunctionOpInterface>();
  if (!llvm::hasSingleElement(functions))
    llvm::report_fatal_error("a module of one function is expected");
  return *functions.begin();
}

static std::string textOf(ModuleOp module) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  module.print(stream);
  return text;
}

namespace {
/// What a pass did to one graph.
struct Outcome {
  bool changed = false;
  bool unstable = false;  ///< rounding alone decides what it computes
  std::vector<bool> made; ///< as Validation::makes
};
} // namespace

static int64_t countOps(ModuleOp module, StringRef name) {
  int64_t count = 0;
  module.walk(
      [&](Operation *op) { count += op->getName().getStringRef() == name; });
  return count;
}

/// True if changes of the inputs as small as rounding's change the results: the
/// graph compares two values that are equal but for rounding.
static bool isUnstable(FunctionOpInterface function,
                       const SmallVector<Tensor> &inputs, double tolerance) {
  auto expected = tmc::reference::interpret(function, inputs);
  Random random(0);
  for (int trial = 0; trial < 8; ++trial) {
    SmallVector<Tensor> moved = inputs;
    for (Tensor &input : moved)
      for (double &value : input.floats)
        value *= 1 + 1e-14 * (2 * random.unit() - 1);
    auto results = tmc::reference::interpret(function, moved);
    if (!compare(*expected, *results, tolerance).empty())
      return true;
  }
  return false;
}

/// `inputs`, and behind them the copies that `function` takes of some.
static SmallVector<Tensor> withCopies(FunctionOpInterface function,
                                      SmallVector<Tensor> inputs) {
  for (unsigned i = inputs.size(); i < function.getNumArguments(); ++i)
    if (auto param = tmc::train::copiedArg(function, i)) {
      inputs.emplace_back(cast<ShapedType>(function.getArgumentTypes()[i]));
      inputs.back().floats = inputs[*param].floats;
      inputs.back().roundToElement();
    }
  return inputs;
}

/// Takes the new values of copies off the end of `results`, less the first
/// `kept`; a message where one isn't the new parameter, rounded.
static std::string dropCopies(FunctionOpInterface function,
                              SmallVector<Tensor> &results, size_t kept) {
  for (unsigned i = kept; i < results.size(); ++i) {
    auto copy = tmc::train::updatedArg(function, i);
    auto param = copy ? tmc::train::copiedArg(function, *copy) : std::nullopt;
    bool isRounded = false;
    for (unsigned j = 0; param && j < kept; ++j)
      if (tmc::train::updatedArg(function, j) == param) {
        Tensor want = results[i];
        want.floats = results[j].floats;
        want.roundToElement();
        isRounded = compare({want}, {results[i]}, 0).empty();
      }
    if (!isRounded)
      return "a new result isn't a parameter's, rounded";
  }
  results.truncate(kept);
  return "";
}

/// Compares one graph before and after; nothing if something is wrong, which is
/// reported.
static std::optional<Outcome> validateOne(MLIRContext &context,
                                          const Validation &v, uint64_t seed) {
  OwningOpRef<ModuleOp> before =
      v.graph ? v.graph(context, seed) : randomGraph(context, seed, v.options);
  if (failed(runPipeline(*before, v.prepare))) {
    ADD_FAILURE() << "'" << v.prepare << "' fails\n" << textOf(*before);
    return std::nullopt;
  }
  OwningOpRef<ModuleOp> after = before->clone();
  if (failed(runPipeline(*after, v.pipeline))) {
    ADD_FAILURE() << "'" << v.pipeline << "' fails on\n" << textOf(*before);
    return std::nullopt;
  }
  Outcome outcome;
  Random random(seed + 1);
  FunctionOpInterface function = functionOf(*before);
  SmallVector<Tensor> inputs = randomInputs(function, random);
  auto expected = tmc::reference::interpret(function, inputs);
  FunctionOpInterface changed = functionOf(*after);
  auto actual = tmc::reference::interpret(changed, withCopies(changed, inputs));
  if (failed(expected) || failed(actual)) {
    ADD_FAILURE() << "can't be interpreted:\n"
                  << textOf(failed(expected) ? *before : *after);
    return std::nullopt;
  }
  const double tolerance =
      !v.roundedOp.empty() && countOps(*before, v.roundedOp) > 0
          ? v.roundedTolerance
          : v.tolerance;
  std::string difference = dropCopies(changed, *actual, expected->size());
  if (difference.empty())
    difference = compare(*expected, *actual, tolerance);
  if (!difference.empty() && isUnstable(function, inputs, tolerance)) {
    outcome.unstable = true;
    return outcome;
  }
  if (!difference.empty()) {
    ADD_FAILURE() << difference << "\nbefore:\n"
                  << textOf(*before) << "\nafter:\n"
                  << textOf(*after);
    return std::nullopt;
  }
  outcome.changed = !OperationEquivalence::isEquivalentTo(
      *before, *after, OperationEquivalence::IgnoreLocations);
  for (const std::string &name : v.makes)
    outcome.made.push_back(countOps(*after, name) > countOps(*before, name));
  return outcome;
}

void tmc::test::validate(const Validation &v) {
  registerOnce();
  std::unique_ptr<MLIRContext> context = makeContext();
  int64_t changed = 0, unstable = 0;
  std::vector<int64_t> made(v.makes.size(), 0);
  for (int64_t seed = 0; seed < v.graphs; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::optional<Outcome> outcome = validateOne(*context, v, seed);
    if (!outcome)
      return; // one counterexample is enough
    changed += outcome->changed;
    unstable += outcome->unstable;
    if (outcome->unstable)
      continue;
    for (size_t i = 0; i < made.size(); ++i)
      made[i] += outcome->made[i];
  }
  EXPECT_GE(changed, v.leastChanged)
      << "too few of " << v.graphs << " graphs are changed by '" << v.pipeline
      << "'";
  EXPECT_LE(unstable, v.graphs / 100);
  std::printf("  %s: %lld graphs, %lld changed, %lld undecided\n",
              v.pipeline.c_str(), (long long)v.graphs, (long long)changed,
              (long long)unstable);
  for (auto [name, count] : llvm::zip_equal(v.makes, made)) {
    EXPECT_GE(count, v.leastChanged) << name;
    std::printf("    more %s in %lld\n", name.c_str(), (long long)count);
  }
}
