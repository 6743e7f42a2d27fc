#include "driver/merge/AdapterConfig.h"

#include "compiler/support/Json.h"

#include "llvm/ADT/STLExtras.h"

#include <cmath>

using namespace tmc;
namespace json = llvm::json;

namespace {

/// Keys that change the sum of a merge where they have a value.
constexpr const char *kRefused[] = {"use_dora",
                                    "lora_bias",
                                    "use_qalora",
                                    "use_bdlora",
                                    "arrow_config",
                                    "kasa_config",
                                    "monteclora_config",
                                    "layer_replication",
                                    "target_parameters",
                                    "alora_invocation_tokens",
                                    "trainable_token_indices"};

/// Keys that are read, or that say nothing about a merge.
constexpr const char *kKnown[] = {
    "peft_type",          "r",
    "lora_alpha",         "use_rslora",
    "fan_in_fan_out",     "rank_pattern",
    "alpha_pattern",      "init_lora_weights",
    "modules_to_save",    "bias",
    "task_type",          "auto_mapping",
    "peft_version",       "base_model_name_or_path",
    "revision",           "inference_mode",
    "target_modules",     "exclude_modules",
    "lora_dropout",       "layers_to_transform",
    "layers_pattern",     "megatron_config",
    "megatron_core",      "loftq_config",
    "eva_config",         "corda_config",
    "lora_ga_config",     "velora_config",
    "qalora_group_size",  "runtime_config",
    "ensure_weight_tying"};

/// Initializations that leave the base as it is.
constexpr const char *kInitializations[] = {"gaussian", "eva", "orthogonal"};

/// Ranks and alphas beyond these are no adapter's.
constexpr int64_t kMostRank = 1 << 20;
constexpr double kMostAlpha = 1e12;
constexpr size_t kMostPatterns = 10000;

bool isEmpty(const json::Value &value) {
  if (const json::Array *array = value.getAsArray())
    return array->empty();
  if (const json::Object *object = value.getAsObject())
    return object->empty();
  if (std::optional<llvm::StringRef> text = value.getAsString())
    return text->empty();
  return value.getAsNull() || value.getAsBoolean() == false;
}

/// Reads the keys of one file; `failure` holds the first that is wrong.
class Reader {
public:
  Reader(const std::string &shown, const json::Object &object)
      : shown(shown), object(object) {}

  std::optional<Failure> failure;

  void number(llvm::StringRef key, double &to, double most) {
    const json::Value *value = present(key);
    if (!value)
      return;
    const std::optional<double> read = value->getAsNumber();
    if (!read || !(*read > 0) || *read > most)
      return wrong(key, "isn't a number above 0 and up to " + textOf(most));
    to = *read;
  }
  void rank(llvm::StringRef key, int64_t &to) {
    double value = double(to);
    number(key, value, kMostRank);
    to = int64_t(value);
    if (double(to) != value)
      wrong(key, "isn't a whole number");
  }
  void flag(llvm::StringRef key, bool &to) {
    const json::Value *value = present(key);
    if (!value)
      return;
    if (std::optional<bool> read = value->getAsBoolean())
      to = *read;
    else
      wrong(key, "is neither true nor false");
  }
  void patterns(llvm::StringRef key, double most,
                std::vector<std::pair<NamePattern, double>> &to) {
    const json::Value *value = present(key);
    if (!value)
      return;
    const json::Object *table = value->getAsObject();
    if (!table || table->size() > kMostPatterns)
      return wrong(key, "isn't a table of at most 10000 patterns");
    for (const auto &[name, entry] : *table) {
      Expected<NamePattern> pattern = NamePattern::parse(name.str());
      if (!pattern)
        return wrong(key, "has " + pattern.failure().message,
                     pattern.failure().kind);
      const std::optional<double> read = entry.getAsNumber();
      if (!read || !(*read > 0) || *read > most)
        return wrong(key, "has no number above 0 for '" + name.str() + "'");
      to.emplace_back(std::move(*pattern), *read);
    }
  }

private:
  const json::Value *present(llvm::StringRef key) const {
    const json::Value *value = object.get(key);
    return value && !value->getAsNull() ? value : nullptr;
  }
  static std::string textOf(double number) {
    return std::to_string(int64_t(number));
  }
  void wrong(llvm::StringRef key, const std::string &why,
             FailureKind kind = FailureKind::Input) {
    if (!failure)
      failure =
          Failure{kind, "'" + shown + "': '" + key.str() + "' " + why, {}};
  }

