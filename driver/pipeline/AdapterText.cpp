#include "driver/pipeline/AdapterText.h"

#include "compiler/support/Json.h"
#include "dialects/nn/NN.h"
#include "dialects/train/Train.h"
#include "passes/LoraSpec.h"

#include <set>

using namespace mlir;
using namespace tmc;
using train::TrainDialect;
namespace json = llvm::json;

namespace {

/// The modules of an adapted function, in the order of their adapters.
struct Modules {
  std::vector<std::string> adapted, whole;
  bool hasFanInFanOut = false;

  explicit Modules(func::FuncOp forward) {
    std::set<std::string> seen;
    for (unsigned i = 0; i < forward.getNumArguments(); ++i) {
      if (train::roleOf(forward, i) != train::Role::Param)
        continue;
      if (auto module =
              forward.getArgAttrOfType<StringAttr>(i, TrainDialect::kAdapter)) {
        hasFanInFanOut |=
            bool(forward.getArgAttr(i, TrainDialect::kFanInFanOut));
        if (seen.insert(module.str()).second)
          adapted.push_back(module.str());
      } else if (!forward.getArgAttr(i, TrainDialect::kFrozen)) {
        std::string module = train::argName(forward, i).rsplit('.').first.str();
        if (seen.insert(module).second)
          whole.push_back(module);
      }
    }
  }
};

} // namespace

/// True if PEFT reads the word as LoraSpec does, whatever the names begin with.
static bool isPeftWord(const ModuleName &name) {
  return name.isPlain() && !StringRef(name.text()).contains('.');
}
static bool arePeftWords(const LoraSpec &spec) {
  return !spec.allLinear && llvm::all_of(spec.targets, isPeftWord);
}

/// The exceptions from one rank or alpha: by their words, or by the names of
/// all modules.
template <typename T, typename F>
static json::Object patternsOf(const std::vector<std::pair<ModuleName, T>> &all,
                               ArrayRef<std::string> modules,
                               const WeightsPrefix &prefix, F &&valueOf) {
  json::Object object;
  if (llvm::all_of(all,
                   [](const auto &entry) { return isPeftWord(entry.first); })) {
    for (const auto &[name, value] : all)
      object.try_emplace(name.text(), value);
    return object;
  }
  for (const std::string &module : modules)
    if (llvm::any_of(all, [&](const auto &entry) {
          return entry.first.matches(module);
        }))
      object[prefix.nameInFile(module)] = valueOf(module);
  return object;
}

/// A number as PEFT writes it: whole where it is.
static json::Value numberOf(double value) {
  if (value == double(int64_t(value)))
    return int64_t(value);
  return value;
}

AdapterFiles tmc::adapterFilesOf(func::FuncOp forward, const LoraSpec &spec,
                                 const CompileOptions &options) {
  const WeightsPrefix prefix{options.weightsPrefix.first,
                             options.weightsPrefix.second};
  const Modules modules(forward);
  json::Array targets, whole;
  for (const std::string &module : modules.adapted) {
    if (!arePeftWords(spec))
      targets.push_back(prefix.nameInFile(module));
  }
  json::Object ranks = patternsOf(
      spec.ranks, modules.adapted, prefix,
      [&](const std::string &module) { return spec.rankOf(module); });
  json::Object alphas = patternsOf(
      spec.alphas, modules.adapted, prefix,
      [&](const std::string &module) { return spec.alphaOf(module); });
  if (arePeftWords(spec))
    for (const ModuleName &target : spec.targets)
      targets.push_back(target.text());
  for (const std::string &module : modules.whole)
    whole.push_back(prefix.nameInFile(module));
  bool isCausal = false;
  forward.walk([&](nn::AttentionOp op) { isCausal |= op.getCausal(); });
  json::Object config{
      {"peft_type", "LORA"},
      {"task_type", isCausal ? json::Value("CAUSAL_LM") : nullptr},
      {"base_model_name_or_path",
       options.weights.empty() ? json::Value(nullptr) : options.weights},
      {"r", spec.rank},
      {"lora_alpha", numberOf(spec.alpha)},
      {"lora_dropout", spec.dropout},
      {"target_modules", std::move(targets)},
      {"bias", "none"},
      {"fan_in_fan_out", modules.hasFanInFanOut},
      {"use_rslora", spec.rankStabilized},
      {"use_dora", false},
      {"modules_to_save",
       whole.empty() ? json::Value(nullptr) : std::move(whole)},
      {"rank_pattern", std::move(ranks)},
      {"alpha_pattern", std::move(alphas)},
      {"init_lora_weights",
       spec.gaussian ? json::Value("gaussian") : json::Value(true)},
      {"inference_mode", true}};
  return {jsonText(std::move(config), 2) + "\n", prefix.inModel, prefix.inFile};
}
