// PlanTest.cpp - order and recomputation change no result; and after the shape
// phase every op is a kernel or a view.

#include "test/unit/passes/Validation.h"

#include "compiler/analysis/PlanRecord.h"
#include "dialects/interfaces/Interfaces.h"
#include "dialects/train/Train.h"

#include "mlir/IR/Diagnostics.h"
#include "llvm/Support/raw_ostream.h"

#include <gtest/gtest.h>

#include <map>

using namespace mlir;
using namespace tmc;
using namespace tmc::test;
using reference::Tensor;

/// Few and small steps: a plan takes a thousand times as long as interpreting
/// it.
constexpr int64_t kRules = 3;

/// From the forward graph to kernels and views, as the driver does it.
static const char *const kShape =
    "func.func(tmc-layout),canonicalize,cse,tmc-autodiff{optimizer=sgd},"
    "canonicalize,cse,tmc-expand-composites,canonicalize,cse,"
    "tmc-fold-into-kernels,canonicalize,cse,tmc-fuse,tmc-copy-views";

static OwningOpRef<ModuleOp> shapedStep(MLIRContext &context, uint64_t seed,
                                        int64_t rules) {
  GraphOptions options;
  options.f32 = true;
  options.accumulates = false;
  options.rules = rules;
  OwningOpRef<ModuleOp> module = randomGraph(context, seed, options);
  EXPECT_TRUE(succeeded(runPipeline(*module, kShape)));
  return module;
}

TEST(ShapePhase, LeavesKernelsAndViewsAlone) {
  std::unique_ptr<MLIRContext> context = makeContext();
  std::map<std::string, int64_t> others;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    OwningOpRef<ModuleOp> module = shapedStep(*context, seed, 12);
    Block &body = functionOf(*module).getFunctionBody().front();
    for (Operation &op : body.without_terminator())
      if (!isa<KernelOpInterface, ViewOpInterface>(op) &&
          !op.hasTrait<OpTrait::ConstantLike>()) {
        if (++others[op.getName().getStringRef().str()] == 1)
          llvm::errs() << "seed " << seed << ": " << op << "\n";
      }
  }
  for (auto &[name, count] : others)
    ADD_FAILURE() << name << " is neither, " << count << " times";
}

/// Plans a copy of `step`; null where the planner finds none within the budget.
static OwningOpRef<ModuleOp> planned(ModuleOp step, int64_t budget) {
  ScopedDiagnosticHandler quiet(step.getContext(),
                                [](Diagnostic &) { return success(); });
  OwningOpRef<ModuleOp> module = step.clone();
  std::string pipeline =
      "train.step(tmc-plan{quick budget=" + std::to_string(budget) + "})";
  if (failed(runPipeline(*module, pipeline)))
    return {};
  return module;
}

TEST(Plan, ChangesNoResult) {
  std::unique_ptr<MLIRContext> context = makeContext();
  int64_t graphs = 20, recomputing = 0, reordered = 0;
  for (int64_t seed = 0; seed < graphs; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    OwningOpRef<ModuleOp> step = shapedStep(*context, seed, kRules);
    Random random(seed);
    SmallVector<Tensor> inputs = randomInputs(functionOf(*step), random);
    auto expected = reference::interpret(functionOf(*step), inputs);
    ASSERT_TRUE(succeeded(expected));
    auto check = [&](ModuleOp module) {
      auto actual = reference::interpret(functionOf(module), inputs);
      ASSERT_TRUE(succeeded(actual));
      // The same kernels on the same values: not even rounding may differ.
      ASSERT_EQ(compare(*expected, *actual, 0), "");
    };

    OwningOpRef<ModuleOp> free = planned(*step, -1);
    ASSERT_TRUE(free);
    check(*free);
    reordered += !OperationEquivalence::isEquivalentTo(
        *step, *free, OperationEquivalence::IgnoreLocations);
    PlanRecord record = *PlanRecord::in(*free);
    OwningOpRef<ModuleOp> tight =
        planned(*step, record.reservedBytes + record.livePeakBytes * 9 / 10);
    if (!tight)
      continue;
    check(*tight);
    recomputing += PlanRecord::in(*tight)->recomputedOps > 0;
  }
  std::printf("  tmc-plan: %lld graphs, %lld reordered, %lld plans recompute\n",
              (long long)graphs, (long long)reordered, (long long)recomputing);
  EXPECT_GE(reordered, graphs / 2);
  EXPECT_GE(recomputing, 1);
}
