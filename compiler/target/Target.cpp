#include "compiler/target/Target.h"

#include "compiler/target/BuiltinHosts.h"

#include "compiler/target/cards/Cards.inc"

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/ErrorHandling.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <sstream>

using namespace tmc;

namespace {

constexpr double kTera = 1e12, kGiga = 1e9, kPicoseconds = 1e12;
constexpr int64_t kGiB = int64_t(1) << 30;

/// A card's published peak rates, in TFLOP/s of dense products that are
/// accumulated in f32; 0 for a type without units. The card's own use of memory
/// (context, handles) is subtracted. `host` is the machine that contains the
/// card, and `hostGibibytes` what a step may pin of its memory.
struct Card {
  const char *name, *arch;
  double f32, tf32, bits16, bits8;
  double gigabytesPerSecond, gibibytes;
  int64_t processors; // Multiprocessors.
  HostMachine host;
  int64_t hostGibibytes;
  Fabric fabric; // Joins several such cards.

  double teraflops(ProductType type) const {
    switch (type) {
    case ProductType::F32:
      return f32;
    case ProductType::TF32:
      return tf32;
    case ProductType::Bits16:
      return bits16;
    case ProductType::Bits8:
      return bits8;
    }
    llvm_unreachable("a type of products");
  }
};

// Rates are NVIDIA's, from the documents named below, without sparsity; 16-bit
// is bf16, or fp16 on cards without bf16. GeForce cards multiply at half rate
// when they accumulate in f32; those rates stand here. Memory is the total that
// a process sees (cudaMemGetInfo, as PyTorch's messages print it), rounded
// down: less than the nominal size.
//
// A step may pin 24 of a desktop's 32 GiB, and 96 of a workstation's 128. On a
// server it may pin a card's share, rounded down: DGX H100, H200 and B200 2 TiB
// of 8 cards, DGX A100 1 TiB of 8, DGX-2 1.5 TiB of 16, AWS g4dn and g6e with
// 64 GiB and 128 GiB beside a card.
constexpr Card kCards[] = {
    // HGX B200 data sheet: a card of eight.
    {"b200", "sm_100", 75, 1100, 2250, 4500, 7700, 178.3, 148,
     HostMachine::XeonDDR5, 240, Fabric::Nvlink5},
    // H200 data sheet, H100 data sheet: SXM.
    {"h200", "sm_90", 67, 494.5, 989, 1979, 4800, 139.7, 132,
     HostMachine::XeonDDR5, 240, Fabric::Nvlink4},
    {"h100", "sm_90", 67, 494.5, 989, 1979, 3350, 79.1, 132,
     HostMachine::XeonDDR5, 240, Fabric::Nvlink4},
    // A100 data sheet: its 8-bit units take integers only.
    {"a100-80", "sm_80", 19.5, 156, 312, 0, 2039, 79.1, 108,
     HostMachine::EpycDDR4, 120, Fabric::Nvlink3},
    {"a100-40", "sm_80", 19.5, 156, 312, 0, 1555, 39.3, 108,
     HostMachine::EpycDDR4, 120, Fabric::Nvlink3},
    // L40S data sheet.
    {"l40s", "sm_89", 91.6, 183, 362, 733, 864, 44.3, 142,
     HostMachine::EpycDDR4, 120, Fabric::Pcie},
    // RTX Blackwell and RTX PRO Blackwell GPU architecture whitepapers.
    {"rtx-pro-6000", "sm_120", 126, 251.9, 503.8, 1007.6, 1792, 94.9, 188,
     HostMachine::XeonDDR5, 96, Fabric::Pcie},
    {"rtx5090", "sm_120", 104.8, 104.8, 209.5, 419, 1792, 31.3, 170,
     HostMachine::RyzenPcie5, 24, Fabric::Pcie},
    // Ada GPU architecture whitepaper, appendix A.
    {"rtx4090", "sm_89", 82.6, 82.6, 165.2, 330.3, 1008, 23.5, 128,
     HostMachine::RyzenDDR5, 24, Fabric::Pcie},
    // GA102 whitepaper, appendix A.
    {"rtx3090", "sm_86", 35.6, 35.6, 71, 0, 936, 23.5, 82,
     HostMachine::RyzenDDR4, 24, Fabric::Pcie},
    // 28 multiprocessors at 1.777 GHz with the rates of the GA102 whitepaper.
    {"rtx3060", "sm_86", 12.7, 12.7, 25.5, 0, 360, 11.7, 28,
     HostMachine::RyzenDDR4, 24, Fabric::Pcie},
    // V100 SXM2 and T4 data sheets: fp16 only.
    {"v100", "sm_70", 15.7, 0, 125, 0, 900, 31.7, 80, HostMachine::XeonDDR4, 90,
     Fabric::Nvlink2},
    {"t4", "sm_75", 8.1, 0, 65, 0, 320, 14.5, 40, HostMachine::XeonDDR4, 45,
     Fabric::Pcie},
};

/// The memory of context, library handles and kernels' code outside the arena.
/// An H100 takes up to 569 MiB by measurement (CUDA 13.0). For other cards no
/// measurement exists, but the size grows with the number of multiprocessors:
/// older cards have fewer.
int64_t reservedBytes(std::string_view arch) {
  const bool isOlder = arch.starts_with("sm_7") || arch.starts_with("sm_8");
  return isOlder ? kGiB / 2 : 640 * (kGiB / 1024);
}
constexpr double kCudaLaunchSeconds = 4e-6;

/// The card whose kernels were measured (compiler/target/cards).
const MeasuredCard &measuredCard() {
  static const MeasuredCard card = [] {
    absl::StatusOr<MeasuredCard> read =
        measuredCardFromJson(kMeasuredH200, "cards/h200.json");
    if (!read.ok())
      llvm::report_fatal_error(llvm::StringRef(read.status().ToString()));
    return *std::move(read);
  }();
  return card;
}

/// The classes of the measured card. On another card kernels reach the same
/// share of its peak rates; the time before a kernel's work is the same.
void describeClasses(const Card &card, Target &target) {
  const MeasuredCard &from = measuredCard();
  const Card &like = *absl::c_find_if(kCards, [&](const Card &each) {
    return from.card == std::string("cuda:") + each.name;
  });
  target.processors = card.processors;
  target.measuredOn = from.measuredOn;
  target.measuredDate = from.date;
  target.areClassesScaled = &card != &like;
  target.classes = from.classes;
  for (KernelClass &its : target.classes) {
    ProductType type = ProductType::F32;
    for (ProductType each : kProductTypes)
      if (absl::StrContains(its.where, std::string("products=") + nameOf(each)))
        type = each;
    its.roofline.flopsPerSecond *= card.teraflops(type) / like.teraflops(type);
    its.roofline.bytesPerSecond *=
        card.gigabytesPerSecond / like.gigabytesPerSecond;
  }
  // No kernel has products of a type without units.
  std::erase_if(target.classes, [](const KernelClass &its) {
    return its.roofline.flopsPerSecond <= 0;
  });
}

Target cardTarget(const Card &card) {
  Target target;
  target.name = std::string("cuda:") + card.name;
  target.backend = Backend::Cuda;
  target.arch = card.arch;
  target.rates = PriceSource::Published;
  // Whole MiB, so that a plan's figures are whole MiB as well.
  for (auto [space, bytes] : target.memoryBytes)
    if (onDevice(space.kind))
      bytes = int64_t(card.gibibytes * 1024) << 20;
    else if (space.hasAddresses)
      bytes = card.hostGibibytes * kGiB;
  target.isHostAssumed = true;
  target.reservedBytes = reservedBytes(card.arch);
  for (ProductType type : kProductTypes)
    if (double teraflops = card.teraflops(type); teraflops > 0)
      target.rooflines[type] = {kCudaLaunchSeconds, teraflops * kTera,
                                card.gigabytesPerSecond * kGiga};
  describeClasses(card, target);
  describeHost(card.host, target);
  target.network = networkOf(card.fabric);
  return target;
}

/// One core with 512-bit vectors, approximately; a calibration measures it. All
/// instruction sets have the same description, so that they have the same plan.
Target cpuTarget(const std::string &arch) {
  Target target;
  target.name = "cpu:" + arch;
  target.arch = arch;
  target.rooflines[ProductType::F32] = {1e-6, 120 * kGiga, 12 * kGiga};
  target.arenaAlignment = 64;
  const Roofline &core = target.rooflines[ProductType::F32];
  // A copy reads as many bytes as it writes.
  target.copies =
      PerEngine<Channel>::all({core.launchSeconds, core.bytesPerSecond / 2});
  target.updates = core;
  describeFile(HostMachine::XeonDDR4, target);
  return target;
}

} // namespace

