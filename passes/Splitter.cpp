#include "passes/Splitter.h"

#include "passes/raise/Matchers.h"

#include "dialects/interfaces/Fault.h"
#include "dialects/nn/Builders.h"

#include "mlir/IR/Matchers.h"
#include "mlir/IR/Verifier.h"

using namespace mlir;
using namespace tmc;
using namespace tmc::nn;
using train::TrainDialect;

RankedTensorType Splitter::pieceType(Type type, int64_t dim) {
  auto tensor = cast<RankedTensorType>(type);
  SmallVector<int64_t> shape(tensor.getShape());
  shape[dim] = shape[dim] * mine / shares.batch;
  return RankedTensorType::get(shape, tensor.getElementType());
}

LogicalResult Splitter::refuse(Operation *op, const Twine &why) {
  InFlightDiagnostic diag = emitFault(op->getLoc(), Fault::Unsupported)
                            << "can't be computed in " << shares.pieces()
                            << " micro-batches: " << why;
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
  for (auto [i, fact] : llvm::enumerate(facts))
    if (fact == value)
      return body.getArgument(whole.getNumArguments() + i);
  facts.push_back(value);
  addFact(value);
  return body.front().getArguments().back();
}

void Splitter::addFact(Value fact) {
  body.front().addArgument(fact.getType(), fact.getLoc());
}

//===----------------------------------------------------------------------===//
// Cutting ops
//===----------------------------------------------------------------------===//

Operation *Splitter::cloneCut(Operation *op, ArrayRef<int64_t> dims,
                              ArrayRef<Value> operands,
                              SmallVector<Rejoin> &rejoins) {
  BatchSplit split;
  if (llvm::all_of(dims, [](int64_t dim) { return dim < 0; })) {
    split.results.assign(op->getNumResults(), Rejoin::whole());
  } else if (auto interface = dyn_cast<BatchSplitOpInterface>(op)) {
    split = interface.getSplit(dims);
  } else {
    split = BatchSplit::refuse("it doesn't say how it is cut");
  }
  if (!split) {
    why = split.refusal;
    return nullptr;
  }
  IRMapping local;
  for (auto [operand, value] : llvm::zip(op->getOperands(), operands))
    local.map(operand, value);
  Operation *made = op->cloneWithoutRegions(local);
  for (auto [i, operand] : llvm::enumerate(operands))
    made->setOperand(i, operand); // One operand may be cut in two ways.
  for (auto [result, rejoin] : llvm::zip(made->getResults(), split.results))
    if (rejoin.kind == Rejoin::Concat)
      result.setType(pieceType(result.getType(), rejoin.dim));
  b.insert(made);
  ScopedDiagnosticHandler quiet(op->getContext(),
                                [](Diagnostic &) { return success(); });
  if (op->getNumRegions() != 0 || failed(mlir::verify(made))) {
    made->erase();
    why = "what it takes beside the batch is one for all samples";
    return nullptr;
  }
  rejoins = split.results;
  return made;
}

Operation *Splitter::tryCut(Operation *op, std::optional<int64_t> wanted,
                            SmallVector<Rejoin> &rejoins) {
  unsigned n = op->getNumOperands();
  SmallVector<int64_t> dims(n, -1);
  SmallVector<Value> operands(n);
  for (unsigned i = 0; i < n; ++i) {
    dims[i] = partOf(op->getOperand(i)).dim;
    operands[i] = inBody(op->getOperand(i));
  }
  auto accept = [&]() -> Operation * {
    Operation *made = cloneCut(op, dims, operands, rejoins);
    if (!made || !wanted ||
        (rejoins[0].kind == Rejoin::Concat && rejoins[0].dim == *wanted))
      return made;
    made->erase();
    return nullptr;
  };
  if (!wanted)
    if (Operation *made = accept())
      return made;
  std::string first = why;

  // Every choice of a dimension, or none, for each operand that is whole.
  std::function<Operation *(unsigned)> choose = [&](unsigned i) -> Operation * {
    if (i == n)
      return accept();
    if (dims[i] >= 0)
      return choose(i + 1);
    auto type = dyn_cast<RankedTensorType>(op->getOperand(i).getType());
    if (!type)
      return nullptr;
    Value uncut = operands[i];
    for (int64_t dim = 0; dim < type.getRank(); ++dim) {
      if (type.getDimSize(dim) * mine % shares.batch != 0)
        continue;
      Value piece = cut(op->getOperand(i), dim);
      if (!piece)
        continue;
      dims[i] = dim;
      operands[i] = piece;
      if (Operation *made = choose(i + 1))
        return made;
    }
    dims[i] = -1;
    operands[i] = uncut;
    return choose(i + 1);
  };
  // A pointwise op leaves no choice.
  std::optional<int64_t> dim = wanted;
  for (unsigned i = 0; i < n; ++i)
    if (dims[i] >= 0)
      dim = dims[i];
  if (isPointwise(op) && dim) {
    for (unsigned i = 0; i < n; ++i) {
      if (dims[i] >= 0)
        continue;
      dims[i] = *dim;
      operands[i] = cut(op->getOperand(i), *dim);
      if (!operands[i]) {
        why = first;
        return nullptr;
      }
    }
    return accept();
  }
  Operation *made = choose(0);
  if (!made)
    why = first;
  return made;
}

