// TargetFile.cpp - a target's description as JSON.

#include "compiler/support/Escape.h"
#include "compiler/support/Json.h"
#include "compiler/target/Target.h"

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include <cmath>

using namespace tmc;
namespace json = llvm::json;

/// Schema 1 had `roofline` and one roofline per family, all for f32. Schemas 1
/// and 2 had `host_bytes_per_second`, for each direction, and no other figures
/// of host and file. Schema 3 had figures of host and file, and schema 4 has
/// those of each space and engine, by their names. Schema 5 may have classes of
/// kernels, schema 6 the rate of the host's memory. Schema 7 has the network.
static constexpr int64_t kSchema = 7, kNetworkSchema = 7,
                         kHostAndFileSchema = 3, kOneRateSchema = 2,
                         kF32Schema = 1;

/// The card whose host and network an older file gets if its architecture is
/// that of no built-in card.
static constexpr char kOtherCard[] = "cuda:h200";

static json::Object toJson(const Roofline &roofline) {
  return json::Object{{"launch_seconds", roofline.launchSeconds},
                      {"flops_per_second", roofline.flopsPerSecond},
                      {"bytes_per_second", roofline.bytesPerSecond}};
}

static json::Object toJson(const Rooflines &rooflines) {
  json::Object object;
  for (const auto &[type, roofline] : rooflines)
    object[nameOf(type)] = toJson(roofline);
  return object;
}

static json::Object toJson(const Channel &channel) {
  return json::Object{{"latency_seconds", channel.latencySeconds},
                      {"bytes_per_second", channel.bytesPerSecond}};
}

static json::Array toJson(const NetworkLevels &network) {
  json::Array levels;
  for (const NetworkLevel &level : network) {
    json::Object object = toJson(level.channel);
    object["name"] = level.name;
    object["ranks"] = level.ranks == NetworkLevel::kAnyRanks
                          ? json::Value(nullptr)
                          : json::Value(level.ranks);
    levels.push_back(std::move(object));
  }
  return levels;
}

static json::Object toJson(const KernelClass &its) {
  json::Object object = toJson(its.roofline);
  object["family"] = its.family;
  object["where"] = its.where;
  object["error"] = its.error;
  object["version"] = its.version;
  if (its.tileSeconds > 0)
    object["tile_seconds"] = its.tileSeconds;
  return object;
}

static json::Object classesToJson(const Target &target) {
  json::Array classes;
  for (const KernelClass &its : target.classes)
    classes.push_back(toJson(its));
  return json::Object{{"measured_on", target.measuredOn},
                      {"date", target.measuredDate},
                      {"scaled", target.areClassesScaled},
                      {"processors", target.processors},
                      {"classes", std::move(classes)}};
}

/// Null for a number that is unknown or no limit.
static json::Value bytesOrNull(int64_t bytes) {
  return bytes < 0 ? json::Value(nullptr) : json::Value(bytes);
}

std::string tmc::targetToJson(const Target &target) {
  json::Object families, memory, engines;
  for (auto [space, bytes] : target.memoryBytes)
    memory[space.name] = bytesOrNull(bytes);
  for (auto [engine, channel] : target.copies)
    if (engine.copies)
      engines[engine.name] = toJson(channel);
  engines[nameOf(EngineKind::Host)] = toJson(target.updates);
  for (const auto &[name, rooflines] : target.families)
    families[name] = toJson(rooflines);
  json::Object object{
      {"schema", kSchema},
      {"name", target.name},
      {"backend", target.backend == Backend::Cpu ? "cpu" : "cuda"},
      {"arch", target.arch},
      {"memory_bytes", std::move(memory)},
      {"reserved_bytes", target.reservedBytes},
      {"arena_alignment", target.arenaAlignment},
      {"engines", std::move(engines)},
      {"network", toJson(target.network)},
      {"rooflines", toJson(target.rooflines)},
      {"families", std::move(families)}};
  if (target.hostBytesPerSecond > 0)
    object["host_memory_bytes_per_second"] = target.hostBytesPerSecond;
  if (!target.classes.empty())
    object["kernels"] = classesToJson(target);
  return jsonText(std::move(object), 2);
}

