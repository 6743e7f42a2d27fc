// Loss.cpp - chooses the scalar to minimise.
//
//   (nothing)                        the output `loss`, or the only scalar one
//   --loss=NAME                      that scalar
//   --loss=cross_entropy(a, labels)  mean over the labels that aren't -100; the
//                                    classes are the innermost dimension of a
//   --loss=soft_cross_entropy(a, shares)
//                                    mean over the rows, of shares of classes
//   --loss=bce(a, target)            mean of the binary cross-entropies of the
//                                    logits a
//   --loss=kl(a, shares)             mean over the rows of the divergence of
//                                    softmax(a) from the shares
//   --loss=mse(a, target)            mean of (a - target)^2
//
// Labels and targets that aren't in the graph become inputs of the batch.

#include "frontends/common/Importer.h"
#include "frontends/common/Losses.h"
#include "frontends/common/ops/Norm.h"
#include "frontends/common/ops/Reduce.h"
#include "frontends/common/ops/TargetLoss.h"

using namespace mlir;
using namespace tmc;
using namespace tmc::frontend;

/// A float tensor of one element.
static bool isScalarFloat(Type type) {
  auto tensor = cast<RankedTensorType>(type);
  return isa<FloatType>(tensor.getElementType()) &&
         tensor.getNumElements() == 1;
}

void Importer::setLoss(Value value, const std::string &name) {
  Location loc = value.getLoc();
  auto type = cast<RankedTensorType>(value.getType());
  Value loss = nn::reshapeTo(b, loc, value, {});
  auto scalar = RankedTensorType::get({}, b.getF32Type());
  unsigned width = type.getElementTypeBitWidth();
  if (width < 32)
    loss = arith::ExtFOp::create(b, loc, scalar, loss);
  else if (width > 32)
    loss = arith::TruncFOp::create(b, loc, scalar, loss);
  for (Result &result : results)
    if (result.name == name && result.updates < 0) {
      result.value = loss;
      result.isLoss = true;
      return;
    }
  results.insert(results.begin(), {loss, name, true, -1});
}

LogicalResult Importer::lossFromOutput(const std::string &name) {
  for (const Result &result : results)
    if (result.name == name && result.updates < 0) {
      if (!isScalarFloat(result.value.getType()))
        return fail(Failure::usage(
                   "the loss '" + name + "' has shape " +
                   str(cast<RankedTensorType>(result.value.getType())
                           .getShape()) +
                   "; it must be a single float")),
               mlir::failure();
      setLoss(result.value, name);
      return success();
    }
  Failure f = Failure::usage("the model has no output named '" + name + "'");
  fail(std::move(f).note(listOutputs("its outputs are")));
  return mlir::failure();
}

std::string Importer::listOutputs(const char *lead) const {
  std::string text = lead;
  for (const Output &output : outputs)
    text += " " + output.declared.name;
  return text;
}

/// The value of the output of this name, else the value of this name in the
/// graph.
const Val &Importer::lookupForLoss(const std::string &name) const {
  for (const Output &output : outputs)
    if (output.declared.name == name)
      return lookup(output.value);
  return lookup(name);
}

FailureOr<Value> Importer::lossPrediction(const std::string &name) {
  const Val &v = lookupForLoss(name);
  if (v.kind == Val::Tensor && isFloat(v.type))
    return v.value;
  Failure f = Failure::usage("the loss needs a float tensor named '" + name +
                             "', which the model doesn't have");
  fail(std::move(f).note(listOutputs("the model's outputs are")));
  return mlir::failure();
}

FailureOr<Value> Importer::lossTarget(const std::string &name,
                                      RankedTensorType type) {
  const Val &v = lookupForLoss(name);
  if (v.kind == Val::Absent) {
    Argument argument;
    argument.name = name;
    return addArgument(type, argument);
  }
  auto value = materialise(v);
  if (failed(value))
    return mlir::failure();
  auto has = cast<RankedTensorType>((*value).getType());
  bool sameKind = isa<IntegerType>(has.getElementType()) ==
                  isa<IntegerType>(type.getElementType());
  if (has.getShape() == type.getShape() && sameKind)
    return *value;
  fail(Failure::usage(
      has.getShape() == type.getShape()
          ? "the loss needs '" + name + "' to hold " +
                (isa<IntegerType>(type.getElementType()) ? "labels" : "floats")
          : "the loss needs '" + name + "' to have shape " +
                str(type.getShape()) + ", but it has " + str(has.getShape())));
  return mlir::failure();
}

namespace {
/// The site of a loss that the command line names.
class LossSite : public Site {
public:
  LossSite(Importer &importer, Location loc, std::string text)
      : Site(importer, loc), text(std::move(text)) {}
  std::string opName() const override { return "--loss"; }
  std::string nodeName() const override { return text; }

private:
  std::string text;
};
} // namespace

/// The mean of `losses` over all rows of `x`, whose innermost dimension is the
/// classes; over all elements if `perRow` is false.
static FailureOr<Val> meanLoss(Site &s, FailureOr<Val> losses, const Val &x,
                               bool perRow) {
  if (failed(losses))
    return mlir::failure();
  ASSIGN_OR_FAIL(Val sum,
                 reduceSum(s, *losses, nn::firstDims(losses->rank()), false));
  int64_t count = 1;
  for (int64_t dim : ArrayRef<int64_t>(x.dims).drop_back(perRow ? 1 : 0))
    count *= dim;
  return Val(nn::scale(s.b, s.loc, sum.value, 1.0 / double(count)));
}

