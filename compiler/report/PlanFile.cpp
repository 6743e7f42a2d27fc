#include "compiler/report/PlanFile.h"

#include "compiler/emit/Emit.h"
#include "compiler/report/PlanReport.h"
#include "compiler/support/Escape.h"
#include "compiler/support/Json.h"

#include <cmath>

using namespace tmc;
using llvm::StringRef;
namespace json = llvm::json;

/// A plan lists the names of a model's values, some thousands.
static constexpr JsonLimits kPlanLimits{.maxDepth = 16, .maxValues = 8 << 20};

Expected<PlanFile> PlanFile::read(StringRef text) {
  Expected<json::Object> fields = parseJsonObject(text, kPlanLimits);
  if (!fields)
    return Failure::input("the file plan.json " + fields.failure().message);
  if (fields->getInteger("schema") != kPlanSchema)
    return Failure::input(
        "the file plan.json can't be read: its schema isn't " +
        std::to_string(kPlanSchema));
  PlanFile plan;
  plan.fields = std::move(*fields);
  return plan;
}

const json::Value *PlanFile::find(StringRef path) const {
  const json::Object *at = &fields;
  for (auto [key, rest] = path.split('.');;
       std::tie(key, rest) = rest.split('.')) {
    const json::Value *found = at->get(key);
    if (rest.empty() || !found)
      return found;
    at = found->getAsObject();
    if (!at)
      return nullptr;
  }
}

std::optional<double> PlanFile::number(StringRef path) const {
  const json::Value *found = find(path);
  std::optional<double> value = found ? found->getAsNumber() : std::nullopt;
  return value && std::isfinite(*value) ? value : std::nullopt;
}

std::string PlanFile::text(StringRef path) const {
  const json::Value *found = find(path);
  return found ? visible(found->getAsString().value_or("").str()) : "";
}

std::string PlanFile::shown(const PlanFigure &figure) const {
  if (figure.unit == Unit::Text)
    return text(figure.path);
  std::optional<double> value = number(figure.path);
  return value ? shownAs(figure.unit, *value) : "";
}

Provenance PlanFile::made() const {
  Provenance made;
  made.version = text("made.version");
  made.date = text("made.date");
  made.model = text("made.model_fingerprint");
  made.plan = text("made.plan_fingerprint");
  const json::Value *command = find("made.command");
  if (const json::Array *words = command ? command->getAsArray() : nullptr)
    for (const json::Value &word : *words)
      made.command.push_back(visible(word.getAsString().value_or("").str()));
  return made;
}

std::string tmc::atLeft(std::string text, size_t width) {
  text.resize(std::max(text.size(), width), ' ');
  return text;
}

std::string tmc::atRight(const std::string &text, size_t width) {
  return std::string(width - std::min(width, text.size()), ' ') + text;
}

/// Bytes of files that no device has are shown as the most that is shown.
static std::string bytesText(double bytes) {
  constexpr double kMost = 0x1p62;
  return readableBytes(int64_t(std::min(std::max(bytes, 0.), kMost)));
}

std::string tmc::shownAs(Unit unit, double value) {
  char text[64] = "";
  switch (unit) {
  case Unit::Bytes:
    return bytesText(value);
  case Unit::Seconds:
    return readableSeconds(value);
  case Unit::Percent:
    snprintf(text, sizeof text, "%.2f %%", value);
    return text;
  case Unit::Count:
    snprintf(text, sizeof text, "%.0f", value);
    return text;
  case Unit::Text:
    return "";
  }
  return "";
}

std::string tmc::differenceAs(Unit unit, double first, double second) {
  const double more = second - first;
  if (more == 0 || !std::isfinite(more) || unit == Unit::Text)
    return "";
  const char *sign = more < 0 ? "-" : "+";
  if (unit == Unit::Bytes)
    return sign + bytesText(std::abs(more));
  if (unit != Unit::Seconds || first <= 0)
    return sign + shownAs(unit, std::abs(more));
  return sign + shownAs(Unit::Percent, 100 * std::abs(more) / first);
}
