#include "passes/Splitter.h"

#include "passes/raise/Matchers.h"

#include "dialects/interfaces/Fault.h"
#include "dialects/nn/Builders.h"
#include "dialects/nn/Statistics.h"

#include "mlir/IR/Matchers.h"
#include "mlir/IR/Verifier.h"

using namespace mlir;
using namespace tmc;
using namespace tmc::nn;
using train::TrainDialect;

LogicalResult Splitter::refuse(Operation *op, const Twine &why) {
  InFlightDiagnostic diag =
      emitFault(op->getLoc(), FailureKind::Unsupported)
      << "can't be computed " << (onRanks ? "by " : "in ") << shares.pieces()
      << (onRanks ? " ranks: " : " micro-batches: ") << why;
  if (onRanks) {
    diag.attachNote(whole.getLoc())
        << "without --devices one device computes the whole batch";
    if (isa<BatchNormOp>(op))
      diag.attachNote(whole.getLoc())
          << "--batchnorm=frozen takes the running statistics";
    return diag;
  }
  diag.attachNote(whole.getLoc())
      << "--micro-batches=1 computes the whole batch at once";
  if (isa<BatchNormOp>(op))
    diag.attachNote(whole.getLoc())
        << "--batchnorm=per-micro-batch takes the statistics of each "
           "micro-batch, --batchnorm=frozen the running ones";
  return diag;
}

bool Splitter::dependsOnParameter(Value value) {
  if (auto arg = dyn_cast<BlockArgument>(value)) {
    auto role = train::roleOf(whole, arg.getArgNumber());
    return role == train::Role::Param || role == train::Role::State;
  }
  auto [it, isNew] = fromParameter.try_emplace(value, false);
  if (!isNew)
    return it->second;
  bool result =
      llvm::any_of(value.getDefiningOp()->getOperands(),
                   [&](Value operand) { return dependsOnParameter(operand); });
  return fromParameter[value] = result;
}

Value Splitter::inBody(Value value) {
  Part part = partOf(value);
  if (part.kind != Part::Fact && part.kind != Part::Sum)
    return map.lookup(value);
  if (onRanks)
    return overRanks(value);
  for (auto [i, fact] : llvm::enumerate(facts))
    if (fact == value)
      return body.getArgument(whole.getNumArguments() + i);
  facts.push_back(value);
  addFact(value);
  return body.front().getArguments().back();
}

Value Splitter::overRanks(Value sum) {
  Value &made = rankSums[sum];
  if (!made)
    made = SumOverOp::create(b, sum.getLoc(), map.lookup(sum), nn::Axis::Data,
                             shares.pieces());
  return made;
}

void Splitter::cloneFact(Operation *op) {
  Operation *made = op->clone();
  for (auto [i, operand] : llvm::enumerate(op->getOperands()))
    made->setOperand(i, inBody(operand));
  b.insert(made);
  map.map(op, made);
  map.map(op->getResults(), made->getResults());
}

void Splitter::addFact(Value fact) {
  body.front().addArgument(fact.getType(), fact.getLoc());
}

//===----------------------------------------------------------------------===//
// Cutting ops
//===----------------------------------------------------------------------===//

Operation *Splitter::cloneCut(Operation *op, ArrayRef<Piece> operands,
                              SmallVector<Part> &rejoins) {
  SmallVector<Part> lying;
  for (const Piece &piece : operands)
    lying.push_back(piece.part.isCut() ? piece.part : Part());
  Rejoined made = rejoin(op, lying, samples());
  if (!made.refusal.empty()) {
    why = made.refusal;
    return nullptr;
  }
  SmallVector<Type> types(op->getResultTypes());
  for (auto [type, part] : llvm::zip_equal(types, made.results))
    if (part.isCut() && !(type = pieceType(type, part, samples()))) {
      why = kOneForAll;
      return nullptr;
    }
  IRMapping local;
  for (auto [operand, piece] : llvm::zip(op->getOperands(), operands))
    local.map(operand, piece.value);
  Operation *clone = op->cloneWithoutRegions(local);
  for (auto [i, piece] : llvm::enumerate(operands))
    clone->setOperand(i, piece.value); // One operand may be cut in two ways.
  for (auto [result, type] : llvm::zip(clone->getResults(), types))
    result.setType(type);
  b.insert(clone);
  ScopedDiagnosticHandler quiet(op->getContext(),
                                [](Diagnostic &) { return success(); });
  if (op->getNumRegions() != 0 || failed(mlir::verify(clone))) {
    clone->erase();
    why = kOneForAll;
    return nullptr;
  }
  rejoins = std::move(made.results);
  return clone;
}

