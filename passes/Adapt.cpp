// Adapt.cpp - -tmc-adapt: adds low-rank adapters and freezes the model.
//
//     y = x W^T          y0 = x W^T
//                        d  = where(random >= p, x / (1 - p), 0)
//                        y  = y0 + (s (d A^T)) B^T
//
// The scale multiplies the narrow rows [r], not the wide ones. A mask is drawn
// from the run's seed, so that a plan may draw it again in place of keeping it.
// Adapters are parameters like any other for all later passes.

#include "passes/Passes.h"

#include "dialects/interfaces/Fault.h"
#include "dialects/nn/Builders.h"
#include "dialects/train/Batch.h"
#include "passes/LoraSpec.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/GlobPattern.h"

#include <cmath>

using namespace mlir;

namespace tmc {
#define GEN_PASS_DEF_ADAPT
#include "passes/Passes.h.inc"

namespace {
using namespace nn;
using train::TrainDialect;

/// A product of activations with a matrix parameter.
struct Site {
  MatmulOp product;
  BlockArgument weight;
  std::string module; // The weight's name without ".weight".
  bool isTransposed;  // The weight is [in, out].
  int64_t in, out;
  bool fits = false; // A target fits its name.

  StringRef lastName() const {
    auto [front, last] = StringRef(module).rsplit('.');
    return last.empty() ? front : last;
  }
  std::string shape() const {
    return std::to_string(out) + "x" + std::to_string(in);
  }
};

/// The argument that `value` is, rounded or widened or not; null if it is
/// another value.
BlockArgument argumentBehind(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (!isa<arith::ExtFOp, arith::TruncFOp>(op))
      return {};
    value = op->getOperand(0);
  }
  return cast<BlockArgument>(value);
}

/// The ops that read `value`, through casts.
int64_t readersOf(Value value) {
  int64_t count = 0;
  for (Operation *user : value.getUsers())
    count += isa<arith::ExtFOp, arith::TruncFOp>(user)
                 ? readersOf(user->getResult(0))
                 : 1;
  return count;
}

/// Calls `visit` with each op that depends on `value`, until it returns false.
void eachDependent(Value value, llvm::function_ref<bool(Operation *)> visit) {
  llvm::SmallPtrSet<Operation *, 32> seen;
  SmallVector<Value> left{value};
  while (!left.empty())
    for (Operation *user : left.pop_back_val().getUsers()) {
      if (!seen.insert(user).second)
        continue;
      if (!visit(user))
        return;
      llvm::append_range(left, user->getResults());
    }
}

/// True if the loss follows `product` without another product between: it is a
/// model's head.
bool isHead(MatmulOp product) {
  bool isLast = true;
  eachDependent(product, [&](Operation *op) {
    isLast = !isa<MatmulOp, ConvOp, AttentionOp, LinearCrossEntropyOp>(op);
    return isLast;
  });
  return isLast;
}

/// The one of `names` that is most like `word`, or "".
std::string similar(StringRef word, ArrayRef<std::string> names) {
  std::string best;
  unsigned least = std::max<unsigned>(word.size() / 2, 2) + 1;
  for (StringRef name : names)
    if (unsigned distance = word.edit_distance(name, true, least);
        distance < least) {
      least = distance;
      best = name.str();
    }
  return best;
}

struct Adapt : impl::AdaptBase<Adapt> {
  using AdaptBase::AdaptBase;
  Adapt(const LoraSpec &spec, std::vector<std::string> globs) : spec(spec) {
    lora = spec.text;
    train = globs;
  }

  void runOnOperation() override {
    forward = getOperation().lookupSymbol<func::FuncOp>("forward");
    if (!forward || failed(parse()) || failed(checkPlain()))
      return signalPassFailure();
    findSites();
    if (failed(choose()) || failed(check()) || failed(freeze()))
      return signalPassFailure();
    for (Site &site : sites)
      if (site.fits && failed(adapt(site)))
        return signalPassFailure();
  }

private:
  func::FuncOp forward;
  std::optional<LoraSpec> spec;
  SmallVector<Site> sites;
  Value seed, samples;
  int64_t stream = -1; // The next draw's; -1: not known yet.

  InFlightDiagnostic fault(FailureKind kind = FailureKind::Usage) {
    return emitFault(forward.getLoc(), kind) << "--lora: ";
  }
  StringRef nameOf(BlockArgument argument) {
    return train::argName(forward, argument.getArgNumber());
  }
  bool isParameter(BlockArgument argument) {
    return argument && train::roleOf(forward, argument.getArgNumber()) ==
                           train::Role::Param;
  }

