#include "driver/pipeline/WeightsFile.h"

#include "compiler/support/FileWords.h"
#include "runtime/kernels/Names.h"
#include "runtime/step/Identity.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/xxhash.h"

#include <algorithm>
#include <set>

using namespace tmc;

static std::string counted(size_t count, const char *thing) {
  return std::to_string(count) + " " + thing + (count == 1 ? "" : "s");
}

/// Whether the trainer can convert a value of type `found` to type `wanted`.
static bool canBecome(DType found, DType wanted) {
  return found == wanted ||
         (wanted == DType::F32 &&
          (found == DType::F16 || found == DType::BF16 || found == DType::F64));
}

/// The difference between `value` and `tensor` as a text, or "".
static std::string contradiction(const ModelValue &value,
                                 const SafeTensor &tensor) {
  if (tensor.shape != value.shape)
    return "'" + value.name + "' is " + shapeText(tensor.shape) +
           "; the model's is " + shapeText(value.shape);
  if (tensor.isUnsigned || !canBecome(tensor.type, value.type))
    return "'" + value.name + "' is " + nameOf(tensor.type) +
           "; the model's is " + nameOf(value.type);
  return "";
}

/// The type in terms of a safetensors file.
static SafeTensor unusedTensor(const Weights::Unused &tensor) {
  using frontend::ElementType;
  SafeTensor result;
  result.shape = tensor.shape;
  auto set = [&](DType type, bool isUnsigned = false) {
    result.type = type;
    result.isUnsigned = isUnsigned;
    return result;
  };
  switch (tensor.type) {
  case ElementType::F32:
    return set(DType::F32);
  case ElementType::U8:
    return set(DType::U8);
  case ElementType::I8:
    return set(DType::I8);
  case ElementType::U16:
    return set(DType::U16);
  case ElementType::I16:
    return set(DType::I16);
  case ElementType::I32:
    return set(DType::I32);
  case ElementType::I64:
    return set(DType::I64);
  case ElementType::Bool:
    return set(DType::I1);
  case ElementType::F16:
    return set(DType::F16);
  case ElementType::F64:
    return set(DType::F64);
  case ElementType::U32:
    return set(DType::I32, true);
  case ElementType::U64:
    return set(DType::I64, true);
  case ElementType::BF16:
    return set(DType::BF16);
  }
  return result;
}

/// Adds the values that the graph doesn't read, from --weights if the form
/// there is the same. A model without its values has none of these either.
static Expected<void> addUnused(Weights &model, const WeightsPrefix &prefix,
                                WeightSources &sources) {
  for (const Weights::Unused &tensor : model.unused()) {
    std::vector<std::string> names{tensor.name};
    names.insert(names.end(), tensor.aliases.begin(), tensor.aliases.end());
    SafeTensor like = unusedTensor(tensor);
    std::string_view bytes;
    for (const std::string &name : names)
      if (const SetTensor *given = sources.given.find(prefix.nameInFile(name));
          given && bytes.empty() && given->shape == like.shape &&
          given->type == like.type)
        bytes = {sources.given.data(*given), size_t(given->end - given->begin)};
    if (bytes.empty()) {
      auto read = model.read(tensor);
      if (!read && read.failure().kind != FailureKind::World)
        return std::move(read.failure());
      if (!read)
        continue;
      bytes = *read;
    }
    for (const std::string &name : names) {
      sources.add(name, like, bytes, /*isRecordable=*/false);
    }
  }
  return {};
}

std::string WeightsPrefix::nameInFile(const std::string &name) const {
  return name.compare(0, inModel.size(), inModel) == 0
             ? inFile + name.substr(inModel.size())
             : name;
}

