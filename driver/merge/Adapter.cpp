#include "driver/merge/Adapter.h"

#include "compiler/support/FileWords.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringRef.h"

#include <algorithm>
#include <cmath>
#include <set>

using namespace tmc;
using llvm::StringRef;

namespace {

constexpr char kConfigFile[] = "adapter_config.json";
constexpr char kPrefix[] = "base_model.model.";

/// The part of a name that says what the tensor is.
struct Part {
  const char *end;
  bool isB, isEmbedding;
};
constexpr Part kParts[] = {{".lora_A.weight", false, false},
                           {".lora_B.weight", true, false},
                           {".lora_embedding_A", false, true},
                           {".lora_embedding_B", true, true}};

/// The name of a tensor that is trained whole, in the base.
std::string plainName(StringRef name) {
  std::string plain = name.str();
  for (const StringRef wrapper : {".base_layer.", ".modules_to_save."})
    if (const size_t at = plain.find(wrapper.str()); at != std::string::npos)
      plain.replace(at, wrapper.size(), ".");
  return plain;
}

/// Sorts an adapter's tensors by what they change.
class Sorter {
public:
  explicit Sorter(const SafetensorsSet &tensors) : tensors(tensors) {}

  Expected<std::map<std::string, Change>> run() {
    for (const auto &[name, tensor] : tensors.tensors())
      add(name, tensor);
    if (!strange.empty())
      return Failure::input(
          "'" + tensors.path() + "' has " + std::to_string(strange.size()) +
          (strange.size() == 1 ? " name" : " names") +
          " that a LoRA adapter of PEFT doesn't have: " + listed(strange));
    if (!unread.empty())
      return Failure::unsupported("'" + tensors.path() + "' has " +
                                  listed(unread) +
                                  ", which tmc merge doesn't have");
    std::vector<std::string> halves;
    for (const auto &[name, change] : changes)
      if (!change.whole && (!change.a || !change.b))
        halves.push_back(change.name);
    if (!halves.empty())
      return Failure::input("'" + tensors.path() +
                            "' has one of two matrices: " + listed(halves));
    if (changes.empty())
      return Failure::input("'" + tensors.path() + "' has no tensor");
    return std::move(changes);
  }

private:
  void add(const std::string &name, const SetTensor &tensor) {
    StringRef rest = name;
    if (!rest.consume_front(kPrefix))
      return strange.push_back(name);
    for (const Part &part : kParts)
      if (rest.consume_back(part.end))
        return half(name, rest.str() + ".weight", tensor, part);
    if (rest.contains(".lora_") || rest.contains(".token_adapter."))
      return unread.push_back(name);
    Change &change = changes[plainName(rest)];
    if (change.a || change.b || change.whole)
      return strange.push_back(name);
    change.whole = &tensor;
    change.name = name;
  }
  void half(const std::string &name, const std::string &base,
            const SetTensor &tensor, const Part &part) {
    Change &change = changes[base];
    const SetTensor *&place = part.isB ? change.b : change.a;
    const bool isOther =
        (change.a || change.b) && change.isEmbedding != part.isEmbedding;
    if (place || change.whole || isOther)
      return strange.push_back(name);
    place = &tensor;
    change.isEmbedding = part.isEmbedding;
    if (change.name.empty() || !part.isB)
      change.name = name;
  }

  const SafetensorsSet &tensors;
  std::map<std::string, Change> changes;
  std::vector<std::string> strange, unread;
};

/// Names that the base lacks.
std::vector<std::string> missingFrom(const SafetensorsSet &base,
                                     const std::map<std::string, Change> &all) {
  std::vector<std::string> missing;
  for (const auto &entry : all)
    if (!base.find(entry.first))
      missing.push_back(entry.first);
  return missing;
}

/// The changes under names without their first part, or with one more in front.
std::map<std::string, Change>
renamed(const std::map<std::string, Change> &changes, bool drops,
        const std::string &front) {
  std::map<std::string, Change> result;
  for (const auto &[name, change] : changes) {
    const size_t dot = name.find('.');
    if (drops && dot == std::string::npos)
      return {};
    result[drops ? name.substr(dot + 1) : front + name] = change;
  }
  return result;
}

/// Gives the changes the names of the base.
Expected<void> matchNames(Adapter &adapter, const SafetensorsSet &base) {
  const std::vector<std::string> missing = missingFrom(base, adapter.changes);
  if (missing.empty())
    return {};
  Failure failure = Failure::input(
      "'" + adapter.tensors.path() + "' isn't an adapter of '" + base.path() +
      "', which lacks " + std::to_string(missing.size()) + " of " +
      std::to_string(adapter.changes.size()) + " tensors: " + listed(missing));
  if (missing.size() < adapter.changes.size())
    return std::move(failure).note(
        "a tied weight has one of its names in a file; an adapter of the other "
        "can't be merged, since both uses would change");
  std::set<std::string> fronts;
  for (const auto &entry : base.tensors())
    fronts.insert(entry.first.substr(0, entry.first.find('.') + 1));
  std::map<std::string, Change> found = renamed(adapter.changes, true, "");
  std::string note = "the base's names lack the first part of the adapter's";
  if (found.size() != adapter.changes.size() ||
      !missingFrom(base, found).empty()) {
    found.clear();
    for (const std::string &front : fronts) {
      std::map<std::string, Change> tried =
          renamed(adapter.changes, false, front);
      if (front.empty() || !missingFrom(base, tried).empty())
        continue;
      if (!found.empty())
        return failure;
      found = std::move(tried);
      note = "the base's names begin with '" + front + "', the adapter's don't";
    }
  }
  if (found.empty())
    return failure;
  adapter.changes = std::move(found);
  adapter.notes.push_back(note);
  return {};
}

/// Compares the shapes and types of an adapter with its base, and decides which
/// matrices are stored transposed.
class Fitting {
public:
  Fitting(const AdapterConfig &config, const SafetensorsSet &base,
          const BaseFacts &facts)
      : config(config), base(base), facts(facts) {}

