// Inputs.cpp - the model's inputs: symbolic dimensions get sizes, inputs become
// arguments of the batch, and random draws get the arguments they need.

#include "frontends/common/Inputs.h"
#include "frontends/Checked.h"

#include "dialects/train/Batch.h"
#include "dialects/train/Train.h"

using namespace mlir;
using namespace tmc;
using namespace tmc::frontend;

static bool meansBatch(StringRef name) {
  return name.equals_insensitive("batch") ||
         name.equals_insensitive("batch_size");
}

namespace {
/// A symbolic dimension of the inputs.
struct Symbol {
  std::string name, where; // The first input that has it.
  bool isFirst;            // Dimension 0 of some input.
};
} // namespace

static std::vector<Symbol> symbolsOf(ArrayRef<Declared> inputs) {
  std::vector<Symbol> symbols;
  for (const Declared &input : inputs)
    for (auto [i, dim] : llvm::enumerate(input.dims)) {
      if (dim.symbol.empty())
        continue;
      auto known =
          llvm::find_if(symbols, [&, &name = dim.symbol](const Symbol &symbol) {
            return symbol.name == name;
          });
      if (known == symbols.end())
        symbols.push_back({dim.symbol, input.name, i == 0});
      else
        known->isFirst |= i == 0;
    }
  return symbols;
}

/// The dimension of samples: the one with a batch's name, else the first one
/// that is dimension 0 of some input.
static const Symbol *batchOf(ArrayRef<Symbol> symbols) {
  for (const Symbol &symbol : symbols)
    if (meansBatch(symbol.name))
      return &symbol;
  for (const Symbol &symbol : symbols)
    if (symbol.isFirst)
      return &symbol;
  return nullptr;
}

/// The flag that gives a dimension its size.
static std::string flagFor(const Symbol &symbol, const std::string &size) {
  return meansBatch(symbol.name) ? "--batch=" + size
                                 : "--dim " + symbol.name + "=" + size;
}

LogicalResult
Importer::bindDims(ArrayRef<Declared> inputs,
                   const std::map<std::string, int64_t> &proposed) {
  auto stop = [&](Failure f) { return fail(std::move(f)), mlir::failure(); };
  const std::vector<Symbol> symbols = symbolsOf(inputs);
  for (const auto &[name, size] : options.dims) {
    if (llvm::none_of(symbols, [&, &name = name](const Symbol &known) {
          return known.name == name;
        })) {
      Failure f = Failure::usage("the model has no symbolic dimension named '" +
                                 name + "'");
      std::string all = symbols.empty() ? "all its dimensions are fixed"
                                        : "its symbolic dimensions are";
      for (const Symbol &symbol : symbols)
        all += " " + symbol.name;
      return stop(std::move(f).note(all));
    }
    if (size < 1)
      return stop(Failure::usage("dimension '" + name + "' can't be " +
                                 std::to_string(size)));
    bound[name] = size;
  }
  const Symbol *samples = batchOf(symbols);
  if (options.batch) {
    if (*options.batch < 1)
      return stop(Failure::usage("the batch can't be " +
                                 std::to_string(*options.batch)));
    if (samples) {
      auto [entry, isNew] = bound.try_emplace(samples->name, *options.batch);
      if (!isNew && entry->second != *options.batch)
        return stop(Failure::usage("--batch=" + std::to_string(*options.batch) +
                                   " contradicts --dim " + samples->name + "=" +
                                   std::to_string(entry->second)));
    }
  }
  std::string missing, flags, open;
  int count = 0;
  for (const Symbol &symbol : symbols) {
    if (bound.count(symbol.name))
      continue;
    if (auto size = proposed.find(symbol.name); size != proposed.end()) {
      bound[symbol.name] = size->second;
      open += " " + flagFor(symbol, std::to_string(size->second));
      continue;
    }
    missing += (count++ ? ", '" : "'") + symbol.name + "' of " + symbol.where;
    flags += (flags.empty() ? "" : " ") + flagFor(symbol, "N");
  }
  for (const auto &[name, size] : proposed)
    bound.try_emplace(name, size);
  if (count)
    return stop(Failure::usage((count == 1 ? "one dimension has no size: "
                                           : std::to_string(count) +
                                                 " dimensions have no size: ") +
                               missing)
                    .note("give " + flags));
  if (!open.empty())
    warn("dimensions that are left open have the sizes that the file proposes, "
         "as if given by" +
         open);
  return success();
}

/// The rows of the inputs if all dimensions are fixed; an input of one row
/// belongs to every sample.
static std::optional<int64_t> fixedRows(ArrayRef<Declared> inputs) {
  std::optional<int64_t> rows;
  for (const Declared &input : inputs)
    if (!input.dims.empty() && (!rows || *rows == 1))
      rows = input.dims[0].size;
  return rows;
}

void tmc::frontend::markUncut(func::FuncOp function,
                              ArrayRef<Declared> inputs) {
  const std::vector<Symbol> symbols = symbolsOf(inputs);
  const Symbol *samples = batchOf(symbols);
  if (!samples || !samples->isFirst)
    return;
  for (const Declared &input : inputs) {
    if (!input.dims.empty() && !input.dims[0].symbol.empty())
      continue;
    for (unsigned i = 0; i < function.getNumArguments(); ++i)
      if (train::roleOf(function, i) == train::Role::Batch &&
          train::argName(function, i) == input.name)
        function.setArgAttr(i, train::kUncut,
                            UnitAttr::get(function.getContext()));
  }
}

LogicalResult Importer::makeInputs(ArrayRef<Declared> inputs) {
  const std::vector<Symbol> symbols = symbolsOf(inputs);
  if (const Symbol *samples = batchOf(symbols)) {
    forward.batch = bound[samples->name];
  } else if (std::optional<int64_t> rows = fixedRows(inputs)) {
    forward.batch = *rows;
    if (options.batch && *options.batch != forward.batch)
      return fail(Failure::usage("--batch=" + std::to_string(*options.batch) +
                                 ", but the model fixes the batch at " +
                                 std::to_string(forward.batch))),
             mlir::failure();
  }
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
    Argument argument;
    argument.name = input.name;
    auto value =
        forward.addArgument(RankedTensorType::get(dims, element), argument);
    if (failed(value) || failed(define(input.name, Val(*value))))
      return mlir::failure();
  }
  return success();
}
