// LoraSpec.cpp - reads --lora, and answers questions about modules.

#include "passes/LoraSpec.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/GlobPattern.h"

#include <cmath>
#include <set>

using namespace llvm;

namespace tmc {

static Error wrong(const Twine &message) {
  return createStringError(inconvertibleErrorCode(), "lora: " + message);
}

static bool isGlob(StringRef word) {
  return word.find_first_of("*?") != StringRef::npos;
}

Expected<ModuleName> ModuleName::parse(StringRef word) {
  ModuleName name;
  name.word = word.str();
  if (word.empty())
    return wrong("a name is missing");
  if (!isGlob(word))
    return name;
  Expected<GlobPattern> glob = GlobPattern::create(word);
  if (!glob)
    return wrong("'" + word + "': " + toString(glob.takeError()));
  return name;
}

bool ModuleName::isPlain() const { return !isGlob(word); }

bool ModuleName::matches(StringRef module) const {
  if (isPlain())
    return module == word || (module.ends_with(word) &&
                              module.drop_back(word.size()).ends_with("."));
  Expected<GlobPattern> glob = GlobPattern::create(word);
  if (glob)
    return glob->match(module);
  consumeError(glob.takeError()); // The word was parsed.
  return false;
}

namespace {

/// Ranks and alphas beyond these are no adapter's; tmc merge has the same.
constexpr int64_t kMostRank = 1 << 20;
constexpr double kMostAlpha = 1e12;

class Reader {
public:
  explicit Reader(LoraSpec &spec) : spec(spec) {}

  /// Reads one word of the list.
  Error word(StringRef text) {
    auto [key, value] = text.split('=');
    if (!text.contains('=')) {
      if (last != "targets")
        return wrong(last.empty()
                         ? "'" + text + "' isn't of the form KEY=VALUE"
                         : "'" + text + "' has no '=', and " + last +
                               " isn't a list; targets=NAME,NAME is one");
      return target(text);
    }
    last = key;
    if (!seen.insert(key.str()).second)
      return wrong("'" + key + "' is given twice");
    auto [base, name] = key.split(':');
    if (key.contains(':') && (base == "r" || base == "alpha"))
      return pattern(base, name, value);
    if (key == "r")
      return rank(key, value, spec.rank);
    if (key == "alpha")
      return alpha(key, value, spec.alpha);
    if (key == "targets")
      return target(value);
    if (key == "dropout")
      return dropout(value);
    if (key == "rslora")
      return choice(key, value, "false", "true", spec.rankStabilized);
    if (key == "init")
      return choice(key, value, "uniform", "gaussian", spec.gaussian);
    return wrong("there is no key '" + key +
                 "'; there are r, alpha, targets, dropout, rslora, init, "
                 "r:NAME and alpha:NAME");
  }

  Error finish() {
    if (!spec.rank)
      return wrong("the rank is missing: r=16");
    if (!spec.allLinear && spec.targets.empty())
      return wrong("the targets are missing: targets=q_proj,v_proj or "
                   "targets=all-linear");
    if (!seen.count("alpha"))
      spec.alpha = double(spec.rank);
    return Error::success();
  }

private:
  Error target(StringRef text) {
    if (text == LoraSpec::kAllLinear) {
      spec.allLinear = true;
      return Error::success();
    }
    Expected<ModuleName> name = ModuleName::parse(text);
    if (!name)
      return name.takeError();
    spec.targets.push_back(*std::move(name));
    return Error::success();
  }
  static Error rank(StringRef key, StringRef value, int64_t &to) {
    if (value.getAsInteger(10, to) || to < 1 || to > kMostRank)
      return wrong(key + "=" + value + " isn't a whole number from 1 to " +
                   Twine(kMostRank));
    return Error::success();
  }
  static Error alpha(StringRef key, StringRef value, double &to) {
    if (value.getAsDouble(to) || !(to > 0) || to > kMostAlpha)
      return wrong(key + "=" + value +
                   " isn't a number above 0 and up to 1e12");
    return Error::success();
  }
  Error dropout(StringRef value) {
    if (value.getAsDouble(spec.dropout) ||
        !(spec.dropout >= 0 && spec.dropout < 1))
      return wrong("dropout=" + value +
                   " isn't a probability from 0 to less than 1");
    return Error::success();
  }
  static Error choice(StringRef key, StringRef value, StringRef first,
                      StringRef second, bool &isSecond) {
    if (value != first && value != second)
      return wrong(key + "=" + value + " is neither " + first + " nor " +
                   second);
    isSecond = value == second;
    return Error::success();
  }
  Error pattern(StringRef base, StringRef text, StringRef value) {
    Expected<ModuleName> name = ModuleName::parse(text);
    if (!name)
      return name.takeError();
    if (base == "r") {
      spec.ranks.emplace_back(*std::move(name), 0);
      return rank("r:" + text.str(), value, spec.ranks.back().second);
    }
    spec.alphas.emplace_back(*std::move(name), 0);
    return alpha("alpha:" + text.str(), value, spec.alphas.back().second);
  }

  LoraSpec &spec;
  StringRef last;
  std::set<std::string> seen;
};

} // namespace

Expected<LoraSpec> LoraSpec::parse(StringRef text) {
  LoraSpec spec;
  spec.text = text.str();
  Reader reader(spec);
  SmallVector<StringRef> words;
  text.split(words, ',');
  for (StringRef word : words)
    if (Error error = reader.word(word.trim()))
      return std::move(error);
  if (Error error = reader.finish())
    return std::move(error);
  return spec;
}

int64_t LoraSpec::rankOf(StringRef module) const {
  for (const auto &[name, value] : ranks)
    if (name.matches(module))
      return value;
  return rank;
}

double LoraSpec::alphaOf(StringRef module) const {
  for (const auto &[name, value] : alphas)
    if (name.matches(module))
      return value;
  return alpha;
}

double LoraSpec::scaleOf(StringRef module) const {
  const double rank = double(rankOf(module));
  return alphaOf(module) / (rankStabilized ? std::sqrt(rank) : rank);
}

} // namespace tmc
