// Inputs.cpp - the model's inputs: symbolic dimensions get sizes, inputs become
// arguments of the batch, and random draws get the arguments they need.

#include "frontends/Checked.h"
#include "frontends/common/Importer.h"

using namespace mlir;
using namespace tmc;
using namespace tmc::frontend;

static bool meansBatch(StringRef name) {
  return name.equals_insensitive("batch") ||
         name.equals_insensitive("batch_size");
}

LogicalResult
Importer::bindDims(ArrayRef<Declared> inputs,
                   const std::map<std::string, int64_t> &proposed) {
  auto stop = [&](Failure f) { return fail(std::move(f)), mlir::failure(); };
  std::vector<std::pair<std::string, std::string>> symbols; // and where
  for (const Declared &input : inputs)
    for (const Declared::Dim &dim : input.dims)
      if (!dim.symbol.empty() && llvm::none_of(symbols, [&](const auto &known) {
            return known.first == dim.symbol;
          }))
        symbols.push_back({dim.symbol, input.name});
  for (const auto &[name, size] : options.dims) {
    if (llvm::none_of(symbols, [&, &name = name](const auto &known) {
          return known.first == name;
        })) {
      Failure f = Failure::usage("the model has no symbolic dimension named '" +
                                 name + "'");
      std::string all = symbols.empty() ? "all its dimensions are fixed"
                                        : "its symbolic dimensions are";
      for (const auto &[symbol, where] : symbols)
        all += " " + symbol;
      return stop(std::move(f).note(all));
    }
    if (size < 1)
      return stop(Failure::usage("dimension '" + name + "' can't be " +
                                 std::to_string(size)));
    bound[name] = size;
  }
  if (options.batch) {
    if (*options.batch < 1)
      return stop(Failure::usage("the batch can't be " +
                                 std::to_string(*options.batch)));
    auto named = llvm::find_if(
        symbols, [](const auto &known) { return meansBatch(known.first); });
    if (named == symbols.end())
      named = symbols.begin();
    if (named != symbols.end()) {
      auto [entry, isNew] = bound.try_emplace(named->first, *options.batch);
      if (!isNew && entry->second != *options.batch)
        return stop(Failure::usage("--batch=" + std::to_string(*options.batch) +
                                   " contradicts --dim " + named->first + "=" +
                                   std::to_string(entry->second)));
    }
  }
  for (const auto &[name, size] : proposed)
    bound.try_emplace(name, size);
  std::string missing, flags;
  int count = 0;
  for (const auto &[symbol, where] : symbols)
    if (!bound.count(symbol)) {
      missing += (count++ ? ", '" : "'") + symbol + "' of " + where;
      flags += (flags.empty() ? "" : " ") + (meansBatch(symbol)
                                                 ? std::string("--batch=N")
                                                 : "--dim " + symbol + "=N");
    }
  if (count)
    return stop(Failure::usage((count == 1 ? "one dimension has no size: "
                                           : std::to_string(count) +
                                                 " dimensions have no size: ") +
                               missing)
                    .note("give " + flags));
  return success();
}

LogicalResult Importer::makeInputs(ArrayRef<Declared> inputs) {
  bool first = true;
  for (const Declared &input : inputs) {
    Type element = input.type ? irType(*input.type, &context) : Type();
    if (!element) {
      refuse({"input", input.name, "",
              "elements of type " +
                  (input.type ? nameOf(*input.type) : input.typeName)});
      Val v;
      v.kind = Val::Poisoned;
      if (failed(define(input.name, std::move(v))))
        return mlir::failure();
      continue;
    }
    Dims dims;
    for (const Declared::Dim &dim : input.dims)
      dims.push_back(dim.symbol.empty() ? dim.size : bound[dim.symbol]);
    if (!checkedNumElements(dims))
      return fail(Failure::input("input '" + input.name + "' of shape " +
                                 str(dims) + " has too many elements")),
             mlir::failure();
    if (first && !dims.empty()) {
      batch = dims[0];
      first = false;
      if (options.batch && *options.batch != batch)
        return fail(Failure::usage("--batch=" + std::to_string(*options.batch) +
                                   ", but the model fixes the batch at " +
                                   std::to_string(batch))),
               mlir::failure();
    }
    Argument argument;
    argument.name = input.name;
    auto value = addArgument(RankedTensorType::get(dims, element), argument);
    if (failed(value) || failed(define(input.name, Val(*value))))
      return mlir::failure();
  }
  return success();
}

FailureOr<Value> Importer::addArgument(Type type, Argument argument) {
  for (const Argument &other : arguments)
    if (other.name == argument.name)
      return fail(Failure::input("two arguments of the step are named '" +
                                 argument.name + "'")),
             mlir::failure();
  Value value = function.getBody().front().addArgument(
      type, NameLoc::get(b.getStringAttr(cleanName(argument.name))));
  arguments.push_back(std::move(argument));
  return value;
}

Value Importer::seed() {
  if (!seedArgument) {
    Argument argument;
    argument.role = Argument::Scalar;
    argument.name = "seed";
    auto value = addArgument(RankedTensorType::get({2}, b.getI64Type()),
                             std::move(argument));
    if (succeeded(value))
      seedArgument = *value;
  }
  return seedArgument;
}

Value Importer::samples() {
  if (!samplesArgument) {
    Argument argument;
    argument.name = "samples";
    auto value = addArgument(RankedTensorType::get({batch}, b.getI64Type()),
                             std::move(argument));
    if (succeeded(value))
      samplesArgument = *value;
  }
  return samplesArgument;
}
