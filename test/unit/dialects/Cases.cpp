#include "test/unit/dialects/Cases.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

using namespace mlir;
using namespace tmc::test;

Cases::Cases() : context(makeContext()) {
  // In order of names, so that a failure is the same on every machine.
  std::vector<std::string> names;
  const std::string folder = "test/unit/dialects/cases";
  std::error_code error;
  for (llvm::sys::fs::directory_iterator it(TMC_SOURCE_DIR "/" + folder, error),
       end;
       it != end && !error; it.increment(error))
    if (llvm::sys::path::extension(it->path()) == ".mlir")
      names.push_back(llvm::sys::path::filename(it->path()).str());
  llvm::sort(names);
  for (const std::string &name : names) {
    OwningOpRef<ModuleOp> module = parseFile(*context, folder + "/" + name);
    if (!module)
      llvm::report_fatal_error(llvm::StringRef("can't read the cases of ") +
                               name);
    llvm::append_range(functions, module->getOps<func::FuncOp>());
    modules.push_back(std::move(module));
  }
}

Cases &Cases::get() {
  static Cases cases;
  return cases;
}

Operation *Cases::getOp(func::FuncOp function) {
  return function.getBody().front().getTerminator()->getPrevNode();
}