Operation *Splitter::tryCut(Operation *op, std::optional<Part> wanted,
                            SmallVector<Part> &rejoins) {
  unsigned n = op->getNumOperands();
  SmallVector<Piece> pieces;
  for (Value operand : op->getOperands())
    pieces.push_back({inBody(operand), partOf(operand)});
  auto accept = [&]() -> Operation * {
    Operation *made = cloneCut(op, pieces, rejoins);
    if (!made || !wanted || (rejoins[0].isCut() && rejoins[0].liesAs(*wanted)))
      return made;
    made->erase();
    return nullptr;
  };
  if (!wanted)
    if (Operation *made = accept())
      return made;
  std::string first = why;

  // All cut operands have the same number of runs; a pointwise op has no
  // choice.
  std::optional<Part> given = wanted;
  for (const Piece &piece : pieces)
    if (piece.part.isCut())
      given = Part::along(piece.part.dim, piece.part.runs);
  // Tries each dimension, or no cut, for each operand that isn't cut.
  std::function<Operation *(unsigned)> choose = [&](unsigned i) -> Operation * {
    if (i == n)
      return accept();
    if (pieces[i].part.isCut())
      return choose(i + 1);
    Value whole = op->getOperand(i);
    auto type = dyn_cast<RankedTensorType>(whole.getType());
    if (!type)
      return nullptr;
    Piece uncut = pieces[i];
    for (int64_t dim = 0; dim < type.getRank(); ++dim) {
      pieces[i] = cut(whole, Part::along(dim, given ? given->runs : 1));
      if (!pieces[i].value)
        continue;
      if (Operation *made = choose(i + 1))
        return made;
    }
    pieces[i] = uncut;
    return choose(i + 1);
  };
  auto cutAll = [&](const Part &part) -> Operation * {
    for (unsigned i = 0; i < n; ++i) {
      if (pieces[i].part.isCut())
        continue;
      pieces[i] = cut(op->getOperand(i), part);
      if (!pieces[i].value)
        return nullptr;
    }
    return accept();
  };
  Operation *made;
  if (auto reshape = dyn_cast<ReshapeOp>(op); reshape && wanted) {
    Part source = reshaped(*wanted, tensorType(reshape.getResult()).getShape(),
                           tensorType(reshape.getInput()).getShape());
    made = source.isCut() ? cutAll(source) : nullptr;
  } else {
    made = isPointwise(op) && given ? cutAll(*given) : choose(0);
  }
  if (!made)
    why = first;
  return made;
}

Splitter::Piece Splitter::cutConstant(arith::ConstantOp op,
                                      const Part &wanted) {
  auto attr = dyn_cast<DenseElementsAttr>(op.getValue());
  if (!attr)
    return {};
  RankedTensorType type = pieceType(op.getType(), wanted, samples());
  auto make = [&](DenseElementsAttr values, int64_t shift) -> Piece {
    return {arith::ConstantOp::create(b, op.getLoc(), values),
            Part::along(wanted.dim, wanted.runs, shift)};
  };
  if (attr.isSplat())
    return make(attr.resizeSplat(type), 0);
  // All pieces must equal the first, or its beginning.
  ArrayRef<int64_t> shape = cast<RankedTensorType>(op.getType()).getShape();
  int64_t inner = llvm::product_of(shape.drop_front(wanted.dim + 1));
  int64_t run = shape[wanted.dim] / wanted.runs * inner;
  int64_t piece = run * mine / shares.batch;
  auto all = attr.getValues<Attribute>();
  SmallVector<Attribute> kept;
  for (int64_t i = 0; i < attr.getNumElements(); ++i)
    if (i % run < piece)
      kept.push_back(all[i]);
  DenseElementsAttr values = DenseElementsAttr::get(type, kept);
  auto repeats = [&](int64_t period, int64_t shift) {
    if (shift == 0) {
      for (int64_t i = 0; i < attr.getNumElements(); ++i)
        if (all[i] != all[i - i % run + i % run % period])
          return false;
      return true;
    }
    auto numbers = attr.getValues<APInt>();
    for (int64_t i = 0; i < attr.getNumElements(); ++i) {
      int64_t first = i - i % run + i % run % period;
      if (numbers[i].getSExtValue() !=
          numbers[first].getSExtValue() + i % run / period * shift)
        return false;
    }
    return true;
  };
  if (repeats(run * shares.rows / shares.batch, 0))
    return make(values, 0);
  // Or each sample's numbers are the previous sample's plus a shift.
  int64_t sample = run / shares.batch;
  if (run % shares.batch || !type.getElementType().isSignlessInteger() ||
      type.getElementType().isInteger(1))
    return {};
  auto numbers = attr.getValues<APInt>();
  int64_t shift = numbers[sample].getSExtValue() - numbers[0].getSExtValue();
  return shift && repeats(sample, shift) ? make(values, shift) : Piece();
}

