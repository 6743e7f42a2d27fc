#include "passes/Optimizers.h"

#include "dialects/train/Train.h"

#include "llvm/Support/Error.h"
#include "llvm/Support/GlobPattern.h"

using namespace mlir;
using namespace tmc;

static llvm::Error badSpec(const llvm::Twine &message) {
  return llvm::createStringError(llvm::inconvertibleErrorCode(),
                                 "optimizer: " + message);
}

llvm::Expected<OptimizerSpec> OptimizerSpec::parse(StringRef text) {
  OptimizerSpec spec;
  StringRef rest = text.trim();
  size_t open = rest.find('(');
  spec.name = rest.substr(0, open).trim().lower();
  if (open == StringRef::npos)
    return spec;
  if (!rest.ends_with(")"))
    return badSpec("'" + text + "' lacks a closing parenthesis");
  SmallVector<StringRef> parts;
  rest.substr(open + 1).drop_back().split(parts, ',', -1, false);
  for (StringRef part : parts) {
    auto [key, value] = part.split('=');
    if (value.empty())
      return badSpec("'" + part.trim() + "' isn't of the form key=value");
    spec.options[key.trim().str()] = value.trim().str();
  }
  return spec;
}

double OptimizerRule::decayOf(StringRef name, RankedTensorType type) const {
  if (matricesOnly && type.getRank() < 2)
    return 0;
  for (const std::string &glob : noDecay)
    if (llvm::Expected<llvm::GlobPattern> pattern =
            llvm::GlobPattern::create(glob);
        pattern && pattern->match(name))
      return 0;
  return weightDecay;
}

/// `type`, its floats kept in 32 bits or in 16.
static RankedTensorType keptIn(RankedTensorType type, bool isNarrow) {
  auto element = dyn_cast<FloatType>(type.getElementType());
  if (!element || element.getWidth() > 32)
    return type;
  MLIRContext *context = type.getContext();
  if (isNarrow)
    return type.clone(BFloat16Type::get(context));
  return type.clone(Float32Type::get(context));
}

RankedTensorType OptimizerRule::storedType(RankedTensorType type) const {
  return keptIn(type, !hasMaster);
}
RankedTensorType OptimizerRule::momentType(const TrainedParam &param) const {
  return keptIn(param.type, hasNarrowMoments);
}

namespace {

/// Reads numbers out of a spec and remembers which keys were known.
struct SpecReader {
  OptimizerSpec spec;
  std::string problem;

  double number(const std::string &key, double standard) {
    auto it = spec.options.find(key);
    if (it == spec.options.end())
      return standard;
    double value = standard;
    if (StringRef(it->second).getAsDouble(value) && problem.empty())
      problem = key + "=" + it->second + " is no number";
    spec.options.erase(it);
    return value;
  }
  std::string word(const std::string &key, const std::string &standard) {
    auto it = spec.options.find(key);
    if (it == spec.options.end())
      return standard;
    std::string value = it->second;
    spec.options.erase(it);
    return value;
  }
  /// Whether `key` is `second` of two words, the first being standard.
  bool isSecond(const std::string &key, StringRef first, StringRef second) {
    std::string value = word(key, first.str());
    if (value != first && value != second && problem.empty())
      problem =
          (key + "=" + value + " is neither " + first + " nor " + second).str();
    return value == second;
  }
};

FloatAttr f64(OpBuilder &b, double value) { return b.getF64FloatAttr(value); }

/// The `stream` of an update that keeps values of these types.
IntegerAttr streamOf(OpBuilder &b, const UpdateInputs &in,
                     ArrayRef<RankedTensorType> kept) {
  bool isDrawnFor = llvm::any_of(kept, [](RankedTensorType type) {
    return type.getElementTypeBitWidth() < 32;
  });
  return isDrawnFor ? b.getI64IntegerAttr(in.stream) : IntegerAttr();
}

class AdamW : public OptimizerRule {
public:
  explicit AdamW(SpecReader &reader)
      : beta1(reader.number("beta1", 0.9)),
        beta2(reader.number("beta2", 0.999)),
        epsilon(reader.number("eps", 1e-8)) {
    weightDecay = 0.01;
  }

  std::vector<OptimizerSlot> slotsOf(const TrainedParam &param) const override {
    return {{"exp_avg", momentType(param)}, {"exp_avg_sq", momentType(param)}};
  }

  UpdateOutputs build(OpBuilder &b, Location loc,
                      const UpdateInputs &in) const override {
    auto op = train::AdamWOp::create(
        b, loc, in.param, in.grad, in.slots[0], in.slots[1], in.lr, in.step,
        in.clip, f64(b, beta1), f64(b, beta2), f64(b, epsilon),
        f64(b, decayOf(in.name, in.trained.type)),
        streamOf(b, in, {in.trained.type, momentType(in.trained)}));
    return {op.getNewParam(), {op.getNewM(), op.getNewV()}, op.getSquare()};
  }

protected:
  double beta1, beta2, epsilon;
};

class AdamW8bit : public AdamW {
public:
  explicit AdamW8bit(SpecReader &reader)
      : AdamW(reader), fewest(reader.number("min_size", kFewestCoded)) {}

