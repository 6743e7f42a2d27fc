// Loss.cpp - which scalar is minimised.
//
//   (nothing)                        the output `loss`, or the only scalar one
//   --loss=NAME                      that scalar
//   --loss=cross_entropy(a, labels)  mean over the labels that aren't -100; the
//                                    classes are the innermost dimension of a
//   --loss=mse(a, target)            mean of (a - target)^2
//
// Labels and targets that the graph doesn't have become inputs of the batch.

#include "frontends/common/Importer.h"
#include "frontends/common/Losses.h"

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

/// The value that an output of this name has, else that of the graph.
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
  fail(Failure::usage("the loss needs '" + name + "' to have shape " +
                      str(type.getShape()) + ", but it has " +
                      str(has.getShape())));
  return mlir::failure();
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
  if (callee == "mse") {
    auto target = lossTarget(rhs, type);
    if (failed(target))
      return mlir::failure();
    setLoss(meanSquaredError(b, loc, x, *target), "loss");
    return success();
  }
  if (type.getRank() < 2)
    return fail(Failure::usage("cross_entropy wants rows of logits, but '" +
                               lhs + "' has shape " + str(type.getShape()))),
           mlir::failure();
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
        (callee != "cross_entropy" && callee != "mse"))
      return fail(Failure::usage("--loss=" + spec.str() +
                                 " is neither a name, cross_entropy(logits, "
                                 "labels) nor mse(prediction, target)")),
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
           .note("give --loss=NAME, --loss='cross_entropy(logits, labels)' or "
                 "--loss='mse(prediction, target)'"));
  return mlir::failure();
}
