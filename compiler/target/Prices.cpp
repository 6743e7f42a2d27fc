#include "compiler/target/Prices.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

using namespace tmc;
using llvm::StringRef;

const char *tmc::nameOf(ProductType type) {
  constexpr const char *names[] = {"f32", "tf32", "16-bit", "8-bit"};
  return names[static_cast<int>(type)];
}

const char *tmc::nameOf(PriceSource source) {
  constexpr const char *names[] = {"measured", "class",     "stale",
                                   "scaled",   "published", "nominal"};
  return names[static_cast<int>(source)];
}

ProductType tmc::productTypeOf(DType type) {
  if (type == DType::TF32)
    return ProductType::TF32;
  if (!isFloat(type) || sizeOf(type) > 2)
    return ProductType::F32;
  return sizeOf(type) == 2 ? ProductType::Bits16 : ProductType::Bits8;
}

void PriceSum::add(const Price &price, int64_t times,
                   const std::string &family) {
  picoseconds[price.source] += price.picoseconds * times;
  if (price.source == PriceSource::Stale)
    stale.insert(family);
  if (most < least)
    return;
  if (price.most < price.least) {
    least = 0, most = -1;
    return;
  }
  least += price.least * times;
  most += price.most * times;
}

int64_t PriceSum::total() const {
  int64_t sum = 0;
  for (const auto &[source, its] : picoseconds)
    sum += its;
  return sum;
}

PriceSource PriceSum::mainSource() const {
  auto most = std::max_element(
      picoseconds.begin(), picoseconds.end(),
      [](const auto &a, const auto &b) { return a.second < b.second; });
  return most == picoseconds.end() ? PriceSource::Nominal : most->first;
}

//===----------------------------------------------------------------------===//
// Conditions
//===----------------------------------------------------------------------===//

static llvm::SmallVector<StringRef> wordsOf(std::string_view text) {
  llvm::SmallVector<StringRef> words;
  StringRef(text).split(words, ' ', /*MaxSplit=*/-1, /*KeepEmpty=*/false);
  return words;
}

std::optional<std::string> KernelWork::parameter(std::string_view name) const {
  if (name == "products")
    return hasProducts || products != ProductType::F32
               ? std::optional<std::string>(nameOf(products))
               : std::nullopt;
  if (name == "flops")
    return std::to_string(flops);
  if (name == "bytes")
    return std::to_string(bytes);
  if (name == "launches")
    return std::to_string(launches);
  for (StringRef part : wordsOf(object))
    if (auto [key, value] = part.split('='); key == StringRef(name))
      return value.str();
  return std::nullopt;
}

std::optional<int64_t> KernelWork::number(std::string_view name) const {
  const std::optional<std::string> text = parameter(name);
  int64_t value = 0;
  if (!text || StringRef(*text).getAsInteger(10, value))
    return std::nullopt;
  return value;
}

namespace {

struct Condition {
  StringRef name, relation, value;

  /// None: `text` is no condition.
  static std::optional<Condition> of(StringRef text) {
    constexpr const char *kRelation = "<>=";
    const size_t at = text.find_first_of(kRelation);
    const size_t end = text.find_first_not_of(kRelation, at);
    if (at == 0 || at == StringRef::npos || end == StringRef::npos)
      return std::nullopt;
    Condition its{text.take_front(at), text.slice(at, end), text.substr(end)};
    double number = 0;
    const bool isOrder = its.relation == "<" || its.relation == "<=" ||
                         its.relation == ">" || its.relation == ">=";
    if (isOrder ? its.value.getAsDouble(number) : its.relation != "=")
      return std::nullopt;
    return its;
  }

  bool holds(const KernelWork &work) const {
    const std::optional<std::string> text = work.parameter(name.str());
    if (!text)
      return false;
    double own = 0, wanted = 0;
    if (StringRef(*text).getAsDouble(own) || value.getAsDouble(wanted))
      return relation == "=" && *text == value;
    if (relation == "=")
      return own == wanted;
    if (relation == "<")
      return own < wanted;
    if (relation == "<=")
      return own <= wanted;
    return relation == ">" ? own > wanted : own >= wanted;
  }
};

} // namespace

std::string tmc::faultOfConditions(std::string_view where) {
  for (StringRef part : wordsOf(where))
    if (!Condition::of(part))
      return "'" + part.str() + "' is no condition";
  return "";
}

bool KernelClass::holds(const KernelWork &work) const {
  if (family != "*" && family != work.family)
    return false;
  return llvm::all_of(wordsOf(where), [&](StringRef part) {
    const std::optional<Condition> condition = Condition::of(part);
    return condition && condition->holds(work);
  });
}

//===----------------------------------------------------------------------===//
// Times
//===----------------------------------------------------------------------===//

double Roofline::seconds(double flops, double bytes) const {
  return launchSeconds +
         std::max(flops / flopsPerSecond, bytes / bytesPerSecond);
}

namespace {

/// The rows and columns of a tile, in either direction, as large products have
/// them on tensor cores.
constexpr std::array<std::array<int64_t, 2>, 3> kTiles = {
    {{128, 256}, {256, 128}, {128, 128}}};
/// The numbers of parts of k that are tried, while all tiles of all parts fill
/// at most two waves.
constexpr int64_t kParts[] = {1, 2, 3, 4, 6, 8};
constexpr int64_t kMostWavesOfParts = 2;

/// Rounded up; both are positive.
double parts(double whole, double part) { return std::ceil(whole / part); }

} // namespace

/// Seconds of a product in waves of tiles, without its launch. Sums are f32.
static double secondsInWaves(const KernelClass &its, double m, double n,
                             double k, double batch, double processors) {
  double least = std::numeric_limits<double>::max();
  for (const auto &[rows, columns] : kTiles) {
    const double tiles =
        parts(m, double(rows)) * parts(n, double(columns)) * batch;
    for (int64_t cut : kParts) {
      if (cut > 1 && tiles * double(cut) > kMostWavesOfParts * processors)
        break;
      const double ofTile = 2 * double(rows * columns) * parts(k, double(cut)) *
                            processors / its.roofline.flopsPerSecond;
      double seconds =
          parts(tiles * double(cut), processors) * (ofTile + its.tileSeconds);
      if (cut > 1)
        seconds += 2 * sizeof(float) * m * n * batch * double(cut) /
                   its.roofline.bytesPerSecond;
      least = std::min(least, seconds);
    }
  }
  return least;
}

double KernelClass::seconds(const KernelWork &work, int64_t processors) const {
  const double launch = roofline.launchSeconds * double(work.launches);
  const double ofBytes = double(work.bytes) / roofline.bytesPerSecond;
  const std::optional<int64_t> m = work.number("m"), n = work.number("n"),
                               k = work.number("k");
  if (tileSeconds > 0 && m && n && k)
    return launch +
           std::max(ofBytes,
                    secondsInWaves(*this, double(*m), double(*n), double(*k),
                                   double(work.number("batch").value_or(1)),
                                   double(processors)));
  return launch +
         std::max(ofBytes, double(work.flops) / roofline.flopsPerSecond);
}

std::string tmc::kernelVersion(std::string_view family) {
  struct Version {
    std::string_view family, version;
  };
  static constexpr Version versions[] = {
#include "compiler/target/KernelVersions.inc"
  };
  for (const Version &known : versions)
    if (known.family == family)
      return std::string(known.version);
  return "";
}