const Roofline &Target::rooflineOf(const std::string &family,
                                   ProductType type) const {
  const auto own = families.find(family);
  if (own != families.end())
    if (auto at = own->second.find(type); at != own->second.end())
      return at->second;
  if (auto at = rooflines.find(type); at != rooflines.end())
    return at->second;
  if (own != families.end())
    if (auto at = own->second.find(ProductType::F32); at != own->second.end())
      return at->second;
  return rooflines.at(ProductType::F32);
}

/// The limits of a price, and its source. A rewritten or another card's kernel
/// may reach the peak rates; on an H200 steps took up to 3.9 times as long as
/// peak rates say, and a class may be off by half on another card.
static void judge(const Target &target, const KernelClass *its,
                  const Roofline &peaks, const KernelWork &work, Price &price) {
  constexpr double kOwnError = 0.05, kScaledError = 0.5, kBeyondPeak = 3.9;
  const double atPeak = std::max(double(work.flops) / peaks.flopsPerSecond,
                                 double(work.bytes) / peaks.bytesPerSecond) *
                        kPicoseconds;
  const auto ps = double(price.picoseconds);
  double least = 0, most = -1;
  switch (price.source) {
  case PriceSource::Measured:
    least = ps / (1 + kOwnError), most = ps * (1 + kOwnError);
    break;
  case PriceSource::Class:
    least = ps / (1 + its->error), most = ps * (1 + its->error);
    break;
  case PriceSource::Stale:
    least = std::min(ps, atPeak), most = ps * (1 + its->error);
    break;
  case PriceSource::Scaled:
    least = std::min(ps, atPeak), most = ps * (1 + kScaledError);
    break;
  case PriceSource::Published:
    if (target.backend == Backend::Cuda)
      least = std::min(ps, atPeak), most = ps * kBeyondPeak;
    break;
  case PriceSource::Nominal:
    break;
  }
  price.least = std::llround(least), price.most = std::llround(most);
}

