#include "compiler/pipeline/LeverSpace.h"

#include "llvm/ADT/StringRef.h"
#include "llvm/ADT/StringSwitch.h"

using namespace tmc;
using llvm::StringRef;

/// Rows of logits that a loss in chunks holds.
static constexpr int64_t kChunkRows = 256;

/// Numbers of tiles that are tried: with 4 or 16 tiles, a quarter or a
/// sixteenth of the long rows is alive at a time.
static constexpr int64_t kTileCounts[] = {1, 4, 16};

/// The first of "bf16,lm_head=f32" or "adamw(clip=1)", and the rest.
static std::pair<StringRef, StringRef> headOf(StringRef spec) {
  size_t end = spec.find_first_of(",(");
  return {spec.take_front(end),
          end == StringRef::npos ? StringRef() : spec.drop_front(end)};
}

static bool isAuto(StringRef spec) { return headOf(spec).first == "auto"; }

bool tmc::hasFreeLevers(const CompileOptions &asked) {
  return asked.microBatches == kAuto || asked.lossChunk == kAuto ||
         asked.tiles == kAuto || isAuto(asked.precision) ||
         isAuto(asked.optimizer);
}

/// Appends the rest of an `auto` specification to each name.
static std::vector<std::string> specsOf(StringRef asked,
                                        llvm::ArrayRef<const char *> names) {
  if (!isAuto(asked))
    return {asked.str()};
  std::vector<std::string> specs;
  for (const char *name : names)
    specs.push_back(name + headOf(asked).second.str());
  return specs;
}

/// f32, and the narrower types whose products are faster on the target.
static std::vector<const char *> precisionsOf(const Target &target) {
  std::vector<const char *> names = {"f32"};
  if (target.backend == Backend::Cpu) {
    names.push_back("bf16");
    return names;
  }
  if (target.rooflines.contains(ProductType::TF32))
    names.push_back("tf32");
  // Cards before Ampere, which has TF32, multiply fp16 alone.
  if (target.rooflines.contains(ProductType::Bits16))
    names.push_back(target.rooflines.contains(ProductType::TF32) ? "bf16"
                                                                 : "fp16");
  return names;
}

LeverSpace tmc::leverSpaceOf(const CompileOptions &asked, const Target &target,
                             int64_t samples) {
  LeverSpace space;
  if (asked.microBatches != kAuto) {
    space.microBatches = {asked.microBatches};
  } else {
    for (int64_t pieces = 1; pieces < samples; pieces *= 2)
      if (samples % pieces == 0)
        space.microBatches.push_back(pieces);
    space.microBatches.push_back(std::max<int64_t>(samples, 1));
  }
  space.precisions = specsOf(asked.precision, precisionsOf(target));
  space.optimizers =
      specsOf(asked.optimizer, {"adamw", "adamw8bit", "adamw4bit"});
  if (asked.lossChunk == kAuto)
    space.lossChunks = {std::nullopt, kChunkRows};
  else
    space.lossChunks = {asked.lossChunk};
  if (asked.tiles == kAuto)
    space.tiles.assign(std::begin(kTileCounts), std::end(kTileCounts));
  else
    space.tiles = {asked.tiles};
  return space;
}

std::vector<LeverSetting> LeverSpace::all() const {
  std::vector<LeverSetting> settings;
  for (const std::string &precision : precisions)
    for (const std::string &optimizer : optimizers)
      for (const std::optional<int64_t> &chunk : lossChunks)
        for (int64_t tiled : tiles)
          for (int64_t pieces : microBatches)
            settings.push_back({pieces, precision, optimizer, chunk, tiled});
  return settings;
}

CompileOptions tmc::pinned(CompileOptions asked, const LeverSetting &setting) {
  asked.microBatches = setting.microBatches;
  asked.precision = setting.precision;
  asked.optimizer = setting.optimizer;
  asked.lossChunk = setting.lossChunk;
  asked.tiles = setting.tiles;
  return asked;
}

/// `spec` with its name replaced.
static void rename(std::string &spec, StringRef name) {
  spec = name.str() + headOf(spec).second.str();
}

std::vector<FreeLever> tmc::pinnedLevers(const CompileOptions &asked) {
  std::vector<FreeLever> levers;
  if (asked.microBatches != kAuto)
    levers.push_back([](CompileOptions &o) { o.microBatches = kAuto; });
  if (asked.lossChunk != kAuto)
    levers.push_back([](CompileOptions &o) { o.lossChunk = kAuto; });
  if (asked.tiles != kAuto)
    levers.push_back([](CompileOptions &o) { o.tiles = kAuto; });
  if (asked.offload.isNone())
    levers.push_back(
        [](CompileOptions &o) { o.offload = OffloadSpec::asNeeded(); });
  StringRef optimizer = headOf(asked.optimizer).first;
  if (llvm::is_contained({"adamw", "adamw8bit", "adamw4bit"}, optimizer))
    levers.push_back([](CompileOptions &o) { rename(o.optimizer, "auto"); });
  StringRef precision = headOf(asked.precision).first;
  if (llvm::is_contained({"f32", "tf32", "bf16", "fp16"}, precision))
    levers.push_back([](CompileOptions &o) { rename(o.precision, "auto"); });
  return levers;
}

std::string tmc::flagsOf(const CompileOptions &asked,
                         const CompileOptions &options) {
  std::string text;
  auto add = [&](const char *flag, const std::string &value) {
    text += (text.empty() ? "--" : " --") + std::string(flag) + "=" + value;
  };
  if (options.microBatches != asked.microBatches)
    add("micro-batches", std::to_string(options.microBatches));
  if (options.lossChunk != asked.lossChunk && options.lossChunk)
    add("loss-chunk", std::to_string(*options.lossChunk));
  if (options.tiles != asked.tiles)
    add("tiles", std::to_string(options.tiles));
  if (options.offload != asked.offload)
    add("offload", options.offload.text());
  if (options.optimizer != asked.optimizer)
    add("optimizer", options.optimizer);
  if (options.precision != asked.precision)
    add("precision", options.precision);
  return text;
}

Harm tmc::harmOf(const LeverSetting &setting) {
  Harm harm;
  auto pull = [&](int rank) {
    harm.most = std::max(harm.most, rank);
    harm.sum += rank;
  };
  if (setting.microBatches > 1)
    pull(1);
  if (setting.lossChunk.value_or(0) > 0)
    pull(1);
  if (setting.tiles > 1)
    pull(1);
  pull(llvm::StringSwitch<int>(headOf(setting.precision).first)
           .Case("tf32", 2)
           .Cases({"bf16", "fp16"}, 4)
           .Default(0));
  pull(llvm::StringSwitch<int>(headOf(setting.optimizer).first)
           .Case("adamw8bit", 3)
           .Case("adamw4bit", 5)
           .Default(0));
  return harm;
}

std::string tmc::textOf(const LeverSetting &setting) {
  std::string text;
  auto add = [&](const std::string &lever) {
    text += (text.empty() ? "" : ", ") + lever;
  };
  if (setting.microBatches > 1)
    add(std::to_string(setting.microBatches) + " micro-batches");
  if (setting.precision != "f32")
    add(setting.precision);
  if (setting.optimizer != "adamw")
    add(setting.optimizer);
  if (int64_t rows = setting.lossChunk.value_or(0))
    add(std::to_string(rows) + " rows of logits");
  if (setting.tiles > 1)
    add(std::to_string(setting.tiles) + " tiles");
  return text.empty() ? "no lever" : text;
}
