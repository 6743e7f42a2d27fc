#include "frontends/common/Defaults.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"

using namespace tmc::frontend;
using llvm::StringRef;

Defaults::Defaults(llvm::ArrayRef<Line> lines) {
  for (const Line &line : lines)
    byOp[line.op] = line.arguments;
}

std::optional<StringRef> Defaults::find(StringRef op,
                                        StringRef argument) const {
  llvm::SmallVector<StringRef> entries;
  byOp.lookup(op).split(entries, ' ');
  for (StringRef entry : entries) {
    auto [name, value] = entry.split('=');
    if (name == argument)
      return value;
  }
  return std::nullopt;
}

bool tmc::frontend::isNumber(StringRef text, double value) {
  if (text == "True" || text == "False")
    return value == (text == "True");
  double number;
  return !text.getAsDouble(number) && number == value;
}

bool tmc::frontend::isList(StringRef text, llvm::ArrayRef<double> values) {
  if (!text.consume_front("["))
    return llvm::all_of(values, [&](double v) { return isNumber(text, v); });
  text.consume_back("]");
  llvm::SmallVector<StringRef> entries;
  text.split(entries, ',', /*MaxSplit=*/-1, /*KeepEmpty=*/false);
  return llvm::equal(entries, values, isNumber);
}
