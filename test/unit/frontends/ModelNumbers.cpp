// ModelNumbers.cpp - what models give, and the gradients of their losses.
//
//   model-numbers [--differences] FILE... > numbers.jsonl
//
// Each .pt2 or .onnx file is imported and interpreted in double, with the
// values that it stores. One line of JSON for each says what came of it:
//
//   {"file":"a.pt2","outputs":{"y0":[1,2]},"gradients":{"p0":[0.5]}}
//   {"file":"b.pt2","code":4,"why":"...","notes":["..."]}
//
// A file named *.forward.* has no loss, and no gradients. {"begin":"a.pt2"}
// comes before each, so that a crash has a name. With --differences,
//
//   "slopes":{"p0":[1.5,1.5,4]}
//
// has for each parameter the loss's slope in a random direction by the
// gradient, by the five-point difference of the loss, and the sum of the
// slope's parts without their signs. For bench/operators.

#include "test/unit/frontends/Operators.h"

#include "dialects/train/Train.h"
#include "frontends/onnx/Import.h"
#include "frontends/torch/Import.h"

#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace tmc;
using namespace tmc::test;
using reference::Tensor;

using Numbers = std::map<std::string, const Tensor *>;

/// With names for what JSON has no numbers for, as Python reads them.
static void printNumber(double v) {
  if (std::isnan(v))
    llvm::outs() << "NaN";
  else if (std::isinf(v))
    llvm::outs() << (v < 0 ? "-Infinity" : "Infinity");
  else
    llvm::outs() << llvm::format("%.17g", v);
}

static void print(const Numbers &tensors) {
  llvm::outs() << "{";
  llvm::interleaveComma(tensors, llvm::outs(), [](const auto &entry) {
    llvm::outs() << llvm::json::Value(entry.first) << ":[";
    for (int64_t k = 0; k < entry.second->size(); ++k) {
      llvm::outs() << (k ? "," : "");
      printNumber(entry.second->number(k));
    }
    llvm::outs() << "]";
  });
  llvm::outs() << "}";
}

static void refuse(const Failure &failure) {
  llvm::json::Array notes;
  for (const std::string &note : failure.notes)
    notes.push_back(llvm::json::fixUTF8(note));
  llvm::outs() << "\"code\":" << failure.exitCode()
               << ",\"why\":" << llvm::json::Value(failure.message)
               << ",\"notes\":" << llvm::json::Value(std::move(notes));
}

static Expected<ImportedModel> import(StringRef path, bool needLoss,
                                      MLIRContext &context) {
  ImportOptions options;
  options.needLoss = needLoss;
  if (needLoss)
    options.loss = "loss";
  return path.ends_with(".onnx") ? importOnnx(path.str(), options, context)
                                 : importTorch(path.str(), options, context);
}

/// The stored values of the arguments; zeros for those without.
static SmallVector<Tensor> inputsOf(FunctionOpInterface function,
                                    ImportedModel &model) {
  SmallVector<Tensor> inputs;
  for (unsigned i = 0; i < function.getNumArguments(); ++i) {
    auto type = cast<RankedTensorType>(function.getArgumentTypes()[i]);
    auto bytes = model.weights->read(train::argName(function, i).str());
    inputs.push_back(
        bytes ? Tensor::fromBytes(reference::elementOf(type.getElementType()),
                                  type.getShape(), bytes->data())
              : Tensor(type));
  }
  return inputs;
}

/// The results of the module's function by name.
static std::optional<SmallVector<Tensor>> run(ImportedModel &model) {
  FunctionOpInterface function = functionOf(*model.module);
  auto results = inDouble(function, inputsOf(function, model));
  if (failed(results))
    return std::nullopt;
  return std::move(*results);
}

static Numbers named(FunctionOpInterface function, ArrayRef<Tensor> results,
                     StringRef suffix) {
  Numbers numbers;
  for (auto [i, tensor] : llvm::enumerate(results)) {
    StringRef name = train::resultName(function, i);
    if (name.consume_back(suffix))
      numbers[name.str()] = &tensor;
  }
  return numbers;
}

