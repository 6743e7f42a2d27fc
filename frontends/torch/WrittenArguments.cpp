#include "frontends/torch/WrittenArguments.h"

#include "llvm/ADT/StringMap.h"

using namespace tmc;
using llvm::SmallVector;
using llvm::StringRef;

/// Operators for which no rule below is right, and the arguments that they
/// write.
static const llvm::StringMap<StringRef> &exceptions() {
  static const llvm::StringMap<StringRef> table = {
#define WRITES(name, arguments) {name, arguments},
#include "frontends/torch/WrittenArguments.inc"
#undef WRITES
  };
  return table;
}

SmallVector<StringRef> tmc::torch_import::writtenArguments(StringRef target) {
  StringRef name = target.split('.').second;
  auto [op, overload] = name.rsplit('.');
  SmallVector<StringRef> written;
  if (auto found = exceptions().find(name); found != exceptions().end())
    found->second.split(written, ' ', -1, /*KeepEmpty=*/false);
  else if (op.size() > 1 && op.ends_with("_") && !op.ends_with("__"))
    written.push_back("self");
  else if (overload == "out" || overload.ends_with("_out"))
    written.push_back("out");
  else if (overload == "grad_input")
    written.push_back("grad_input");
  return written;
}