  LogicalResult parse() {
    if (spec)
      return success();
    llvm::Expected<LoraSpec> read = LoraSpec::parse(lora);
    if (read) {
      spec = *std::move(read);
      return success();
    }
    emitFault(forward.getLoc(), FailureKind::Usage)
        << llvm::toString(read.takeError());
    return failure();
  }

  /// An exported model may hold adapters of its own.
  LogicalResult checkPlain() {
    for (BlockArgument argument : forward.getArguments())
      if (isParameter(argument) && nameOf(argument).contains(".lora_A.")) {
        fault(FailureKind::Unsupported)
            << "the model has adapters already: '" << nameOf(argument) << "'";
        return failure();
      }
    return success();
  }

  void findSites() {
    forward.walk([&](MatmulOp product) {
      BlockArgument weight = argumentBehind(product.getRhs());
      if (!isParameter(weight) || product.getTransposeLhs() ||
          isParameter(argumentBehind(product.getLhs())) || product.getAcc() ||
          tensorType(product.getRhs()).getRank() != 2)
        return;
      StringRef module = nameOf(weight);
      module.consume_back(".weight");
      ArrayRef<int64_t> shape = tensorType(product.getRhs()).getShape();
      const bool isTransposed = !product.getTransposeRhs();
      sites.push_back({product, weight, module.str(), isTransposed,
                       shape[isTransposed ? 0 : 1],
                       shape[isTransposed ? 1 : 0]});
    });
  }

  /// Marks the products that targets fit.
  LogicalResult choose() {
    for (Site &site : sites)
      site.fits = spec->allLinear && readersOf(site.weight) == 1 &&
                  !isHead(site.product);
    if (spec->allLinear &&
        llvm::none_of(sites, [](const Site &site) { return site.fits; }))
      return unfit(LoraSpec::kAllLinear);
    for (const ModuleName &target : spec->targets) {
      bool isUsed = false;
      for (Site &site : sites)
        if (target.matches(site.module))
          site.fits = isUsed = true;
      if (!isUsed)
        return unfit(target.text());
    }
    auto checkUsed = [&](const ModuleName &name,
                         const Twine &key) -> LogicalResult {
      if (llvm::any_of(sites, [&](const Site &site) {
            return site.fits && name.matches(site.module);
          }))
        return success();
      fault() << key << name.text() << " fits no module that gets an adapter";
      return failure();
    };
    for (const auto &entry : spec->ranks)
      if (failed(checkUsed(entry.first, "r:")))
        return failure();
    for (const auto &entry : spec->alphas)
      if (failed(checkUsed(entry.first, "alpha:")))
        return failure();
    return success();
  }

  /// Says what there is, by last name, shape and count.
  LogicalResult unfit(StringRef target) {
    InFlightDiagnostic error = fault() << "the target '" << target
                                       << "' fits no product with a matrix of "
                                          "the model";
    std::vector<std::pair<std::string, int64_t>> counts;
    SmallVector<std::string> names;
    for (const Site &site : sites) {
      const std::string kind = site.lastName().str() + " " + site.shape();
      auto found = llvm::find_if(
          counts, [&](const auto &entry) { return entry.first == kind; });
      if (found == counts.end())
        found = counts.insert(found, {kind, 0});
      ++found->second;
      names.push_back(site.lastName().str());
      names.push_back(site.module);
    }
    if (std::string meant = similar(target, names);
        !meant.empty() && meant != target)
      error.attachNote() << "did you mean '" << meant << "'?";
    constexpr size_t kShown = 16;
    std::string list;
    for (const auto &[i, entry] : llvm::enumerate(counts))
      if (i < kShown)
        list += (i ? ", " : "") + entry.first +
                (entry.second > 1 ? " (" + std::to_string(entry.second) + ")"
                                  : std::string());
    if (counts.size() > kShown)
      list += " and " + std::to_string(counts.size() - kShown) + " more";
    error.attachNote() << (counts.empty() ? std::string("it has none")
                                          : "there are " + list);
    return failure();
  }

  LogicalResult check() {
    for (const Site &site : sites) {
      if (!site.fits)
        continue;
      if (readersOf(site.weight) > 1) {
        fault(FailureKind::Unsupported)
            << "'" << nameOf(site.weight)
            << "' is used in more than one place: an adapter would change "
               "one of them"
            << "; leave it out of the targets, or train it whole with --train";
        return failure();
      }
      const int64_t rank = spec->rankOf(site.module);
      if (rank <= std::min(site.in, site.out))
        continue;
      fault() << "r=" << rank << " is more than '" << site.module
              << "' has rows or columns: " << site.shape();
      return failure();
    }
    return success();
  }

