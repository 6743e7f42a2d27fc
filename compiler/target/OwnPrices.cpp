// OwnPrices.cpp - times of kernels from a step's profile.

#include "compiler/support/Escape.h"
#include "compiler/support/Json.h"
#include "compiler/target/Target.h"

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <cmath>

using namespace tmc;
namespace json = llvm::json;

/// A profile's row has a dozen values; a step of a hundred thousand launches
/// has some millions.
static constexpr JsonLimits kProfileLimits{.maxDepth = 8,
                                           .maxValues = 32 << 20};

absl::Status tmc::addOwnPrices(const std::string &text, const std::string &name,
                               Target &target) {
  auto bad = [&](const std::string &why) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", name, "' is no profile of a step: ", why));
  };
  Expected<json::Object> profile = parseJsonObject(text, kProfileLimits);
  if (!profile)
    return bad("it " + profile.failure().message);
  if (auto schema = profile->getInteger("schema"); schema != kProfileSchema)
    return bad(absl::StrCat("its schema is ",
                            schema ? absl::StrCat(*schema) : "missing",
                            "; this tmc reads ", kProfileSchema));
  const auto device = profile->getString("device");
  const json::Object *objects = profile->getObject("objects");
  const json::Array *launches = profile->getArray("launches");
  if (!device || !objects || !launches)
    return bad("it lacks its device, objects or launches");
  if ((*device == "cpu") != (target.backend == Backend::Cpu))
    return absl::InvalidArgumentError(
        absl::StrCat("'", name, "' was measured on ", visible(device->str()),
                     ", which isn't ", target.name));
  std::map<std::string, std::pair<double, double>> sums; // Seconds and runs.
  int64_t joined = 0; // The following launches with which the last one ran.
  for (const json::Value &row : *launches) {
    const json::Object *launch = row.getAsObject();
    const auto kernel = launch ? launch->getString("kernel") : std::nullopt;
    const auto seconds = launch ? launch->getNumber("seconds") : std::nullopt;
    const auto runs = launch ? launch->getNumber("runs") : std::nullopt;
    if (!kernel || !seconds || !runs || !std::isfinite(*seconds) ||
        *seconds < 0 || !std::isfinite(*runs) || *runs < 0)
      return bad("a launch lacks its kernel, seconds or runs");
    // The share of each of several launches that ran as one is unknown.
    const int64_t together = launch->getInteger("together").value_or(1);
    const bool isAlone = joined == 0 && together == 1;
    joined = std::max(joined, together) - 1;
    if (!isAlone)
      continue;
    const auto object = objects->getString(*kernel);
    // A copy is no kernel, and the clock may not have seen a short launch.
    if (!object || *runs == 0 || *seconds == 0)
      continue;
    auto &[sum, times] = sums[object->str()];
    sum += *seconds;
    times += *runs;
  }
  if (sums.empty())
    return bad("it has no time of a kernel");
  for (const auto &[object, sum] : sums)
    target.ownSeconds[object] = sum.first / sum.second;
  target.ownMeasuredOn = visible(device->str());
  return absl::OkStatus();
}
