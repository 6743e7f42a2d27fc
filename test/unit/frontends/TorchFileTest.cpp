// Exported programs that no exporter writes: whatever is changed in one, the
// import ends with an error of the input's or of what is supported, never with
// a defect of ours.

#include "frontends/torch/Import.h"
#include "frontends/torch/Importer.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/MLIRContext.h"

#include <gtest/gtest.h>

#include <fstream>
#include <random>
#include <sstream>

using namespace tmc;
using namespace tmc::torch_import;

namespace {
std::string modelPath(const std::string &name) {
  std::string path = TMC_SOURCE_DIR; // Of a chain of + gcc 12 warns.
  path += "/test/models/";
  path += name;
  path += ".pt2";
  return path;
}

std::unique_ptr<ArchiveTensors> open(const std::string &path) {
  auto file = openByUser(path);
  EXPECT_TRUE(file) << path;
  auto archive = Archive::open(std::move(*file));
  EXPECT_TRUE(archive) << path;
  return std::make_unique<ArchiveTensors>(std::move(*archive));
}

class TorchFileTest : public ::testing::Test {
protected:
  void SetUp() override {
    registerImportDialects(registry);
    context.appendDialectRegistry(registry);
    // What is wrong is said by failures.
    context.getDiagEngine().registerHandler(
        [](mlir::Diagnostic &) { return mlir::success(); });
    options.needLoss = false;
  }
  unsigned pick(size_t count) { return random() % count; }