Value Splitter::cutConstant(arith::ConstantOp op, int64_t dim) {
  auto attr = dyn_cast<DenseElementsAttr>(op.getValue());
  if (!attr)
    return {};
  RankedTensorType type = pieceType(op.getType(), dim);
  if (attr.isSplat())
    return arith::ConstantOp::create(b, op.getLoc(), attr.resizeSplat(type));
  // All pieces must be the first, or as much of it as they have.
  ArrayRef<int64_t> shape = cast<RankedTensorType>(op.getType()).getShape();
  int64_t inner = llvm::product_of(shape.drop_front(dim + 1));
  int64_t run = shape[dim] * inner;
  int64_t period = run * shares.rows / shares.batch;
  int64_t piece = run * mine / shares.batch;
  auto all = attr.getValues<Attribute>();
  SmallVector<Attribute> kept;
  for (int64_t i = 0; i < attr.getNumElements(); ++i) {
    int64_t inRun = i % run;
    if (inRun < piece)
      kept.push_back(all[i]);
    if (all[i] != all[i - inRun + inRun % period])
      return {};
  }
  return arith::ConstantOp::create(b, op.getLoc(),
                                   DenseElementsAttr::get(type, kept));
}

Value Splitter::cut(Value value, int64_t dim) {
  if (partOf(value).kind != Part::Whole)
    return {};
  auto [it, isNew] = cuts.try_emplace({value, dim}, Value());
  if (!isNew)
    return it->second;
  Operation *op = value.getDefiningOp();
  if (!op || op->getNumResults() != 1)
    return {};
  Value result;
  RankedTensorType type = pieceType(value.getType(), dim);
  if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
    result = cutConstant(constant, dim);
  } else if (auto iota = dyn_cast<IotaOp>(op)) {
    if (int64_t(iota.getDim()) != dim)
      result = IotaOp::create(b, op->getLoc(), type, iota.getDimAttr());
  } else if (auto broadcast = dyn_cast<BroadcastOp>(op);
             broadcast && !llvm::is_contained(broadcast.getDims(), dim)) {
    result =
        BroadcastOp::create(b, op->getLoc(), type, inBody(broadcast.getInput()),
                            broadcast.getDims());
  } else if (op->getNumOperands() > 0) {
    SmallVector<Rejoin> rejoins;
    if (Operation *made = tryCut(op, dim, rejoins))
      result = made->getResult(0);
  }
  return cuts[{value, dim}] = result;
}

//===----------------------------------------------------------------------===//
// The body
//===----------------------------------------------------------------------===//

void Splitter::declare() {
  SmallVector<Type> types;
  for (BlockArgument arg : whole.getArguments()) {
    types.push_back(arg.getType());
    if (train::roleOf(whole, arg.getArgNumber()) != train::Role::Batch)
      continue;
    types.back() = pieceType(arg.getType(), 0);
    parts[arg] = {Part::Concat, 0};
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
    parts[op->getResult(0)] = {Part::Sum, -1};
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
    // What doesn't depend on the batch is added once, in shares of the samples.
    SmallVector<Value> operands(2);
    operands[1 - other] = map.lookup(op->getOperand(1 - other));
    operands[other] = nn::scale(b, op->getLoc(), inBody(op->getOperand(other)),
                                double(mine) / double(shares.batch));
    return finish(operands);
  }
  bool product = isa<arith::MulFOp>(op);
  if (!product && !isa<arith::DivFOp>(op))
    return success();
  // One factor stays a sum; another sum is a fact.
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

/// Each piece's statistics are its own, and move the running ones in turn.
LogicalResult Splitter::visitBatchNorm(BatchNormOp op) {
  Part input = partOf(op.getInput());
  RankedTensorType type = tensorType(op.getInput());
  if (input.dim == (op.getChannelsLast() ? type.getRank() - 1 : 1))
    return refuse(op, "its channels hold the batch");
  for (Value operand : op->getOperands().drop_front())
    if (partOf(operand).kind != Part::Whole)
      return refuse(op, "its scale or shift depends on the batch");
  auto made = cast<BatchNormOp>(op->clone(map));
  made.getResult().setType(pieceType(type, input.dim));
  b.insert(made);
  for (auto [from, to] : llvm::zip(op->getResults(), made->getResults())) {
    map.map(from, to);
    parts[from] = {Part::Own, -1};
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
  SmallVector<Rejoin> rejoins;
  Operation *made = tryCut(op, std::nullopt, rejoins);
  if (!made)
    return refuse(op, why);
  for (auto [from, to, rejoin] :
       llvm::zip(op->getResults(), made->getResults(), rejoins)) {
    map.map(from, to);
    parts[from] = rejoin.kind == Rejoin::Concat ? Part{Part::Concat, rejoin.dim}
                  : rejoin.kind == Rejoin::Sum  ? Part{Part::Sum, -1}
                                                : Part{};
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
    for (Value result : op->getResults())
      parts[result] = {Part::Fact, -1};
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
               part.kind == Part::Own) {
      continue; // A number of the whole batch, which no piece has.
    } else if (part.kind == Part::Concat) {
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

  // What is left of sums that are facts, and of pieces that were tried.
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