/// True if the target has a time of this kernel, or a rate of its family.
static bool knows(const Target &target, const KernelWork &work) {
  auto family = target.families.find(work.family);
  return (!work.object.empty() && target.ownSeconds.contains(work.object)) ||
         (family != target.families.end() &&
          family->second.contains(work.products)) ||
         absl::c_any_of(target.classes, [&](const KernelClass &each) {
           return each.family == work.family && each.holds(work);
         });
}

/// The kernel of this backend in whose place one of a library stands, which has
/// its name and parameters behind the library's name ("CudnnAttention"); none
/// for other kernels.
static std::optional<KernelWork> ownInPlaceOf(const KernelWork &work) {
  constexpr llvm::StringLiteral kLibrary = "Cudnn";
  if (!llvm::StringRef(work.family).starts_with(kLibrary))
    return std::nullopt;
  KernelWork own = work;
  own.family.erase(0, kLibrary.size());
  if (llvm::StringRef(own.object).starts_with(kLibrary))
    own.object.erase(0, kLibrary.size());
  return own;
}

/// Seconds of a kernel that moves one piece between each two of its ranks.
static double secondsOfPieces(const NetworkLevels &network,
                              const KernelWork &work) {
  const int64_t ranks = std::max<int64_t>(work.number("ranks").value_or(2), 2);
  const double bytes = double(work.bytes) * double(ranks) / double(ranks - 1);
  return secondsOver(network, bytes, ranksByLevel(network, ranks));
}

