// EmitTest.cpp - a step is printed whole or not at all.

#include "compiler/emit/Emit.h"
#include "compiler/analysis/StepProblem.h"
#include "runtime/step/SwapFile.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"

#include <gtest/gtest.h>

#include <sstream>

using namespace mlir;
using namespace tmc;

namespace {

/// A placed program that has `line` between two launches.
std::string programWith(const std::string &line) {
  return R"(mem.program @step attributes {arena_bytes = #mem.bytes<device = 512>} {
  %x = mem.buffer "x" "activations" {offset = 0 : i64} : memref<16xf32>
  %y = mem.buffer "y" "activations" {offset = 256 : i64} : memref<16xf32>
  mem.fill %x : memref<16xf32>
  )" + line +
         "\n}\n";
}

struct Emitted {
  bool parsed = false, done = false;
  std::string text, said;
};

Emitted emit(const std::string &line) {
  MLIRContext context;
  context.loadDialect<mem::MemDialect, arith::ArithDialect>();
  Emitted out;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    out.said += diagnostic.str();
    return success();
  });
  OwningOpRef<ModuleOp> module =
      parseSourceString<ModuleOp>(programWith(line), &context);
  out.parsed = bool(module);
  if (!module)
    return out;
  FailureOr<StepText> text = emitStep(*module, EmitOptions());
  out.done = succeeded(text);
  if (out.done)
    out.text = text->whole;
  return out;
}

} // namespace

// What is planned is what the runtime asks for.
static_assert(kFileTableBytesOfBlock == fileTableBytes(1));

TEST(Emit, PrintsEveryLaunch) {
  Emitted step = emit(R"(mem.fill %y : memref<16xf32>)");
  ASSERT_TRUE(step.done) << step.said;
  EXPECT_NE(step.text.find("{at(0x0)}"), std::string::npos) << step.text;
  EXPECT_NE(step.text.find("{at(0x100)}"), std::string::npos) << step.text;
}

TEST(Emit, RefusesAnOpThatHasNoText) {
  for (const char *line : {
           R"(%c = arith.constant 0 : index)",
           R"(mem.loop 2 { ^bb0(%i: index): %c = arith.constant 0 : index })",
       }) {
    Emitted step = emit(line);
    ASSERT_TRUE(step.parsed) << line << "\n" << step.said;
    EXPECT_FALSE(step.done) << step.text;
    EXPECT_EQ(step.said, "'arith.constant' can't be printed");
  }
}

TEST(Emit, RefusesAParameterThatHasNoText) {
  Emitted step = emit(
      R"(mem.launch "Matmul"(%x : memref<16xf32>) -> (%y : memref<16xf32>)
         {params = [["m", unit]], in_order = array<i64>,
          out_order = array<i64>, op = "o", instance = 0 : i64})");
  ASSERT_TRUE(step.parsed) << step.said;
  EXPECT_FALSE(step.done);
  EXPECT_EQ(step.said, "'Matmul' has a parameter \"m\" that can't be printed");
}

/// The number of each launch, in the order in which `name` and what it calls
/// run them; a loop's once.
static void launchesOf(const std::string &text, const std::string &name,
                       std::vector<int> &launches) {
  size_t at = text.find("void " + name + "(");
  ASSERT_NE(at, std::string::npos) << name;
  size_t end = text.find("\n}\n", at);
  std::istringstream body(text.substr(at, end - at));
  std::string line;
  std::getline(body, line); // Its own name.
  while (std::getline(body, line)) {
    size_t first = line.find_first_not_of(' ');
    if (first == std::string::npos)
      continue;
    line = line.substr(first);
    if (line.rfind("q.launched(", 0) == 0)
      launches.push_back(std::stoi(line.substr(11)));
    else if (line.rfind("part_", 0) == 0)
      launchesOf(text, line.substr(0, line.find('(')), launches);
  }
}

TEST(Emit, SplitsALongStepIntoFunctions) {
  constexpr int kInLoop = 700, kBehind = 1100;
  std::string lines = "mem.loop 2 { ^bb0(%i: index):\n";
  for (int i = 0; i < kInLoop; ++i)
    lines += "mem.fill %y : memref<16xf32>\n";
  lines += "}\n";
  for (int i = 0; i < kBehind; ++i)
    lines += "mem.fill %y : memref<16xf32>\n";
  Emitted step = emit(lines);
  ASSERT_TRUE(step.done) << step.said;
  std::vector<int> launches, wanted(1 + kInLoop + kBehind);
  launchesOf(step.text, "run", launches);
  for (size_t i = 0; i < wanted.size(); ++i)
    wanted[i] = int(i);
  EXPECT_EQ(launches, wanted);
  EXPECT_NE(step.text.find("void part_0(Queues &q, Kernels &k, int64_t i)"),
            std::string::npos);
  EXPECT_NE(step.text.find("void part_4(Queues &q, Kernels &k)"),
            std::string::npos);
}