/// The tensor of `file` with one of the names of `value`, or null. Adds the
/// names that a file may use to `known`.
static const SetTensor *find(const SafetensorsSet &file,
                             const ModelValue &value,
                             const WeightsPrefix &prefix,
                             std::set<std::string> &known) {
  std::vector<std::string> names{prefix.nameInFile(value.name)};
  for (const std::string &alias : value.aliases)
    names.push_back(prefix.nameInFile(alias));
  known.insert(names.begin(), names.end());
  const SetTensor *found = nullptr;
  for (const std::string &name : names)
    if (!found)
      found = file.find(name);
  return found;
}

/// A tensor beside codes: its name in a file, and its name for the trainer.
struct BesideCodes {
  std::string inFile, own;
};

/// The tensors beside the codes `name` of a checkpoint of bitsandbytes, of the
/// parameter `own`; none if `name` holds no codes. The trainer checks them
/// (runtime/step/FrozenValues.h).
static std::vector<BesideCodes> besideCodes(const SafetensorsSet &file,
                                            const std::string &name,
                                            const std::string &own) {
  std::vector<BesideCodes> tensors;
  auto add = [&](const std::string &beside, const std::string &its) {
    if (file.find(beside))
      tensors.push_back({beside, its});
  };
  const SetTensor *codes = file.find(name);
  if (codes && file.find(name + ".quant_state.bitsandbytes__nf4"))
    for (const char *suffix :
         {".absmax", ".quant_map", ".nested_absmax", ".nested_quant_map",
          ".quant_state.bitsandbytes__nf4"})
      add(name + suffix, own + suffix);
  llvm::StringRef module = name, ownModule = own;
  (void)ownModule.consume_back("weight");
  if (codes && codes->type == DType::I8 && module.consume_back("weight"))
    add(module.str() + "SCB", ownModule.str() + "SCB");
  return tensors;
}

/// The same, under each name of `value`.
static std::vector<BesideCodes> besideCodes(const SafetensorsSet &file,
                                            const ModelValue &value,
                                            const WeightsPrefix &prefix) {
  std::vector<BesideCodes> tensors =
      besideCodes(file, prefix.nameInFile(value.name), value.name);
  for (const std::string &alias : value.aliases)
    if (tensors.empty())
      tensors = besideCodes(file, prefix.nameInFile(alias), value.name);
  return tensors;
}

/// The format of --base of a parameter with these tensors beside its codes.
static std::string formatOf(llvm::ArrayRef<BesideCodes> beside) {
  for (const BesideCodes &each : beside)
    for (auto [suffix, format] :
         {std::pair("SCB", "int8"), {".nested_absmax", "nf4"}})
      if (llvm::StringRef(each.own).ends_with(suffix))
        return format;
  return "nf4:plain";
}

/// Checks the names and shapes of --weights; returns the text of a warning.
static Expected<std::string> check(const std::vector<ModelValue> &values,
                                   Weights &model, const SafetensorsSet &file,
                                   const WeightsPrefix &prefix,
                                   bool takesCodes) {
  std::vector<std::string> missing, unexpected, wrong;
  std::set<std::string> known;
  for (const Weights::Unused &tensor : model.unused()) {
    known.insert(prefix.nameInFile(tensor.name));
    for (const std::string &alias : tensor.aliases)
      known.insert(prefix.nameInFile(alias));
  }
  for (const ModelValue &value : values) {
    const std::vector<BesideCodes> beside = besideCodes(file, value, prefix);
    for (const BesideCodes &each : beside)
      known.insert(each.inFile);
    if (const SafeTensor *tensor = find(file, value, prefix, known)) {
      if (takesCodes && value.kind == ModelValue::Frozen && !beside.empty())
        continue;
      if (std::string text = contradiction(value, *tensor); !text.empty())
        wrong.push_back(text);
    } else if (value.kind == ModelValue::Trained ||
               (value.kind == ModelValue::Frozen && !model.read(value.name))) {
      missing.push_back(value.name);
    }
  }
  for (const auto &entry : file.tensors())
    if (!known.count(entry.first))
      unexpected.push_back(entry.first);
  std::string extra;
  if (!unexpected.empty())
    extra = "'" + file.path() + "' has " +
            counted(unexpected.size(), "tensor") +
            " that the model doesn't: " + listed(unexpected);
  if (!missing.empty()) {
    Failure failure = Failure::input(
        "'" + file.path() + "' lacks " + std::to_string(missing.size()) +
        " of the model's " + counted(values.size(), "value") + ": " +
        listed(missing));
    if (!extra.empty())
      failure.notes.push_back(extra);
    if (unexpected.size() >= missing.size()) {
      const std::string hint = "where only the beginning of names differs, "
                               "--weights-prefix OLD=NEW says so";
      failure.notes.push_back(hint);
    }
    return failure;
  }
  if (!wrong.empty()) {
    Failure failure = Failure::input(
        "'" + file.path() +
        "' isn't of this model: " + counted(wrong.size(), "tensor") +
        (wrong.size() == 1 ? " has" : " have") + " another shape or type");
    constexpr size_t kShown = 8;
    wrong.resize(std::min(wrong.size(), kShown));
    failure.notes = wrong;
    return failure;
  }
  return extra;
}

