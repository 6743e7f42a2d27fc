#include "frontends/torch/Program.h"
#include "compiler/support/Escape.h"
#include "compiler/support/Json.h"
#include "frontends/Checked.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"

#include <cmath>

using namespace tmc;
using namespace tmc::torch_import;
using llvm::StringRef;
namespace json = llvm::json;

/// The graph of a large model takes some ten megabytes.
constexpr int64_t kMaxJsonBytes = int64_t(1) << 28;
/// The supported major version of the schema.
constexpr int64_t kSchema = 8;
/// A block that is computed with or without gradients.
constexpr const char *kGradBlock = "wrap_with_set_grad_enabled";
/// Larger examples aren't read.
constexpr int64_t kMaxExampleBytes = int64_t(64) << 20;

std::optional<ElementType> tmc::torch_import::typeOfNumber(int64_t number) {
  switch (number) {
  case 1:
    return ElementType::U8;
  case 2:
    return ElementType::I8;
  case 3:
    return ElementType::I16;
  case 4:
    return ElementType::I32;
  case 5:
    return ElementType::I64;
  case 6:
    return ElementType::F16;
  case 7:
    return ElementType::F32;
  case 8:
    return ElementType::F64;
  case 12:
    return ElementType::Bool;
  case 13:
    return ElementType::BF16;
  case 28:
    return ElementType::U16;
  default:
    return std::nullopt;
  }
}

bool tmc::torch_import::isComplexNumber(int64_t number) {
  return number >= 9 && number <= 11; // Complex halves, floats and doubles.
}

std::string CallData::op() const {
  // Python's own operators have no overload: "_operator.mul", "torch.sym_max".
  auto [space, rest] = StringRef(target).split('.');
  if (space != "aten" && rest.count('.') != 1)
    return target;
  return rest.split('.').first.str();
}

static void collect(const Arg &argument, std::vector<std::string> &names) {
  if (argument.kind == Arg::Tensor || argument.kind == Arg::Symbol)
    names.push_back(argument.text);
  for (const Arg &element : argument.list)
    collect(element, names);
}

std::vector<std::string> CallData::reads() const {
  std::vector<std::string> names;
  for (const auto &[name, argument] : arguments)
    collect(argument, names);
  return names;
}

std::vector<std::string> CallData::makes() const {
  std::vector<std::string> names;
  for (const Arg &result : results)
    collect(result, names);
  return names;
}

const Arg *CallData::argument(const std::string &wanted) const {
  for (const auto &[name, argument] : arguments)
    if (name == wanted)
      return &argument;
  return nullptr;
}

//===----------------------------------------------------------------------===//
// JSON
//===----------------------------------------------------------------------===//

static Expected<json::Value> parseEntry(Archive &archive,
                                        const std::string &name) {
  auto text = archive.read(name, kMaxJsonBytes);
  if (!text)
    return text.failure();
  if (text->size() > size_t(kMaxJsonBytes))
    return Failure::input("'" + name + "' in '" + archive.path() + "' has " +
                          std::to_string(text->size()) + " bytes, more than " +
                          std::to_string(kMaxJsonBytes));
  auto value = parseJson(StringRef(text->data(), text->size()));
  if (!value)
    value.failure().message =
        "'" + name + "' in '" + archive.path() + "' " + value.failure().message;
  return value;
}

namespace {
/// Reads the parts of a program. `wrong` keeps the first violation of the
/// schema; parts that are read after it don't count.
class Reader {
public:
  explicit Reader(Program &program) : program(program) {}

  void readGraph(const json::Object &root);
  void readPayloads(const json::Object &root, const std::string &folder);

  std::string wrong;
  std::optional<Failure> failure;

private:
  void blame(const llvm::Twine &what) {
    if (wrong.empty())
      wrong = what.str();
  }
  const json::Object &object(const json::Object &in, StringRef key);
  const json::Array &array(const json::Object &in, StringRef key);
  std::string string(const json::Object &in, StringRef key);
  /// `text`, which must be a valid name.
  std::string checkedName(StringRef text);
  int64_t integer(const json::Object &in, StringRef key);
  Arg argument(const json::Value &value);
  Arg list(const json::Value &value, StringRef element);
  Arg sizes(const json::Value &value);
  TensorMeta meta(const json::Object &in);
  CallData call(const json::Object &in);
  void readBlock(const json::Object &graph, Block &block);
  void readInput(const json::Object &spec);
  void readOutput(const json::Object &spec);
  void readOutputNames(const json::Object &module);