Price Target::price(const KernelWork &work) const {
  // The library's kernel wasn't measured: it is taken for as fast as ours.
  if (std::optional<KernelWork> own = ownInPlaceOf(work);
      own && !knows(*this, work)) {
    Price price = this->price(*own);
    if (price.source < PriceSource::Scaled) {
      price.source = PriceSource::Scaled;
      judge(*this, nullptr, rooflineOf(own->family, own->products), *own,
            price);
    }
    return price;
  }
  Price price;
  const Roofline &roofline = rooflineOf(work.family, work.products);
  const KernelClass *its = nullptr;
  double seconds = 0;
  auto own = ownSeconds.find(work.object);
  auto family = families.find(work.family);
  if (!work.object.empty() && own != ownSeconds.end()) {
    seconds = own->second;
    price.source = PriceSource::Measured;
  } else if (work.family == "ExchangeRanks" || work.family == "GatherRanks") {
    seconds = secondsOfPieces(network, work);
    price.source = rates;
  } else if (family != families.end() &&
             family->second.contains(work.products)) {
    seconds = roofline.seconds(double(work.flops), double(work.bytes));
    price.source = rates;
  } else if (auto found = absl::c_find_if(
                 classes,
                 [&](const KernelClass &each) { return each.holds(work); });
             found != classes.end()) {
    its = &*found;
    seconds = its->seconds(work, processors);
    // A class of kernels that were bound by memory says nothing of units.
    if (auto peak = rooflines.find(work.products);
        work.hasProducts && peak != rooflines.end())
      seconds =
          std::max(seconds, double(work.flops) / peak->second.flopsPerSecond);
    price.source =
        areClassesScaled || its->version.empty()     ? PriceSource::Scaled
        : its->version == kernelVersion(work.family) ? PriceSource::Class
                                                     : PriceSource::Stale;
  } else {
    seconds = roofline.seconds(double(work.flops), double(work.bytes));
    price.source = rates;
  }
  price.picoseconds =
      std::max<int64_t>(1, std::llround(seconds * kPicoseconds));
  judge(*this, its, roofline, work, price);
  return price;
}

std::string Target::compiledFor() const {
  return (backend == Backend::Cuda ? "cuda:" : "cpu:") + arch;
}

const std::vector<std::string> &tmc::cpuArchs() {
  static const std::vector<std::string> archs = {"v3", "v4", "v4-bf16",
                                                 "v4-amx"};
  return archs;
}

std::string tmc::defaultCpuArch() { return TMC_CPU_TARGET; }

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
    return cpuTarget(defaultCpuArch());
  for (const std::string &arch : cpuArchs())
    if (text == "cpu:" + arch)
      return cpuTarget(arch);
  for (const Card &card : kCards)
    if (text == std::string("cuda:") + card.name)
      return cardTarget(card);
  // An architecture stands for its largest known card.
  for (const Card &card : kCards)
    if (text == std::string("cuda:") + card.arch) {
      Target target = cardTarget(card);
      target.standsFor = target.name;
      target.name = text;
      return target;
    }
  return absl::NotFoundError(
      absl::StrCat("there is no target named '", text, "'"));
}

/// The fixed words that `--target` accepts.
static std::vector<std::string> fixedNames() {
  std::vector<std::string> names = {"cpu"};
  for (const std::string &arch : cpuArchs())
    names.push_back("cpu:" + arch);
  for (const Card &card : kCards)
    names.push_back(std::string("cuda:") + card.name);
  return names;
}

std::vector<std::string> tmc::targetNames() {
  std::vector<std::string> names = fixedNames();
  names.insert(names.begin() + 1 + int64_t(cpuArchs().size()), "cuda:sm_XX");
  names.push_back("a file of tmc calibrate");
  return names;
}

std::string tmc::similarTarget(const std::string &text) {
  std::vector<std::string> names = fixedNames();
  for (const Card &card : kCards)
    names.push_back(std::string("cuda:") + card.arch);
  std::string best;
  const std::string word = llvm::StringRef(text).lower();
  // Less than half of the word may differ.
  unsigned bestDistance = unsigned(text.size() + 1) / 2;
  for (llvm::StringRef name : names) {
    // A card is often named without its backend, or by a part of its name.
    constexpr size_t kLeastPart = 3;
    const llvm::StringRef card = name.split(':').second;
    const unsigned distance =
        word.size() >= kLeastPart && card.contains(word)
            ? 0
            : std::min(llvm::StringRef(word).edit_distance(name),
                       llvm::StringRef(word).edit_distance(card));
    if (distance < bestDistance) {
      best = name.str();
      bestDistance = distance;
    }
  }
  return best;
}
