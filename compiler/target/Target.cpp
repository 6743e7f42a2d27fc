#include "compiler/target/Target.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <sstream>

using namespace tmc;

namespace {

constexpr double kTera = 1e12, kGiga = 1e9;
constexpr int64_t kGiB = int64_t(1) << 30;

/// A card's published peak rates; what it has to itself (context, handles) is
/// taken off its memory.
struct Card {
  const char *name, *arch;
  double teraflops, gigabytesPerSecond;
  int64_t gibibytes;
};

// Source: the vendors' data sheets, dense bf16 (fp16 where there is no bf16).
constexpr Card kCards[] = {
    {"h200", "sm_90", 989, 4800, 140},   {"h100", "sm_90", 989, 3350, 80},
    {"a100-80", "sm_80", 312, 2039, 80}, {"a100-40", "sm_80", 312, 1555, 40},
    {"l40s", "sm_89", 362, 864, 48},     {"rtx4090", "sm_89", 165, 1008, 24},
    {"rtx3090", "sm_86", 71, 936, 24},   {"rtx3060", "sm_86", 25, 360, 12},
    {"v100", "sm_70", 125, 900, 32},     {"t4", "sm_75", 65, 320, 16},
};

constexpr int64_t kCudaReservedBytes = kGiB / 2;
constexpr double kCudaLaunchSeconds = 4e-6;
constexpr double kPcieBytesPerSecond = 25 * kGiga;

Target cardTarget(const Card &card) {
  Target target;
  target.name = std::string("cuda:") + card.name;
  target.backend = Backend::Cuda;
  target.arch = card.arch;
  target.memoryBytes = card.gibibytes * kGiB;
  target.reservedBytes = kCudaReservedBytes;
  target.roofline = {kCudaLaunchSeconds, card.teraflops * kTera,
                     card.gigabytesPerSecond * kGiga};
  target.hostBytesPerSecond = kPcieBytesPerSecond;
  return target;
}

/// One core with 512-bit vectors, roughly; a calibration says it exactly.
Target cpuTarget() {
  Target target;
  target.name = "cpu";
  target.roofline = {1e-6, 120 * kGiga, 12 * kGiga};
  target.hostBytesPerSecond = 12 * kGiga;
  target.arenaAlignment = 64;
  return target;
}

} // namespace

double Roofline::seconds(double flops, double bytes) const {
  return launchSeconds +
         std::max(flops / flopsPerSecond, bytes / bytesPerSecond);
}

double Target::seconds(const std::string &family, int64_t flops,
                       int64_t bytes) const {
  auto own = families.find(family);
  return (own == families.end() ? roofline : own->second)
      .seconds(double(flops), double(bytes));
}

int64_t Target::picoseconds(const std::string &family, int64_t flops,
                            int64_t bytes) const {
  return std::max<int64_t>(1,
                           std::llround(seconds(family, flops, bytes) * 1e12));
}

bool tmc::isTargetFile(const std::string &text) {
  return absl::StrContains(text, '/') || absl::EndsWith(text, ".json");
}

static absl::StatusOr<Target> readTarget(const std::string &path) {
  std::ifstream file(path);
  std::stringstream text;
  if (!file || !(text << file.rdbuf()))
    return absl::UnavailableError(
        absl::StrCat("can't read the target file '", path, "'"));
  return targetFromJson(text.str(), path);
}

absl::StatusOr<Target> tmc::findTarget(const std::string &text) {
  if (isTargetFile(text))
    return readTarget(text);
  if (text == "cpu")
    return cpuTarget();
  for (const Card &card : kCards)
    if (text == std::string("cuda:") + card.name)
      return cardTarget(card);
  // An architecture stands for the largest card of it that is known.
  for (const Card &card : kCards)
    if (text == std::string("cuda:") + card.arch) {
      Target target = cardTarget(card);
      target.name = text;
      return target;
    }
  return absl::NotFoundError(
      absl::StrCat("there is no target named '", text, "'"));
}

std::vector<std::string> tmc::targetNames() {
  std::vector<std::string> names = {"cpu", "cuda:sm_XX"};
  for (const Card &card : kCards)
    names.push_back(std::string("cuda:") + card.name);
  names.push_back("a file of tmc calibrate");
  return names;
}