  /// Freezes all parameters but those that `train` names.
  LogicalResult freeze() {
    SmallVector<llvm::GlobPattern> globs;
    for (const std::string &text : train) {
      llvm::Expected<llvm::GlobPattern> glob = llvm::GlobPattern::create(text);
      if (!glob) {
        llvm::consumeError(glob.takeError());
        emitFault(forward.getLoc(), FailureKind::Usage)
            << "--train=" << text << " is no pattern";
        return failure();
      }
      globs.push_back(*std::move(glob));
    }
    llvm::BitVector used(globs.size());
    for (BlockArgument argument : forward.getArguments()) {
      if (!isParameter(argument))
        continue;
      const unsigned index = argument.getArgNumber();
      bool isTrained = false;
      for (auto [i, glob] : llvm::enumerate(globs))
        if (matches(glob, index)) {
          used.set(i);
          isTrained = true;
        }
      if (!isTrained)
        forward.setArgAttr(index, TrainDialect::kFrozen,
                           UnitAttr::get(&getContext()));
      else if (failed(takeBack(argument)))
        return failure();
    }
    if (const int first = used.find_first_unset(); first >= 0) {
      emitFault(forward.getLoc(), FailureKind::Usage)
          << "--train=" << train[first] << " matches no parameter of the model";
      return failure();
    }
    return success();
  }

  /// True if one of an argument's names matches.
  bool matches(const llvm::GlobPattern &glob, unsigned index) {
    auto aliases =
        forward.getArgAttrOfType<ArrayAttr>(index, TrainDialect::kAliases);
    return glob.match(train::argName(forward, index)) ||
           (aliases && llvm::any_of(aliases.getAsRange<StringAttr>(),
                                    [&](StringAttr alias) {
                                      return glob.match(alias.getValue());
                                    }));
  }

  LogicalResult takeBack(BlockArgument argument) {
    for (const Site &site : sites)
      if (site.fits && site.weight == argument) {
        emitFault(forward.getLoc(), FailureKind::Usage)
            << "'" << nameOf(argument)
            << "' has an adapter, and --train takes it whole: one of the two";
        return failure();
      }
    const std::optional<unsigned> loss = train::lossResult(forward);
    Operation *last = forward.getBody().front().getTerminator();
    Operation *made = loss ? last->getOperand(*loss).getDefiningOp() : nullptr;
    bool isReached = false;
    eachDependent(argument, [&](Operation *op) {
      isReached = op == made;
      return !isReached;
    });
    if (!isReached || !isa<FloatType>(tensorType(argument).getElementType())) {
      emitFault(forward.getLoc(), FailureKind::Usage)
          << "--train names '" << nameOf(argument)
          << "', on which the loss doesn't depend";
      return failure();
    }
    forward.removeArgAttr(argument.getArgNumber(), TrainDialect::kFrozen);
    return success();
  }

  BlockArgument addArgument(StringRef name, Type type, train::Role role,
                            ArrayRef<NamedAttribute> more) {
    Builder b(&getContext());
    NamedAttrList attrs(more);
    attrs.set(TrainDialect::kRole, train::RoleAttr::get(&getContext(), role));
    attrs.set(TrainDialect::kName, b.getStringAttr(name));
    const unsigned index = forward.getNumArguments();
    LogicalResult inserted =
        forward.insertArgument(index, type, attrs.getDictionary(&getContext()),
                               NameLoc::get(b.getStringAttr(name)));
    assert(succeeded(inserted) && "a function takes any argument");
    (void)inserted;
    return forward.getArgument(index);
  }

  /// A matrix of an adapter.
  Value addMatrix(const Site &site, StringRef which, int64_t rows,
                  int64_t columns, Attribute init) {
    Builder b(&getContext());
    SmallVector<NamedAttribute> attrs = {
        b.getNamedAttr(TrainDialect::kInit, init),
        b.getNamedAttr(TrainDialect::kAdapter, b.getStringAttr(site.module))};
    if (site.isTransposed)
      attrs.push_back(
          b.getNamedAttr(TrainDialect::kFanInFanOut, b.getUnitAttr()));
    return addArgument(site.module + "." + which.str() + ".weight",
                       RankedTensorType::get({rows, columns}, b.getF32Type()),
                       train::Role::Param, attrs);
  }

