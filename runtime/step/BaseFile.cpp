//===- BaseFile.cpp - writes a frozen base as it is stored ----------------===//

#include "runtime/step/BaseFile.h"

#include "runtime/kernels/FrozenCodes.h"
#include "runtime/step/AdapterFile.h"
#include "runtime/step/FrozenValues.h"
#include "runtime/step/JsonReader.h"
#include "runtime/step/Values.h"

#include <algorithm>
#include <sys/stat.h>

namespace tmc {

using namespace values;
using namespace frozen;

namespace {

constexpr const char *kConfigFile = "config.json";
/// A configuration of transformers has some KB.

/// A tensor of the file: bytes of a step's tensor, or given ones.
struct Entry {
  std::string name;
  SafeTensor tensor;
  const TensorInfo *info = nullptr; // Its first bytes, as many as there are.
  std::string bytes;
};

template <int N> std::string bytesOf(const Table<N> &table) {
  return {reinterpret_cast<const char *>(table.value), sizeof table.value};
}

bool isWritten(const TensorInfo &info) {
  return (info.role == Role::Param || info.role == Role::State) &&
         !info.isAdapter && info.maximaOf < 0;
}

/// The type that bitsandbytes decodes to: that of the model's other parameters.
const char *typeOfNumbers(const StepProgram &program) {
  bool hasBF16 = false, hasF16 = false;
  for (int64_t i = 0; i < program.tensorCount; ++i) {
    const TensorInfo &info = program.tensors[i];
    if (info.role != Role::Param || !isWritten(info) || info.stored)
      continue;
    if (info.type == DType::F32)
      return "float32";
    hasBF16 |= info.type == DType::BF16;
    hasF16 |= info.type == DType::F16;
  }
  return hasBF16 ? "bfloat16" : hasF16 ? "float16" : "float32";
}

/// The list of tensors, and the text of quantization_config.
class BaseTensors {
public:
  BaseTensors(const StepProgram &program, const Homes &homes)
      : program(program), homes(homes) {}

  std::vector<Entry> entries;
  bool hasRows = false, hasBlocks = false, isNested = false;
  std::vector<std::string> whole; // Modules of matrices that aren't codes.

  Status add() {
    for (int64_t i = 0; i < program.tensorCount; ++i) {
      const TensorInfo &info = program.tensors[i];
      if (!isWritten(info))
        continue;
      if (info.stored) {
        if (Status s = addCodes(info); !s)
          return s;
        continue;
      }
      addPlain(info, info.name);
      for (int32_t k = 0; k < info.aliasCount; ++k)
        addPlain(info, info.aliases[k]);
    }
    return Status::ok();
  }

private:
  const StepProgram &program;
  const Homes homes;

  static bool endsInWeight(const std::string &name) {
    const std::string end = ".weight";
    return name.size() > end.size() &&
           name.compare(name.size() - end.size(), end.size(), end) == 0;
  }
  static std::string moduleOf(const std::string &name) {
    return name.substr(0, name.rfind('.'));
  }

  void addPlain(const TensorInfo &info, const char *own) {
    const std::string name = nameInFiles(program, own);
    entries.push_back(
        {name, {info.type, {info.dims, info.dims + info.rank}}, &info, {}});
    if (info.rank == 2 && endsInWeight(name))
      whole.push_back(moduleOf(name));
  }

  void addPart(const std::string &name, DType type, std::vector<int64_t> shape,
               const TensorInfo *info, std::string bytes = {}) {
    entries.push_back({name, {type, std::move(shape)}, info, std::move(bytes)});
  }