Expected<WeightSources>
tmc::gatherWeights(const std::vector<ModelValue> &values, Weights &model,
                   const std::string &path, const WeightsPrefix &prefix,
                   bool takesCodes) {
  WeightSources sources;
  sources.prefix = prefix;
  if (!path.empty()) {
    if (Status s = SafetensorsSet::open(path, sources.given); !s)
      return failureOf(s);
    auto extra = check(values, model, sources.given, prefix, takesCodes);
    if (!extra)
      return std::move(extra.failure());
    if (!extra->empty())
      sources.warnings.push_back(*extra);
  }
  std::set<std::string> known;
  for (const ModelValue &value : values) {
    SafeTensor tensor{value.type, value.shape, 0, 0};
    std::string_view bytes;
    const SetTensor *found = find(sources.given, value, prefix, known);
    if (found) {
      tensor.type = found->type;
      tensor.shape = found->shape;
      bytes = {sources.given.data(*found), size_t(found->end - found->begin)};
    } else {
      auto read = model.read(value.name);
      if (!read && read.failure().kind != FailureKind::World)
        return std::move(read.failure());
      if (!read) {
        sources.missing.push_back(value.name);
        sources.why = read.failure().message;
        continue;
      }
      bytes = *read;
      // The step holds the model's f64 values in f32.
      if (value.type == DType::F32 && int64_t(bytes.size()) == 2 * value.bytes)
        tensor.type = DType::F64;
    }
    sources.add(value.name, tensor, bytes, /*isRecordable=*/found);
    const std::vector<BesideCodes> all =
        besideCodes(sources.given, value, prefix);
    if (sources.codes.empty() && !all.empty() &&
        value.kind == ModelValue::Frozen)
      sources.codes = formatOf(all);
    for (const BesideCodes &each : all) {
      const SetTensor &beside = *sources.given.find(each.inFile);
      bytes = {sources.given.data(beside), size_t(beside.end - beside.begin)};
      sources.add(each.own, beside, bytes, /*isRecordable=*/true);
    }
  }
  sources.transient = model.transient();
  TMC_TRY(addUnused(model, prefix, sources));
  return sources;
}

void WeightSources::add(const std::string &name, const SafeTensor &tensor,
                        std::string_view itsBytes, bool isRecordable) {
  tensors.emplace_back(name, tensor);
  bytes.push_back(itsBytes);
  canBeRecorded.push_back(isRecordable);
  totalBytes += int64_t(itsBytes.size());
}

int64_t WeightSources::copiedBytes(bool all) const {
  int64_t sum = 0;
  for (size_t i = 0; i < tensors.size(); ++i)
    if (isCopied(i, all))
      sum += int64_t(bytes[i].size());
  return sum;
}

bool tmc::copiesWeights(const WeightSources &sources,
                        const std::string &directory, bool asked) {
  auto isReplaced = [&](const SafetensorsFile &file) {
    return llvm::sys::fs::equivalent(file.path(),
                                     directory + "/" + kWeightsFile);
  };
  return asked || llvm::any_of(sources.given.files(), isReplaced);
}