  Program &program;
  const json::Object noObject;
  const json::Array noArray;
};
} // namespace

const json::Object &Reader::object(const json::Object &in, StringRef key) {
  if (const json::Object *found = in.getObject(key))
    return *found;
  blame("it has no object '" + key + "'");
  return noObject;
}

const json::Array &Reader::array(const json::Object &in, StringRef key) {
  if (const json::Array *found = in.getArray(key))
    return *found;
  blame("it has no list '" + key + "'");
  return noArray;
}

std::string Reader::string(const json::Object &in, StringRef key) {
  if (auto found = in.getString(key))
    return checkedName(*found);
  blame("it has no text '" + key + "'");
  return {};
}

std::string Reader::checkedName(StringRef text) {
  if (std::string fault = nameFault(text); !fault.empty())
    blame("the name '" + visible(text, /*isName=*/true) + "' " + fault);
  return text.str();
}

int64_t Reader::integer(const json::Object &in, StringRef key) {
  if (auto found = in.getInteger(key))
    return *found;
  blame("it has no whole number '" + key + "'");
  return 0;
}

Arg Reader::list(const json::Value &value, StringRef element) {
  Arg result;
  result.kind = Arg::List;
  const json::Array *entries = value.getAsArray();
  if (!entries) {
    blame("a list of arguments is none");
    return result;
  }
  for (const json::Value &entry : *entries) {
    if (element.empty()) { // Each element states its kind.
      result.list.push_back(argument(entry));
      continue;
    }
    json::Object wrapped;
    wrapped[element] = entry;
    result.list.push_back(argument(std::move(wrapped)));
  }
  return result;
}

/// A float; JSON has no infinities, so they are strings.
static std::optional<double> floatOf(const json::Value &value) {
  if (auto number = value.getAsNumber())
    return number;
  auto text = value.getAsString();
  if (!text)
    return std::nullopt;
  if (*text == "Infinity")
    return INFINITY;
  if (*text == "-Infinity")
    return -INFINITY;
  if (*text == "NaN")
    return NAN;
  return std::nullopt;
}

/// The kind of each element of a list of kind `kind`, "" if each element says
/// its own; nothing if `kind` is no list.
static std::optional<StringRef> elementKind(StringRef kind) {
  return llvm::StringSwitch<std::optional<StringRef>>(kind)
      .Case("as_tensors", StringRef("as_tensor"))
      .Case("as_optional_tensors", StringRef(""))
      .Case("as_ints", StringRef("as_int"))
      .Case("as_floats", StringRef("as_float"))
      .Case("as_bools", StringRef("as_bool"))
      .Case("as_strings", StringRef("as_string"))
      .Default(std::nullopt);
}

/// A list of sizes, each a number or a symbol.
Arg Reader::sizes(const json::Value &value) {
  Arg result;
  result.kind = Arg::List;
  const json::Array *entries = value.getAsArray();
  if (!entries) {
    blame("a list of sizes is none");
    return result;
  }
  for (const json::Value &entry : *entries) {
    json::Object wrapped;
    wrapped["as_sym_int"] = entry;
    result.list.push_back(argument(std::move(wrapped)));
  }
  return result;
}