  mlir::DialectRegistry registry;
  mlir::MLIRContext context{mlir::MLIRContext::Threading::DISABLED};
  ImportOptions options;
  std::mt19937 random{1};
};

/// All numbers and names among an argument's parts.
void collect(Arg &argument, std::vector<Arg *> &parts) {
  parts.push_back(&argument);
  for (Arg &element : argument.list)
    collect(element, parts);
}

TEST_F(TorchFileTest, ChangedPrograms) {
  constexpr int kRounds = 150;
  for (const char *name :
       {"gpt2-tiny-dropout", "llama-tiny-core", "resnet-tiny", "unet-tiny",
        "noted-tiny", "bert-tiny-mlm-nodropout", "resnet-tiny-core"}) {
    auto whole = parseProgram(open(modelPath(name))->archive);
    ASSERT_TRUE(whole) << name;
    int errors = 0;
    for (int round = 0; round < kRounds; ++round) {
      Program program = *whole;
      CallData &call = program.calls[pick(program.calls.size())];
      CallData &other = program.calls[pick(program.calls.size())];
      std::vector<Arg *> parts, others;
      for (auto &[argument, value] : call.arguments)
        collect(value, parts);
      for (auto &[argument, value] : other.arguments)
        collect(value, others);
      switch (pick(6)) {
      case 0: // An argument becomes another call's.
        if (!parts.empty() && !others.empty())
          *parts[pick(parts.size())] = Arg(*others[pick(others.size())]);
        break;
      case 1:
        if (!call.arguments.empty())
          call.arguments.erase(call.arguments.begin() +
                               pick(call.arguments.size()));
        break;
      case 2: // A number becomes another.
        if (!parts.empty()) {
          Arg &part = *parts[pick(parts.size())];
          const int64_t values[] = {-1, 0, 1, 2, 7, INT64_MIN, INT64_MAX};
          part.kind = Arg::Int;
          part.list.clear();
          part.integer = values[pick(7)];
        }
        break;
      case 3:
        call.target = other.target;
        break;
      case 4:
        if (!call.results.empty())
          call.results.pop_back();
        break;
      default: // A value has another size.
        for (auto &[value, meta] : program.tensors)
          if (!meta.dims.empty() && pick(8) == 0)
            meta.dims[pick(meta.dims.size())] = {int64_t(pick(5)), {}};
      }
      auto result = TorchImporter(std::move(program), open(modelPath(name)),
                                  options, context)
                        .run();
      if (result)
        continue;
      ++errors;
      EXPECT_NE(result.failure().exitCode(), 70)
          << name << " round " << round << ": " << result.failure().message;
    }
    EXPECT_GT(errors, kRounds / 10) << name;
  }
}

TEST_F(TorchFileTest, ChangedBytes) {
  std::string path = testing::TempDir();
  path += "/tmc-changed.pt2";
  for (const char *name : {"views", "noted-tiny"}) {
    std::ifstream file(modelPath(name), std::ios::binary);
    std::stringstream text;
    text << file.rdbuf();
    int errors = 0;
    for (int round = 0; round < 200; ++round) {
      std::string bytes = text.str();
      if (pick(4) == 0)
        bytes.resize(pick(bytes.size()));
      for (int k = 0; k < 4 && !bytes.empty(); ++k)
        bytes[pick(bytes.size())] = static_cast<char>(random());
      std::ofstream(path, std::ios::binary) << bytes;
      auto result = importTorch(path, options, context);
      if (result) {
        for (const std::string &each : result->weights->names())
          (void)result->weights->read(each);
        continue;
      }
      ++errors;
      EXPECT_NE(result.failure().exitCode(), 70)
          << name << " round " << round << ": " << result.failure().message;
    }
    EXPECT_GT(errors, 20) << name;
  }
  std::remove(path.c_str());
}

Arg named(const std::string &name) {
  Arg arg;
  arg.kind = Arg::Tensor;
  arg.text = name;
  return arg;
}

Arg number(int64_t value) {
  Arg arg;
  arg.kind = Arg::Int;
  arg.integer = value;
  return arg;
}

CallData call(const std::string &target, const std::string &result,
              std::vector<std::pair<std::string, Arg>> arguments) {
  CallData data;
  data.target = target;
  data.name = result;
  data.arguments = std::move(arguments);
  data.results.push_back(named(result));
  return data;
}

/// forward(x): a = x * 2, then `calls`; the last one is the result.
Program programOf(const std::vector<CallData> &calls) {
  Program program;
  InputSpec input;
  input.value = "x";
  program.inputs.push_back(input);
  TensorMeta meta;
  meta.type = ElementType::F32;
  meta.dims = {{2, {}}, {3, {}}};
  meta.hints = {2, 3};
  program.tensors["x"] = meta;
  program.calls.push_back(call("aten.mul.Tensor", "a",
                               {{"self", named("x")}, {"other", number(2)}}));
  program.calls.insert(program.calls.end(), calls.begin(), calls.end());
  OutputSpec output;
  output.value = calls.back().name;
  program.outputs.push_back(output);
  return program;
}

/// A write gives all names of what it writes a new value.
TEST_F(TorchFileTest, WritesInPlace) {
  auto relu = call("aten.relu_.default", "r", {{"self", named("a")}});
  auto sum = call("aten.sum.default", "s", {{"self", named("a")}});
  auto result = TorchImporter(programOf({relu, sum}), open(modelPath("views")),
                              options, context)
                    .run();
  ASSERT_TRUE(result) << result.failure().message;
  int written = 0;
  result->module->walk([&](nn::ReduceOp op) {
    written += bool(op->getOperand(0).getDefiningOp<mlir::arith::MaximumFOp>());
  });
  EXPECT_EQ(written, 1);

  // A second write, by the first one's name, reaches the first name, too.
  auto add = call("aten.add_.Tensor", "p",
                  {{"self", named("r")}, {"other", number(1)}});
  result = TorchImporter(programOf({relu, add, sum}), open(modelPath("views")),
                         options, context)
               .run();
  ASSERT_TRUE(result) << result.failure().message;
  result->module->walk([&](nn::ReduceOp op) {
    EXPECT_TRUE(op->getOperand(0).getDefiningOp<mlir::arith::AddFOp>());
  });
}

/// A buffer that is overwritten is state, though nothing reads its old value.
TEST_F(TorchFileTest, OverwritesABuffer) {
  auto copy = call("aten.copy_.default", "c",
                   {{"self", named("kept")}, {"src", named("a")}});
  auto sum = call("aten.sum.default", "s", {{"self", named("a")}});
  Program program = programOf({copy, sum});
  InputSpec buffer;
  buffer.kind = InputSpec::Buffer;
  buffer.value = "kept";
  buffer.target = "last";
  program.inputs.push_back(buffer);
  program.tensors["kept"] = program.tensors["x"];
  program.payloads["last"].meta = program.tensors["x"];
  program.payloads["last"].meta.strides = {3, 1};
  auto result = TorchImporter(std::move(program), open(modelPath("views")),
                              options, context)
                    .run();
  ASSERT_TRUE(result) << result.failure().message;
  EXPECT_EQ(result->weights->names(), std::vector<std::string>{"last"});
  auto function = *result->module->getOps<mlir::func::FuncOp>().begin();
  EXPECT_EQ(function.getNumResults(), 2u);
}

/// What reads another view of the memory sees the write, unless a view on the
/// way repeats elements.
TEST_F(TorchFileTest, WritesBehindAView) {
  auto view = call("aten.t.default", "v", {{"self", named("a")}});
  auto relu = call("aten.relu_.default", "r", {{"self", named("a")}});
  auto readsView = call("aten.sum.default", "s", {{"self", named("v")}});
  auto readsBase = call("aten.sum.default", "s", {{"self", named("a")}});
  auto onView = call("aten.relu_.default", "r", {{"self", named("v")}});
  for (const auto &calls : {std::vector<CallData>{view, relu, readsView},
                            std::vector<CallData>{view, onView, readsBase},
                            std::vector<CallData>{view, relu, readsBase}}) {
    auto result = TorchImporter(programOf(calls), open(modelPath("views")),
                                options, context)
                      .run();
    ASSERT_TRUE(result) << result.failure().message;
    // The sum is of what relu made.
    auto function = *result->module->getOps<mlir::func::FuncOp>().begin();
    EXPECT_FALSE(function.getOps<mlir::arith::MaximumFOp>().empty());
  }
  auto wide = call("aten.expand_as.default", "v",
                   {{"self", named("a")}, {"other", named("a")}});
  auto result = TorchImporter(programOf({wide, onView, readsBase}),
                              open(modelPath("views")), options, context)
                    .run();
  ASSERT_FALSE(result);
  EXPECT_EQ(result.failure().exitCode(), 4);
}

/// A decomposed program has aliases in place of detach().
TEST_F(TorchFileTest, AliasesThatWereDetached) {
  auto alias = call("aten.alias.default", "d", {{"self", named("a")}});
  auto sum = call("aten.sum.default", "s", {{"self", named("d")}});
  auto detaches = [&](const std::string &origin) {
    alias.origin = origin;
    auto result = TorchImporter(programOf({alias, sum}),
                                open(modelPath("views")), options, context)
                      .run();
    if (!result)
      return -result.failure().exitCode();
    int count = 0;
    result->module->walk([&](nn::DetachOp) { ++count; });
    return count;
  };
  EXPECT_EQ(detaches("detach_1;method_descriptor.detach"), 1);
  EXPECT_EQ(detaches("__getitem___1;wrapper_descriptor.__getitem__"), 0);
  EXPECT_EQ(detaches(""), -4);
}

TEST_F(TorchFileTest, PromotesTypesAsPyTorchDoes) {
  using T = ElementType;
  EXPECT_EQ(promoteTypes(T::F16, T::BF16), T::F32);
  EXPECT_EQ(promoteTypes(T::BF16, T::F32), T::F32);
  EXPECT_EQ(promoteTypes(T::I64, T::F16), T::F16);
  EXPECT_EQ(promoteTypes(T::Bool, T::U8), T::U8);
  EXPECT_EQ(promoteTypes(T::U8, T::I8), T::I16);
  EXPECT_EQ(promoteTypes(T::I32, T::I64), T::I64);
}
} // namespace
