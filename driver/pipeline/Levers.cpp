#include "driver/pipeline/Levers.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringRef.h"

using namespace tmc;
using llvm::StringRef;

/// Rows of logits that a loss in chunks holds.
static constexpr int64_t kChunkRows = 256;

static LeverValue count(int64_t number) { return {number, ""}; }

/// 1, 2, 4, ... and all samples, as far as they divide the batch.
static std::vector<LeverValue> piecesOf(const Target &,
                                        const ModelFacts &model) {
  const int64_t samples = model.samples;
  std::vector<LeverValue> values;
  for (int64_t pieces = 1; pieces < samples; pieces *= 2)
    if (samples % pieces == 0)
      values.push_back(count(pieces));
  values.push_back(count(std::max<int64_t>(samples, 1)));
  return values;
}

static constexpr LeverName kPrecisions[] = {
    {"f32", 0}, {"tf32", 2}, {"bf16", 5}, {"fp16", 5}};

/// f32, and the narrower types whose products are faster on the target.
static std::vector<LeverValue> precisionsOf(const Target &target,
                                            const ModelFacts &) {
  std::vector<LeverValue> values = {{{}, "f32"}};
  if (target.backend == Backend::Cpu) {
    values.push_back({{}, "bf16"});
    return values;
  }
  // Cards before Ampere, which has TF32, multiply fp16 alone.
  const bool hasTF32 = target.rooflines.contains(ProductType::TF32);
  if (hasTF32)
    values.push_back({{}, "tf32"});
  if (target.rooflines.contains(ProductType::Bits16))
    values.push_back({{}, hasTF32 ? "bf16" : "fp16"});
  return values;
}

static constexpr LeverName kOptimizers[] = {
    {"adamw", 0}, {"adamw8bit", 3}, {"adamw4bit", 6}};

static std::vector<LeverValue> optimizersOf(const Target &,
                                            const ModelFacts &) {
  return {{{}, "adamw"}, {{}, "adamw8bit"}, {{}, "adamw4bit"}};
}

/// The exact chunk, and kChunkRows.
static std::vector<LeverValue> chunksOf(const Target &, const ModelFacts &) {
  return {{}, count(kChunkRows)};
}

/// With 4 or 16 tiles, a quarter or a sixteenth of the long rows is alive at a
/// time.
static std::vector<LeverValue> tilesOf(const Target &, const ModelFacts &) {
  return {count(1), count(4), count(16)};
}

static constexpr LeverName kBases[] = {{"keep", 0}, {"int8", 4}, {"nf4", 7}};

/// The format of coded weights, which have no other; else all, if a parameter
/// is frozen.
static std::vector<LeverValue> basesOf(const Target &,
                                       const ModelFacts &model) {
  if (!model.codes.empty())
    return {{{}, model.codes}};
  if (!model.hasFrozen)
    return {{{}, "keep"}};
  return {{{}, "keep"}, {{}, "int8"}, {{}, "nf4"}};
}

static const Lever kTable[] = {
    {.flag = "micro-batches",
     .byDefault = "1",
     .valueName = "N|auto",
     .help = "pieces that the batch is cut into, the last one smaller where\n"
             "                          it has to be (default: 1); auto: as "
             "many as are best",
     .place = 1,
     .values = piecesOf,
     .names = {},
     .mostHarmless = 1,
     .unit = "micro-batches"},
    {.flag = "precision",
     .byDefault = "f32",
     .valueName = "SPEC",
     .help = "what products multiply: f32, tf32, bf16, fp16,\n"
             "                          fp8[:current|delayed|block] or auto, "
             "then exceptions\n"
             "                          by name: bf16,NAME=f32",
     .place = 6,
     .values = precisionsOf,
     .names = kPrecisions},
    {.flag = "optimizer",
     .byDefault = "adamw",
     .valueName = "SPEC",
     .help = "adamw(weight_decay=0.1,clip=1.0,...), adamw8bit(...), "
             "adamw4bit(...), adafactor(...),\n"
             "                          lion(...), sgd(momentum=0.9,...), or "
             "auto(...) of adamw's formats",
     .place = 5,
     .values = optimizersOf,
     .names = kOptimizers},
    {.flag = "loss-chunk",
     .byDefault = "",
     .valueName = "ROWS|all|auto",
     .help = "hold at most so many rows of logits (default: auto where\n"
             "                          another lever is, else 256 where that "
             "saves memory and\n"
             "                          changes no bit, else all)",
     .place = 2,
     .values = chunksOf,
     .names = {},
     .mostHarmless = 0,
     .unit = "rows of logits",
     .zero = "all"},
    {.flag = "tiles",
     .byDefault = "1",
     .valueName = "N|auto",
     .help = "parts that the rows inside MLPs are computed in (default: 1);\n"
             "                          auto: as few as are best",
     .place = 3,
     .values = tilesOf,
     .names = {},
     .mostHarmless = 1,
     .unit = "tiles"},
    {.flag = "base",
     .byDefault = "keep",
     .valueName = "SPEC",
     .help = "how parameters that aren't trained are stored: nf4, nf4:plain, "
             "int8,\n                          bf16, f32, keep (default: as "
             "the model has them) or auto, then\n                          "
             "exceptions by name: nf4,NAME=bf16",
     .place = 7,
     .values = basesOf,
     .names = kBases,
     .unit = "base"},
};
static_assert(std::size(kTable) == kLevers, "a row for each lever");

