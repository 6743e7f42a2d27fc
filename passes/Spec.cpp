#include "passes/Spec.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"

using namespace llvm;

namespace tmc {

Error Spec::error(const Twine &message) const {
  return createStringError(inconvertibleErrorCode(), of + ": " + message);
}

Expected<Spec> Spec::parse(StringRef of, StringRef text) {
  Spec spec;
  spec.of = of.str();
  StringRef rest = text.trim();
  size_t open = rest.find('(');
  spec.name = rest.substr(0, open).trim().lower();
  if (open == StringRef::npos)
    return spec;
  if (!rest.ends_with(")"))
    return spec.error("'" + text + "' lacks a closing parenthesis");
  SmallVector<StringRef> parts;
  rest.substr(open + 1).drop_back().split(parts, ',', -1, false);
  for (StringRef part : parts) {
    auto [key, value] = part.split('=');
    if (value.empty())
      return spec.error("'" + part.trim() + "' isn't of the form key=value");
    spec.options[key.trim().str()] = value.trim().str();
  }
  return spec;
}

double Spec::number(const std::string &key, double standard) {
  known.push_back(key);
  auto it = options.find(key);
  if (it == options.end())
    return standard;
  double value = standard;
  if (StringRef(it->second).getAsDouble(value) && problem.empty())
    problem = key + "=" + it->second + " is no number";
  options.erase(it);
  return value;
}

std::string Spec::word(const std::string &key, const std::string &standard) {
  known.push_back(key);
  auto it = options.find(key);
  if (it == options.end())
    return standard;
  std::string value = it->second;
  options.erase(it);
  return value;
}

bool Spec::isSecond(const std::string &key, StringRef first, StringRef second) {
  std::string value = word(key, first.str());
  if (value != first && value != second && problem.empty())
    problem =
        (key + "=" + value + " is neither " + first + " nor " + second).str();
  return value == second;
}

Error Spec::finish() const {
  if (!problem.empty())
    return error(problem);
  if (options.empty())
    return Error::success();
  const std::string unknown =
      "'" + name + "' has no option '" + options.begin()->first + "'";
  return error(unknown +
               (known.empty() ? "" : "; it has " + join(known, ", ")));
}

} // namespace tmc