namespace {

/// Reads fields; remembers the first one that is missing or out of range.
class Reader {
public:
  Reader(const json::Object &object, std::string where, std::string &wrong)
      : object(object), where(std::move(where)), wrong(wrong) {}

  void text(const char *name, std::string &to) {
    words(name, to, /*mayBeEmpty=*/false);
  }
  void words(const char *name, std::string &to, bool mayBeEmpty = true) {
    auto value = object.getString(name);
    if (!value)
      return complain(name, "text");
    to = value->str();
    if (to.empty() && mayBeEmpty)
      return;
    if (std::string fault = nameFault(to); !fault.empty() && wrong.empty())
      wrong = absl::StrCat("'", where, name, "' ", fault);
  }
  /// A rate or a time: above zero unless `mayBeZero`.
  void real(const char *name, double &to, bool mayBeZero = false) {
    auto value = object.getNumber(name);
    if (value && std::isfinite(*value) &&
        (*value > 0 || (mayBeZero && *value == 0)))
      to = *value;
    else
      complain(name, "a positive number");
  }
  void bytes(const char *name, int64_t &to, int64_t least) {
    auto value = object.getInteger(name);
    if (value && *value >= least)
      to = *value;
    else
      complain(name, "a number of bytes");
  }
  /// Null stands for -1.
  void bytesOrNull(const char *name, int64_t &to) {
    const json::Value *value = object.get(name);
    if (value && value->kind() == json::Value::Null)
      to = -1;
    else
      bytes(name, to, 1);
  }
  void roofline(Roofline &to) {
    real("launch_seconds", to.launchSeconds, true);
    real("flops_per_second", to.flopsPerSecond);
    real("bytes_per_second", to.bytesPerSecond);
  }
  void flag(const char *name, bool &to) {
    if (auto value = object.getBoolean(name))
      to = *value;
    else
      complain(name, "true or false");
  }
  void count(const char *name, int64_t &to) {
    auto value = object.getInteger(name);
    if (value && *value >= 1)
      to = *value;
    else
      complain(name, "a number above zero");
  }
  void kernelClass(KernelClass &to) {
    text("family", to.family);
    words("where", to.where);
    if (std::string fault = faultOfConditions(to.where);
        !fault.empty() && wrong.empty())
      wrong = absl::StrCat("'", where, "where': ", fault);
    words("version", to.version);
    real("error", to.error, true);
    if (object.get("tile_seconds"))
      real("tile_seconds", to.tileSeconds);
    roofline(to.roofline);
  }
  void classes(std::vector<KernelClass> &to) {
    const json::Array *list = object.getArray("classes");
    if (!list)
      return complain("classes", "a list");
    for (size_t i = 0; i < list->size(); ++i)
      nested(absl::StrCat("classes[", i, "]").c_str(), (*list)[i].getAsObject(),
             [&](Reader own) { own.kernelClass(to.emplace_back()); });
  }
  void channel(const char *name, Channel &to) {
    nested(name, object.getObject(name),
           [&](Reader reader) { reader.channel(to); });
  }
  void channel(Channel &to) {
    real("latency_seconds", to.latencySeconds, true);
    real("bytes_per_second", to.bytesPerSecond);
  }
  /// Null is for the outermost level, which joins any number of ranks.
  void level(NetworkLevel &to, bool isOutermost) {
    text("name", to.name);
    if (to.name.empty())
      complain("name", "text");
    const json::Value *ranks = object.get("ranks");
    const auto number = object.getInteger("ranks");
    if (isOutermost ? !ranks || ranks->kind() != json::Value::Null
                    : !number || *number < 2)
      complain("ranks", isOutermost ? "null in the outermost level"
                                    : "a number above one");
    else if (!isOutermost)
      to.ranks = *number;
    channel(to.channel);
  }
  void network(NetworkLevels &to) {
    const json::Array *list = object.getArray("network");
    if (!list || list->empty())
      return complain("network", "a list of levels");
    to.clear();
    for (size_t i = 0; i < list->size(); ++i)
      nested(absl::StrCat("network[", i, "]").c_str(), (*list)[i].getAsObject(),
             [&](Reader own) {
               own.level(to.emplace_back(), i + 1 == list->size());
             });
  }
  void memory(PerSpace<int64_t> &to) {
    for (auto [space, bytes] : to)
      bytesOrNull(space.name, bytes);
  }
  void engines(Target &to) {
    for (auto [engine, its] : to.copies)
      if (engine.copies)
        channel(engine.name, its);
    const char *updates = nameOf(EngineKind::Host);
    nested(updates, object.getObject(updates),
           [&](Reader reader) { reader.roofline(to.updates); });
  }
  /// The same figures in files of schema 3.
  void hostAndFile(Target &to) {
    nested("host", object.getObject("host"), [&](Reader host) {
      host.bytesOrNull("memory_bytes", to.memoryBytes[space("host")]);
      host.channel("to_host", to.copies[engine("d2h")]);
      host.channel("to_device", to.copies[engine("h2d")]);
      host.nested("updates", host.object.getObject("updates"),
                  [&](Reader reader) { reader.roofline(to.updates); });
    });
    nested("file", object.getObject("file"), [&](Reader file) {
      file.bytesOrNull("bytes", to.memoryBytes[space("file")]);
      file.channel("write", to.copies[engine("file-write")]);
      file.channel("read", to.copies[engine("file-read")]);
    });
  }
  /// The rate between device and host in older files. `builtin` supplies the
  /// other figures.
  void oneRate(const Target &builtin, Target &to) {
    to.copies = builtin.copies;
    to.updates = builtin.updates;
    Channel &out = to.copies[engine("d2h")];
    real("host_bytes_per_second", out.bytesPerSecond);
    to.copies[engine("h2d")].bytesPerSecond = out.bytesPerSecond;
  }
  /// The rooflines of the types that the file has.
  void rooflines(Rooflines &to) {
    for (ProductType type : kProductTypes)
      if (const json::Value *entry = object.get(nameOf(type)))
        nested(nameOf(type), entry->getAsObject(),
               [&](Reader reader) { reader.roofline(to[type]); });
  }
  /// Calls `read` for the contents of `name`, which must be an object.
  template <typename F>
  void nested(const char *name, const json::Object *found, F &&read) {
    if (found)
      read(Reader(*found, absl::StrCat(where, name, "."), wrong));
    else
      complain(name, "an object");
  }
  void complain(const char *name, const char *wanted) {
    if (wrong.empty())
      wrong = absl::StrCat("'", where, name, "' isn't ", wanted);
  }

private:
  const json::Object &object;
  std::string where;
  std::string &wrong;
};

} // namespace

