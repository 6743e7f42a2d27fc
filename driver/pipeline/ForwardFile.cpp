#include "driver/pipeline/ForwardFile.h"

#include "dialects/train/Train.h"
#include "frontends/common/Names.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

using namespace mlir;
using namespace tmc;

bool tmc::isForwardFile(const std::string &path) {
  return llvm::sys::path::extension(path) == ".mlir";
}

tmc::Expected<OwningOpRef<ModuleOp>> tmc::readForward(const std::string &path,
                                                      MLIRContext &context) {
  if (!llvm::sys::fs::is_regular_file(path))
    return Failure::world("can't open '" + path + "'");
  Failure failure = Failure::input("'" + path + "' isn't IR of a model");
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    std::string where;
    if (auto at = dyn_cast<FileLineColLoc>(diagnostic.getLocation()))
      where = " at line " + std::to_string(at.getLine());
    failure.notes.push_back(diagnostic.str() + where);
    return success();
  });
  auto module = parseSourceFile<ModuleOp>(path, &context);
  if (!module)
    return failure;
  if (std::optional<Failure> bad = findBadName(*module))
    return std::move(*bad).note("in '" + path + "'");
  auto forward = module->lookupSymbol<func::FuncOp>("forward");
  if (!forward)
    return Failure::input("'" + path + "' has no function @forward");
  for (unsigned i = 0; i < forward.getNumArguments(); ++i)
    if (!train::roleOf(forward, i) || train::argName(forward, i).empty())
      return Failure::input("argument " + std::to_string(i) +
                            " of @forward in '" + path +
                            "' lacks train.role or train.name");
  int64_t losses = 0;
  for (unsigned i = 0; i < forward.getNumResults(); ++i)
    losses += bool(forward.getResultAttr(i, train::TrainDialect::kLoss));
  if (losses != 1)
    return Failure::input("@forward in '" + path + "' has " +
                          std::to_string(losses) +
                          " results marked train.loss; it takes one");
  return module;
}
