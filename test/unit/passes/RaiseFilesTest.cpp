// RaiseFilesTest.cpp - the lit tests of -tmc-raise, -tmc-layout and
// -tmc-lay-out-codes mean the same before and after.
//
// FileCheck sees that an op was made; the interpreter, that it is the right
// one. Every function or step of those files is run on random inputs, whether
// it is changed or a near miss.

#include "test/unit/passes/Validation.h"

#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/Support/MemoryBuffer.h"

#include <gtest/gtest.h>

using namespace mlir;
using namespace tmc::test;
using tmc::reference::Tensor;

/// Constants in the files have the digits that exporters write.
constexpr double kTolerance = 1e-5;

/// Lets every query see key 0: of what sees nothing, the pieces make a NaN or a
/// mean, and attention zeros.
static void seeFirst(SmallVectorImpl<Tensor> &inputs) {
  for (Tensor &tensor : inputs)
    if (!tensor.isFloat() && tensor.rank() == 2 &&
        (tensor.element == tmc::reference::Element::I1 ||
         tensor.element == tmc::reference::Element::I64))
      for (int64_t i = 0; i < tensor.size(); i += tensor.shape[1])
        tensor.ints[i] = 1;
}

/// Functions of `text`, run before and after `pipeline`; returns how many.
static int64_t checkChunk(MLIRContext &context, StringRef text,
                          StringRef pipeline) {
  OwningOpRef<ModuleOp> before = parse(context, text);
  if (!before) {
    ADD_FAILURE() << "can't be parsed:\n" << text.str();
    return 0;
  }
  OwningOpRef<ModuleOp> after = before->clone();
  ScopedDiagnosticHandler quiet(&context, [](Diagnostic &diagnostic) {
    return success(diagnostic.getSeverity() != DiagnosticSeverity::Error);
  });
  if (failed(runPipeline(*after, pipeline))) {
    ADD_FAILURE() << pipeline.str() << " fails on\n" << text.str();
    return 0;
  }
  int64_t count = 0;
  for (auto function : before->getOps<FunctionOpInterface>()) {
    SCOPED_TRACE(function.getName().str());
    for (uint64_t seed = 1; seed <= 3; ++seed) {
      Random random(seed);
      SmallVector<Tensor> inputs = randomInputs(function, random);
      seeFirst(inputs);
      // One op for many rounds where they didn't, and less often.
      const tmc::reference::InterpreterOptions exact{
          tmc::reference::Rounding::None, nullptr};
      auto expected = tmc::reference::interpret(function, inputs, exact);
      auto actual = tmc::reference::interpret(
          after->lookupSymbol(function.getName()), inputs, exact);
      if (failed(expected) || failed(actual)) {
        ADD_FAILURE() << "can't be interpreted";
        continue;
      }
      EXPECT_EQ(compare(*expected, *actual, kTolerance), "");
    }
    ++count;
  }
  return count;
}

static void checkFile(StringRef path, StringRef pipeline, int64_t least) {
  std::unique_ptr<MLIRContext> context = makeContext();
  auto file = llvm::MemoryBuffer::getFile(TMC_SOURCE_DIR "/" + path.str());
  ASSERT_TRUE(bool(file)) << path.str();
  SmallVector<StringRef> chunks;
  (*file)->getBuffer().split(chunks, "// -----");
  int64_t count = 0;
  for (StringRef chunk : chunks)
    count += checkChunk(*context, chunk, pipeline);
  EXPECT_GE(count, least) << path.str();
}

TEST(RaiseFiles, MeanTheSame) {
  StringRef raise = "func.func(tmc-raise)", files = "test/passes/raise/";
  checkFile((files + "attention-dropout.mlir").str(), raise, 7);
  checkFile((files + "attention-layout.mlir").str(), raise, 8);
  checkFile((files + "attention-mask.mlir").str(), raise, 19);
  checkFile((files + "attention-near-misses.mlir").str(), raise, 12);
  checkFile((files + "attention-shapes.mlir").str(), raise, 13);
  checkFile((files + "attention-tables.mlir").str(), raise, 10);
  checkFile((files + "attention-scale.mlir").str(), raise, 6);
  checkFile((files + "gelu.mlir").str(), raise, 11);
  checkFile((files + "lookups.mlir").str(), raise, 3);
  checkFile((files + "norms.mlir").str(), raise, 11);
  checkFile((files + "softmax.mlir").str(), raise, 7);
  checkFile((files + "views.mlir").str(), raise, 6);
}

TEST(LayoutFiles, MeanTheSame) {
  StringRef layout = "func.func(tmc-layout)";
  checkFile("test/passes/layout/doctest.mlir", layout, 1);
  checkFile("test/passes/layout/borders.mlir", layout, 7);
}

TEST(LayOutCodesFiles, MeanTheSame) {
  checkFile("test/passes/lay-out-codes/lay-out-codes.mlir",
            "train.step(tmc-lay-out-codes)", 5);
}