  Status addCodes(const TensorInfo &codes) {
    const StoredInfo &stored = *codes.stored;
    const std::string name = nameInFiles(program, codes.name);
    const TensorInfo &absmax = program.tensors[stored.absmax];
    const std::vector<int64_t> shape(stored.dims, stored.dims + stored.rank);
    if (stored.byRows) {
      hasRows = true;
      addPart(name, DType::I8, shape, &codes);
      const std::string module =
          endsInWeight(name) ? moduleOf(name) + "." : name;
      addPart(module + "SCB", DType::F32, {shape[0]}, &absmax);
      addPart(module + "weight_format", DType::U8, {}, nullptr,
              std::string(1, '\0'));
      return Status::ok();
    }
    hasBlocks = true;
    const int64_t blocks = absmax.elements();
    std::string state =
        "{\"quant_type\": \"nf4\", \"blocksize\": " + std::to_string(kBlock) +
        ", \"dtype\": \"" + typeOfNumbers(program) +
        "\", \"shape\": " + shapeText(shape);
    addPart(name, DType::U8, {codes.elements(), 1}, &codes);
    addPart(name + ".absmax", stored.nested < 0 ? DType::F32 : DType::U8,
            {blocks}, &absmax);
    addPart(name + ".quant_map", DType::F32, {kLevels}, nullptr,
            bytesOf(levels()));
    if (stored.nested >= 0) {
      isNested = true;
      const TensorInfo &nested = program.tensors[stored.nested];
      const int64_t floats = nested.elements() - 1;
      float offset = 0;
      if (Status s = homes.read(nested, floats * 4, &offset, 4); !s)
        return s;
      char text[40];
      std::snprintf(text, sizeof text, "%.9g", double(offset));
      state += ", \"nested_blocksize\": " + std::to_string(kNestedBlock) +
               ", \"nested_dtype\": \"float32\", \"nested_offset\": " + text;
      addPart(name + ".nested_absmax", DType::F32, {floats}, &nested);
      addPart(name + ".nested_quant_map", DType::F32, {kMapped}, nullptr,
              bytesOf(dynamicMap()));
    }
    state += "}";
    addPart(name + values::kQuantState, DType::U8, {int64_t(state.size())},
            nullptr, state);
    return Status::ok();
  }
};

Status writeTensors(const Homes &homes, const std::vector<Entry> &entries,
                    const std::string &directory) {
  std::vector<std::pair<std::string, SafeTensor>> tensors;
  for (const Entry &entry : entries)
    tensors.emplace_back(entry.name, entry.tensor);
  AtomicFile out(homes.writesFiles());
  if (Status s = out.create(directory, kModelFile); !s)
    return s;
  const std::string header = safetensorsHeader(tensors, {{"format", "pt"}});
  if (Status s = out.write(header.data(), int64_t(header.size())); !s)
    return s;
  std::vector<char> piece(static_cast<size_t>(kPieceBytes));
  for (size_t i = 0; i < entries.size(); ++i) {
    const Entry &entry = entries[i];
    const int64_t bytes = tensors[i].second.end - tensors[i].second.begin;
    if (!entry.info)
      if (Status s = out.write(entry.bytes.data(), bytes); !s)
        return s;
    for (int64_t at = 0; entry.info && at < bytes; at += kPieceBytes) {
      const int64_t some = std::min(kPieceBytes, bytes - at);
      if (Status s = homes.read(*entry.info, at, piece.data(), some); !s)
        return s;
      if (Status s = out.write(piece.data(), some); !s)
        return s;
    }
  }
  return out.commit();
}

/// The words of transformers for the storage.
std::string quantizationText(const BaseTensors &base, const char *numbers) {
  std::string modules;
  for (const std::string &module : base.whole)
    modules += (modules.empty() ? "" : ", ") + jsonQuoted(module);
  std::string text = "\"quantization_config\": {\"quant_method\": "
                     "\"bitsandbytes\", \"llm_int8_skip_modules\": [" +
                     modules + "], ";
  if (base.hasRows)
    return text + "\"load_in_8bit\": true}";
  return text +
         "\"load_in_4bit\": true, \"bnb_4bit_quant_type\": \"nf4\", "
         "\"bnb_4bit_use_double_quant\": " +
         (base.isNested ? "true" : "false") +
         ", \"bnb_4bit_compute_dtype\": \"" + numbers + "\"}";
}

/// The folder of a file or folder of weights.
std::string folderOf(const std::string &weights) {
  struct stat info;
  if (!stat(weights.c_str(), &info) && S_ISDIR(info.st_mode))
    return weights;
  const std::string first = weights.substr(0, weights.find(','));
  const size_t slash = first.rfind('/');
  return slash == std::string::npos ? "." : first.substr(0, slash + 1);
}

/// True if both are one folder that is there.
bool isSameFolder(const std::string &a, const std::string &b) {
  struct stat its, other;
  return !stat(a.c_str(), &its) && !stat(b.c_str(), &other) &&
         its.st_dev == other.st_dev && its.st_ino == other.st_ino;
}

/// Copies the configuration beside the weights, and adds quantization_config.
Status writeConfig(const std::string &added, const std::string &directory,
                   const std::string &weights, std::string &note) {
  const std::string folder = weights.empty() ? "" : folderOf(weights);
  if (weights.empty() ||
      access((folder + "/" + kConfigFile).c_str(), F_OK) != 0) {
    note = "the weights came without config.json, and transformers needs one "
           "beside '" +
           directory + "/" + kModelFile + "', with " + added;
    return Status::ok();
  }
  std::string text;
  if (Status s = readTextBeside(folder, kConfigFile, text); !s)
    return s;
  JsonReader at(text, "configuration");
  bool isEmpty = true, isThere = false;
  const bool isGood = at.object([&](const std::string &key) {
    isEmpty = false;
    isThere |= key == "quantization_config";
    return at.skip();
  });
  if (!isGood || !at.finish())
    return {Code::BadInput,
            "'" + folder + "/" + kConfigFile + "': " + at.error()};
  if (!isThere)
    text.insert(text.find('{') + 1, "\n  " + added + (isEmpty ? "\n" : ","));
  AtomicFile out;
  if (Status s = out.create(directory, kConfigFile); !s)
    return s;
  if (Status s = out.write(text.data(), int64_t(text.size())); !s)
    return s;
  return out.commit();
}

} // namespace

bool hasCodes(const StepProgram &program) {
  return std::any_of(program.tensors, program.tensors + program.tensorCount,
                     [](const TensorInfo &info) { return info.stored; });
}

Status saveBase(const Step &step, const std::string &directory,
                const std::string &weights, std::string &note) {
  const StepProgram &program = step.program();
  if (!weights.empty() && isSameFolder(folderOf(weights), directory))
    return {Code::Usage, "--save-base would replace the weights in '" +
                             directory + "': name another folder"};
  BaseTensors base(program, step.homes());
  if (Status s = base.add(); !s)
    return s;
  if (Status s = writeTensors(step.homes(), base.entries, directory); !s)
    return s;
  if (base.hasRows && base.hasBlocks) {
    note = "parameters are in 4 and in 8 bits, which transformers doesn't read "
           "together: '" +
           directory + "' has no config.json";
    return Status::ok();
  }
  if (!step.homes().writesFiles())
    return Status::ok();
  return writeConfig(quantizationText(base, typeOfNumbers(program)), directory,
                     weights, note);
}

} // namespace tmc