  Expected<void> run(Adapter &adapter) {
    for (auto &[name, change] : adapter.changes)
      TMC_TRY(change.whole ? fitWhole(name, change) : fitPair(name, change));
    if (!wrong.empty()) {
      Failure failure = Failure::input(
          "'" + adapter.tensors.path() + "' isn't an adapter of '" +
          base.path() + "': " + std::to_string(wrong.size()) +
          (wrong.size() == 1 ? " shape differs" : " shapes differ"));
      constexpr size_t kShown = 8;
      wrong.resize(std::min(wrong.size(), kShown));
      failure.notes = wrong;
      return failure;
    }
    if (!unread.empty())
      return Failure::unsupported("tmc merge adds to floats of 16 bits or more")
          .note(unread.front() +
                (unread.size() > 1
                     ? ", and " + std::to_string(unread.size() - 1) + " more"
                     : std::string()));
    if (!against.empty() && !square.empty())
      return Failure::input("fan_in_fan_out is " +
                            std::string(config.fanInFanOut ? "true" : "false") +
                            ", but the shape of '" + against +
                            "' says the opposite, and that of '" + square +
                            "' fits both");
    return {};
  }

private:
  /// A change of both uses of a tied table isn't what was trained.
  Failure tied(const std::string &name) const {
    return Failure::unsupported(
        "'" + name +
        "' is also the head (tie_word_embeddings), which the "
        "adapter doesn't change; a merge would change both");
  }

  Expected<void> fitWhole(const std::string &name, const Change &change) {
    const SetTensor &w = *base.find(name);
    if (change.whole->shape != w.shape)
      wrong.push_back("'" + name + "' is " + shapeText(w.shape) +
                      "; the adapter's is " + shapeText(change.whole->shape));
    else if (!isMergeable(change.whole->type) || !isMergeable(w.type))
      unread.push_back("'" + name + "' is " + nameOf(w.type) +
                       ", the adapter's " + nameOf(change.whole->type));
    else if (facts.tiesHead && w.shape.size() == 2 && facts.vocabulary &&
             w.shape[0] == facts.vocabulary)
      return tied(name);
    return {};
  }

  Expected<void> fitPair(const std::string &name, Change &change) {
    const SetTensor &w = *base.find(name), &a = *change.a, &b = *change.b;
    const std::string module =
        StringRef(name).drop_back(StringRef(".weight").size()).str();
    if (facts.tiesHead && change.isEmbedding)
      return tied(name);
    if (a.shape.size() != 2 || b.shape.size() != 2 || w.shape.size() != 2) {
      if (a.shape.size() == w.shape.size() && w.shape.size() > 2)
        return Failure::unsupported("'" + name + "' is " + shapeText(w.shape) +
                                    "; tmc merge adds to matrices");
      wrong.push_back(mismatch(name, w, a, b));
      return {};
    }
    const int64_t rank = a.shape[0], in = a.shape[1], out = b.shape[0];
    const std::vector<int64_t> plain{out, in}, turned{in, out};
    const bool fitsPlain = !change.isEmbedding && w.shape == plain,
               fitsTurned = w.shape == turned;
    if (b.shape[1] != rank || rank < 1 || !(fitsPlain || fitsTurned)) {
      wrong.push_back(mismatch(name, w, a, b));
      return {};
    }
    for (const SetTensor *each : {&w, &a, &b})
      if (!isMergeable(each->type)) {
        unread.push_back("'" + name + "' is " + nameOf(w.type) +
                         ", A and B are " + nameOf(a.type) + " and " +
                         nameOf(b.type));
        return {};
      }
    if (fitsPlain && fitsTurned) {
      change.isTransposed = config.fanInFanOut;
      square = name;
    } else {
      change.isTransposed = fitsTurned;
      if (!change.isEmbedding && fitsTurned != config.fanInFanOut)
        against = name;
    }
    return fitScale(module, rank, change);
  }

