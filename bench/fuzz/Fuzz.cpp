// Fuzz.cpp - what libFuzzer feeds to one of the readers.
//
//   TMC_FUZZ_ONNX    bytes of a model
//   TMC_FUZZ_TORCH   bytes of an archive; what begins with '{' is a program, of
//                    which a sound archive is made first, since no mutation
//                    gets by the checksums of a zip file
//   TMC_FUZZ_INDEX   an index of shards, which lies beside two shards
//   TMC_FUZZ_RECORD  the record of a step's weights
//   TMC_FUZZ_LINES   a data file of samples in JSON
//   TMC_FUZZ_ADAPTER an adapter_config.json, for the trainer and for merging
//   TMC_FUZZ_STATE   the text beside codes in a checkpoint of bitsandbytes
//
// Whatever it is, reading ends with a model (data) or with one message. A
// defect that the importer itself reports stops the run, as a crash does. A
// share of what is imported is kept in the directory of TMC_FUZZ_KEEP: run.py
// compiles it.

#ifdef TMC_FUZZ_INDEX
#include "runtime/step/SafetensorsSet.h"
#elif defined(TMC_FUZZ_RECORD)
#include "runtime/step/WeightsRecord.h"
#elif defined(TMC_FUZZ_LINES)
#include "runtime/step/Data.h"
#elif defined(TMC_FUZZ_ADAPTER)
#include "driver/merge/AdapterConfig.h"
#include "runtime/step/AdapterSettings.h"
#elif defined(TMC_FUZZ_STATE)
#include "runtime/step/Program.h"
#include "runtime/step/QuantState.h"
#else
#include "frontends/onnx/Import.h"
#include "frontends/torch/Import.h"

#include "mlir/IR/MLIRContext.h"
#endif

#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <sys/stat.h>
#include <unistd.h>

using namespace tmc;

static void put(const std::string &path, const std::string &bytes) {
  std::FILE *file = std::fopen(path.c_str(), "wb");
  if (!file || std::fwrite(bytes.data(), 1, bytes.size(), file) != bytes.size())
    std::abort();
  std::fclose(file);
}

#ifdef TMC_FUZZ_INDEX

/// A file with one tensor of this name.
static std::string shard(const char *name) {
  std::vector<std::pair<std::string, SafeTensor>> tensors(1);
  tensors[0].first = name;
  tensors[0].second.shape = {1};
  return safetensorsHeader(tensors, {}) + "1234";
}

/// Two shards in a folder, which goes when the process ends.
struct Shards {
  const std::string path = "/dev/shm/tmc-fuzz-" + std::to_string(getpid());
  const std::string index = path + "/model.safetensors.index.json";

  Shards() {
    mkdir(path.c_str(), 0700);
    put(path + "/one", shard("a"));
    put(path + "/two", shard("b"));
  }
  ~Shards() {
    for (const std::string &file : {path + "/one", path + "/two", index})
      unlink(file.c_str());
    rmdir(path.c_str());
  }
};

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const Shards shards;
  const auto &[folder, index] = shards;
  put(index, std::string(reinterpret_cast<const char *>(data), size));
  SafetensorsSet set;
  const Status s = SafetensorsSet::open(folder, set);
  if (!s && s.code() != Code::BadInput) {
    std::fprintf(stderr, "code %d: %s\n", int(s.code()), s.message().c_str());
    std::abort();
  }
  // No file but the shards.
  for (const SafetensorsFile &file : set.files())
    if (s && file.path() != folder + "/one" && file.path() != folder + "/two")
      std::abort();
  return 0;
}

#elif defined(TMC_FUZZ_RECORD)

/// Reads the bytes as a record.
static Status recordOf(const std::string &bytes, WeightsRecord &record) {
  static const std::string path =
      "/dev/shm/tmc-fuzz-" + std::to_string(getpid()) + ".json";
  put(path, bytes);
  const Status s = readRecord(path, record);
  unlink(path.c_str());
  return s;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  WeightsRecord record, again;
  const Status s =
      recordOf({reinterpret_cast<const char *>(data), size}, record);
  if (!s && s.code() != Code::BadInput)
    std::abort();
  if (!s)
    return 0;
  for (const WeightsRecord::File &file : record.files)
    if (file.path.empty() || file.header.size() != 16)
      std::abort();
  // A record that is written again says the same.
  if (!recordOf(recordText(record), again) || again.inFile != record.inFile ||
      again.inModel != record.inModel ||
      again.files.size() != record.files.size() ||
      again.hasBeside != record.hasBeside)
    std::abort();
  for (const char *name : {"", "m.w", "w"})
    if (record.nameInModel(name) != again.nameInModel(name))
      std::abort();
  return 0;
}