Arg Reader::argument(const json::Value &value) {
  Arg result;
  const json::Object *in = value.getAsObject();
  if (!in || in->size() != 1) {
    blame("an argument isn't of one kind");
    return result;
  }
  StringRef kind = in->begin()->first;
  const json::Value &content = in->begin()->second;
  auto named = [&](Arg::Kind named) {
    result.kind = named;
    if (const json::Object *inner = content.getAsObject())
      result.text = string(*inner, "name");
    else
      blame("an argument names no value");
  };
  auto number = [&](Arg::Kind kind) {
    result.kind = kind;
    if (auto found = content.getAsInteger())
      result.integer = *found;
    else
      blame("an argument is no whole number");
    result.number = static_cast<double>(result.integer);
  };
  if (kind == "as_none")
    return result;
  if (kind == "as_tensor") {
    named(Arg::Tensor);
  } else if (kind == "as_int") {
    number(Arg::Int);
  } else if (kind == "as_scalar_type") {
    number(Arg::Type);
  } else if (kind == "as_float") {
    result.kind = Arg::Float;
    if (auto found = floatOf(content))
      result.number = *found;
    else
      blame("an argument is no number");
  } else if (kind == "as_bool") {
    result.kind = Arg::Bool;
    if (auto found = content.getAsBoolean())
      result.integer = *found;
    else
      blame("an argument is neither true nor false");
  } else if (kind == "as_string") {
    result.kind = Arg::String;
    if (auto found = content.getAsString())
      result.text = found->str();
    else
      blame("an argument is no text");
  } else if (kind == "as_sym_int" || kind == "as_sym_bool" ||
             kind == "as_sym_float") {
    const json::Object *inner = content.getAsObject();
    if (inner && inner->getString("as_name")) {
      result.kind = Arg::Symbol;
      result.text = checkedName(*inner->getString("as_name"));
      return result;
    }
    return argument(content);
  } else if (kind == "as_sym_ints" || kind == "as_sym_bools" ||
             kind == "as_sym_floats") {
    return sizes(content);
  } else if (auto each = elementKind(kind)) {
    return list(content, *each);
  } else if (kind == "as_optional_tensor") {
    return argument(content);
  } else if (kind == "as_graph") {
    result.kind = Arg::Graph;
    auto block = std::make_shared<Block>();
    if (const json::Object *named = content.getAsObject())
      readBlock(object(*named, "graph"), *block);
    else
      blame("an argument is no graph");
    result.graph = std::move(block);
  } else {
    result.kind = Arg::Other;
    result.text = checkedName(kind);
  }
  return result;
}

/// The symbol in the expression "Symbol('s72', positive=True)"; any other
/// expression is returned unchanged.
static std::string symbolOf(StringRef expression) {
  StringRef rest = expression;
  if (rest.consume_front("Symbol('")) {
    auto [name, after] = rest.split('\'');
    if (after.count('(') == 0 && after.ends_with(")"))
      return name.str();
  }
  return expression.str();
}

TensorMeta Reader::meta(const json::Object &in) {
  TensorMeta meta;
  meta.typeNumber = integer(in, "dtype");
  meta.type = typeOfNumber(meta.typeNumber);
  if (auto found = in.getBoolean("requires_grad"))
    meta.requiresGrad = *found;
  if (const json::Object *device = in.getObject("device"))
    meta.isMeta = device->getString("type") == StringRef("meta");
  for (const json::Value &entry : array(in, "sizes")) {
    const json::Object *size = entry.getAsObject();
    if (!size)
      blame("a size is none");
    else if (auto fixed = size->getInteger("as_int")) {
      if (*fixed < 0)
        blame("a size is negative");
      meta.dims.push_back({*fixed, {}});
      meta.hints.push_back(*fixed);
    } else {
      const json::Object &symbolic = object(*size, "as_expr");
      meta.dims.push_back({0, symbolOf(string(symbolic, "expr_str"))});
      const json::Object *hint = symbolic.getObject("hint");
      auto number = hint ? hint->getInteger("as_int") : std::nullopt;
      meta.hints.push_back(number.value_or(0));
    }
  }
  auto fixedSize = [](const json::Value &value) -> std::optional<int64_t> {
    const json::Object *size = value.getAsObject();
    return size ? size->getInteger("as_int") : std::nullopt;
  };
  // Strides and offset are needed only where bytes are read; there all of them
  // are fixed.
  for (const json::Value &entry : array(in, "strides"))
    if (auto stride = fixedSize(entry))
      meta.strides.push_back(*stride);
  if (const json::Value *offset = in.get("storage_offset"))
    meta.offset = fixedSize(*offset).value_or(0);
  return meta;
}

