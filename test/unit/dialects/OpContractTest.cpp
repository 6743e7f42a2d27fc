// OpContractTest.cpp - every op answers what passes and planners ask.
//
// A new op fails here, by name, until it does: an entry in the interpreter, a
// cost, a derivative or NotDifferentiable, its cuts, and a kernel, a view,
// or a rewriting into ops that have one.

#include "test/unit/dialects/Cases.h"

#include "dialects/interfaces/Interfaces.h"
#include "dialects/train/Train.h"

#include <gtest/gtest.h>

#include <set>

using namespace mlir;
using namespace tmc;
using namespace tmc::test;

/// Ops of `dialect` that compute something: terminators only hand on, and
/// functions are run, not computed. (`getRegisteredOperationsByDialect` of
/// LLVM 22.1 finds none of nn's.)
static SmallVector<RegisteredOperationName> computingOps(StringRef dialect) {
  SmallVector<RegisteredOperationName> ops;
  for (RegisteredOperationName op :
       Cases::get().getContext().getRegisteredOperations())
    if (op.getDialectNamespace() == dialect &&
        !op.hasTrait<OpTrait::IsTerminator>() &&
        !op.hasInterface<FunctionOpInterface>())
      ops.push_back(op);
  return ops;
}

static bool isInterpreted(RegisteredOperationName op) {
  return reference::OpTable::all().find(op.getStringRef()) != nullptr;
}

static bool hasDerivativeOrNone(RegisteredOperationName op) {
  // Upstream's ops can't carry our trait: what has a cost and no derivative is
  // an integer op, or a step function, which autodiff treats as constant.
  return op.hasInterface<DifferentiableOpInterface>() !=
         op.hasTrait<NotDifferentiable>();
}

TEST(OpContract, EveryNNOpAnswers) {
  SmallVector<RegisteredOperationName> ops = computingOps("nn");
  EXPECT_GT(ops.size(), 30u);
  for (RegisteredOperationName op : ops) {
    SCOPED_TRACE(op.getStringRef().str());
    EXPECT_TRUE(isInterpreted(op)) << "has no entry in the interpreter";
    EXPECT_TRUE(op.hasInterface<CostOpInterface>()) << "has no cost";
    EXPECT_TRUE(hasDerivativeOrNone(op))
        << "has no derivative and isn't NotDifferentiable, or is both";
    EXPECT_TRUE(op.hasInterface<CutOpInterface>()) << "doesn't list its cuts";
  }
}

// What is left of a step beside nn's ops: optimizer rules and norms. They see
// whole gradients, so no batch is cut there. The loop, copies between spaces
// and the ends of work are no kernels.
TEST(OpContract, EveryTrainOpAnswers) {
  SmallVector<RegisteredOperationName> ops = computingOps("train");
  EXPECT_GT(ops.size(), 3u);
  for (RegisteredOperationName op : ops) {
    SCOPED_TRACE(op.getStringRef().str());
    EXPECT_TRUE(isInterpreted(op)) << "has no entry in the interpreter";
    const std::set<StringRef> noKernels = {
        train::MicroBatchOp::getOperationName(),
        train::StashStartOp::getOperationName(),
        train::StashDoneOp::getOperationName(),
        train::FetchStartOp::getOperationName(),
        train::FetchDoneOp::getOperationName(),
        train::WorkDoneOp::getOperationName()};
    if (noKernels.count(op.getStringRef()))
      continue;
    EXPECT_TRUE(op.hasInterface<CostOpInterface>()) << "has no cost";
    EXPECT_TRUE(op.hasInterface<KernelOpInterface>()) << "has no kernel";
    EXPECT_TRUE(hasDerivativeOrNone(op))
        << "has no derivative and isn't NotDifferentiable, or is both";
  }
}

// An op of arith or math belongs to tmc if it has a cost.
TEST(OpContract, EveryPointwiseOpAnswers) {
  for (StringRef dialect : {"arith", "math"}) {
    int64_t accepted = 0;
    for (RegisteredOperationName op : computingOps(dialect)) {
      if (!op.hasInterface<CostOpInterface>())
        continue;
      SCOPED_TRACE(op.getStringRef().str());
      ++accepted;
      EXPECT_TRUE(isInterpreted(op)) << "has no entry in the interpreter";
      EXPECT_TRUE(op.hasInterface<CutOpInterface>()) << "doesn't list its cuts";
    }
    EXPECT_GT(accepted, 10);
  }
}

TEST(OpContract, EveryOpIsInSomeCase) {
  std::set<std::string> covered;
  for (func::FuncOp function : Cases::get().getFunctions())
    covered.insert(Cases::getOp(function)->getName().getStringRef().str());
  for (StringRef dialect : {"nn", "arith", "math"})
    for (RegisteredOperationName op : computingOps(dialect)) {
      if (!op.hasInterface<CostOpInterface>())
        continue;
      EXPECT_TRUE(covered.count(op.getStringRef().str()))
          << op.getStringRef().str()
          << " is in no case of test/unit/dialects/cases";
    }
}