  Attribute startOfA(const Site &site, int64_t rank) {
    Builder b(&getContext());
    const double size =
        spec->gaussian ? 1 / double(rank) : 1 / std::sqrt(double(site.in));
    return train::DrawAttr::get(
        &getContext(), b.getStringAttr(spec->gaussian ? "normal" : "uniform"),
        b.getF64FloatAttr(size));
  }

  LogicalResult adapt(const Site &site) {
    MatmulOp product = site.product;
    OpBuilder b(&getContext());
    b.setInsertionPointAfter(product);
    const int64_t rank = spec->rankOf(site.module);
    Value a = addMatrix(site, "lora_A", rank, site.in, startOfA(site, rank));
    Value up =
        addMatrix(site, "lora_B", site.out, rank, b.getStringAttr("zeros"));
    auto at = [&](StringRef part) {
      return NameLoc::get(b.getStringAttr(site.module + "." + part),
                          product.getLoc());
    };
    Location down = at("lora_A"), wide = at("lora_B");
    Value x = convertTo(b, down, product.getLhs(), b.getF32Type());
    if (spec->dropout > 0) {
      FailureOr<Value> dropped = drop(b, at("lora_dropout"), x);
      if (failed(dropped))
        return failure();
      x = *dropped;
    }
    Value rows = MatmulOp::create(b, down, x, a, /*transposeLhs=*/false,
                                  /*transposeRhs=*/true);
    rows = scale(b, down, rows, spec->scaleOf(site.module));
    Value change = MatmulOp::create(b, wide, rows, up, false, true);
    Type type = tensorType(product.getResult()).getElementType();
    Value base = convertTo(b, wide, product.getResult(), b.getF32Type());
    Operation *first = base.getDefiningOp();
    Value sum = add(b, wide, base, change);
    Operation *reader = sum.getDefiningOp();
    Value result = convertTo(b, wide, sum, type);
    product.getResult().replaceUsesWithIf(result, [&](OpOperand &use) {
      return use.getOwner() != first && use.getOwner() != reader;
    });
    return success();
  }

  FailureOr<Value> drop(OpBuilder &b, Location loc, Value x) {
    if (failed(findDraws()))
      return failure();
    RankedTensorType type = tensorType(x);
    const int64_t batch = tensorType(samples).getDimSize(0);
    if (type.getDimSize(0) % batch) {
      fault(FailureKind::Unsupported) << "dropout of " << type.getDimSize(0)
                                      << " rows for a batch of " << batch;
      return failure();
    }
    Value random = RandomOp::create(b, loc, type, seed, samples, stream++);
    Value kept =
        arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OGE, random,
                              splat(b, loc, type, spec->dropout));
    Value scaled = scale(b, loc, x, 1 / (1 - spec->dropout));
    Value zero = splat(b, loc, type, 0);
    return Value(arith::SelectOp::create(b, loc, kept, scaled, zero));
  }

  /// Finds the sources of random numbers, or adds them, and the first stream
  /// that no op draws from.
  LogicalResult findDraws() {
    if (stream >= 0)
      return success();
    stream = 0;
    auto take = [&](Value itsSeed, Value itsSamples, int64_t its) {
      if (!itsSeed)
        return;
      seed = itsSeed;
      samples = itsSamples;
      stream = std::max(stream, its + 1);
    };
    forward.walk([&](Operation *op) {
      if (auto random = dyn_cast<RandomOp>(op))
        take(random.getSeed(), random.getSamples(), random.getStream());
      else if (auto attention = dyn_cast<AttentionOp>(op))
        take(attention.getSeed(), attention.getSamples(),
             attention.getStream());
    });
    if (seed)
      return success();
    const int64_t batch = train::markUncut(forward);
    if (!batch) {
      fault(FailureKind::Unsupported)
          << "dropout needs an input of several samples";
      return failure();
    }
    Type integer = IntegerType::get(&getContext(), 64);
    seed = addArgument("seed", RankedTensorType::get({2}, integer),
                       train::Role::Scalar, {});
    samples = addArgument("samples", RankedTensorType::get({batch}, integer),
                          train::Role::Batch, {});
    return success();
  }
};

} // namespace

std::unique_ptr<Pass> createAdapt(const LoraSpec &spec,
                                  const std::vector<std::string> &train) {
  return std::make_unique<Adapt>(spec, train);
}
} // namespace tmc