CallData Reader::call(const json::Object &in) {
  CallData call;
  StringRef target = in.getString("target").value_or("");
  target.consume_front("torch.ops.");
  call.target = checkedName(target);
  if (target.empty())
    blame("a node has no target");
  for (const json::Value &entry : array(in, "inputs")) {
    const json::Object *input = entry.getAsObject();
    const json::Value *value = input ? input->get("arg") : nullptr;
    if (!value) {
      blame("an argument of '" + call.target + "' has no value");
      break;
    }
    call.arguments.push_back({string(*input, "name"), argument(*value)});
  }
  for (const json::Value &entry : array(in, "outputs"))
    call.results.push_back(argument(entry));
  if (const json::Object *metadata = in.getObject("metadata")) {
    call.stackTrace = metadata->getString("stack_trace").value_or("");
    call.modules = metadata->getString("nn_module_stack").value_or("");
    call.origin = metadata->getString("torch_fn").value_or("");
    // A call that decomposition left of a block without gradients; blocks with
    // gradients are no calls of the exported program.
    call.noGrad = StringRef(call.origin).starts_with(kGradBlock) &&
                  !StringRef(call.target).contains(kGradBlock);
  }
  std::vector<std::string> makes = call.makes();
  call.name = checkedName(in.getString("name").value_or(""));
  if (call.name.empty() && !makes.empty())
    call.name = makes[0];
  return call;
}

void Reader::readBlock(const json::Object &graph, Block &block) {
  for (const json::Value &entry : array(graph, "nodes")) {
    const json::Object *node = entry.getAsObject();
    if (!node)
      return blame("a node is none");
    block.calls.push_back(call(*node));
  }
  for (const auto &[name, value] : object(graph, "tensor_values")) {
    const json::Object *tensor = value.getAsObject();
    if (!tensor)
      return blame("'" + StringRef(name) + "' has no type");
    block.tensors[checkedName(name)] = meta(*tensor);
  }
  for (const json::Value &entry : array(graph, "inputs"))
    block.inputs.push_back(argument(entry));
  for (const json::Value &entry : array(graph, "outputs"))
    block.outputs.push_back(argument(entry));
}

void Reader::readInput(const json::Object &spec) {
  if (spec.size() != 1)
    return blame("an input isn't of one kind");
  StringRef kind = spec.begin()->first;
  const json::Object *in = spec.begin()->second.getAsObject();
  if (!in)
    return blame("an input is none");
  InputSpec input;
  const json::Object *stored = in->getObject("arg");
  if (kind == "user_input") {
    const json::Value *value = in->get("arg");
    Arg given = value ? argument(*value) : Arg();
    if (given.kind != Arg::Tensor) {
      if (given.kind == Arg::Symbol)
        blame("an input is a number");
      return; // A constant: the graph has its value already.
    }
    input.value = given.text;
  } else if (kind == "parameter" || kind == "buffer" ||
             kind == "tensor_constant") {
    input.kind = kind == "parameter" ? InputSpec::Parameter
                 : kind == "buffer"  ? InputSpec::Buffer
                                     : InputSpec::Constant;
    input.value = stored ? string(*stored, "name") : "";
    input.target = string(*in, kind == "parameter" ? "parameter_name"
                               : kind == "buffer"  ? "buffer_name"
                                                   : "tensor_constant_name");
    input.isPersistent = input.kind != InputSpec::Constant &&
                         in->getBoolean("persistent").value_or(true);
  } else if (kind == "constant_input") {
    return;
  } else {
    if (!failure)
      failure = Failure::unsupported("the program has an input of kind '" +
                                     kind.str() + "'");
    return;
  }
  program.inputs.push_back(std::move(input));
}

