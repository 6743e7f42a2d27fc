// EvaluationTest.cpp - the part of a program that the loss needs.

#include "compiler/emit/Evaluation.h"
#include "dialects/nn/NN.h"
#include "dialects/train/Train.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Parser/Parser.h"

#include <gtest/gtest.h>

using namespace mlir;
using namespace tmc;

namespace {

/// A launch `name` of some kernel.
std::string launch(const std::string &name, const std::string &in,
                   const std::string &out, const std::string &more = "") {
  auto types = [](const std::string &list) {
    std::string text;
    for (char c : list)
      if (c == '%')
        text += text.empty() ? "memref<16xf32>" : ", memref<16xf32>";
    return list.empty() ? "" : list + " : " + text;
  };
  return "mem.launch \"Some\"(" + types(in) + ") -> (" + types(out) +
         ") {params = [], in_order = array<i64>, out_order = array<i64>, op = "
         "\"" +
         name + "\", instance = 0 : i64" + more + "}\n";
}

/// The names of the ops that an evaluation of this program runs, or the reason
/// why there is none; then the buffers that it changes.
std::string evaluated(const std::string &body) {
  MLIRContext context;
  context.loadDialect<mem::MemDialect, arith::ArithDialect, nn::NNDialect,
                      train::TrainDialect>();
  auto buffer = [](const std::string &name, const std::string &more = "") {
    return "%" + name + " = mem.buffer \"" + name + "\" \"activations\" {" +
           more + "} : memref<16xf32>\n";
  };
  const std::string text =
      "mem.program @step {\n" + buffer("a") + buffer("b") + buffer("c") +
      buffer("d") +
      buffer("w", "persistent, tensor = {train.name = \"w\", train.role = "
                  "#train.role<param>}") +
      buffer("s", "persistent, tensor = {train.name = \"s\", train.role = "
                  "#train.role<state>}") +
      buffer("loss", "persistent, tensor = {train.loss, train.output, "
                     "train.name = \"loss\"}") +
      body + "}\n";
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, &context);
  if (!module)
    return "no program: " + text;
  Evaluation evaluation =
      addEvaluation(*module, *module->getOps<mem::ProgramOp>().begin());
  if (!evaluation.program)
    return evaluation.why;
  std::string names;
  evaluation.program.walk([&](Operation *op) {
    if (auto launch = dyn_cast<mem::LaunchOp>(op))
      names += launch.getOp().str() + " ";
    else if (isa<mem::FillOp>(op))
      names += "fill ";
  });
  for (mem::BufferOp buffer : evaluation.changed)
    names += "changes " + buffer.getName().str() + " ";
  return names;
}

} // namespace

TEST(Evaluation, EndsAtTheLoss) {
  EXPECT_EQ(evaluated(launch("f", "%w", "%a") + launch("l", "%a", "%loss, %b") +
                      launch("g", "%b", "%c") + launch("u", "%c, %w", "%w")),
            "f l ");
}

TEST(Evaluation, AnOverwrittenBufferIsNotNeededBefore) {
  EXPECT_EQ(evaluated(launch("other", "%w", "%a") + launch("f", "%w", "%a") +
                      launch("l", "%a", "%loss")),
            "f l ");
  // In place: the one before counts.
  EXPECT_EQ(evaluated(launch("f", "%w", "%a") + launch("g", "%a", "%a") +
                      launch("l", "%a", "%loss")),
            "f g l ");
}

TEST(Evaluation, ASumNeedsWhatItIsAddedTo) {
  const std::string adds = ", accumulate";
  EXPECT_EQ(evaluated("mem.fill %a : memref<16xf32>\nmem.fill %b : "
                      "memref<16xf32>\n" +
                      launch("f", "%w", "%a", adds) +
                      launch("g", "%w", "%b", adds) +
                      launch("l", "%a", "%loss")),
            "fill f l ");
}

TEST(Evaluation, APieceIsAPartOfItsBuffer) {
  EXPECT_EQ(evaluated(launch("f", "%w", "%a") +
                      "mem.loop 2 {\n^bb0(%i: index):\n"
                      "%p = mem.piece %a[%i] : memref<16xf32> to "
                      "memref<8xf32, strided<[1], offset: ?>>\n"
                      "mem.launch \"Some\"() -> (%p : memref<8xf32, "
                      "strided<[1], offset: ?>>) {params = [], in_order = "
                      "array<i64>, out_order = array<i64>, op = \"g\", "
                      "instance = 0 : i64}\n}\n" +
                      launch("l", "%a", "%loss")),
            "f g l ");
}

TEST(Evaluation, ATripNeedsWhatTheTripBeforeLeft) {
  // c passes from g to the next trip's f; d is g's own.
  EXPECT_EQ(evaluated("mem.fill %c : memref<16xf32>\n"
                      "mem.loop 2 {\n^bb0(%i: index):\n" +
                      launch("f", "%c", "%a") + launch("g", "%w", "%c, %d") +
                      launch("h", "%d", "%b") + "}\n" +
                      launch("l", "%a", "%loss")),
            "fill f g l ");
}

TEST(Evaluation, ListsStatesAndRefusesParameters) {
  EXPECT_EQ(
      evaluated(launch("f", "%w, %s", "%a, %s") + launch("l", "%a", "%loss")),
      "f l changes s ");
  EXPECT_EQ(evaluated(launch("u", "%w", "%w") + launch("l", "%w", "%loss")),
            "the loss needs parameters that the same step has updated");
  EXPECT_EQ(evaluated(launch("f", "%w", "%a")), "");
}