/// The slopes of the loss of `function`, whose gradients are `stepped`.
static void printSlopes(FunctionOpInterface function, ImportedModel &model,
                        const Numbers &gradients) {
  Random random(7);
  const SmallVector<Tensor> inputs = inputsOf(function, model);
  const std::optional<unsigned> loss = train::lossResult(function);
  llvm::outs() << ",\"slopes\":{";
  bool isFirst = true;
  for (unsigned i = 0; i < function.getNumArguments(); ++i) {
    auto gradient = gradients.find(train::argName(function, i).str());
    if (gradient == gradients.end() || !loss)
      continue;
    std::vector<double> direction;
    double slope = 0, size = 0;
    for (int64_t k = 0; k < gradient->second->size(); ++k) {
      direction.push_back(2 * random.unit() - 1);
      slope += direction[k] * gradient->second->floats[k];
      size += std::fabs(direction[k] * gradient->second->floats[k]);
    }
    auto at = [&](double distance) {
      SmallVector<Tensor> moved = inputs;
      for (size_t k = 0; k < direction.size(); ++k)
        moved[i].floats[k] += distance * direction[k];
      auto results = inDouble(function, moved);
      return failed(results) ? NAN : (*results)[*loss].floats[0];
    };
    constexpr double kStep = 0x1p-13;
    const double fine =
        (8 * (at(kStep) - at(-kStep)) - (at(2 * kStep) - at(-2 * kStep))) /
        (12 * kStep);
    llvm::outs() << (isFirst ? "" : ",") << llvm::json::Value(gradient->first)
                 << ":[";
    printNumber(slope);
    llvm::outs() << ",";
    printNumber(fine);
    llvm::outs() << ",";
    printNumber(size);
    llvm::outs() << "]";
    isFirst = false;
  }
  llvm::outs() << "}";
}

static void evaluate(StringRef path, bool withSlopes) {
  std::unique_ptr<MLIRContext> context = makeContext();
  // What MLIR has to say is part of the line.
  std::string said;
  ScopedDiagnosticHandler handler(context.get(), [&](Diagnostic &diagnostic) {
    said += (said.empty() ? "" : "; ") + diagnostic.str();
    return success();
  });
  const bool isTrained = !path.contains(".forward.");
  auto model = import(path, isTrained, *context);
  if (!model)
    return refuse(model.failure());
  auto outputs = run(*model);
  if (!outputs)
    return refuse(Failure::defect("the interpreter refuses it: " + said));
  llvm::outs() << "\"outputs\":";
  print(named(functionOf(*model->module), *outputs, ""));
  if (!isTrained)
    return;
  llvm::outs() << ",";
  OwningOpRef<ModuleOp> forward =
      withSlopes ? OwningOpRef<ModuleOp>(model->module->clone()) : nullptr;
  if (failed(runPipeline(*model->module,
                         "tmc-autodiff{keep-gradients optimizer=sgd}")))
    return refuse(Failure::defect("no gradient: " + said));
  auto stepped = run(*model);
  if (!stepped)
    return refuse(Failure::defect("the interpreter refuses the step: " + said));
  llvm::outs() << "\"gradients\":";
  const Numbers gradients =
      named(functionOf(*model->module), *stepped, ".grad");
  print(gradients);
  if (withSlopes)
    printSlopes(functionOf(*forward), *model, gradients);
}

int main(int argc, char **argv) {
  const bool withSlopes = argc > 1 && StringRef(argv[1]) == "--differences";
  for (int i = withSlopes ? 2 : 1; i < argc; ++i) {
    llvm::outs() << "{\"begin\":" << llvm::json::Value(argv[i]) << "}\n";
    llvm::outs().flush();
    llvm::outs() << "{\"file\":" << llvm::json::Value(argv[i]) << ",";
    evaluate(argv[i], withSlopes);
    llvm::outs() << "}\n";
    llvm::outs().flush();
  }
  return 0;
}
