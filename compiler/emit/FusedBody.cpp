// FusedBody.cpp - the C++ text of a generated kernel.

#include "compiler/emit/FusedBody.h"

#include "compiler/emit/FusedPrinter.h"
#include "dialects/interfaces/Fault.h"

#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace tmc;

static void collectNames(Location loc, llvm::SetVector<StringRef> &names) {
  if (auto name = dyn_cast<NameLoc>(loc))
    names.insert(name.getName().getValue());
  else if (auto fused = dyn_cast<FusedLoc>(loc))
    for (Location part : fused.getLocations())
      collectNames(part, names);
}

/// The names in the model of the ops of `block`: the first few of them.
static std::string namesOf(Block &block) {
  constexpr size_t kMostNames = 4;
  llvm::SetVector<StringRef> names;
  for (Operation &op : block.without_terminator())
    collectNames(op.getLoc(), names);
  std::string text =
      llvm::join(ArrayRef(names.getArrayRef()).take_front(kMostNames), ", ");
  if (names.size() > kMostNames)
    text += ", ...";
  return text.empty() ? "generated" : text;
}

LogicalResult tmc::printFusedBody(mem::KernelOp kernel, llvm::raw_ostream &os) {
  std::string why;
  std::optional<nn::FusedPlan> plan = nn::planFused(kernel.getBlock(), &why);
  if (!plan)
    return emitFault(kernel.getLoc(), FailureKind::Unsupported)
           << "'" << kernel.getSymName() << "' has no kernel: " << why;
  printFused(os, kernel.getSymName(), kernel.getBlock(), *plan,
             namesOf(kernel.getBlock()));
  return success();
}
