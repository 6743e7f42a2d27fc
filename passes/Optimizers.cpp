#include "passes/Optimizers.h"

#include "dialects/train/Train.h"
#include "passes/Spec.h"

#include "llvm/Support/Error.h"
#include "llvm/Support/GlobPattern.h"

#include <limits>

using namespace mlir;
using namespace tmc;

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

bool OptimizerRule::mayJoin(NamedParam first, NamedParam second) const {
  SmallVector<int64_t> shape(first.type.getShape());
  shape[0] += second.type.getDimSize(0);
  const TrainedParam whole{storedType(first.type.clone(shape))};
  const int64_t shared = sharedElements(whole);
  if (shared == 0 ||
      decayOf(first.name, first.type) != decayOf(second.name, second.type))
    return false;
  std::vector<OptimizerSlot> slots = slotsOf(whole);
  return llvm::all_of(ArrayRef{first, second}, [&](const NamedParam &each) {
    const TrainedParam part{storedType(each.type)};
    auto isAlike = [](const OptimizerSlot &a, const OptimizerSlot &b) {
      return a.suffix == b.suffix &&
             a.type.getElementType() == b.type.getElementType();
    };
    std::vector<OptimizerSlot> its = slotsOf(part);
    return each.type.getNumElements() % shared == 0 &&
           sharedElements(part) == shared && its.size() == slots.size() &&
           std::equal(its.begin(), its.end(), slots.begin(), isAlike);
  });
}

/// `type` with floats of 32 bits, or of 16.
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
bool OptimizerRule::mayCut(const TrainedParam &whole, const TrainedParam &piece,
                           int64_t chunk) const {
  // Rounding draws by an element's number in the param.
  if (storedType(piece.type).getElementTypeBitWidth() < 32 ||
      momentType(piece).getElementTypeBitWidth() < 32)
    return false;
  const int64_t shared = sharedElements(whole);
  return shared > 0 && chunk % shared == 0 && shared == sharedElements(piece) &&
         slotsOf(whole).size() == slotsOf(piece).size();
}
RankedTensorType OptimizerRule::momentType(const TrainedParam &param) const {
  return keptIn(param.type, hasNarrowMoments);
}

namespace {

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
  explicit AdamW(Spec &spec)
      : beta1(spec.number("beta1", 0.9)), beta2(spec.number("beta2", 0.999)),
        epsilon(spec.number("eps", 1e-8)) {
    weightDecay = 0.01;
  }

  std::vector<OptimizerSlot> slotsOf(const TrainedParam &param) const override {
    return {{"exp_avg", momentType(param)}, {"exp_avg_sq", momentType(param)}};
  }

  UpdateOutputs build(OpBuilder &b, Location loc,
                      const UpdateInputs &in) const override {
    auto op = train::AdamWOp::create(
        b, loc, in.param, in.grad, in.slots[0], in.slots[1], in.lr, in.step,
        in.clip, /*copy=*/Value(), f64(b, beta1), f64(b, beta2),
        f64(b, epsilon), f64(b, decayOf(in.name, in.trained.type)),
        streamOf(b, in, {in.trained.type, momentType(in.trained)}));
    return {op.getNewParam(), {op.getNewM(), op.getNewV()}, op.getSquare()};
  }

protected:
  double beta1, beta2, epsilon;
};

