// FusedTextTest.cpp - generated kernels compute what their regions mean.
//
// Fused groups of random steps and of real models' steps are printed into one
// file, which the host compiler compiles. Each kernel then runs on random
// operands, on one thread and on two and with every overwrite that it permits,
// and is compared with the interpreter.

#include "test/unit/passes/Validation.h"

#include "compiler/emit/FusedPrinter.h"
#include "dialects/nn/NN.h"
#include "dialects/train/Train.h"
#include "driver/pipeline/HostCompiler.h"
#include "driver/pipeline/Pipeline.h"

#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/raw_ostream.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>

using namespace mlir;
using namespace tmc;
using namespace tmc::test;
using reference::Tensor;

namespace {

constexpr int64_t kRandomGroups = 60;
/// Relative to an element and to the tensor's largest: kernels compute in f32
/// and sum up to a few hundred numbers here.
constexpr double kTolerance = 2e-5;
/// What a change of inputs by a few roundings may do before a comparison says
/// nothing: a rounded cast or a comparison turns over.
constexpr double kChange = 0x1p-21;

using RunFunction = const char *(*)(int kernel, int threads,
                                    const void *const *ins, void *const *outs,
                                    void *scratch);

/// The groups, and the text that runs them.
class Groups {
public:
  /// Takes the groups of `module` that are like none before, at most `most`.
  void take(ModuleOp module, int64_t most) {
    module.walk([&](nn::FusedOp op) {
      if (most == 0)
        return;
      std::string key;
      llvm::raw_string_ostream stream(key);
      op.getBody().front().print(stream);
      if (seen.insert(key).second) {
        list.push_back(op.clone());
        --most;
      }
    });
  }
  ~Groups() {
    for (nn::FusedOp op : list)
      op->destroy();
  }

  int64_t scratchBytes(nn::FusedOp op) {
    SmallVector<MemRefType> types;
    for (Value input : op.getInputs())
      types.push_back(MemRefType::get(
          cast<RankedTensorType>(input.getType()).getShape(),
          cast<RankedTensorType>(input.getType()).getElementType()));
    return cast<KernelOpInterface>(op.getOperation())
        .getKernel(types, Backend::Cpu)
        .scratchBytes;
  }

  std::string text() {
    std::string text;
    llvm::raw_string_ostream os(text);
    os << "#include \"runtime/kernels/Kernels.h\"\n"
          "#include \"runtime/step/Device.h\"\n"
          "#include \"runtime/step/Program.h\"\n"
       << fusedInclude(Backend::Cpu) << "using namespace tmc;\nnamespace {\n";
    for (auto [i, op] : llvm::enumerate(list)) {
      nn::FusedOp numbered = op.clone();
      int64_t stream = 0;
      for (auto random : numbered.getBlock().getOps<nn::RandomOp>())
        random.setStream(stream++);
      printFused(os, "fused_" + std::to_string(i), numbered.getBlock(),
                 *nn::planFused(numbered.getBlock()), "a group");
      numbered->destroy();
    }
    os << "template <typename K> const char *run(K kernel, int threads, In "
          "ins, Out outs, void *scratch) {\n"
          "  static std::string said;\n"
          "  DeviceOptions options;\n  options.threads = threads;\n"
          "  std::unique_ptr<Device> device;\n"
          "  Status s = createDevice(options, device);\n"
          "  if (s) s = kernel.prepare(*device);\n"
          "  if (!s) return (said = s.message()).c_str();\n"
          "  kernel.run(device->compute(), ins, outs, scratch);\n"
          "  (void)device->synchronize();\n  return nullptr;\n}\n} // "
          "namespace\n"
          "extern \"C\" const tmc::StepProgram *tmc_step_program() {\n"
          "  return nullptr;\n}\n"
          "const CompiledFor tmc_step_compiled_for = {\"cpu\", "
          "kInstructions};\n"
          "extern \"C\" __attribute__((visibility(\"default\"))) const char "
          "*run_kernel(int kernel, int threads, const void *const *ins, void "
          "*const *outs, void *scratch) {\n  switch (kernel) {\n";
    for (auto [i, op] : llvm::enumerate(list)) {
      os << "  case " << i << ":\n    return run(Fused<fused_" << i << ">{{";
      SmallVector<int64_t> streams;
      for (auto random : op.getBlock().getOps<nn::RandomOp>())
        streams.push_back(random.getStream());
      if (!streams.empty()) {
        os << ".streams = {";
        llvm::interleaveComma(streams, os);
        os << "}, ";
      }
      os << ".scratchBytes = " << scratchBytes(op) << "}}, threads, {";
      for (unsigned k = 0; k < op->getNumOperands(); ++k)
        os << "ins[" << k << "], ";
      os << "}, {";
      for (unsigned k = 0; k < op->getNumResults(); ++k)
        os << "outs[" << k << "], ";
      os << "}, scratch);\n";
    }
    os << "  }\n  return \"no such kernel\";\n}\n";
    return text;
  }