/// The record of the files of --weights.
static Expected<WeightsRecord> recordOf(const WeightSources &sources,
                                        const std::string &identity,
                                        bool hasBeside) {
  WeightsRecord record;
  record.identity = identity;
  record.inFile = sources.prefix.inFile;
  record.inModel = sources.prefix.inModel;
  record.hasBeside = hasBeside;
  for (const SafetensorsFile &file : sources.given.files()) {
    llvm::SmallString<128> path(file.path());
    if (std::error_code error = llvm::sys::fs::make_absolute(path))
      return Failure::world("can't find the current directory: " +
                            error.message());
    WeightsRecord::File entry;
    entry.path = path.str().str();
    // JSON holds text, and a path may be any bytes.
    if (const std::string fault = nameFault(entry.path); !fault.empty())
      return Failure::usage("the path of the weights '" + entry.path + "' " +
                            fault)
          .note("--copy-weights copies them, and records no path");
    if (Status s = headerDigits(file, entry.header); !s)
      return failureOf(s);
    record.files.push_back(std::move(entry));
  }
  return record;
}

Expected<std::string> tmc::digestOf(const WeightSources &sources,
                                    bool copiesAll) {
  std::string text;
  for (size_t i = 0; i < sources.tensors.size(); ++i) {
    const auto &[name, tensor] = sources.tensors[i];
    text += name + "\n" + nameOf(tensor.type) + shapeText(tensor.shape);
    if (sources.isCopied(i, copiesAll))
      text += std::to_string(llvm::xxh3_64bits(llvm::ArrayRef(
          reinterpret_cast<const uint8_t *>(sources.bytes[i].data()),
          sources.bytes[i].size())));
    text += "\n";
  }
  if (copiesAll || sources.given.files().empty())
    return text;
  Expected<WeightsRecord> record = recordOf(sources, "", false);
  if (!record)
    return std::move(record.failure());
  return text + recordText(*record);
}

Expected<void> tmc::writeWeights(const WeightSources &sources, bool copiesAll,
                                 const std::string &identity,
                                 OutputDirectory &directory) {
  if (sources.tensors.empty())
    return {};
  std::vector<std::pair<std::string, SafeTensor>> tensors;
  std::vector<std::string_view> pieces = {""};
  for (size_t i = 0; i < sources.tensors.size(); ++i)
    if (sources.isCopied(i, copiesAll)) {
      tensors.push_back(sources.tensors[i]);
      pieces.push_back(sources.bytes[i]);
    }
  std::map<std::string, std::string> metadata = {
      {"format", "pt"}, {kMakerKey, kMaker}, {kIdentityKey, identity}};
  for (const std::string &name : sources.transient)
    metadata[kTransientKey] += name + "\n";
  const bool hasCopy = !tensors.empty() || !sources.transient.empty();
  const std::string header = safetensorsHeader(tensors, metadata);
  pieces[0] = header;
  if (hasCopy)
    TMC_TRY(directory.write(kWeightsFile, pieces));
  if (copiesAll || sources.given.files().empty())
    return {};
  Expected<WeightsRecord> record = recordOf(sources, identity, hasCopy);
  if (!record)
    return std::move(record.failure());
  return directory.write(kRecordFile, recordText(*record));
}

std::vector<std::string> tmc::oldWeights(const std::string &directory) {
  std::vector<std::string> names;
  SafetensorsFile file;
  if (SafetensorsFile::open(directory + "/" + kWeightsFile, file)) {
    auto maker = file.metadata().find(kMakerKey);
    if (maker != file.metadata().end() && maker->second == kMaker)
      names.push_back(kWeightsFile);
  }
  WeightsRecord record;
  if (readRecord(directory + "/" + kRecordFile, record))
    names.push_back(kRecordFile);
  return names;
}