Splitter::Piece Splitter::cut(Value value, const Part &wanted) {
  if (partOf(value).kind != Part::Whole ||
      !pieceType(value.getType(), wanted, samples()))
    return {};
  auto [it, isNew] =
      cuts.try_emplace({value, {wanted.dim, wanted.runs}}, Piece());
  if (!isNew)
    return it->second;
  Operation *op = value.getDefiningOp();
  if (!op || op->getNumResults() != 1)
    return {};
  Piece result;
  RankedTensorType type = pieceType(value.getType(), wanted, samples());
  Part part = Part::along(wanted.dim, wanted.runs);
  if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
    result = cutConstant(constant, wanted);
  } else if (auto iota = dyn_cast<IotaOp>(op)) {
    int64_t size = tensorType(value).getDimSize(wanted.dim);
    bool isAlong = int64_t(iota.getDim()) == wanted.dim;
    if (isAlong)
      part.shift = size / shares.batch;
    if (!isAlong || (wanted.runs == 1 && size % shares.batch == 0))
      result = {IotaOp::create(b, op->getLoc(), type, iota.getDimAttr()), part};
  } else if (auto broadcast = dyn_cast<BroadcastOp>(op);
             broadcast &&
             !llvm::is_contained(broadcast.getDims(), wanted.dim)) {
    result = {BroadcastOp::create(b, op->getLoc(), type,
                                  inBody(broadcast.getInput()),
                                  broadcast.getDims()),
              part};
  } else if (op->getNumOperands() > 0) {
    SmallVector<Part> rejoins;
    if (Operation *made = tryCut(op, wanted, rejoins))
      result = {made->getResult(0), rejoins[0]};
  }
  return cuts[{value, {wanted.dim, wanted.runs}}] = result;
}

//===----------------------------------------------------------------------===//
// The body
//===----------------------------------------------------------------------===//

void Splitter::declare() {
  SmallVector<Type> types;
  for (BlockArgument arg : whole.getArguments()) {
    types.push_back(arg.getType());
    if (!train::isCut(whole, arg.getArgNumber()))
      continue;
    parts[arg] = Part::along(0);
    types.back() = pieceType(arg.getType(), parts[arg], samples());
  }
  b.setInsertionPoint(whole);
  body = func::FuncOp::create(b, whole.getLoc(), name,
                              b.getFunctionType(types, {}));
  Block *block = body.addEntryBlock();
  for (auto [from, to] : llvm::zip(whole.getArguments(), body.getArguments())) {
    map.map(from, to);
    to.setLoc(from.getLoc());
  }
  for (Value fact : facts)
    addFact(fact);
  b.setInsertionPointToEnd(block);
}

