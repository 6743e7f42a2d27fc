// TorchStateTest.cpp - what forward writes and the next step reads, beside
// PyTorch.
//
// A case is test/unit/frontends/states/NAME.pt2, an exported model, and
// NAME.json, what PyTorch gives in double over several steps of SGD (make.py).
// The program is planned, lowered and run on bytes, each step on what the one
// before left in the named buffers.

#include "test/unit/frontends/Operators.h"

#include "compiler/reference/Program.h"
#include "dialects/mem/Mem.h"
#include "dialects/train/Train.h"
#include "frontends/torch/Import.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"

#include <gtest/gtest.h>

using namespace mlir;
using namespace tmc;
using namespace tmc::test;
using reference::Tensor;

static constexpr StringRef kDirectory =
    TMC_SOURCE_DIR "/test/unit/frontends/states";
/// The rate of make.py.
static constexpr double kRate = 0.1;
/// A few roundings to f32 a step.
static constexpr double kRounding = 1e-5;

namespace {

/// A step that runs on bytes.
struct Steps {
  std::unique_ptr<MLIRContext> context;
  OwningOpRef<ModuleOp> planned, lowered;
  reference::LaunchMeaning meaning;
  llvm::StringMap<Tensor> values;
  std::string batch, loss; ///< The one input, and the result.

  /// False, with a failure of the test, where something fails.
  bool make(const std::string &name);
  bool run(const llvm::json::Array &elements);
  bool read(FunctionOpInterface function, ImportedModel &model);
  bool plan(ModuleOp module);
};

} // namespace

/// The values of the arguments; zeros where the file has none.
bool Steps::read(FunctionOpInterface function, ImportedModel &model) {
  for (unsigned i = 0; i < function.getNumArguments(); ++i) {
    std::string name = train::argName(function, i).str();
    auto type = cast<RankedTensorType>(function.getArgumentTypes()[i]);
    Tensor &value = values[name] =
        Tensor(reference::elementOf(type.getElementType()), type.getShape());
    std::optional<train::Role> role = train::roleOf(function, i);
    if (role == train::Role::Batch)
      batch = name;
    if (role != train::Role::Param && role != train::Role::State)
      continue;
    auto bytes = model.weights->read(name);
    if (!bytes) {
      ADD_FAILURE() << "no value of " << name;
      return false;
    }
    value = Tensor::fromBytes(value.element, type.getShape(), bytes->data());
  }
  return true;
}

bool Steps::plan(ModuleOp module) {
  if (failed(runPipeline(
          module, "func.func(tmc-raise,tmc-layout),canonicalize,cse,"
                  "tmc-autodiff{optimizer=sgd},canonicalize,cse,"
                  "tmc-expand-composites,canonicalize,tmc-fold-into-kernels,"
                  "tmc-round-as-read,canonicalize,tmc-fuse,tmc-copy-views,"
                  "train.step(tmc-plan{quick effort=1 budget=-1})")))
    return false;
  planned = module.clone();
  lowered = module.clone();
  if (failed(runPipeline(*lowered, "tmc-lower,mem.program(tmc-place)")))
    return false;
  auto found = reference::meaningOf(*planned->getOps<train::StepOp>().begin(),
                                    *lowered->getOps<mem::ProgramOp>().begin());
  if (failed(found))
    return false;
  meaning = std::move(*found);
  return true;
}

bool Steps::make(const std::string &name) {
  context = makeContext();
  auto model =
      importTorch((kDirectory + "/" + name + ".pt2").str(), {}, *context);
  if (!model) {
    ADD_FAILURE() << model.failure().message << "\n  "
                  << llvm::join(model.failure().notes, "\n  ");
    return false;
  }
  FunctionOpInterface function = functionOf(*model->module);
  if (std::optional<unsigned> result = train::lossResult(function))
    loss = train::resultName(function, *result).str();
  if (!read(function, *model) || !plan(*model->module)) {
    ADD_FAILURE() << name << " makes no step";
    return false;
  }
  values["lr"] = Tensor(reference::Element::F32, {});
  values["lr"].floats[0] = kRate;
  values["step"] = Tensor(reference::Element::I64, {});
  return true;
}

bool Steps::run(const llvm::json::Array &elements) {
  for (auto [i, element] : llvm::enumerate(elements))
    values[batch].floats[i] = *element.getAsNumber();
  ++values["step"].ints[0];
  auto results = reference::interpretProgram(
      *lowered->getOps<mem::ProgramOp>().begin(), meaning, values);
  if (failed(results))
    return false;
  for (const auto &entry : *results)
    values[entry.first()] = entry.second;
  return true;
}

static void compare(const std::string &name, const Tensor &got,
                    const llvm::json::Array &wanted) {
  ASSERT_EQ(got.size(), static_cast<int64_t>(wanted.size())) << name;
  for (int64_t k = 0; k < got.size(); ++k)
    EXPECT_TRUE(agree(got.number(k), *wanted[k].getAsNumber(), kRounding))
        << name << "[" << k << "] is " << got.number(k) << " instead of "
        << *wanted[k].getAsNumber();
}

class TorchStates : public testing::TestWithParam<std::string> {};

TEST_P(TorchStates, MoveAsInPyTorch) {
  Steps steps;
  ASSERT_TRUE(steps.make(GetParam()));
  StringRef stem = GetParam();
  stem.consume_back("-core");
  auto file = llvm::MemoryBuffer::getFile(kDirectory + "/" + stem + ".json");
  ASSERT_TRUE(bool(file));
  auto wanted = llvm::json::parse((*file)->getBuffer());
  ASSERT_TRUE(bool(wanted));
  const llvm::json::Object &root = *wanted->getAsObject();
  const llvm::json::Array &losses = *root.getArray("losses");
  for (auto [i, batch] : llvm::enumerate(*root.getArray("batches"))) {
    ASSERT_TRUE(steps.run(*batch.getAsArray()));
    compare("the loss of step " + std::to_string(i), steps.values[steps.loss],
            llvm::json::Array({losses[i]}));
  }
  for (const auto &[name, elements] : *root.getObject("state"))
    if (auto found = steps.values.find(StringRef(name));
        found != steps.values.end())
      compare(StringRef(name).str(), found->second, *elements.getAsArray());
    else
      EXPECT_TRUE(StringRef(name).ends_with("num_batches_tracked"))
          << "the step has no " << StringRef(name).str();
}

static std::vector<std::string> cases() {
  return stemsIn(kDirectory.str(), ".pt2");
}

INSTANTIATE_TEST_SUITE_P(Cases, TorchStates, testing::ValuesIn(cases()),
                         testName);

// A directory that has gone would leave nothing to fail.
TEST(TorchStateCases, AreThere) { EXPECT_GE(cases().size(), 16u); }
