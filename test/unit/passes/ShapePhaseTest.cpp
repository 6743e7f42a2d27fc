// ShapePhaseTest.cpp - after the shape phase every op is a kernel or a view.

#include "test/unit/passes/Validation.h"

#include "dialects/interfaces/Interfaces.h"

#include "llvm/Support/raw_ostream.h"

#include <gtest/gtest.h>

#include <map>

using namespace mlir;
using namespace tmc;
using namespace tmc::test;

/// From the forward graph to kernels and views, as the driver does it.
static const char *const kShape =
    "func.func(tmc-layout),canonicalize,cse,tmc-autodiff{optimizer=sgd},"
    "canonicalize,cse,tmc-expand-composites,canonicalize,cse,"
    "tmc-fold-into-kernels,canonicalize,cse,tmc-fuse,tmc-copy-views";

static OwningOpRef<ModuleOp> shapedStep(MLIRContext &context, uint64_t seed,
                                        int64_t rules, bool narrow = false) {
  GraphOptions options;
  options.narrow = narrow;
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
  for (uint64_t seed = 0; seed < 400; ++seed) {
    OwningOpRef<ModuleOp> module =
        shapedStep(*context, seed, 12, /*narrow=*/seed % 2);
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
