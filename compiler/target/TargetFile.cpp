// TargetFile.cpp - a target's description as JSON.

#include "compiler/target/Target.h"

#include "absl/strings/str_cat.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"

#include <cmath>

using namespace tmc;
namespace json = llvm::json;

static constexpr int64_t kSchema = 1;

static json::Object toJson(const Roofline &roofline) {
  return json::Object{{"launch_seconds", roofline.launchSeconds},
                      {"flops_per_second", roofline.flopsPerSecond},
                      {"bytes_per_second", roofline.bytesPerSecond}};
}

std::string tmc::targetToJson(const Target &target) {
  json::Object families;
  for (const auto &[name, roofline] : target.families)
    families[name] = toJson(roofline);
  json::Object object{
      {"schema", kSchema},
      {"name", target.name},
      {"backend", target.backend == Backend::Cpu ? "cpu" : "cuda"},
      {"arch", target.arch},
      {"memory_bytes", target.memoryBytes < 0
                           ? json::Value(nullptr)
                           : json::Value(target.memoryBytes)},
      {"reserved_bytes", target.reservedBytes},
      {"arena_alignment", target.arenaAlignment},
      {"host_bytes_per_second", target.hostBytesPerSecond},
      {"roofline", toJson(target.roofline)},
      {"families", std::move(families)}};
  std::string text;
  llvm::raw_string_ostream(text)
      << llvm::formatv("{0:2}", json::Value(std::move(object))) << "\n";
  return text;
}

namespace {

/// Reads fields; remembers the first one that is missing or out of range.
class Reader {
public:
  Reader(const json::Object &object, std::string where, std::string &wrong)
      : object(object), where(std::move(where)), wrong(wrong) {}

  void text(const char *name, std::string &to) {
    if (auto value = object.getString(name))
      to = value->str();
    else
      complain(name, "text");
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
  void roofline(Roofline &to) {
    real("launch_seconds", to.launchSeconds, true);
    real("flops_per_second", to.flopsPerSecond);
    real("bytes_per_second", to.bytesPerSecond);
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

absl::StatusOr<Target> tmc::targetFromJson(const std::string &text,
                                           const std::string &name) {
  auto bad = [&](const std::string &why) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", name, "' is no target description: ", why));
  };
  llvm::Expected<json::Value> value = json::parse(text);
  if (!value)
    return bad(llvm::toString(value.takeError()));
  const json::Object *object = value->getAsObject();
  if (!object)
    return bad("it isn't an object");
  if (object->getInteger("schema") != kSchema)
    return bad(absl::StrCat("its schema isn't ", kSchema));
  Target target;
  std::string wrong, backend;
  Reader reader(*object, "", wrong);
  reader.text("name", target.name);
  reader.text("backend", backend);
  reader.text("arch", target.arch);
  if (backend != "cpu" && backend != "cuda")
    reader.complain("backend", "cpu or cuda");
  target.backend = backend == "cuda" ? Backend::Cuda : Backend::Cpu;
  const json::Value *memory = object->get("memory_bytes");
  if (!memory || memory->kind() != json::Value::Null)
    reader.bytes("memory_bytes", target.memoryBytes, 1);
  reader.bytes("reserved_bytes", target.reservedBytes, 0);
  reader.bytes("arena_alignment", target.arenaAlignment, 1);
  if (target.arenaAlignment & (target.arenaAlignment - 1))
    reader.complain("arena_alignment", "a power of two");
  reader.real("host_bytes_per_second", target.hostBytesPerSecond);
  if (const json::Object *roofline = object->getObject("roofline"))
    Reader(*roofline, "roofline.", wrong).roofline(target.roofline);
  else
    reader.complain("roofline", "an object");
  if (const json::Object *families = object->getObject("families"))
    for (const auto &[family, entry] : *families) {
      std::string key = family.str();
      if (const json::Object *roofline = entry.getAsObject())
        Reader(*roofline, absl::StrCat("families.", key, "."), wrong)
            .roofline(target.families[key]);
      else
        reader.complain(key.c_str(), "an object");
    }
  else
    reader.complain("families", "an object");
  if (!wrong.empty())
    return bad(wrong);
  return target;
}
