#include "frontends/common/Names.h"

#include "compiler/support/Escape.h"

#include "mlir/IR/AttrTypeSubElements.h"

using namespace mlir;

std::optional<tmc::Failure> tmc::findBadName(ModuleOp module) {
  std::optional<Failure> found;
  AttrTypeWalker walker; // Visits each attribute once.
  walker.addWalk([&](StringAttr name) {
    std::string fault = nameFault(name.getValue());
    if (fault.empty())
      return WalkResult::advance();
    found = Failure::input("the name '" +
                           visible(name.getValue(), /*isName=*/true) + "' " +
                           fault);
    return WalkResult::interrupt();
  });
  module->walk([&](Operation *op) {
    bool isBad = walker.walk(op->getAttrDictionary()).wasInterrupted() ||
                 walker.walk(LocationAttr(op->getLoc())).wasInterrupted();
    for (Region &region : op->getRegions())
      for (Block &block : region)
        for (BlockArgument argument : block.getArguments())
          isBad = isBad ||
                  walker.walk(LocationAttr(argument.getLoc())).wasInterrupted();
    return isBad ? WalkResult::interrupt() : WalkResult::advance();
  });
  return found;
}