LogicalResult Splitter::visitLinear(Operation *op, bool &done) {
  auto sum = [&](unsigned i) {
    return partOf(op->getOperand(i)).kind == Part::Sum;
  };
  auto finish = [&](ArrayRef<Value> operands) {
    Operation *made = op->clone();
    for (auto [i, operand] : llvm::enumerate(operands))
      made->setOperand(i, operand);
    b.insert(made);
    map.map(op->getResult(0), made->getResult(0));
    parts[op->getResult(0)] = {Part::Sum};
    done = true;
    return success();
  };
  if (op->getNumResults() != 1)
    return success();
  if (auto linear = dyn_cast<LinearOpInterface>(op);
      linear && linear.isLinear())
    return finish({map.lookup(op->getOperand(0))});
  if (isa<arith::AddFOp, arith::SubFOp, arith::AddIOp, arith::SubIOp>(op)) {
    if (sum(0) && sum(1))
      return finish(
          {map.lookup(op->getOperand(0)), map.lookup(op->getOperand(1))});
    unsigned other = sum(0) ? 1 : 0;
    if (partOf(op->getOperand(other)).kind == Part::Concat ||
        isa<arith::AddIOp, arith::SubIOp>(op))
      return success();
    // A term that doesn't depend on the batch is added once, in shares of the
    // samples.
    SmallVector<Value> operands(2);
    operands[1 - other] = map.lookup(op->getOperand(1 - other));
    operands[other] = nn::scale(b, op->getLoc(), inBody(op->getOperand(other)),
                                double(mine) / double(shares.batch));
    return finish(operands);
  }
  bool product = isa<arith::MulFOp>(op);
  if (!product && !isa<arith::DivFOp>(op))
    return success();
  // One factor stays a sum; if the other is a sum, it becomes a fact.
  for (unsigned i : {0u, 1u}) {
    Value other = op->getOperand(1 - i);
    if (!sum(i) || (i == 1 && !product) || partOf(other).kind == Part::Concat ||
        (partOf(other).kind == Part::Sum && dependsOnParameter(other)))
      continue;
    SmallVector<Value> operands(2);
    operands[i] = map.lookup(op->getOperand(i));
    operands[1 - i] = inBody(other);
    return finish(operands);
  }
  return success();
}

/// Each piece has its own statistics, and updates the running ones in turn.
LogicalResult Splitter::visitBatchNorm(BatchNormOp op) {
  Part input = partOf(op.getInput());
  RankedTensorType type = tensorType(op.getInput());
  if (input.dim == (op.getChannelsLast() ? type.getRank() - 1 : 1))
    return refuse(op, "its channels hold the batch");
  for (Value operand : op->getOperands().drop_front())
    if (partOf(operand).kind != Part::Whole)
      return refuse(op, "its scale or shift depends on the batch");
  auto made = cast<BatchNormOp>(op->clone(map));
  made.getResult().setType(pieceType(type, input, samples()));
  b.insert(made);
  if (valuesPerChannel(made) == 1)
    return refuse(op, "a micro-batch has one value for each channel, which has "
                      "no variance");
  for (auto [from, to] : llvm::zip(op->getResults(), made->getResults())) {
    map.map(from, to);
    parts[from] = {Part::Own};
  }
  parts[op.getResult()] = input;
  return success();
}

std::optional<double> Splitter::decayOf(Value value, unsigned index) {
  auto norm = value.getDefiningOp<BatchNormOp>();
  if (!norm || partOf(value).kind != Part::Own)
    return std::nullopt;
  Value state = whole.getArgument(index);
  bool isItsMean = value == norm.getNewMean() && state == norm.getRunningMean();
  bool isItsVariance =
      value == norm.getNewVar() && state == norm.getRunningVar();
  if ((!isItsMean && !isItsVariance) || !state.hasOneUse())
    return std::nullopt;
  return 1 - norm.getMomentum().convertToDouble();
}

LogicalResult Splitter::visitPlain(Operation *op) {
  SmallVector<Part> rejoins;
  Operation *made = tryCut(op, std::nullopt, rejoins);
  if (!made)
    return refuse(op, why);
  for (auto [from, to, part] :
       llvm::zip(op->getResults(), made->getResults(), rejoins)) {
    map.map(from, to);
    parts[from] = part;
  }
  return success();
}