  std::vector<nn::FusedOp> list;

private:
  llvm::StringSet<> seen;
};

/// A compiled file of kernels, gone with its directory at the end.
class Library {
public:
  explicit Library(const std::string &text) {
    llvm::SmallString<128> directory;
    llvm::sys::fs::createUniqueDirectory("fused", directory);
    path = directory.str().str();
    std::error_code error;
    llvm::raw_fd_ostream(path + "/kernels.cpp", error) << text;
    Expected<Installation> installation = Installation::find();
    if (!installation) {
      report(installation.failure());
      return;
    }
    Expected<void> done =
        compileStep(*installation, *findTarget("cpu"),
                    {{path + "/kernels.cpp"}}, {path + "/kernels.so", "", ""});
    if (!done) {
      report(done.failure());
      return;
    }
    handle = dlopen((path + "/kernels.so").c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!handle)
      ADD_FAILURE() << dlerror();
    else
      run = reinterpret_cast<RunFunction>(dlsym(handle, "run_kernel"));
  }
  ~Library() {
    if (handle)
      dlclose(handle);
    llvm::sys::fs::remove_directories(path);
  }
  RunFunction run = nullptr;

private:
  std::string path;
  void *handle = nullptr;

  void report(const Failure &failure) {
    ADD_FAILURE() << failure.message;
    for (const std::string &note : failure.notes)
      ADD_FAILURE() << note;
  }
};

/// What operands are drawn from: moderate numbers; or the edges, where a
/// function saturates or overflows and rows are equal.
enum class Draw { Positive, Signed, Edges };

double drawNumber(Random &random, Draw draw) {
  constexpr double kEdges[] = {0, 1, -1, 89, -89, 100, -100, 1e4, -1e4};
  switch (draw) {
  case Draw::Positive:
    return 0.5 + 2 * random.unit();
  case Draw::Signed:
    return 4 * random.unit() - 2;
  case Draw::Edges:
    return kEdges[random.below(std::size(kEdges))];
  }
  return 0;
}

/// Operands: floats, small whole numbers, i1.
SmallVector<Tensor> drawOperands(nn::FusedOp op, Random &random, Draw draw) {
  SmallVector<Tensor> tensors;
  for (Value input : op.getInputs()) {
    Tensor tensor(cast<ShapedType>(input.getType()));
    for (double &value : tensor.floats)
      value = drawNumber(random, draw);
    if (draw == Draw::Edges && random.coin()) // equal rows
      for (double &value : tensor.floats)
        value = tensor.floats[0];
    for (int64_t &value : tensor.ints)
      value = random.below(tensor.element == reference::Element::I1 ? 2 : 8);
    tensor.roundToElement();
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

SmallVector<Tensor> interpreted(nn::FusedOp op, ArrayRef<Tensor> inputs) {
  SmallVector<const Tensor *> pointers;
  for (const Tensor &input : inputs)
    pointers.push_back(&input);
  auto results = reference::interpretOp(op, pointers,
                                        {reference::Rounding::ToType, nullptr});
  return failed(results) ? SmallVector<Tensor>() : std::move(*results);
}

/// Where elements differ by more than rounding; "" if nowhere.
std::string differenceOf(ArrayRef<Tensor> want, ArrayRef<Tensor> got) {
  for (auto [i, w, g] : llvm::enumerate(want, got)) {
    double scale = 0;
    for (int64_t j = 0; j < w.size(); ++j)
      if (std::isfinite(w.number(j)))
        scale = std::max(scale, std::fabs(w.number(j)));
    for (int64_t j = 0; j < w.size(); ++j) {
      double a = w.number(j), b = g.number(j);
      if (a == b || (std::isnan(a) && std::isnan(b)) ||
          std::fabs(a - b) <= kTolerance * (std::fabs(a) + scale))
        continue;
      return "result " + std::to_string(i) + " has " + std::to_string(b) +
             " instead of " + std::to_string(a) + " at element " +
             std::to_string(j) + " of " + std::to_string(w.size());
    }
  }
  return "";
}

/// True if small changes of the operands change the results as much as a fault.
bool isUnstable(nn::FusedOp op, ArrayRef<Tensor> inputs,
                ArrayRef<Tensor> want) {
  Random random(1);
  for (int trial = 0; trial < 16; ++trial) {
    SmallVector<Tensor> moved(inputs.begin(), inputs.end());
    for (Tensor &input : moved)
      for (double &value : input.floats)
        value *= 1 + kChange * (2 * random.unit() - 1);
    if (!differenceOf(want, interpreted(op, moved)).empty())
      return true;
  }
  return false;
}

/// One run of a compiled kernel in buffers of its own.
class Call {
public:
  Call(nn::FusedOp op, ArrayRef<Tensor> inputs, int64_t scratchBytes) : op(op) {
    for (const Tensor &input : inputs) {
      ins.push_back(allocate(input.size() * elementBytes(input.element)));
      input.toBytes(ins.back());
    }
    for (Type type : op->getResultTypes())
      outs.push_back(allocate(sizeInBytes(type)));
    scratch = allocate(scratchBytes);
  }
  ~Call() {
    for (void *each : owned)
      std::free(each);
  }

  /// Result `result` takes the bytes of operand `operand`.
  void overwrite(unsigned operand, unsigned result) {
    outs[result] = ins[operand];
  }

  SmallVector<Tensor> run(const Library &library, int kernel, int threads) {
    std::vector<const void *> from(ins.begin(), ins.end());
    if (const char *said =
            library.run(kernel, threads, from.data(), outs.data(), scratch))
      ADD_FAILURE() << said;
    SmallVector<Tensor> results;
    for (auto [type, out] : llvm::zip(op->getResultTypes(), outs)) {
      auto tensor = cast<RankedTensorType>(type);
      results.push_back(
          Tensor::fromBytes(reference::elementOf(tensor.getElementType()),
                            tensor.getShape(), out));
    }
    return results;
  }

private:
  nn::FusedOp op;
  std::vector<void *> ins, outs, owned;
  void *scratch;

  /// Aligned as the arena's buffers are, and full of NaNs.
  void *allocate(int64_t bytes) {
    int64_t rounded = (bytes + 64) / 64 * 64;
    owned.push_back(std::aligned_alloc(64, rounded));
    std::memset(owned.back(), 0xff, rounded);
    return owned.back();
  }
};

bool sameBits(ArrayRef<Tensor> a, ArrayRef<Tensor> b) {
  for (auto [x, y] : llvm::zip(a, b)) {
    std::vector<char> p(x.size() * 8), q(p);
    x.toBytes(p.data());
    y.toBytes(q.data());
    if (p != q)
      return false;
  }
  return true;
}

/// The step of a model of the tests as its kernels and views.
void takeModel(Groups &groups, StringRef path, CompileOptions options,
               std::vector<Compiled> &kept) {
  options.model = (TMC_SOURCE_DIR "/" + path).str();
  options.target = "cpu";
  kept.push_back(compileTo(options, Phase::Shape));
  Expected<void> &done = kept.back().done;
  ASSERT_TRUE(bool(done)) << done.failure().message;
  groups.take(kept.back().module(), -1);
}

/// The counts of a comparison of kernels with the interpreter.
struct Counts {
  int64_t overwrites = 0, undecided = 0, compared = 0;
};

/// Compares each kernel with the interpreter, on one thread and on two, and
/// with every overwrite that it permits.
Counts compareAll(Groups &groups) {
  Counts counts;
  Library library(groups.text());
  EXPECT_TRUE(library.run);
  if (!library.run)
    return counts;
  for (auto [i, op] : llvm::enumerate(groups.list)) {
    std::string text;
    llvm::raw_string_ostream(text) << op;
    SCOPED_TRACE(text);
    Random random(i);
    int64_t scratch = groups.scratchBytes(op);
    for (Draw draw : {Draw::Positive, Draw::Signed, Draw::Edges}) {
      SmallVector<Tensor> inputs = drawOperands(op, random, draw);
      SmallVector<Tensor> want = interpreted(op, inputs);
      EXPECT_FALSE(want.empty());
      SmallVector<Tensor> got =
          Call(op, inputs, scratch).run(library, i, /*threads=*/1);
      std::string difference = differenceOf(want, got);
      ++counts.compared;
      if (!difference.empty() && isUnstable(op, inputs, want))
        ++counts.undecided;
      else
        EXPECT_EQ(difference, "");
      EXPECT_TRUE(sameBits(
          got, Call(op, inputs, scratch).run(library, i, /*threads=*/2)))
          << "on two threads";
      for (auto [operand, result] :
           cast<KernelOpInterface>(op.getOperation()).getOverwrites()) {
        Call call(op, inputs, scratch);
        call.overwrite(operand, result);
        EXPECT_TRUE(sameBits(got, call.run(library, i, /*threads=*/2)))
            << "result " << result << " over operand " << operand;
        ++counts.overwrites;
      }
    }
    if (::testing::Test::HasFailure())
      break;
  }
  return counts;
}

} // namespace

TEST(FusedText, ComputesWhatItsRegionMeans) {
  std::unique_ptr<MLIRContext> context = makeContext();
  std::vector<OwningOpRef<ModuleOp>> steps;
  std::vector<Compiled> models;
  Groups groups;
  for (uint64_t seed = 0; int64_t(groups.list.size()) < kRandomGroups; ++seed) {
    GraphOptions options;
    options.f32 = true;
    options.exported = seed % 2;
    options.narrow = seed % 4 != 1;
    options.constants = seed % 3 != 2;
    steps.push_back(randomGraph(*context, seed, options));
    ASSERT_TRUE(succeeded(runPipeline(
        *steps.back(),
        "func.func(tmc-raise),func.func(tmc-layout),tmc-autodiff{optimizer="
        "sgd},canonicalize,cse,tmc-expand-composites,canonicalize,"
        "tmc-fold-into-kernels,canonicalize,tmc-fuse")));
    groups.take(*steps.back(), 2);
  }
  CompileOptions tokens, images;
  tokens.batch = images.batch = 2;
  tokens.dims["sequence"] = 24;
  takeModel(groups, "test/models/gpt2-tiny-dropout.onnx", tokens, models);
  takeModel(groups, "test/models/llama-tiny.onnx", tokens, models);
  takeModel(groups, "test/models/unet-tiny.onnx", images, models);

  const std::string text = groups.text();
  EXPECT_GE(StringRef(text).count("rounded<"), 10u); // Narrow types.
  EXPECT_GE(StringRef(text).count("f16 *out"), 10u);
  EXPECT_GE(StringRef(text).count("c.loadSame("), 1u);
  Counts counts = compareAll(groups);
  std::printf("  %zu kernels, %lld comparisons, %lld undecided, %lld "
              "overwrites\n",
              groups.list.size(), (long long)counts.compared,
              (long long)counts.undecided, (long long)counts.overwrites);
  EXPECT_LE(counts.undecided, counts.compared / 20);
  EXPECT_GE(counts.overwrites, 50);
}

/// One kernel, which multiplies by what `body` defines as %c.
static OwningOpRef<ModuleOp> scaledBy(MLIRContext &context, StringRef body) {
  return parse(context, (R"(
    func.func @f(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
      %0 = nn.fused (%a = %x) : (tensor<4x8xf32>) -> tensor<4x8xf32> {)" +
                         body + R"(
        %1 = arith.mulf %a, %c : tensor<4x8xf32>
        nn.yield %1 : tensor<4x8xf32>
      }
      return %0 : tensor<4x8xf32>
    })")
                            .str());
}

// The comparison finds a kernel that computes something else.
TEST(FusedText, FindsAnotherConstant) {
  std::unique_ptr<MLIRContext> context = makeContext();
  OwningOpRef<ModuleOp> module =
      scaledBy(*context, "%c = arith.constant dense<1.5> : tensor<4x8xf32>");
  ASSERT_TRUE(module);
  Groups groups;
  groups.take(*module, -1);
  std::string text = groups.text();
  size_t at = text.find("1.5f");
  ASSERT_NE(at, std::string::npos) << text;
  Library library(text.replace(at, 4, "1.5001f"));
  ASSERT_TRUE(library.run);
  Random random(1);
  nn::FusedOp op = groups.list[0];
  SmallVector<Tensor> inputs = drawOperands(op, random, Draw::Positive);
  SmallVector<Tensor> want = interpreted(op, inputs);
  EXPECT_NE(differenceOf(want, Call(op, inputs, 0).run(library, 0, 1)), "");
  EXPECT_FALSE(isUnstable(op, inputs, want));
}

// Two signs in a row would be a decrement.
TEST(FusedText, NegatesANegativeConstant) {
  std::unique_ptr<MLIRContext> context = makeContext();
  OwningOpRef<ModuleOp> module =
      scaledBy(*context, "%n = arith.constant dense<-0.5> : tensor<4x8xf32>\n"
                         "%c = arith.negf %n : tensor<4x8xf32>");
  ASSERT_TRUE(module);
  Groups groups;
  groups.take(*module, -1);
  Library library(groups.text());
  ASSERT_TRUE(library.run) << groups.text();
  Random random(1);
  nn::FusedOp op = groups.list[0];
  SmallVector<Tensor> inputs = drawOperands(op, random, Draw::Positive);
  EXPECT_EQ(differenceOf(interpreted(op, inputs),
                         Call(op, inputs, 0).run(library, 0, 1)),
            "");
}

// A choice among bf16 numbers and zero is one of them. It isn't rounded, and
// numbers that are rounded already aren't rounded by their store.
TEST(FusedText, RoundsNothingTwice) {
  std::unique_ptr<MLIRContext> context = makeContext();
  OwningOpRef<ModuleOp> module = parse(*context, R"(
    func.func @f(%x: tensor<4x8xbf16>, %g: tensor<4x8xbf16>) -> (tensor<4x8xbf16>, tensor<8xf32>) {
      %0:2 = nn.fused (%a = %x, %b = %g) : (tensor<4x8xbf16>, tensor<4x8xbf16>) -> (tensor<4x8xbf16>, tensor<8xf32>) {
        %zero = arith.constant dense<0.0> : tensor<4x8xf32>
        %u = arith.extf %a : tensor<4x8xbf16> to tensor<4x8xf32>
        %v = arith.extf %b : tensor<4x8xbf16> to tensor<4x8xf32>
        %c = arith.cmpf ogt, %u, %zero : tensor<4x8xf32>
        %d = arith.select %c, %v, %zero : tensor<4x8xi1>, tensor<4x8xf32>
        %t = arith.truncf %d : tensor<4x8xf32> to tensor<4x8xbf16>
        %w = arith.extf %t : tensor<4x8xbf16> to tensor<4x8xf32>
        %s = nn.reduce sum %w over [0] : (tensor<4x8xf32>) -> tensor<8xf32>
        nn.yield %t, %s : tensor<4x8xbf16>, tensor<8xf32>
      }
      return %0#0, %0#1 : tensor<4x8xbf16>, tensor<8xf32>
    })");
  ASSERT_TRUE(module);
  Groups groups;
  groups.take(*module, -1);
  const std::string text = groups.text();
  EXPECT_EQ(StringRef(text).count("rounded<"), 0u) << text;
  EXPECT_EQ(StringRef(text).count("c.storeRounded(out0"), 1u) << text;
  Library library(text);
  ASSERT_TRUE(library.run) << text;
  Random random(1);
  nn::FusedOp op = groups.list[0];
  SmallVector<Tensor> inputs = drawOperands(op, random, Draw::Signed);
  EXPECT_EQ(differenceOf(interpreted(op, inputs),
                         Call(op, inputs, 0).run(library, 0, 1)),
            "");
}

// Slices and parts of a concatenation are read and written where they lie: side
// by side in rows, as planes in the middle, each second row, below a reduction
// of rows, above each other, and from other columns than they are written to.
// The first two kernels may write over their operand, as each part is written
// by the thread that read it; the last one may not.
TEST(FusedText, ReadsAndWritesWindows) {
  std::unique_ptr<MLIRContext> context = makeContext();
  OwningOpRef<ModuleOp> module = parse(*context, R"(
    func.func @f(%x: tensor<6x48xf32>, %p: tensor<4x3x16xf32>, %n: tensor<6x32xbf16>)
        -> (tensor<6x48xf32>, tensor<6x32xbf16>, tensor<4x16xf32>, tensor<6x16xf32>, tensor<12x16xf32>, tensor<3x48xf32>, tensor<6x48xf32>) {
      %0 = nn.fused (%a = %x) : (tensor<6x48xf32>) -> tensor<6x48xf32> {
        %l = nn.slice %a [0, 0] step [1, 1] : (tensor<6x48xf32>) -> tensor<6x24xf32>
        %r = nn.slice %a [0, 24] step [1, 1] : (tensor<6x48xf32>) -> tensor<6x24xf32>
        %s = arith.addf %l, %r : tensor<6x24xf32>
        %m = arith.mulf %l, %r : tensor<6x24xf32>
        %w = nn.concat %s, %m {dim = 1 : i64} : (tensor<6x24xf32>, tensor<6x24xf32>) -> tensor<6x48xf32>
        nn.yield %w : tensor<6x48xf32>
      }
      %1 = nn.fused (%a = %n) : (tensor<6x32xbf16>) -> tensor<6x32xbf16> {
        %r = nn.slice %a [0, 16] step [1, 1] : (tensor<6x32xbf16>) -> tensor<6x16xbf16>
        %l = nn.slice %a [0, 0] step [1, 1] : (tensor<6x32xbf16>) -> tensor<6x16xbf16>
        %f = arith.extf %l : tensor<6x16xbf16> to tensor<6x16xf32>
        %g = arith.extf %r : tensor<6x16xbf16> to tensor<6x16xf32>
        %h = arith.mulf %f, %g : tensor<6x16xf32>
        %i = arith.subf %f, %g : tensor<6x16xf32>
        %t = arith.truncf %h : tensor<6x16xf32> to tensor<6x16xbf16>
        %u = arith.truncf %i : tensor<6x16xf32> to tensor<6x16xbf16>
        %w = nn.concat %t, %u {dim = 1 : i64} : (tensor<6x16xbf16>, tensor<6x16xbf16>) -> tensor<6x32xbf16>
        nn.yield %w : tensor<6x32xbf16>
      }
      %2 = nn.fused (%a = %p) : (tensor<4x3x16xf32>) -> tensor<4x16xf32> {
        %l = nn.slice %a [0, 0, 0] step [1, 1, 1] : (tensor<4x3x16xf32>) -> tensor<4x1x16xf32>
        %r = nn.slice %a [0, 2, 0] step [1, 1, 1] : (tensor<4x3x16xf32>) -> tensor<4x1x16xf32>
        %s = arith.subf %l, %r : tensor<4x1x16xf32>
        %w = nn.reshape %s : (tensor<4x1x16xf32>) -> tensor<4x16xf32>
        nn.yield %w : tensor<4x16xf32>
      }
      %3 = nn.fused (%a = %x) : (tensor<6x48xf32>) -> tensor<6x16xf32> {
        %l = nn.slice %a [0, 32] step [1, 1] : (tensor<6x48xf32>) -> tensor<6x16xf32>
        %s = nn.reduce sum %l over [1] : (tensor<6x16xf32>) -> tensor<6xf32>
        %b = nn.broadcast %s to [0] : (tensor<6xf32>) -> tensor<6x16xf32>
        %w = arith.addf %l, %b : tensor<6x16xf32>
        nn.yield %w : tensor<6x16xf32>
      }
      %4 = nn.fused (%a = %x) : (tensor<6x48xf32>) -> tensor<12x16xf32> {
        %l = nn.slice %a [0, 0] step [1, 1] : (tensor<6x48xf32>) -> tensor<6x16xf32>
        %r = nn.slice %a [0, 16] step [1, 1] : (tensor<6x48xf32>) -> tensor<6x16xf32>
        %s = arith.addf %l, %r : tensor<6x16xf32>
        %t = arith.subf %l, %r : tensor<6x16xf32>
        %w = nn.concat %s, %t {dim = 0 : i64} : (tensor<6x16xf32>, tensor<6x16xf32>) -> tensor<12x16xf32>
        nn.yield %w : tensor<12x16xf32>
      }
      %5 = nn.fused (%a = %x) : (tensor<6x48xf32>) -> tensor<3x48xf32> {
        %l = nn.slice %a [0, 0] step [2, 1] : (tensor<6x48xf32>) -> tensor<3x48xf32>
        %r = nn.slice %a [1, 0] step [2, 1] : (tensor<6x48xf32>) -> tensor<3x48xf32>
        %s = arith.subf %l, %r : tensor<3x48xf32>
        nn.yield %s : tensor<3x48xf32>
      }
      %6 = nn.fused (%a = %x) : (tensor<6x48xf32>) -> tensor<6x48xf32> {
        %l = nn.slice %a [0, 8] step [1, 1] : (tensor<6x48xf32>) -> tensor<6x16xf32>
        %r = nn.slice %a [0, 32] step [1, 1] : (tensor<6x48xf32>) -> tensor<6x16xf32>
        %s = arith.addf %l, %r : tensor<6x16xf32>
        %t = arith.subf %l, %r : tensor<6x16xf32>
        %u = arith.mulf %l, %r : tensor<6x16xf32>
        %w = nn.concat %s, %t, %u {dim = 1 : i64} : (tensor<6x16xf32>, tensor<6x16xf32>, tensor<6x16xf32>) -> tensor<6x48xf32>
        nn.yield %w : tensor<6x48xf32>
      }
      return %0, %1, %2, %3, %4, %5, %6 : tensor<6x48xf32>, tensor<6x32xbf16>, tensor<4x16xf32>, tensor<6x16xf32>, tensor<12x16xf32>, tensor<3x48xf32>, tensor<6x48xf32>
    })");
  ASSERT_TRUE(module);
  Groups groups;
  groups.take(*module, -1);
  ASSERT_EQ(groups.list.size(), 7u);
  Counts counts = compareAll(groups);
  EXPECT_EQ(counts.undecided, 0);
  EXPECT_EQ(counts.overwrites, 2 * 3);
}

// A window whose columns don't begin at multiples of 16 bytes has no kernel,
// and neither has an operand that is read in slices and as a whole.
TEST(FusedText, RefusesOtherWindows) {
  std::unique_ptr<MLIRContext> context = makeContext();
  for (const char *body :
       {"%l = nn.slice %a [0, 4] step [1, 1] : (tensor<6x48xf32>) -> "
        "tensor<6x24xf32>\n%w = arith.negf %l : tensor<6x24xf32>",
        "%l = nn.slice %a [0, 24] step [1, 1] : (tensor<6x48xf32>) -> "
        "tensor<6x24xf32>\n%n = arith.negf %a : tensor<6x48xf32>\n"
        "%r = nn.slice %n [0, 0] step [1, 1] : (tensor<6x48xf32>) -> "
        "tensor<6x24xf32>\n%w = arith.addf %l, %r : tensor<6x24xf32>"}) {
    OwningOpRef<ModuleOp> module = parse(
        *context, std::string("func.func @f(%x: tensor<6x48xf32>) -> "
                              "tensor<6x24xf32> {\n%0 = nn.fused (%a = %x) : "
                              "(tensor<6x48xf32>) -> tensor<6x24xf32> {\n") +
                      body +
                      "\nnn.yield %w : tensor<6x24xf32>\n}\n"
                      "return %0 : tensor<6x24xf32>\n}");
    ASSERT_TRUE(module);
    module->walk(
        [&](nn::FusedOp op) { EXPECT_FALSE(nn::planFused(op.getBlock())); });
  }
}
