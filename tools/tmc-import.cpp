// tmc-import - prints the module that a frontend builds from a model: a tool
// for tests and for authors of importers, like tmc-opt.
//
//   tmc-import model.onnx --batch 4 --dim sequence=64
//   tmc-import model.pt2
//   tmc-import model.txt             any other file is protobuf's text format
//   tmc-import model.txt --encode    the same as the bytes of an .onnx file

#include "compiler/support/Escape.h"
#include "frontends/onnx/Import.h"
#include "frontends/onnx/Node.h"
#include "frontends/torch/Call.h"
#include "frontends/torch/Import.h"

#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OperationSupport.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/raw_ostream.h"

#include <google/protobuf/text_format.h>
#include <onnx/onnx_pb.h>

#include <fstream>
#include <sstream>

using namespace tmc;
namespace cl = llvm::cl;

static int report(const Failure &failure) {
  llvm::errs() << "error: " << visible(failure.message) << "\n";
  for (const std::string &note : failure.notes)
    llvm::errs() << "note: " << visible(note) << "\n";
  return failure.exitCode();
}

/// The model in protobuf's text format, as bytes of an .onnx file.
static Expected<std::string> fromText(const std::string &path) {
  std::ifstream file(path);
  if (!file)
    return Failure::world("cannot open '" + path + "'");
  std::stringstream text;
  text << file.rdbuf();
  onnx::ModelProto model;
  if (!google::protobuf::TextFormat::ParseFromString(text.str(), &model))
    return Failure::input("'" + path + "' isn't a model in text format");
  return model.SerializeAsString();
}

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  cl::opt<std::string> input(cl::Positional, cl::desc("MODEL"));
  cl::opt<bool> operators("operators", cl::desc("list ONNX's known operators"));
  cl::opt<bool> torchOperators("torch-operators",
                               cl::desc("list PyTorch's known operators"));
  cl::opt<int64_t> batch("batch", cl::desc("size of the batch"), cl::init(0));
  cl::list<std::string> dims("dim", cl::desc("NAME=N: size of a dimension"));
  cl::opt<std::string> loss("loss", cl::desc("what is minimised"));
  cl::opt<bool> noLoss("no-loss", cl::desc("a model without one will do"));
  cl::list<std::string> freeze("freeze", cl::desc("GLOB of untrained names"));
  cl::opt<bool> locations("locations", cl::desc("print locations"));
  cl::opt<bool> encode("encode", cl::desc("print the model's bytes"));
  cl::opt<bool> quiet("quiet", cl::desc("print no module"));
  cl::opt<bool> weights("weights", cl::desc("say whether values are found"));
  cl::ParseCommandLineOptions(argc, argv, "prints an imported model\n");

  if (operators) {
    for (const std::string &name : onnx_import::operatorNames())
      llvm::outs() << name << "\n";
    return 0;
  }
  if (torchOperators) {
    for (const std::string &name : torch_import::operatorNames())
      llvm::outs() << name << "\n";
    return 0;
  }
  ImportOptions options;
  if (batch.getNumOccurrences())
    options.batch = batch;
  for (const std::string &entry : dims) {
    auto [name, size] = llvm::StringRef(entry).rsplit('=');
    int64_t number;
    if (size.getAsInteger(10, number))
      return report(Failure::usage("--dim " + entry + " isn't NAME=N"));
    options.dims[name.str()] = number;
  }
  options.loss = loss;
  options.needLoss = !noLoss;
  options.freeze.assign(freeze.begin(), freeze.end());

  mlir::DialectRegistry registry;
  registerImportDialects(registry);
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  context.printOpOnDiagnostic(false);
  std::string path = input;
  bool isTorch = llvm::StringRef(path).ends_with(".pt2");
  bool isText = !isTorch && !llvm::StringRef(path).ends_with(".onnx");
  std::string directory = path.find('/') == std::string::npos
                              ? "."
                              : path.substr(0, path.rfind('/'));
  std::optional<Expected<ImportedModel>> model;
  if (isText) {
    auto bytes = fromText(path);
    if (!bytes)
      return report(bytes.failure());
    if (encode) {
      llvm::outs() << *bytes;
      return 0;
    }
    model.emplace(importOnnxBytes(*bytes, directory, options, context));
  } else if (isTorch) {
    model.emplace(importTorch(path, options, context));
  } else {
    model.emplace(importOnnx(path, options, context));
  }
  if (!*model)
    return report(model->failure());
  for (const std::string &warning : (*model)->warnings)
    llvm::errs() << "warning: " << visible(warning) << "\n";
  if (weights)
    for (const std::string &name : (*model)->weights->names()) {
      auto bytes = (*model)->weights->read(name);
      if (!bytes)
        return report(bytes.failure());
      llvm::outs() << visible(name) << ": " << bytes->size() << " bytes\n";
    }
  if (quiet)
    return 0;
  mlir::OpPrintingFlags flags;
  flags.elideLargeElementsAttrs(16);
  if (locations)
    flags.enableDebugInfo(true, /*prettyForm=*/true);
  (*model)->module->print(llvm::outs(), flags);
  return 0;
}