/// The built-in target of the architecture, which supplies the figures that an
/// older file lacks, or the default target if the architecture is unknown.
static Target builtinLike(const Target &target) {
  const char *otherwise = target.backend == Backend::Cuda ? kOtherCard : "cpu";
  // An architecture from a file must not be read as a path.
  absl::StatusOr<Target> builtin = findTarget(
      isTargetFile(target.compiledFor()) ? otherwise : target.compiledFor());
  return builtin.ok() ? *std::move(builtin) : *findTarget(otherwise);
}

absl::StatusOr<Target> tmc::targetFromJson(const std::string &text,
                                           const std::string &name) {
  auto bad = [&](const std::string &why) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", name, "' is no target description: ", why));
  };
  Expected<json::Object> object = parseJsonObject(text);
  if (!object)
    return bad("it " + object.failure().message);
  auto schema = object->getInteger("schema");
  if (!schema || *schema < kF32Schema || *schema > kSchema)
    return bad(absl::StrCat("its schema is ",
                            schema ? absl::StrCat(*schema) : "missing",
                            "; this tmc reads ", kF32Schema, " to ", kSchema));
  Target target;
  std::string wrong, backend;
  Reader reader(*object, "", wrong);
  reader.text("name", target.name);
  reader.text("backend", backend);
  reader.text("arch", target.arch);
  if (backend != "cpu" && backend != "cuda")
    reader.complain("backend", "cpu or cuda");
  target.backend = backend == "cuda" ? Backend::Cuda : Backend::Cpu;
  bool old = schema == kF32Schema;
  if (old && backend == "cpu" && target.arch.empty())
    target.arch = defaultCpuArch(); // The file's target was plain `cpu`.
  if (backend == "cpu" && !absl::c_linear_search(cpuArchs(), target.arch))
    reader.complain("arch",
                    absl::StrCat("one of ", absl::StrJoin(cpuArchs(), ", "),
                                 ": the instruction set that was measured")
                        .c_str());
  target.rates = PriceSource::Measured;
  reader.bytes("reserved_bytes", target.reservedBytes, 0);
  reader.bytes("arena_alignment", target.arenaAlignment, 1);
  if (target.arenaAlignment & (target.arenaAlignment - 1))
    reader.complain("arena_alignment", "a power of two");
  if (*schema <= kHostAndFileSchema)
    reader.bytesOrNull("memory_bytes", target.memoryBytes.device());
  if (*schema <= kOneRateSchema) {
    reader.oneRate(builtinLike(target), target);
  } else if (*schema == kHostAndFileSchema) {
    reader.hostAndFile(target);
  } else {
    reader.nested("memory_bytes", object->getObject("memory_bytes"),
                  [&](Reader own) { own.memory(target.memoryBytes); });
    reader.nested("engines", object->getObject("engines"),
                  [&](Reader own) { own.engines(target); });
  }
  if (*schema < kNetworkSchema)
    target.network = builtinLike(target).network;
  else
    reader.network(target.network);
  if (old)
    reader.nested("roofline", object->getObject("roofline"), [&](Reader own) {
      own.roofline(target.rooflines[ProductType::F32]);
    });
  else
    reader.nested("rooflines", object->getObject("rooflines"), [&](Reader own) {
      own.rooflines(target.rooflines);
      if (!target.rooflines.count(ProductType::F32))
        own.complain(nameOf(ProductType::F32), "an object");
    });
  const json::Object *families = object->getObject("families");
  reader.nested("families", families, [&](Reader all) {
    for (const auto &[key, entry] : *families) {
      Rooflines &own = target.families[key.str()];
      all.nested(key.str().c_str(), entry.getAsObject(), [&](Reader one) {
        if (old)
          one.roofline(own[ProductType::F32]);
        else
          one.rooflines(own);
      });
    }
  });
  if (object->get("host_memory_bytes_per_second"))
    reader.real("host_memory_bytes_per_second", target.hostBytesPerSecond);
  if (const json::Value *kernels = object->get("kernels"))
    reader.nested("kernels", kernels->getAsObject(), [&](Reader own) {
      own.words("measured_on", target.measuredOn);
      own.words("date", target.measuredDate);
      own.flag("scaled", target.areClassesScaled);
      own.count("processors", target.processors);
      own.classes(target.classes);
    });
  if (!wrong.empty())
    return bad(wrong);
  return target;
}

absl::StatusOr<MeasuredCard>
tmc::measuredCardFromJson(const std::string &text, const std::string &name) {
  auto bad = [&](const std::string &why) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", name, "' is no measured card: ", why));
  };
  Expected<json::Object> object = parseJsonObject(text);
  if (!object)
    return bad("it " + object.failure().message);
  MeasuredCard card;
  std::string wrong;
  Reader reader(*object, "", wrong);
  reader.text("card", card.card);
  reader.text("measured_on", card.measuredOn);
  reader.text("date", card.date);
  reader.count("processors", card.processors);
  reader.classes(card.classes);
  if (!wrong.empty())
    return bad(wrong);
  return card;
}