  std::vector<OptimizerSlot> slotsOf(const TrainedParam &param) const override {
    if (!isCoded(param))
      return AdamW::slotsOf(param);
    RankedTensorType like = param.type;
    MLIRContext *context = like.getContext();
    RankedTensorType codes = like.clone(IntegerType::get(context, 8));
    auto maxima = RankedTensorType::get(
        {int64_t(llvm::divideCeil(like.getNumElements(),
                                  train::AdamW8bitOp::kBlock))},
        Float32Type::get(context));
    return {{"exp_avg.codes", codes},
            {"exp_avg.max", maxima},
            {"exp_avg_sq.codes", codes},
            {"exp_avg_sq.max", maxima}};
  }

  UpdateOutputs build(OpBuilder &b, Location loc,
                      const UpdateInputs &in) const override {
    if (!isCoded(in.trained))
      return AdamW::build(b, loc, in);
    auto op = train::AdamW8bitOp::create(
        b, loc, in.param, in.grad, in.slots[0], in.slots[1], in.slots[2],
        in.slots[3], in.lr, in.step, in.clip, f64(b, beta1), f64(b, beta2),
        f64(b, epsilon), f64(b, decayOf(in.name, in.trained.type)),
        streamOf(b, in, {in.trained.type}));
    return {op.getNewParam(),
            {op.getNewM(), op.getNewMMax(), op.getNewV(), op.getNewVMax()},
            op.getSquare()};
  }

private:
  /// Sources: as bitsandbytes 0.43 has it (min_8bit_size), and section 2.3 of
  /// the paper that runtime/kernels/Adam.h names.
  static constexpr double kFewestCoded = 4096;
  double fewest; // Elements.

  bool isCoded(const TrainedParam &param) const {
    return !param.isGathered && double(param.type.getNumElements()) >= fewest;
  }
};

class SGD : public OptimizerRule {
public:
  explicit SGD(SpecReader &reader)
      : momentum(reader.number("momentum", 0)),
        dampening(reader.number("dampening", 0)),
        nesterov(reader.number("nesterov", 0) != 0) {}

  std::vector<OptimizerSlot> slotsOf(const TrainedParam &param) const override {
    if (momentum == 0)
      return {};
    return {{"momentum_buffer", momentType(param)}};
  }

  UpdateOutputs build(OpBuilder &b, Location loc,
                      const UpdateInputs &in) const override {
    auto op = train::SGDOp::create(
        b, loc, in.param, in.grad, in.slots.empty() ? Value() : in.slots[0],
        in.lr, in.step, in.clip, f64(b, momentum), f64(b, dampening),
        f64(b, decayOf(in.name, in.trained.type)),
        nesterov ? b.getUnitAttr() : UnitAttr(),
        momentum == 0
            ? streamOf(b, in, {in.trained.type})
            : streamOf(b, in, {in.trained.type, momentType(in.trained)}));
    UpdateOutputs out{op.getNewParam(), {}, op.getSquare()};
    if (momentum != 0)
      out.slots.push_back(op.getNewMomentumBuffer());
    return out;
  }

private:
  double momentum, dampening;
  bool nesterov;
};

template <typename Rule>
std::unique_ptr<OptimizerRule> make(SpecReader &reader) {
  return std::make_unique<Rule>(reader);
}

struct Entry {
  const char *name;
  std::unique_ptr<OptimizerRule> (*make)(SpecReader &);
  bool hasMomentType; // Or its moments' types are its own.
};
constexpr Entry kRules[] = {{"adamw", make<AdamW>, true},
                            {"adamw8bit", make<AdamW8bit>, false},
                            {"sgd", make<SGD>, true}};

} // namespace

llvm::Expected<std::unique_ptr<OptimizerRule>>
OptimizerRule::create(StringRef text) {
  llvm::Expected<OptimizerSpec> spec = OptimizerSpec::parse(text);
  if (!spec)
    return spec.takeError();
  const Entry *entry = llvm::find_if(
      kRules, [&](const Entry &e) { return spec->name == e.name; });
  if (entry == std::end(kRules)) {
    std::string known;
    for (const Entry &e : kRules)
      known += (known.empty() ? "" : ", ") + std::string(e.name);
    return badSpec("'" + spec->name + "' is unknown; there are " + known);
  }
  SpecReader reader{*spec, ""};
  std::unique_ptr<OptimizerRule> rule = entry->make(reader);
  rule->weightDecay = reader.number("weight_decay", rule->weightDecay);
  rule->clip = reader.number("clip", 0);
  rule->matricesOnly = reader.isSecond("decay", "all", "matrices");
  rule->hasMaster = !reader.isSecond("master", "f32", "none");
  if (entry->hasMomentType)
    rule->hasNarrowMoments = reader.isSecond("moments", "f32", "bf16");
  SmallVector<StringRef> globs;
  std::string noDecay = reader.word("no_decay", "");
  StringRef(noDecay).split(globs, '|', -1, false);
  for (StringRef glob : globs)
    rule->noDecay.push_back(glob.str());
  if (!reader.problem.empty())
    return badSpec(reader.problem);
  if (!reader.spec.options.empty())
    return badSpec("'" + spec->name + "' has no option '" +
                   reader.spec.options.begin()->first + "'");
  return rule;
}