/// Mean loss of `x` and a floating-point target, in the type of sums.
static FailureOr<Val> targetLoss(Site &s, StringRef callee, Value given,
                                 Value target) {
  Type element = nn::accumulationType(nn::tensorType(given).getElementType());
  Val x(nn::convertTo(s.b, s.loc, given, element));
  Val y(nn::convertTo(s.b, s.loc, target, element));
  if (callee == "mse")
    return Val(meanSquaredError(s.b, s.loc, x.value, y.value));
  if (callee == "bce")
    return meanLoss(s, binaryCrossEntropyOfLogits(s, x, y, Val()), x, false);
  ASSIGN_OR_FAIL(Val logs, softmax(s, x, x.rank() - 1, /*log=*/true));
  if (callee == "kl")
    return meanLoss(s, divergence(s, logs, y, false), x, true);
  Value parts = nn::mul(s.b, s.loc, y.value, logs.value);
  return meanLoss(s, Val(Value(arith::NegFOp::create(s.b, s.loc, parts))), x,
                  true);
}

/// The losses that a command line can name, and their arguments.
static constexpr std::pair<StringRef, StringRef> kLosses[] = {
    {"cross_entropy", "logits, labels"},
    {"soft_cross_entropy", "logits, shares"},
    {"bce", "logits, target"},
    {"kl", "logits, shares"},
    {"mse", "prediction, target"}};

/// "cross_entropy(logits, labels), ... or mse(prediction, target)".
static std::string listLosses() {
  std::string text;
  for (auto [i, loss] : llvm::enumerate(kLosses))
    text += (i == 0                        ? ""
             : i + 1 == std::size(kLosses) ? " or "
                                           : ", ") +
            loss.first.str() + "(" + loss.second.str() + ")";
  return text;
}

LogicalResult Importer::lossFromCall(const std::string &callee,
                                     const std::string &lhs,
                                     const std::string &rhs) {
  auto prediction = lossPrediction(lhs);
  if (failed(prediction))
    return mlir::failure();
  Value x = *prediction;
  auto type = cast<RankedTensorType>(x.getType());
  Location loc = NameLoc::get(b.getStringAttr(callee));
  bool wantsRows = callee != "mse" && callee != "bce";
  if (wantsRows && type.getRank() < 2)
    return fail(Failure::usage(callee + " wants rows of logits, but '" + lhs +
                               "' has shape " + str(type.getShape()))),
           mlir::failure();
  if (callee != "cross_entropy") {
    auto target = lossTarget(rhs, type);
    if (failed(target))
      return mlir::failure();
    LossSite site(*this, loc, callee);
    auto loss = targetLoss(site, callee, x, *target);
    if (failed(loss))
      return mlir::failure();
    setLoss(loss->value, "loss");
    return success();
  }
  auto labelType =
      RankedTensorType::get(type.getShape().drop_back(), b.getI64Type());
  auto labels = lossTarget(rhs, labelType);
  if (failed(labels))
    return mlir::failure();
  int64_t rows = labelType.getNumElements();
  Value logits = nn::reshapeTo(b, loc, x, {rows, type.getShape().back()});
  Value flat = nn::reshapeTo(b, loc, *labels, {rows});
  setLoss(meanCrossEntropy(b, loc, logits, flat, kIgnoredLabel), "loss");
  return success();
}

LogicalResult Importer::attachLoss() {
  StringRef spec = StringRef(options.loss).trim();
  if (!spec.empty()) {
    auto [callee, rest] = spec.split('(');
    if (rest.empty())
      return lossFromOutput(spec.str());
    callee = callee.trim();
    auto [lhs, rhs] = rest.split(',');
    if (!rhs.consume_back(")") || lhs.trim().empty() || rhs.trim().empty() ||
        llvm::none_of(kLosses, [&, &callee = callee](const auto &loss) {
          return loss.first == callee;
        }))
      return fail(Failure::usage("--loss=" + spec.str() +
                                 " is no name and none of " + listLosses())),
             mlir::failure();
    return lossFromCall(callee.str(), lhs.trim().str(), rhs.trim().str());
  }
  std::vector<std::string> scalars;
  for (const Result &result : results)
    if (result.updates < 0 && isScalarFloat(result.value.getType())) {
      if (result.name == "loss")
        return lossFromOutput(result.name);
      scalars.push_back(result.name);
    }
  if (scalars.size() == 1)
    return lossFromOutput(scalars[0]);
  if (!options.needLoss)
    return success();
  std::string outputs =
      scalars.empty() ? "the outputs are" : "the scalar outputs are";
  for (const Result &result : results)
    if (result.updates < 0 &&
        (scalars.empty() || isScalarFloat(result.value.getType())))
      outputs += " " + result.name;
  fail(Failure::usage(scalars.empty()
                          ? std::string("the model has no scalar output that "
                                        "could be the loss")
                          : "the model has " + std::to_string(scalars.size()) +
                                " scalar outputs, none named loss")
           .note(outputs)
           .note("give --loss=NAME, or one of " + listLosses() + " in quotes"));
  return mlir::failure();
}