/// AdamW whose moments are codes with a scale for each block, as in `Op`.
/// Moments of small params, and of those that `isCoded` excludes, are plain
/// AdamW's.
template <typename Op> class CodedAdamW : public AdamW {
public:
  CodedAdamW(Spec &spec, std::string scaleName)
      : AdamW(spec), scaleName(std::move(scaleName)),
        fewest(spec.number("min_size", kFewestCoded)) {}

  std::vector<OptimizerSlot> slotsOf(const TrainedParam &param) const override {
    if (!isCoded(param))
      return AdamW::slotsOf(param);
    RankedTensorType codes = Op::codesOf(param.type);
    RankedTensorType scales = Op::scalesOf(param.type);
    return {{"exp_avg.codes", codes},
            {"exp_avg." + scaleName, scales},
            {"exp_avg_sq.codes", codes},
            {"exp_avg_sq." + scaleName, scales}};
  }

  UpdateOutputs build(OpBuilder &b, Location loc,
                      const UpdateInputs &in) const override {
    if (!isCoded(in.trained))
      return AdamW::build(b, loc, in);
    auto op =
        Op::create(b, loc, in.param, in.grad, in.slots[0], in.slots[1],
                   in.slots[2], in.slots[3], in.lr, in.step, in.clip,
                   /*copy=*/Value(), f64(b, beta1), f64(b, beta2),
                   f64(b, epsilon), f64(b, decayOf(in.name, in.trained.type)),
                   streamOf(b, in, {in.trained.type}));
    SmallVector<Value> slots(op->getResults().slice(1, in.slots.size()));
    return {op.getNewParam(), std::move(slots), op.getSquare()};
  }

protected:
  /// Sources: bitsandbytes 0.43 (min_8bit_size), and section 2.3 of the paper
  /// named in runtime/kernels/Adam.h; torchao's _AdamBase.
  static constexpr double kFewestCoded = 4096;

  int64_t sharedElements(const TrainedParam &param) const override {
    return isCoded(param) ? Op::kBlock : 1;
  }

  virtual bool isCoded(const TrainedParam &param) const {
    return double(param.type.getNumElements()) >= fewest;
  }

private:
  std::string scaleName;
  double fewest; // Elements.
};

class AdamW8bit : public CodedAdamW<train::AdamW8bitOp> {
public:
  explicit AdamW8bit(Spec &spec) : CodedAdamW(spec, "max") {}

protected:
  bool isCoded(const TrainedParam &param) const override {
    return !param.isGathered && CodedAdamW::isCoded(param);
  }
};

/// Tables get codes, too, as in torchao.
class AdamW4bit : public CodedAdamW<train::AdamW4bitOp> {
public:
  explicit AdamW4bit(Spec &spec) : CodedAdamW(spec, "scale") {}

protected:
  bool isCoded(const TrainedParam &param) const override {
    return param.type.getNumElements() % train::AdamW4bitOp::kBlock == 0 &&
           CodedAdamW::isCoded(param);
  }
};

class Adafactor : public OptimizerRule {
public:
  explicit Adafactor(Spec &spec)
      : beta2Decay(spec.number("beta2_decay", -0.8)),
        eps1(spec.number("eps1", std::numeric_limits<float>::epsilon())),
        eps2(spec.number("eps2", 1e-3)), d(spec.number("d", 1)) {}

  std::vector<OptimizerSlot> slotsOf(const TrainedParam &param) const override {
    auto types = train::AdafactorOp::momentsOf(param.type);
    if (types.size() == 1)
      return {{"variance", types[0]}};
    return {{"row_var", types[0]}, {"col_var", types[1]}};
  }

  UpdateOutputs build(OpBuilder &b, Location loc,
                      const UpdateInputs &in) const override {
    auto op = train::AdafactorOp::create(
        b, loc, in.param, in.grad, in.slots, in.lr, in.step, in.clip,
        /*copy=*/Value(), f64(b, beta2Decay), f64(b, eps1), f64(b, eps2),
        f64(b, d), f64(b, decayOf(in.name, in.trained.type)),
        streamOf(b, in, {in.trained.type}));
    return {op.getNewParam(), llvm::to_vector(op.getNewMoments()),
            op.getSquare()};
  }

protected:
  int64_t sharedElements(const TrainedParam &) const override { return 0; }

private:
  double beta2Decay, eps1, eps2, d;
};

class Lion : public OptimizerRule {
public:
  explicit Lion(Spec &spec)
      : beta1(spec.number("beta1", 0.9)), beta2(spec.number("beta2", 0.99)) {}

