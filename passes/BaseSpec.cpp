// BaseSpec.cpp - reads --base, and answers questions about it.

#include "passes/BaseSpec.h"

#include "passes/Precision.h"

using namespace tmc;
using llvm::StringRef;

static constexpr std::pair<const char *, BaseFormat> kFormats[] = {
    {"keep", BaseFormat::Keep}, {"f32", BaseFormat::F32},
    {"bf16", BaseFormat::BF16}, {"int8", BaseFormat::Int8},
    {"nf4", BaseFormat::Nf4},   {"nf4:plain", BaseFormat::Nf4Plain}};

StringRef tmc::nameOf(BaseFormat format) {
  for (const auto &[name, its] : kFormats)
    if (its == format)
      return name;
  return "";
}

static llvm::Error badSpec(const llvm::Twine &message) {
  return llvm::createStringError(llvm::inconvertibleErrorCode(),
                                 "base: " + message);
}

static llvm::Expected<BaseFormat> formatNamed(StringRef text) {
  for (const auto &[name, format] : kFormats)
    if (text == name)
      return format;
  return badSpec("there is no format '" + text +
                 "'; there are nf4, nf4:plain, int8, bf16, f32 and keep");
}

llvm::Expected<BaseSpec> BaseSpec::parse(StringRef text) {
  BaseSpec spec;
  spec.given = text.str();
  if (text.empty())
    return spec;
  llvm::SmallVector<StringRef> parts;
  text.split(parts, ',');
  llvm::Expected<BaseFormat> base = formatNamed(parts[0].trim());
  if (!base)
    return base.takeError();
  spec.base = *base;
  for (StringRef part : llvm::ArrayRef(parts).drop_front()) {
    auto [glob, name] = part.trim().split('=');
    if (glob.empty() || name.empty())
      return badSpec("'" + part.trim() + "' isn't of the form NAME=FORMAT");
    llvm::Expected<BaseFormat> format = formatNamed(name);
    if (!format)
      return format.takeError();
    llvm::Expected<llvm::GlobPattern> pattern = llvm::GlobPattern::create(glob);
    if (!pattern)
      return badSpec("'" + glob + "': " + llvm::toString(pattern.takeError()));
    spec.list.push_back({glob.str(), std::move(*pattern), *format});
  }
  return spec;
}

BaseSpec::Choice BaseSpec::choose(llvm::ArrayRef<std::string> names) const {
  Choice choice{base, -1};
  for (size_t i = 0; i < list.size(); ++i)
    for (const std::string &name : names)
      eachModule(name, [&](StringRef module) {
        if (list[i].pattern.match(module))
          choice = {list[i].format, int(i)};
      });
  return choice;
}
