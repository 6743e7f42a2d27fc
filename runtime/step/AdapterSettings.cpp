//===- AdapterSettings.cpp - reads adapter_config.json --------------------===//

#include "runtime/step/AdapterSettings.h"

#include "runtime/step/JsonReader.h"

#include <cmath>
#include <cstdlib>

namespace tmc {

namespace {

bool readNumber(JsonReader &at, double &to) {
  std::string_view raw;
  if (!at.raw(raw))
    return false;
  const std::string text(raw);
  char *end = nullptr;
  to = std::strtod(text.c_str(), &end);
  return (end != text.c_str() && !*end && std::isfinite(to)) ||
         at.fail("a number expected");
}

/// Null counts as false.
bool readFlag(JsonReader &at, bool &to) {
  std::string_view raw;
  if (!at.raw(raw))
    return false;
  to = raw == "true";
  return to || raw == "false" || raw == "null" ||
         at.fail("true or false expected");
}

bool readTable(JsonReader &at, std::map<std::string, double> &to) {
  if (at.isNext('{'))
    return at.object([&](const std::string &key) {
      return at.checkName(key) && readNumber(at, to[key]);
    });
  std::string_view raw;
  return at.raw(raw) && (raw == "null" || at.fail("a table expected"));
}

} // namespace

Status readAdapterSettings(const std::string &shown, std::string_view text,
                           AdapterSettings &to) {
  JsonReader at(text, "configuration");
  const bool isGood = at.object([&](const std::string &key) {
    if (key == "peft_type")
      return at.string(to.kind);
    if (key == "r")
      return readNumber(at, to.rank);
    if (key == "lora_alpha")
      return readNumber(at, to.alpha);
    if (key == "use_rslora")
      return readFlag(at, to.rankStabilized);
    if (key == "use_dora")
      return readFlag(at, to.dora);
    if (key == "rank_pattern")
      return readTable(at, to.ranks);
    if (key == "alpha_pattern")
      return readTable(at, to.alphas);
    return at.skip();
  });
  if (isGood && at.finish())
    return Status::ok();
  return {Code::BadInput, "'" + shown + "': " + at.error()};
}

} // namespace tmc