  std::vector<OptimizerSlot> slotsOf(const TrainedParam &param) const override {
    return {{"exp_avg", momentType(param)}};
  }

  UpdateOutputs build(OpBuilder &b, Location loc,
                      const UpdateInputs &in) const override {
    auto op = train::LionOp::create(
        b, loc, in.param, in.grad, in.slots[0], in.lr, in.step, in.clip,
        /*copy=*/Value(), f64(b, beta1), f64(b, beta2),
        f64(b, decayOf(in.name, in.trained.type)),
        streamOf(b, in, {in.trained.type, momentType(in.trained)}));
    return {op.getNewParam(), {op.getNewM()}, op.getSquare()};
  }

private:
  double beta1, beta2;
};

class SGD : public OptimizerRule {
public:
  explicit SGD(Spec &spec)
      : momentum(spec.number("momentum", 0)),
        dampening(spec.number("dampening", 0)),
        nesterov(spec.number("nesterov", 0) != 0) {}

  std::vector<OptimizerSlot> slotsOf(const TrainedParam &param) const override {
    if (momentum == 0)
      return {};
    return {{"momentum_buffer", momentType(param)}};
  }

  UpdateOutputs build(OpBuilder &b, Location loc,
                      const UpdateInputs &in) const override {
    auto op = train::SGDOp::create(
        b, loc, in.param, in.grad, in.slots.empty() ? Value() : in.slots[0],
        in.lr, in.step, in.clip, /*copy=*/Value(), f64(b, momentum),
        f64(b, dampening), f64(b, decayOf(in.name, in.trained.type)),
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

template <typename Rule> std::unique_ptr<OptimizerRule> make(Spec &spec) {
  return std::make_unique<Rule>(spec);
}

struct Entry {
  const char *name;
  std::unique_ptr<OptimizerRule> (*make)(Spec &);
  bool hasMomentType; // False: the rule fixes its moments' types.
};
constexpr Entry kRules[] = {{"adafactor", make<Adafactor>, false},
                            {"adamw", make<AdamW>, true},
                            {"adamw4bit", make<AdamW4bit>, false},
                            {"adamw8bit", make<AdamW8bit>, false},
                            {"lion", make<Lion>, true},
                            {"sgd", make<SGD>, true}};

} // namespace

llvm::Expected<std::unique_ptr<OptimizerRule>>
OptimizerRule::create(StringRef text) {
  llvm::Expected<Spec> parsed = Spec::parse("optimizer", text);
  if (!parsed)
    return parsed.takeError();
  Spec &spec = *parsed;
  const Entry *entry = llvm::find_if(
      kRules, [&](const Entry &e) { return spec.name == e.name; });
  if (entry == std::end(kRules)) {
    std::string known;
    for (const Entry &e : kRules)
      known += (known.empty() ? "" : ", ") + std::string(e.name);
    return spec.error("'" + spec.name + "' is unknown; there are " + known);
  }
  if (spec.options.count("lr"))
    return spec.error("the learning rate isn't part of the step: give it to "
                      "its trainer, by --lr or --lr-schedule");
  std::unique_ptr<OptimizerRule> rule = entry->make(spec);
  rule->weightDecay = spec.number("weight_decay", rule->weightDecay);
  rule->clip = spec.number("clip", 0);
  rule->matricesOnly = spec.isSecond("decay", "all", "matrices");
  rule->hasMaster = !spec.isSecond("master", "f32", "none");
  if (entry->hasMomentType)
    rule->hasNarrowMoments = spec.isSecond("moments", "f32", "bf16");
  SmallVector<StringRef> globs;
  std::string noDecay = spec.word("no_decay", "");
  StringRef(noDecay).split(globs, '|', -1, false);
  for (StringRef glob : globs)
    rule->noDecay.push_back(glob.str());
  if (llvm::Error error = spec.finish())
    return error;
  return rule;
}
