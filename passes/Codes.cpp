#include "passes/Codes.h"

#include "compiler/analysis/Storage.h"
#include "dialects/nn/Builders.h"
#include "dialects/nn/Scales.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace tmc;
using nn::tensorType;

bool tmc::movesOnly(Operation *op) {
  return op && op->getNumOperands() == 1 && op->getNumResults() == 1 &&
         (isView(op) || isa<nn::TransposeOp>(op));
}

bool tmc::movesOrPads(Operation *op) {
  return movesOnly(op) || isa_and_nonnull<nn::PadOp>(op);
}

std::optional<unsigned> tmc::parameterOf(train::StepOp step, Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (!movesOnly(op) && !isa<arith::TruncFOp, arith::ExtFOp>(op))
      return std::nullopt;
    value = op->getOperand(0);
  }
  auto argument = cast<BlockArgument>(value);
  if (argument.getOwner()->getParentOp() != step ||
      train::roleOf(step, argument.getArgNumber()) != train::Role::Param)
    return std::nullopt;
  return argument.getArgNumber();
}

/// The type of the count of saturated numbers.
static RankedTensorType countType(OpBuilder &b) {
  return RankedTensorType::get({}, b.getI64Type());
}

/// Values from which the loss, and other results of the step besides updates,
/// are computed. Updates and norms of gradients are ops of the train dialect.
static DenseSet<Value> forwardValues(train::StepOp step) {
  DenseSet<Value> found;
  SmallVector<Value> open;
  for (OpOperand &operand :
       step.getBody().front().getTerminator()->getOpOperands())
    if (!train::updatedArg(step, operand.getOperandNumber()))
      open.push_back(operand.get());
  while (!open.empty()) {
    Value value = open.pop_back_val();
    if (!found.insert(value).second)
      continue;
    Operation *op = value.getDefiningOp();
    if (auto loop = dyn_cast_or_null<train::MicroBatchOp>(op))
      open.push_back(loop.getBlock().getTerminator()->getOperand(
          cast<OpResult>(value).getResultNumber()));
    else if (op && !isa<train::TrainDialect>(op->getDialect()))
      llvm::append_range(open, op->getOperands());
  }
  return found;
}

Quantizer::Quantizer(train::StepOp step) : step(step), b(step) {
  DenseSet<Value> forward = forwardValues(step);
  step.walk([&](PrecisionOpInterface op) {
    for (unsigned i : op.getFactors())
      if (!forward.contains(op->getOperand(i)) &&
          !parameterOf(step, op->getOperand(i)))
        gradients.insert(&op->getOpOperand(i));
  });
}

void Quantizer::quantize(PrecisionOpInterface op, Scaling scaling,
                         StringRef name) {
  SmallVector<Value> codes, scales;
  for (unsigned i : op.getFactors()) {
    Codes made = codesOf(op, i, scaling, name);
    codes.push_back(made.codes);
    scales.push_back(made.scale);
  }
  op.setCodes(codes, scales);
}

Quantizer::Codes Quantizer::codesOf(PrecisionOpInterface op, unsigned factor,
                                    Scaling scaling, StringRef name) {
  Value value = op->getOperand(factor);
  std::optional<unsigned> param = parameterOf(step, value);
  if (scaling == Scaling::Block)
    return blockCodesOf(value, param.has_value(),
                        op.getSummedDim(factor) ==
                            unsigned(tensorType(value).getRank() - 2));
  bool isGradient = gradients.contains(&op->getOpOperand(factor));
  Type element = Float8E4M3FNType::get(step.getContext());
  if (isGradient)
    element = Float8E5M2Type::get(step.getContext());
  std::string history;
  if (scaling == Scaling::Delayed)
    history = param ? train::argName(step, *param).str()
                    : (name + (isGradient ? ".gradient" : ".input")).str();
  return wholeCodesOf(value, element, history);
}