void Reader::readOutput(const json::Object &spec) {
  if (spec.size() != 1)
    return blame("an output isn't of one kind");
  StringRef kind = spec.begin()->first;
  const json::Object *in = spec.begin()->second.getAsObject();
  if (!in)
    return blame("an output is none");
  OutputSpec output;
  const json::Object *value = in->getObject("arg");
  if (kind == "user_output") {
    const json::Value *any = in->get("arg");
    Arg given = any ? argument(*any) : Arg();
    if (given.kind == Arg::Tensor)
      output.value = given.text; // Other outputs keep their place.
  } else if (kind == "loss_output" || kind == "buffer_mutation" ||
             kind == "parameter_mutation" || kind == "user_input_mutation") {
    output.kind =
        kind == "loss_output" ? OutputSpec::Loss : OutputSpec::Mutation;
    output.value = value ? string(*value, "name") : "";
    // New values of inputs are dropped: the caller owns the inputs.
    if (kind == "buffer_mutation")
      output.target = string(*in, "buffer_name");
    else if (kind == "parameter_mutation")
      output.target = string(*in, "parameter_name");
  } else {
    if (!failure) {
      failure = Failure::unsupported("the program has an output of kind '" +
                                     kind.str() + "'");
      if (kind.starts_with("gradient"))
        failure->notes.push_back(
            "it has its backward pass already: export the forward graph");
    }
    return;
  }
  program.outputs.push_back(std::move(output));
}

/// The names of the leaves of a tree of outputs, "past.0.key"; "" if the tree
/// has no name.
static void leafNames(const json::Object &tree, const std::string &path,
                      std::vector<std::string> &names) {
  const json::Array *children = tree.getArray("children_spec");
  const json::Value *type = tree.get("type");
  if (!children || (type && type->getAsNull())) {
    names.push_back(path);
    return;
  }
  // The context of a dictionary lists its keys. The context of a class with
  // named fields does so as well, after the class.
  std::vector<std::string> keys;
  if (auto context = tree.getString("context")) {
    auto parsed = parseJson(*context);
    static const json::Array none;
    const json::Array *list = parsed ? parsed->getAsArray() : nullptr;
    for (const json::Value &entry : list ? *list : none)
      if (auto key = entry.getAsString()) {
        keys.push_back(key->str());
      } else if (const json::Array *inner = entry.getAsArray()) {
        keys.clear();
        for (const json::Value &each : *inner)
          if (auto key = each.getAsString())
            keys.push_back(key->str());
      }
  }
  for (auto [i, child] : llvm::enumerate(*children)) {
    std::string key = keys.size() == children->size() ? keys[i]
                      : children->size() == 1         ? std::string()
                                                      : std::to_string(i);
    std::string inner = path.empty()  ? key
                        : key.empty() ? path
                                      : path + "." + key;
    if (const json::Object *spec = child.getAsObject())
      leafNames(*spec, inner, names);
  }
}

void Reader::readOutputNames(const json::Object &module) {
  const json::Array *graphs = module.getArray("module_call_graph");
  for (const json::Value &entry : graphs ? *graphs : noArray) {
    const json::Object *called = entry.getAsObject();
    if (!called || called->getString("fqn") != StringRef(""))
      continue;
    const json::Object *signature = called->getObject("signature");
    auto text = signature ? signature->getString("out_spec") : std::nullopt;
    auto spec = text ? parseJson(*text) : Expected(json::Value(nullptr));
    if (!spec)
      return; // The graph's names are used instead.
    const json::Array *versioned = spec->getAsArray();
    if (versioned && versioned->size() == 2)
      if (const json::Object *tree = (*versioned)[1].getAsObject())
        leafNames(*tree, "", program.outputNames);
    for (const std::string &name : program.outputNames)
      checkedName(name);
    return;
  }
}

void Reader::readGraph(const json::Object &root) {
  const json::Object &version = object(root, "schema_version");
  if (int64_t major = integer(version, "major");
      wrong.empty() && major != kSchema) {
    failure = Failure::unsupported(
        "the program has schema " + std::to_string(major) + "; schema " +
        std::to_string(kSchema) + " is read, which torch 2.9 and later write");
    return;
  }
  const json::Object &module = object(root, "graph_module");
  Block block;
  readBlock(object(module, "graph"), block);
  program.calls = std::move(block.calls);
  program.tensors = std::move(block.tensors);
  const json::Object &signature = object(module, "signature");
  for (const json::Value &entry : array(signature, "input_specs"))
    if (const json::Object *spec = entry.getAsObject())
      readInput(*spec);
  for (const json::Value &entry : array(signature, "output_specs"))
    if (const json::Object *spec = entry.getAsObject())
      readOutput(*spec);
  readOutputNames(module);
}

