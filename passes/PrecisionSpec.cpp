// PrecisionSpec.cpp - reads --precision, and answers questions about it.

#include "passes/Precision.h"

#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace tmc {

static llvm::Error badSpec(const llvm::Twine &message) {
  return llvm::createStringError(llvm::inconvertibleErrorCode(),
                                 "precision: " + message);
}

llvm::Expected<PrecisionSpec::Format>
PrecisionSpec::parseFormat(StringRef text) {
  if (text == "f32")
    return Format::F32;
  if (text == "bf16")
    return Format::BF16;
  if (text == "fp16")
    return Format::FP16;
  if (text == "tf32")
    return Format::TF32;
  if (text == "fp8" || text == "fp8:current")
    return Format::FP8Current;
  if (text == "fp8:delayed")
    return Format::FP8Delayed;
  if (text == "fp8:block")
    return Format::FP8Block;
  return badSpec("there is no format '" + text +
                 "'; there are f32, tf32, bf16, fp16, and fp8 as fp8:current, "
                 "fp8:delayed or fp8:block");
}

llvm::Expected<PrecisionSpec> PrecisionSpec::parse(StringRef text) {
  PrecisionSpec spec;
  SmallVector<StringRef> parts;
  text.split(parts, ',');
  llvm::Expected<Format> base = parseFormat(parts[0].trim());
  if (!base)
    return base.takeError();
  spec.base = *base;
  for (StringRef part : ArrayRef(parts).drop_front()) {
    auto [glob, format] = part.trim().split('=');
    if (glob.empty() || format.empty())
      return badSpec("'" + part.trim() + "' isn't of the form NAME=FORMAT");
    if (glob == "attention" && format == "exact") {
      spec.exactAttention = true;
      continue;
    }
    llvm::Expected<Format> parsed = parseFormat(format);
    if (!parsed && glob == "attention") {
      llvm::consumeError(parsed.takeError());
      return badSpec("attention is 'exact' or a format, not '" + format + "'");
    }
    if (!parsed)
      return parsed.takeError();
    if (glob == "gradients") {
      if (codesOf(*parsed))
        return badSpec("gradients of parameters aren't kept in '" + format +
                       "'");
      if (*parsed == Format::TF32)
        return badSpec("nothing is stored in tf32, gradients neither");
      spec.gradients = *parsed;
      continue;
    }
    llvm::Expected<llvm::GlobPattern> pattern = llvm::GlobPattern::create(glob);
    if (!pattern)
      return badSpec("'" + glob + "': " + llvm::toString(pattern.takeError()));
    spec.exceptions.push_back(
        {part.trim().str(), glob.str(), std::move(*pattern), *parsed});
  }
  return spec;
}

void eachModule(StringRef name, llvm::function_ref<void(StringRef)> f) {
  f(name);
  for (size_t dot = name.find('.'); dot != StringRef::npos;
       dot = name.find('.', dot + 1))
    f(name.take_front(dot));
}

bool PrecisionSpec::fits(const Exception &exception,
                         ArrayRef<std::string> names) {
  bool fits = false;
  for (const std::string &name : names)
    eachModule(name, [&](StringRef part) {
      fits = fits || exception.pattern.match(part);
    });
  return fits;
}

PrecisionSpec::Choice PrecisionSpec::choose(ArrayRef<std::string> names,
                                            MLIRContext *context) {
  Format format = base;
  std::string decided;
  for (Exception &exception : exceptions)
    if (fits(exception, names)) {
      exception.fitted = true;
      format = exception.format;
      decided = exception.text;
    }
  return {typeOf(format, context), codesOf(format), decided};
}

void PrecisionSpec::acceptWide(StringRef name) {
  for (Exception &exception : exceptions)
    exception.fitted |=
        exception.format == Format::F32 && fits(exception, name.str());
}

std::optional<Scaling> PrecisionSpec::codesOf(Format format) {
  switch (format) {
  case Format::FP8Current:
    return Scaling::Current;
  case Format::FP8Delayed:
    return Scaling::Delayed;
  case Format::FP8Block:
    return Scaling::Block;
  default:
    return std::nullopt;
  }
}

Type PrecisionSpec::typeOf(Format format, MLIRContext *context) {
  switch (format) {
  case Format::F32:
    return Float32Type::get(context);
  case Format::TF32:
    return FloatTF32Type::get(context);
  case Format::BF16:
  case Format::FP8Current:
  case Format::FP8Delayed:
  case Format::FP8Block:
    return BFloat16Type::get(context);
  case Format::FP16:
    return Float16Type::get(context);
  }
  llvm_unreachable("a format");
}

bool PrecisionSpec::mayBeFP16() const {
  return base == Format::FP16 || gradients == Format::FP16 ||
         llvm::any_of(exceptions, [](const Exception &exception) {
           return exception.format == Format::FP16;
         });
}

bool PrecisionSpec::mayUseTensorCores() const {
  return base != Format::F32 ||
         llvm::any_of(exceptions, [](const Exception &exception) {
           return exception.format != Format::F32;
         });
}

std::optional<PrecisionSpec> PrecisionSpec::ifValid(StringRef text) {
  llvm::Expected<PrecisionSpec> spec = parse(text);
  if (spec)
    return *std::move(spec);
  llvm::consumeError(spec.takeError());
  return std::nullopt;
}

bool mayBeFP16(StringRef text) {
  std::optional<PrecisionSpec> spec = PrecisionSpec::ifValid(text);
  return spec && spec->mayBeFP16();
}
bool mayUseTensorCores(StringRef text) {
  std::optional<PrecisionSpec> spec = PrecisionSpec::ifValid(text);
  return spec && spec->mayUseTensorCores();
}

std::vector<Scaling> PrecisionSpec::scalings() const {
  std::vector<Scaling> all;
  auto add = [&](Format format) {
    if (std::optional<Scaling> scaling = codesOf(format))
      all.push_back(*scaling);
  };
  add(base);
  for (const Exception &exception : exceptions)
    add(exception.format);
  return all;
}

std::vector<std::string> PrecisionSpec::unused() const {
  std::vector<std::string> globs;
  for (const Exception &exception : exceptions)
    if (!exception.fitted)
      globs.push_back(exception.glob);
  return globs;
}

} // namespace tmc