/// Codes of `value`, with one scale. Looks through casts to f32, and moves the
/// codes of the source of a view. `history`: the name of a delayed scale's
/// history.
Quantizer::Codes Quantizer::wholeCodesOf(Value value, Type element,
                                         const std::string &history) {
  Operation *op = value.getDefiningOp();
  if (auto widened = dyn_cast_or_null<arith::ExtFOp>(op))
    return wholeCodesOf(widened.getIn(), element, history);
  std::tuple<Value, Type, unsigned> key{value, element,
                                        unsigned(!history.empty())};
  if (auto known = made.find(key); known != made.end())
    return known->second;
  Codes codes;
  if (movesOnly(op) && tensorType(op->getOperand(0)).getNumElements() ==
                           tensorType(value).getNumElements()) {
    Codes source = wholeCodesOf(op->getOperand(0), element, history);
    b.setInsertionPointAfterValue(value);
    Operation *moved = b.clone(*op);
    moved->setOperand(0, source.codes);
    moved->getResult(0).setType(tensorType(value).clone(element));
    codes = {moved->getResult(0), source.scale};
  } else {
    b.setInsertionPointAfterValue(value);
    RankedTensorType type = tensorType(value).clone(element);
    RankedTensorType scale = nn::scaleTypeFor(type, {});
    BlockArgument state;
    if (!history.empty())
      state = addHistory(history);
    auto quantized = nn::QuantizeOp::create(
        b, value.getLoc(), type, scale, state ? Type(scale) : Type(),
        state ? Type(countType(b)) : Type(), value, state);
    if (state)
      histories.push_back({state, quantized});
    codes = {quantized.getCodes(), quantized.getScale()};
  }
  return made[key] = codes;
}

/// Codes of `value` in blocks along the summed dimension of a product.
Quantizer::Codes Quantizer::blockCodesOf(Value value, bool isParam,
                                         bool sumsOverRows) {
  if (auto widened = value.getDefiningOp<arith::ExtFOp>())
    value = widened.getIn();
  ScaleBlock block{isParam || sumsOverRows ? kScaleBlock : 1,
                   isParam || !sumsOverRows ? kScaleBlock : 1};
  RankedTensorType type =
      tensorType(value).clone(Float8E4M3FNType::get(step.getContext()));
  RankedTensorType scaleType = nn::scaleTypeFor(type, block);
  Codes &codes = made[{value, scaleType, 0u}];
  if (!codes.codes) {
    b.setInsertionPointAfterValue(value);
    auto op = nn::QuantizeOp::create(b, value.getLoc(), type, scaleType, Type(),
                                     Type(), value, Value());
    codes = {op.getCodes(), op.getScale()};
  }
  return codes;
}

//===----------------------------------------------------------------------===//
// Histories
//===----------------------------------------------------------------------===//

BlockArgument Quantizer::addHistory(const std::string &name) {
  unsigned number = counts[{b.getInsertionBlock(), name}]++;
  BlockArgument &state = states[{name, number}];
  if (state)
    return state;
  std::string unique = name + ".amax_history";
  for (int64_t i = 2; !names.insert(unique).second; ++i)
    unique = name + "." + std::to_string(i) + ".amax_history";
  state =
      addState(unique, RankedTensorType::get({kAmaxHistory}, b.getF32Type()));
  return state;
}

BlockArgument Quantizer::addState(StringRef name, RankedTensorType type) {
  using train::TrainDialect;
  // Only checkpoints hold it, as the optimizer's own states.
  return train::addState(
      step, name, type,
      {b.getNamedAttr(TrainDialect::kSlot, b.getStringAttr("")),
       b.getNamedAttr(TrainDialect::kInit, b.getStringAttr("zeros"))});
}