void Reader::readPayloads(const json::Object &root, const std::string &folder) {
  for (const auto &[name, value] : object(root, "config")) {
    const json::Object *in = value.getAsObject();
    if (!in)
      return blame("'" + StringRef(name) + "' has no description");
    Payload payload;
    payload.entry = folder + string(*in, "path_name");
    payload.isPickle = in->getBoolean("use_pickle").value_or(false);
    if (const json::Object *tensor = in->getObject("tensor_meta"))
      payload.meta = meta(*tensor);
    else if (!payload.isPickle)
      blame("'" + StringRef(name) + "' has no type");
    program.payloads[checkedName(name)] = std::move(payload);
  }
}

/// The one entry `folder`*`suffix`; empty if there is none. A file may hold
/// several programs: the one named "model" is used, else the first.
static std::string entryLike(const Archive &archive, const std::string &folder,
                             StringRef suffix) {
  std::string first;
  for (const std::string &name : archive.names()) {
    StringRef rest = name;
    if (!rest.consume_front(folder) || !rest.ends_with(suffix) ||
        rest.contains('/'))
      continue;
    if (rest.drop_back(suffix.size()) == "model")
      return name;
    if (first.empty())
      first = name;
  }
  return first;
}

Expected<Program> tmc::torch_import::parseProgram(Archive &archive) {
  std::string graph = entryLike(archive, "models/", ".json");
  if (graph.empty()) {
    // Older files have "serialized_exported_program.json" and pickles.
    bool isOld = archive.has("serialized_exported_program.json") ||
                 archive.has("serialized_state_dict.pt");
    return Failure::input("'" + archive.path() +
                          "' has no program under models/")
        .note(isOld
                  ? "it was saved by a torch before 2.9: save it again with a "
                    "newer one"
                  : "torch.export.save() writes one");
  }
  Program program;
  Reader reader(program);
  auto read = [&](const std::string &entry, auto part) -> Expected<void> {
    auto value = parseEntry(archive, entry);
    if (!value)
      return value.failure();
    if (const json::Object *root = value->getAsObject())
      part(*root);
    else
      reader.wrong = "it is no object";
    if (reader.failure)
      return *reader.failure;
    if (!reader.wrong.empty())
      return Failure::input("'" + entry + "' in '" + archive.path() +
                            "' isn't what its schema says: " + reader.wrong);
    return {};
  };
  if (archive.has("byteorder")) {
    auto order = archive.read("byteorder", 64);
    if (!order)
      return order.failure();
    if (StringRef(order->data(), order->size()).trim() != "little")
      return Failure::unsupported("the archive's numbers aren't little endian");
  }
  if (auto done = read(
          graph, [&](const json::Object &root) { reader.readGraph(root); });
      !done)
    return done.failure();
  struct {
    const char *folder, *suffix;
  } parts[] = {{"data/weights/", "_weights_config.json"},
               {"data/constants/", "_constants_config.json"}};
  for (auto [folder, suffix] : parts) {
    std::string entry = entryLike(archive, folder, suffix);
    if (entry.empty())
      continue;
    if (auto done = read(entry,
                         [&, folder = folder](const json::Object &root) {
                           reader.readPayloads(root, folder);
                         });
        !done)
      return done.failure();
  }
  std::string example = entryLike(archive, "data/sample_inputs/", ".pt");
  if (int64_t size = archive.sizeOf(example);
      !example.empty() && size >= 0 && size <= kMaxExampleBytes)
    if (auto bytes = archive.read(example, kMaxExampleBytes))
      program.exampleTensors = countTensors(*bytes);
  inlineBlocks(program);
  return program;
}