LogicalResult Splitter::visit(Operation *op) {
  for (Value operand : op->getOperands())
    if (partOf(operand).kind == Part::Own)
      return refuse(op, "it reads the statistics of one micro-batch");
  if (auto norm = dyn_cast<BatchNormOp>(op);
      norm && ownStatistics && partOf(norm.getInput()).kind == Part::Concat)
    return visitBatchNorm(norm);
  bool sums = false, factual = op->getNumOperands() > 0;
  for (Value operand : op->getOperands()) {
    Part::Kind kind = partOf(operand).kind;
    sums |= kind == Part::Sum;
    factual &= kind != Part::Concat && !dependsOnParameter(operand);
  }
  if (sums) {
    bool done = false;
    if (failed(visitLinear(op, done)))
      return failure();
    if (done)
      return success();
    for (Value operand : op->getOperands())
      if (partOf(operand).kind == Part::Sum && dependsOnParameter(operand))
        return refuse(op, "it isn't linear in a sum over the batch that "
                          "depends on parameters");
  }
  bool known = sums || llvm::any_of(op->getOperands(), [&](Value operand) {
                 return partOf(operand).kind == Part::Fact;
               });
  if (known && factual && isPure(op) &&
      llvm::all_of(op->getResultTypes(), [](Type type) {
        return cast<RankedTensorType>(type).getRank() == 0;
      })) {
    if (onRanks)
      cloneFact(op);
    else
      for (Value result : op->getResults())
        parts[result] = {Part::Fact};
    return success();
  }
  return visitPlain(op);
}

LogicalResult Splitter::gatherResults() {
  Operation *ret = whole.front().getTerminator();
  std::optional<unsigned> loss = train::lossResult(whole);
  for (auto [i, value] : llvm::enumerate(ret->getOperands())) {
    Part part = partOf(value);
    NamedAttrList attrs(whole.getResultAttrDict(i));
    if (std::optional<unsigned> state = train::updatedArg(whole, i)) {
      std::optional<double> decay = decayOf(value, *state);
      if (!decay)
        return refuse(value.getDefiningOp() ? value.getDefiningOp() : ret,
                      "it updates a state, once for the whole batch");
      attrs.set(kDecay, b.getF64FloatAttr(*decay));
    } else if (loss && i == *loss) {
      if (part.kind != Part::Sum)
        return refuse(value.getDefiningOp() ? value.getDefiningOp() : ret,
                      "the loss isn't a sum over the batch");
    } else if (part.kind == Part::Sum || part.kind == Part::Fact ||
               part.kind == Part::Own || !part.isPlain()) {
      continue; // Only the whole batch has it.
    } else if (part.isCut() && !onRanks) {
      attrs.set(kConcat, b.getI64IntegerAttr(part.dim));
    }
    results.push_back(map.lookup(value));
    resultAttrs.push_back(attrs.getDictionary(whole.getContext()));
  }
  return success();
}

void Splitter::close() {
  for (size_t i = body.front().getNumArguments() - whole.getNumArguments();
       i < facts.size(); ++i)
    addFact(facts[i]);
  b.setInsertionPointToEnd(&body.front());
  func::ReturnOp::create(b, whole.front().getTerminator()->getLoc(), results);

  // Erases unused ops: of sums that became facts, and of pieces that were
  // tried.
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(body.front())))
    if (isOpTriviallyDead(&op))
      op.erase();

  SmallVector<Attribute> argAttrs;
  for (unsigned i = 0; i < whole.getNumArguments(); ++i)
    argAttrs.push_back(whole.getArgAttrDict(i) ? whole.getArgAttrDict(i)
                                               : b.getDictionaryAttr({}));
  for (size_t i = 0; i < facts.size(); ++i)
    argAttrs.push_back(b.getDictionaryAttr(
        {b.getNamedAttr(
             TrainDialect::kRole,
             train::RoleAttr::get(whole.getContext(), train::Role::Scalar)),
         b.getNamedAttr(TrainDialect::kName,
                        b.getStringAttr("batch_fact." + Twine(i)))}));
  body.setType(b.getFunctionType(body.front().getArgumentTypes(),
                                 ValueRange(results).getTypes()));
  for (NamedAttribute attr : whole->getDiscardableAttrs())
    body->setDiscardableAttr(attr.getName(), attr.getValue());
  body.setArgAttrsAttr(b.getArrayAttr(argAttrs));
  body.setResAttrsAttr(b.getArrayAttr(resultAttrs));
}

LogicalResult Splitter::run() {
  declare();
  for (Operation &op : whole.front().without_terminator())
    if (failed(visit(&op)))
      return failure();
  return gatherResults();
}