SmallVector<Quantizer::Found> Quantizer::carryOut(train::MicroBatchOp loop,
                                                  ArrayRef<History> histories) {
  SmallVector<Type> types(loop.getResultTypes());
  for (History each : histories)
    llvm::append_range(types, TypeRange{each.op.getAmax().getType(),
                                        each.op.getSaturated().getType()});
  b.setInsertionPoint(loop);
  auto wider = train::MicroBatchOp::create(
      b, loop.getLoc(), types, loop.getCountAttr(), loop.getSlices());
  wider->setDiscardableAttrs(loop->getDiscardableAttrDictionary());
  wider.getBody().takeBody(loop.getBody());
  Operation *yield = wider.getBlock().getTerminator();
  SmallVector<Value> yielded(yield->getOperands());
  b.setInsertionPoint(yield);
  auto carry = [&](Value value) -> Value {
    return wider.getBlock().addArgument(value.getType(), loop.getLoc());
  };
  for (History each : histories) {
    Value amax = each.op.getAmax(), count = each.op.getSaturated();
    yielded.push_back(
        arith::MaximumFOp::create(b, amax.getLoc(), carry(amax), amax));
    yielded.push_back(
        arith::AddIOp::create(b, count.getLoc(), carry(count), count));
  }
  yield->setOperands(yielded);
  unsigned kept = loop.getNumResults();
  loop.replaceAllUsesWith(wider.getResults().take_front(kept));
  loop.erase();
  SmallVector<Found> found;
  for (unsigned i = kept; i < wider.getNumResults(); i += 2)
    found.push_back({wider.getResult(i), wider.getResult(i + 1)});
  return found;
}

/// True at this step's place in a history: each step overwrites the oldest
/// number.
Value Quantizer::isThisStep(Location loc) {
  Value number;
  for (BlockArgument argument : step.getBody().getArguments()) {
    auto feed = step.getArgAttrOfType<StringAttr>(argument.getArgNumber(),
                                                  train::TrainDialect::kFeed);
    if (feed && feed.getValue() == "step")
      number = argument;
  }
  auto type = RankedTensorType::get({kAmaxHistory}, b.getI64Type());
  Value length = nn::splat(b, loc, number.getType(), kAmaxHistory);
  Value place = arith::RemSIOp::create(b, loc, number, length);
  Value places = nn::IotaOp::create(b, loc, type, 0);
  return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, places,
                               nn::broadcastTo(b, loc, place, type, {}));
}

void Quantizer::updateHistories() {
  // A loop's findings become results of the loop.
  llvm::MapVector<Operation *, SmallVector<History>> byParent;
  for (History each : histories)
    byParent[each.op->getParentOp()].push_back(each);
  Operation *end = step.getBody().front().getTerminator();
  llvm::MapVector<Value, std::pair<Location, Found>> ofState;
  for (auto &[parent, group] : byParent) {
    SmallVector<Found> found;
    if (auto loop = dyn_cast<train::MicroBatchOp>(parent))
      found = carryOut(loop, group);
    else
      for (History each : group)
        found.push_back({each.op.getAmax(), each.op.getSaturated()});
    b.setInsertionPoint(end);
    for (auto [each, made] : llvm::zip_equal(group, found)) {
      Location loc = each.op.getLoc();
      auto [known, isNew] = ofState.insert({each.state, {loc, made}});
      if (isNew)
        continue;
      Found &both = known->second.second;
      both = {arith::MaximumFOp::create(b, loc, both.amax, made.amax),
              arith::AddIOp::create(b, loc, both.saturated, made.saturated)};
    }
  }
  Value saturations; // In this step.
  for (auto &[state, found] : ofState) {
    auto &[loc, made] = found;
    Value newest = nn::broadcastTo(b, loc, made.amax, tensorType(state), {});
    train::addNewValue(
        step, cast<BlockArgument>(state),
        arith::SelectOp::create(b, loc, isThisStep(loc), newest, state));
    saturations =
        saturations ? arith::AddIOp::create(b, loc, saturations, made.saturated)
                    : made.saturated;
  }
  if (!saturations)
    return;
  BlockArgument before = addState("saturations", countType(b));
  train::addNewValue(
      step, before,
      arith::AddIOp::create(b, saturations.getLoc(), before, saturations));
}