#elif defined(TMC_FUZZ_LINES)

static TensorInfo input(const char *name, DType type, int32_t rank,
                        int64_t limit) {
  TensorInfo info{};
  info.name = name;
  info.type = type;
  info.rank = rank;
  for (int32_t i = 0; i < rank; ++i)
    info.dims[i] = i + 2; // [2, 3, 4]
  info.role = Role::Batch;
  info.feed = Feed::Data;
  info.limit = limit;
  info.allowIgnore = limit == 100;
  info.ignore = -100;
  return info;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const std::string path =
      "/dev/shm/tmc-fuzz-" + std::to_string(getpid()) + ".jsonl";
  static const TensorInfo inputs[] = {
      input("ids", DType::I64, 2, 50), input("labels", DType::I32, 2, 100),
      input("mask", DType::I1, 2, 0), input("grade", DType::F16, 1, 0),
      input("box", DType::F32, 3, 0)};
  put(path, std::string(reinterpret_cast<const char *>(data), size));
  DataReader reader;
  Status s = DataReader::create(
      {{&inputs[0], &inputs[1], &inputs[2], &inputs[3], &inputs[4]}, 2}, {path},
      reader);
  const Code code = s.code();
  if (s)
    s = reader.setShuffle(size);
  // Lines that were read once are read again: two epochs and a step.
  for (int64_t i = 0; s && i <= 2 * reader.stepsPerEpoch(); ++i)
    s = reader.next([](const TensorInfo &info, const char *row, int64_t bytes) {
      // Numbers are in their ranges.
      for (int64_t k = 0; info.limit && k < info.elements(); ++k) {
        int64_t value = 0;
        std::memcpy(&value, row + k * sizeOf(info.type),
                    size_t(sizeOf(info.type)));
        if (info.type == DType::I32)
          value = int32_t(value);
        if ((value < 0 || value >= info.limit) &&
            !(info.allowIgnore && value == info.ignore))
          std::abort();
      }
      return bytes == info.bytes() ? Status::ok()
                                   : Status(Code::Defect, "bytes");
    });
  unlink(path.c_str());
  if (code == Code::Ok ? !s : code != Code::BadInput) {
    std::fprintf(stderr, "code %d: %s\n", int(s.code()), s.message().c_str());
    std::abort();
  }
  return 0;
}

#elif defined(TMC_FUZZ_ADAPTER)

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const std::string text(reinterpret_cast<const char *>(data), size);
  AdapterSettings settings;
  const Status s = readAdapterSettings("config", text, settings);
  if (!s && s.code() != Code::BadInput)
    std::abort();
  bool isSound = std::isfinite(settings.rank) && std::isfinite(settings.alpha);
  for (const auto *table : {&settings.ranks, &settings.alphas})
    for (const auto &entry : *table)
      isSound &= std::isfinite(entry.second);
  if (s && !isSound)
    std::abort();
  const Expected<AdapterConfig> config = AdapterConfig::parse("config", text);
  if (!config && config.failure().kind == FailureKind::Defect)
    std::abort();
  if (!config)
    return 0;
  for (const char *module : {"layers.0.q_proj", "down_proj"}) {
    const Expected<int64_t> rank = config->rankOf(module);
    const Expected<double> scale = config->scaleOf(module);
    if ((rank && *rank < 1) || (scale && !std::isfinite(*scale)))
      std::abort();
  }
  return 0;
}

#elif defined(TMC_FUZZ_STATE)

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  values::QuantState state;
  const std::string fault = values::readQuantState(
      {reinterpret_cast<const char *>(data), size}, state);
  if (fault.empty() && state.shape.size() > size_t(kMaxRank))
    std::abort();
  return 0;
}

#else

/// Types and constants that models leave in a context add up.
constexpr int kRunsOfAContext = 256;

/// Says why an imported module doesn't verify.
static std::string lastDiagnostic;