  const std::string &shown;
  const json::Object &object;
};

/// The values of keys that a merge can't honour, as "'key'".
std::vector<std::string> refusedIn(const json::Object &object) {
  std::vector<std::string> refused;
  for (const char *key : kRefused)
    if (const json::Value *value = object.get(key); value && !isEmpty(*value))
      refused.push_back("'" + std::string(key) + "'");
  const json::Value *start = object.get("init_lora_weights");
  if (!start || start->getAsNull() || start->getAsBoolean())
    return refused;
  const std::optional<llvm::StringRef> name = start->getAsString();
  if (!name || !llvm::is_contained(kInitializations, name->lower()))
    refused.push_back(
        "'init_lora_weights' " +
        (name ? "of '" + name->str() + "'" : std::string("that is no name")));
  return refused;
}

Expected<void> checkKind(const std::string &shown, const json::Object &object) {
  const std::optional<llvm::StringRef> kind = object.getString("peft_type");
  if (!kind)
    return Failure::input("'" + shown + "' has no peft_type");
  if (*kind != "LORA")
    return Failure::unsupported("'" + shown + "' is of the peft_type '" +
                                kind->str() + "'; tmc merge reads LORA");
  const std::vector<std::string> refused = refusedIn(object);
  if (refused.empty())
    return {};
  std::string all;
  for (const std::string &each : refused)
    all += (all.empty() ? "" : ", ") + each;
  return Failure::unsupported("'" + shown + "' asks for " + all +
                              ", which tmc merge doesn't have")
      .note("PEFT's merge_and_unload has them");
}

/// The value of the patterns that match `module`, or `otherwise`.
Expected<double>
chosen(const std::vector<std::pair<NamePattern, double>> &patterns,
       const std::string &module, double otherwise) {
  const std::pair<NamePattern, double> *first = nullptr;
  for (const auto &entry : patterns) {
    if (!entry.first.matches(module))
      continue;
    if (first && first->second != entry.second)
      return Failure::unsupported(
          "two patterns of the adapter say different values for '" + module +
          "': '" + first->first.text() + "' and '" + entry.first.text() + "'");
    first = &entry;
  }
  return first ? first->second : otherwise;
}

} // namespace

Expected<AdapterConfig> AdapterConfig::parse(const std::string &shown,
                                             llvm::StringRef text) {
  Expected<json::Object> object = parseJsonObject(text);
  if (!object)
    return Failure{object.failure().kind,
                   "'" + shown + "' " + object.failure().message,
                   {}};
  TMC_TRY(checkKind(shown, *object));
  AdapterConfig config;
  Reader reader(shown, *object);
  reader.rank("r", config.rank);
  reader.number("lora_alpha", config.alpha, kMostAlpha);
  reader.flag("use_rslora", config.rankStabilized);
  reader.flag("fan_in_fan_out", config.fanInFanOut);
  reader.patterns("rank_pattern", kMostRank, config.ranks);
  reader.patterns("alpha_pattern", kMostAlpha, config.alphas);
  if (reader.failure)
    return std::move(*reader.failure);
  for (const auto &[key, value] : *object)
    if (!llvm::is_contained(kKnown, key) && !isEmpty(value))
      config.unknown.push_back(key.str());
  llvm::sort(config.unknown);
  return config;
}

Expected<int64_t> AdapterConfig::rankOf(const std::string &module) const {
  Expected<double> chosenRank = chosen(ranks, module, double(rank));
  if (!chosenRank)
    return std::move(chosenRank.failure());
  return int64_t(*chosenRank);
}

Expected<double> AdapterConfig::scaleOf(const std::string &module) const {
  Expected<double> chosenAlpha = chosen(alphas, module, alpha);
  if (!chosenAlpha)
    return std::move(chosenAlpha.failure());
  Expected<int64_t> chosenRank = rankOf(module);
  if (!chosenRank)
    return std::move(chosenRank.failure());
  const double size = double(*chosenRank);
  return *chosenAlpha / (rankStabilized ? std::sqrt(size) : size);
}
