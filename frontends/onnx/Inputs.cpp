// Inputs.cpp - the graph's inputs: symbolic dimensions get sizes, inputs become
// arguments of the batch, and random draws get the arguments they need.

#include "frontends/Checked.h"
#include "frontends/onnx/Importer.h"

using namespace mlir;
using namespace tmc;
using namespace tmc::onnx_import;

/// The name by which the user binds dimension `index` of an input: its symbol,
/// or, where the file gives none, "input.index".
static std::string symbolOf(const onnx::ValueInfoProto &input, int index) {
  const auto &dim = input.type().tensor_type().shape().dim(index);
  if (dim.has_dim_value() && dim.dim_value() > 0)
    return {};
  if (dim.has_dim_param() && !dim.dim_param().empty())
    return dim.dim_param();
  return input.name() + "." + std::to_string(index);
}

static std::vector<const onnx::ValueInfoProto *>
dataInputs(const onnx::GraphProto &graph,
           const llvm::StringMap<int> &initializers) {
  std::vector<const onnx::ValueInfoProto *> inputs;
  for (const auto &input : graph.input())
    if (!initializers.contains(input.name()))
      inputs.push_back(&input);
  return inputs;
}

static bool meansBatch(StringRef name) {
  return name.equals_insensitive("batch") ||
         name.equals_insensitive("batch_size");
}

/// Sizes that the model itself proposes, for dimensions that the user leaves
/// open: the metadata entry `default_dims`, "batch=4 sequence=64".
static std::map<std::string, int64_t>
defaultDims(const onnx::ModelProto &model) {
  std::map<std::string, int64_t> dims;
  for (const auto &entry : model.metadata_props()) {
    if (entry.key() != "default_dims")
      continue;
    SmallVector<StringRef> parts;
    StringRef(entry.value()).split(parts, ' ', -1, /*KeepEmpty=*/false);
    for (StringRef part : parts) {
      auto [name, size] = part.rsplit('=');
      int64_t number;
      if (!size.getAsInteger(10, number) && number > 0)
        dims[name.str()] = number;
    }
  }
  return dims;
}

LogicalResult Importer::bindDims() {
  auto stop = [&](Failure f) { return fail(std::move(f)), mlir::failure(); };
  std::vector<std::pair<std::string, std::string>> symbols; // and where
  auto inputs = dataInputs(model.proto.graph(), initializerOf);
  for (const auto *input : inputs) {
    if (!input->type().has_tensor_type())
      return stop(Failure::unsupported("input '" + input->name() +
                                       "' is not a tensor"));
    if (!input->type().tensor_type().has_shape())
      return stop(Failure::input("input '" + input->name() + "' has no shape"));
    for (int i = 0; i < input->type().tensor_type().shape().dim_size(); ++i) {
      std::string symbol = symbolOf(*input, i);
      if (!symbol.empty() && llvm::none_of(symbols, [&](const auto &known) {
            return known.first == symbol;
          }))
        symbols.push_back({symbol, input->name()});
    }
  }
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
  for (const auto &[name, size] : defaultDims(model.proto))
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

LogicalResult Importer::makeInputs() {
  bool first = true;
  for (const auto *input : dataInputs(model.proto.graph(), initializerOf)) {
    const auto &tensor = input->type().tensor_type();
    auto type = elementTypeOf(tensor.elem_type());
    Type element = type ? irType(*type, &context) : Type();
    if (!element)
      return fail(Failure::unsupported(
                 "input '" + input->name() + "' has elements of type " +
                 (type ? nameOf(*type)
                       : "number " + std::to_string(tensor.elem_type())))),
             mlir::failure();
    Dims dims;
    for (int i = 0; i < tensor.shape().dim_size(); ++i) {
      std::string symbol = symbolOf(*input, i);
      dims.push_back(symbol.empty() ? tensor.shape().dim(i).dim_value()
                                    : bound[symbol]);
    }
    if (!checkedNumElements(dims))
      return fail(Failure::input("input '" + input->name() + "' of shape " +
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
    argument.name = input->name();
    auto value = addArgument(RankedTensorType::get(dims, element), argument);
    if (failed(value) || failed(define(input->name(), Val(*value))))
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