static mlir::MLIRContext &context() {
  static std::unique_ptr<mlir::MLIRContext> current;
  static int runs = 0;
  if (!current || ++runs % kRunsOfAContext == 0) {
    mlir::DialectRegistry registry;
    registerImportDialects(registry);
    current = std::make_unique<mlir::MLIRContext>(
        registry, mlir::MLIRContext::Threading::DISABLED);
    current->getDiagEngine().registerHandler(
        [](mlir::Diagnostic &d) { lastDiagnostic = d.str(); });
  }
  return *current;
}

/// Files that are kept. Each input that is imported is as likely among them as
/// any other.
constexpr uint64_t kMostKept = 64;

static void keep(const std::string &bytes) {
  static const char *folder = std::getenv("TMC_FUZZ_KEEP");
  static uint64_t imported = 0;
  static std::minstd_rand draw(1);
  if (!folder)
    return;
  const uint64_t place = imported < kMostKept ? imported : draw() % imported;
  ++imported;
  if (place >= kMostKept)
    return;
  const std::string path = std::string(folder) + "/" + std::to_string(place);
  if (std::FILE *file = std::fopen(path.c_str(), "wb")) {
    std::fwrite(bytes.data(), 1, bytes.size(), file);
    std::fclose(file);
  }
}

static void judge(const Expected<ImportedModel> &model,
                  const std::string &bytes) {
  if (model)
    return keep(bytes);
  if (model.failure().kind != FailureKind::Defect)
    return;
  std::fprintf(stderr, "defect: %s: %s\n", model.failure().message.c_str(),
               lastDiagnostic.c_str());
  std::abort();
}

static ImportOptions options() {
  ImportOptions options;
  options.needLoss = false;
  return options;
}

#ifdef TMC_FUZZ_ONNX

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const std::string bytes(reinterpret_cast<const char *>(data), size);
  judge(importOnnxBytes(bytes, "/nonexistent", options(), context()), bytes);
  return 0;
}

#else

static uint32_t checksum(const std::string &bytes) {
  static const std::array<uint32_t, 256> table = [] {
    std::array<uint32_t, 256> entries{};
    for (uint32_t i = 0; i < 256; ++i) {
      uint32_t x = i;
      for (int bit = 0; bit < 8; ++bit)
        x = x >> 1 ^ (x & 1 ? 0xEDB88320u : 0);
      entries[i] = x;
    }
    return entries;
  }();
  uint32_t x = ~0u;
  for (unsigned char c : bytes)
    x = table[(x ^ c) & 255] ^ x >> 8;
  return ~x;
}

/// A zip file of stored entries.
class Zip {
public:
  void add(const std::string &name, const std::string &data) {
    const uint32_t at = uint32_t(file.size());
    std::string fields; // What both records of an entry have.
    put(fields, 20, 2), put(fields, 0, 6), put(fields, 33, 2);
    put(fields, checksum(data), 4);
    put(fields, uint32_t(data.size()), 4),
        put(fields, uint32_t(data.size()), 4);
    put(fields, uint32_t(name.size()), 2), put(fields, 0, 2);
    file += "PK\3\4" + fields + name + data;
    directory += "PK\1\2";
    put(directory, 20, 2);
    directory += fields;
    put(directory, 0, 10), put(directory, at, 4);
    directory += name;
    ++count;
  }
  std::string bytes() const {
    std::string end = "PK\5\6";
    put(end, 0, 4), put(end, count, 2), put(end, count, 2);
    put(end, uint32_t(directory.size()), 4), put(end, uint32_t(file.size()), 4);
    put(end, 0, 2);
    return file + directory + end;
  }

private:
  static void put(std::string &to, uint32_t value, int bytes) {
    for (int i = 0; i < bytes; ++i)
      to += i < 4 ? char(value >> 8 * i & 255) : '\0';
  }
  std::string file, directory;
  uint32_t count = 0;
};

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const std::string path =
      "/dev/shm/tmc-fuzz-" + std::to_string(getpid()) + ".pt2";
  std::string bytes(reinterpret_cast<const char *>(data), size);
  if (size && data[0] == '{') {
    Zip zip;
    zip.add("model/models/model.json", bytes);
    zip.add("model/data/weights/model_weights_config.json", "{\"config\": {}}");
    bytes = zip.bytes();
  }
  put(path, bytes);
  judge(importTorch(path, options(), context()), bytes);
  unlink(path.c_str());
  return 0;
}

#endif

#endif