llvm::ArrayRef<Lever> tmc::leverTable() { return kTable; }

static std::array<LeverValue, kLevers> defaults() {
  std::array<LeverValue, kLevers> values;
  for (auto [lever, value] : llvm::zip(leverTable(), values))
    value = *lever.parse("");
  return values;
}

LeverSetting::LeverSetting() {
  static const std::array<LeverValue, kLevers> kDefaults = defaults();
  values = kDefaults;
}

/// The first of "bf16,lm_head=f32" or "adamw(clip=1)", and the rest.
static std::pair<StringRef, StringRef> headOf(StringRef spec) {
  size_t end = spec.find_first_of(",(");
  return {spec.take_front(end),
          end == StringRef::npos ? StringRef() : spec.drop_front(end)};
}

Expected<LeverValue> Lever::parse(const std::string &given) const {
  const std::string text = given.empty() ? byDefault : given;
  if (hasNames())
    return LeverValue{{}, text};
  if (text.empty())
    return LeverValue();
  if (text == "auto")
    return count(kAuto);
  if (zero && text == zero)
    return count(0);
  int64_t number;
  if (!StringRef(text).getAsInteger(10, number) && number > 0)
    return count(number);
  return Failure::usage(
      "--" + std::string(flag) + "=" + text + " is no positive number" +
      (zero ? ", '" + std::string(zero) + "'" : "") + " or 'auto'");
}

std::string Lever::text(const LeverValue &value) const {
  if (hasNames())
    return value.name;
  return value.count ? std::to_string(*value.count) : "auto";
}

std::string Lever::restOf(const LeverValue &value) const {
  return headOf(value.name).second.str();
}

bool Lever::isFree(const LeverValue &value) const {
  return hasNames() ? headOf(value.name).first == "auto" : value.count == kAuto;
}

bool Lever::mayChange(const LeverValue &value) const {
  if (!hasNames())
    return !isFree(value);
  return llvm::any_of(names, [&](const LeverName &each) {
    return headOf(value.name).first == each.name;
  });
}

LeverValue Lever::freed(const LeverValue &value) const {
  if (!hasNames())
    return count(kAuto);
  return {{}, "auto" + restOf(value)};
}

std::vector<LeverValue> Lever::allowed(const LeverValue &asked,
                                       const Target &target,
                                       const ModelFacts &model) const {
  if (!isFree(asked))
    return {asked};
  std::vector<LeverValue> open = values(target, model);
  for (LeverValue &value : open)
    value.name += restOf(asked);
  return open;
}

int Lever::harm(const LeverValue &value) const {
  if (!hasNames())
    return value.count.value_or(0) > mostHarmless;
  const auto *found = llvm::find_if(names, [&](const LeverName &each) {
    return headOf(value.name).first == each.name;
  });
  return found == names.end() ? 0 : found->harm;
}

std::string Lever::words(const LeverValue &value) const {
  const std::string after = *unit ? std::string(" ") + unit : "";
  if (hasNames())
    return value.name == byDefault ? "" : value.name + after;
  return value.count.value_or(0) <= mostHarmless ? "" : text(value) + after;
}
