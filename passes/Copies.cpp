#include "passes/Copies.h"

using namespace mlir;
using namespace tmc;

static bool isTaken(train::StepOp step, StringRef name) {
  for (unsigned i = 0; i < step.getNumArguments(); ++i)
    if (train::argName(step, i) == name)
      return true;
  return false;
}

BlockArgument tmc::addCopy(train::StepOp step, unsigned param, Type type) {
  using train::TrainDialect;
  Builder b(step.getContext());
  std::string copied = train::argName(step, param).str();
  std::string suffix = getElementTypeOrSelf(type).isBF16() ? ".bf16" : ".f16";
  std::string name = copied + suffix;
  for (int64_t i = 2; isTaken(step, name); ++i)
    name = copied + "." + std::to_string(i) + suffix;
  SmallVector<NamedAttribute> attrs = {
      b.getNamedAttr(TrainDialect::kCopyOf, b.getStringAttr(copied))};
  if (auto parts =
          step.getArgAttrOfType<ArrayAttr>(param, TrainDialect::kParts))
    attrs.push_back(b.getNamedAttr(TrainDialect::kParts,
                                   train::partsBeside(parts, 1, 1, suffix)));
  return train::addState(step, name, type, attrs);
}