  Expected<void> fitScale(const std::string &module, int64_t rank,
                          Change &change) {
    // Patterns are of the adapter's names.
    const std::string own = moduleOf(change, module);
    Expected<int64_t> said = config.rankOf(own);
    if (!said)
      return std::move(said.failure());
    if (*said != rank)
      return Failure::input("'" + change.name + "' has rank " +
                            std::to_string(rank) + "; " + kConfigFile +
                            " says " + std::to_string(*said));
    Expected<double> scale = config.scaleOf(own);
    if (!scale)
      return std::move(scale.failure());
    change.scale = *scale;
    return {};
  }

  static std::string moduleOf(const Change &change, const std::string &base) {
    StringRef name = change.name;
    name.consume_front(kPrefix);
    for (const Part &part : kParts)
      if (name.consume_back(part.end))
        return name.str();
    return base;
  }

  static std::string mismatch(const std::string &name, const SetTensor &w,
                              const SetTensor &a, const SetTensor &b) {
    return "'" + name + "' is " + shapeText(w.shape) + "; A is " +
           shapeText(a.shape) + ", B " + shapeText(b.shape);
  }

  const AdapterConfig &config;
  const SafetensorsSet &base;
  const BaseFacts &facts;
  std::vector<std::string> wrong, unread;
  std::string square, against; // Names of the last of each kind.
};

Expected<AdapterConfig> readConfig(const std::string &folder) {
  std::string text;
  if (Status s = readTextBeside(folder, kConfigFile, text); !s)
    return failureOf(s).note("an adapter is a folder that PEFT saved");
  return AdapterConfig::parse(folder + "/" + kConfigFile, text);
}

/// The matrix [rows, columns] of `tensor`, or its transpose.
Expected<std::vector<float>> matrixOf(const SafetensorsSet &set,
                                      const SetTensor &tensor,
                                      const std::string &name, bool turns) {
  const int64_t rows = tensor.shape[0], columns = tensor.shape[1];
  std::vector<float> values(size_t(rows * columns));
  constexpr int64_t kPieceBytes = 1 << 20;
  const int64_t size = sizeOf(tensor.type), bytes = tensor.end - tensor.begin;
  std::vector<char> piece(size_t(std::min(kPieceBytes, bytes)));
  for (int64_t at = 0; at < bytes; at += kPieceBytes) {
    const int64_t some = std::min(kPieceBytes, bytes - at);
    if (Status s = set.read(tensor, at, piece.data(), some); !s)
      return failureOf(s);
    widenTo(tensor.type, piece.data(), some / size, values.data() + at / size);
  }
  if (!std::all_of(values.begin(), values.end(),
                   [](float x) { return std::isfinite(x); }))
    return Failure::input("'" + name + "' holds numbers that aren't finite");
  if (!turns)
    return values;
  std::vector<float> result(values.size());
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j)
      result[size_t(j * rows + i)] = values[size_t(i * columns + j)];
  return result;
}

} // namespace

Expected<Adapter> tmc::readAdapter(const std::string &folder,
                                   const SafetensorsSet &base,
                                   const BaseFacts &facts) {
  Expected<AdapterConfig> config = readConfig(folder);
  if (!config)
    return std::move(config.failure());
  Adapter adapter;
  if (Status s = SafetensorsSet::open(folder, adapter.tensors, "adapter_model");
      !s)
    return failureOf(s);
  Expected<std::map<std::string, Change>> changes =
      Sorter(adapter.tensors).run();
  if (!changes)
    return std::move(changes.failure());
  adapter.changes = std::move(*changes);
  TMC_TRY(matchNames(adapter, base));
  TMC_TRY(Fitting(*config, base, facts).run(adapter));
  if (!config->unknown.empty())
    adapter.notes.push_back(
        std::string(kConfigFile) +
        " has keys that tmc doesn't know: " + listed(config->unknown));
  return adapter;
}

Expected<LowRank> tmc::lowRankOf(const Adapter &adapter, const Change &change) {
  Expected<std::vector<float>> a =
      matrixOf(adapter.tensors, *change.a, change.name, change.isTransposed);
  if (!a)
    return std::move(a.failure());
  Expected<std::vector<float>> b =
      matrixOf(adapter.tensors, *change.b, change.name, change.isTransposed);
  if (!b)
    return std::move(b.failure());
  LowRank product;
  product.rank = change.a->shape[0];
  product.scale = change.scale;
  product.columns =
      change.isTransposed ? change.b->shape[0] : change.a->shape[1];
  product.left = std::move(change.isTransposed ? *a : *b);
  product.right = std::move(change.isTransposed ? *b : *a);
  return product;
}
