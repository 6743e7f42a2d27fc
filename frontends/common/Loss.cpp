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

namespace {
/// Finds the loss among the outputs, or builds the one that the user names.
class LossChooser {
public:
  LossChooser(Importer &importer, ArrayRef<Importer::Output> outputs)
      : importer(importer), forward(importer.forward), b(forward.b),
        outputs(outputs) {}

  LogicalResult fromOutput(const std::string &name);
  LogicalResult fromCall(const std::string &callee, const std::string &lhs,
                         const std::string &rhs);

private:
  void set(Value value, const std::string &name);
  FailureOr<Value> prediction(const std::string &name);
  FailureOr<Value> target(const std::string &name, RankedTensorType type);
  const Val &lookup(const std::string &name) const;
  std::string listOutputs(const char *lead) const;

  Importer &importer;
  Forward &forward;
  OpBuilder &b;
  ArrayRef<Importer::Output> outputs;
};
} // namespace

void LossChooser::set(Value value, const std::string &name) {
  Location loc = value.getLoc();
  auto type = cast<RankedTensorType>(value.getType());
  Value loss = nn::reshapeTo(b, loc, value, {});
  auto scalar = RankedTensorType::get({}, b.getF32Type());
  unsigned width = type.getElementTypeBitWidth();
  if (width < 32)
    loss = arith::ExtFOp::create(b, loc, scalar, loss);
  else if (width > 32)
    loss = arith::TruncFOp::create(b, loc, scalar, loss);
  for (Forward::Result &result : forward.results)
    if (result.name == name && result.updates < 0) {
      result.value = loss;
      result.isLoss = true;
      return;
    }
  forward.results.insert(forward.results.begin(), {loss, name, true, -1});
}

LogicalResult LossChooser::fromOutput(const std::string &name) {
  for (const Forward::Result &result : forward.results)
    if (result.name == name && result.updates < 0) {
      if (!isScalarFloat(result.value.getType()))
        return importer.fail(Failure::usage(
                   "the loss '" + name + "' has shape " +
                   str(cast<RankedTensorType>(result.value.getType())
                           .getShape()) +
                   "; it must be a single float")),
               mlir::failure();
      set(result.value, name);
      return success();
    }
  Failure f = Failure::usage("the model has no output named '" + name + "'");
  importer.fail(std::move(f).note(listOutputs("its outputs are")));
  return mlir::failure();
}

std::string LossChooser::listOutputs(const char *lead) const {
  std::string text = lead;
  for (const Importer::Output &output : outputs)
    text += " " + output.declared.name;
  return text;
}

/// The value of the output of this name, else the value of this name in the
/// graph.
const Val &LossChooser::lookup(const std::string &name) const {
  for (const Importer::Output &output : outputs)
    if (output.declared.name == name)
      return importer.lookup(output.value);
  return importer.lookup(name);
}

FailureOr<Value> LossChooser::prediction(const std::string &name) {
  const Val &v = lookup(name);
  if (v.kind == Val::Tensor && isFloat(v.type))
    return v.value;
  Failure f = Failure::usage("the loss needs a float tensor named '" + name +
                             "', which the model doesn't have");
  importer.fail(std::move(f).note(listOutputs("the model's outputs are")));
  return mlir::failure();
}

FailureOr<Value> LossChooser::target(const std::string &name,
                                     RankedTensorType type) {
  const Val &v = lookup(name);
  if (v.kind == Val::Absent) {
    Argument argument;
    argument.name = name;
    return forward.addArgument(type, argument);
  }
  auto value = importer.materialise(v);
  if (failed(value))
    return mlir::failure();
  auto has = cast<RankedTensorType>((*value).getType());
  bool sameKind = isa<IntegerType>(has.getElementType()) ==
                  isa<IntegerType>(type.getElementType());
  if (has.getShape() == type.getShape() && sameKind)
    return *value;
  importer.fail(Failure::usage(
      has.getShape() == type.getShape()
          ? "the loss needs '" + name + "' to hold " +
                (isa<IntegerType>(type.getElementType()) ? "labels" : "floats")
          : "the loss needs '" + name + "' to have shape " +
                str(type.getShape()) + ", but it has " + str(has.getShape())));
  return mlir::failure();
}

LogicalResult LossChooser::fromCall(const std::string &callee,
                                    const std::string &lhs,
                                    const std::string &rhs) {
  auto given = prediction(lhs);
  if (failed(given))
    return mlir::failure();
  Value x = *given;
  auto type = cast<RankedTensorType>(x.getType());
  Location loc = NameLoc::get(b.getStringAttr(callee));
  bool wantsRows = callee != "mse" && callee != "bce";
  if (wantsRows && type.getRank() < 2)
    return importer.fail(Failure::usage(callee +
                                        " wants rows of logits, but '" + lhs +
                                        "' has shape " + str(type.getShape()))),
           mlir::failure();
  if (callee != "cross_entropy") {
    auto wanted = target(rhs, type);
    if (failed(wanted))
      return mlir::failure();
    LossSite site(importer, loc, callee);
    auto loss = targetLoss(site, callee, x, *wanted);
    if (failed(loss))
      return mlir::failure();
    set(loss->value, "loss");
    return success();
  }
  auto labelType =
      RankedTensorType::get(type.getShape().drop_back(), b.getI64Type());
  auto labels = target(rhs, labelType);
  if (failed(labels))
    return mlir::failure();
  int64_t rows = labelType.getNumElements();
  Value logits = nn::reshapeTo(b, loc, x, {rows, type.getShape().back()});
  Value flat = nn::reshapeTo(b, loc, *labels, {rows});
  set(meanCrossEntropy(b, loc, logits, flat, kIgnoredLabel), "loss");
  return success();
}

LogicalResult Importer::attachLoss() {
  LossChooser choose(*this, outputs);
  StringRef spec = StringRef(options.loss).trim();
  if (!spec.empty()) {
    auto [callee, rest] = spec.split('(');
    if (rest.empty())
      return choose.fromOutput(spec.str());
    callee = callee.trim();
    auto [lhs, rhs] = rest.split(',');
    if (!rhs.consume_back(")") || lhs.trim().empty() || rhs.trim().empty() ||
        llvm::none_of(kLosses, [&, &callee = callee](const auto &loss) {
          return loss.first == callee;
        }))
      return fail(Failure::usage("--loss=" + spec.str() +
                                 " is no name and none of " + listLosses())),
             mlir::failure();
    return choose.fromCall(callee.str(), lhs.trim().str(), rhs.trim().str());
  }
  std::vector<std::string> scalars;
  for (const Forward::Result &result : forward.results)
    if (result.updates < 0 && isScalarFloat(result.value.getType())) {
      if (result.name == "loss")
        return choose.fromOutput(result.name);
      scalars.push_back(result.name);
    }
  if (scalars.size() == 1)
    return choose.fromOutput(scalars[0]);
  if (!options.needLoss)
    return success();
  std::string outputs =
      scalars.empty() ? "the outputs are" : "the scalar outputs are";
  for (const Forward::Result &result : forward.results)
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
