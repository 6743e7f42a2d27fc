#include "driver/pipeline/LeverSpace.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"

#include <algorithm>

using namespace tmc;

bool tmc::hasFreeLevers(const CompileOptions &asked) {
  return llvm::any_of(llvm::zip(leverTable(), asked.levers.values),
                      [](const auto &row) {
                        auto &[lever, value] = row;
                        return lever.isFree(value);
                      });
}

void tmc::freeLossChunk(CompileOptions &asked) {
  LeverValue &chunk = asked.levers[kLossChunk];
  if (hasFreeLevers(asked) && chunk == LeverValue() && asked.planner.empty())
    chunk = leverTable()[kLossChunk].freed(chunk);
}

LeverSpace tmc::leverSpaceOf(const CompileOptions &asked, const Target &target,
                             const ModelFacts &model) {
  LeverSpace space;
  for (auto [lever, values, value] :
       llvm::zip(leverTable(), space.values, asked.levers.values))
    values = lever.allowed(value, target, model);
  return space;
}

size_t LeverSpace::size() const {
  size_t settings = 1;
  for (const std::vector<LeverValue> &each : values)
    settings *= each.size();
  return settings;
}

std::vector<LeverSetting> LeverSpace::all() const {
  std::vector<LeverSetting> settings(1);
  auto vary = [&](size_t lever) {
    std::vector<LeverSetting> more;
    for (const LeverSetting &setting : settings)
      for (const LeverValue &value : values[lever]) {
        more.push_back(setting);
        more.back()[lever] = value;
      }
    settings = std::move(more);
  };
  for (size_t lever = 0; lever < kLevers; ++lever)
    if (lever != kMicroBatches)
      vary(lever);
  vary(kMicroBatches);
  return settings;
}

CompileOptions tmc::pinned(CompileOptions asked, const LeverSetting &setting) {
  asked.levers = setting;
  return asked;
}

/// The place of offload among the flags of notes (`Lever::place`).
static constexpr int kOffloadPlace = 4;

/// Calls `visit` for each lever by its place in notes, and with `kLevers` at
/// the place of offload.
static void byPlace(llvm::function_ref<void(size_t)> visit) {
  std::vector<size_t> ids(kLevers + 1);
  auto placeOf = [](size_t id) {
    return id == kLevers ? kOffloadPlace : leverTable()[id].place;
  };
  llvm::copy(llvm::seq<size_t>(0, ids.size()), ids.begin());
  llvm::stable_sort(
      ids, [&](size_t a, size_t b) { return placeOf(a) < placeOf(b); });
  for (size_t id : ids)
    visit(id);
}

std::vector<FreeLever> tmc::pinnedLevers(const CompileOptions &asked) {
  std::vector<FreeLever> levers;
  byPlace([&](size_t id) {
    if (id == kLevers) {
      if (asked.offload.isNone())
        levers.push_back(
            [](CompileOptions &o) { o.offload = OffloadSpec::asNeeded(); });
    } else if (leverTable()[id].mayChange(asked.levers[id])) {
      levers.push_back([id](CompileOptions &o) {
        o.levers[id] = leverTable()[id].freed(o.levers[id]);
      });
    }
  });
  return levers;
}

std::string tmc::flagsOf(const CompileOptions &asked,
                         const CompileOptions &options) {
  std::string text;
  auto add = [&](const char *flag, const std::string &value) {
    text += (text.empty() ? "--" : " --") + std::string(flag) + "=" + value;
  };
  byPlace([&](size_t id) {
    if (id == kLevers) {
      if (options.offload != asked.offload)
        add("offload", options.offload.text());
      return;
    }
    const LeverValue &value = options.levers[id];
    // A default without a number needs no flag.
    if (value != asked.levers[id] && value != LeverValue())
      add(leverTable()[id].flag, leverTable()[id].text(value));
  });
  return text;
}

Harm tmc::harmOf(const LeverSetting &setting) {
  Harm harm;
  for (auto [lever, value] : llvm::zip(leverTable(), setting.values)) {
    const int rank = lever.harm(value);
    harm.most = std::max(harm.most, rank);
    harm.sum += rank;
  }
  return harm;
}

std::string tmc::textOf(const LeverSetting &setting) {
  std::string text;
  for (auto [lever, value] : llvm::zip(leverTable(), setting.values))
    if (const std::string words = lever.words(value); !words.empty())
      text += (text.empty() ? "" : ", ") + words;
  return text.empty() ? "no lever" : text;
}
