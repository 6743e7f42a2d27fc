#include "test/unit/passes/RandomGraph.h"

#include "dialects/nn/Builders.h"
#include "dialects/train/Train.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/Verifier.h"

using namespace mlir;
using namespace tmc;
using namespace tmc::test;
using train::TrainDialect;

/// Larger tensors would only cost time.
constexpr int64_t kMostElements = 200;

GraphBuilder::GraphBuilder(MLIRContext &context, uint64_t seed,
                           const GraphOptions &options)
    : b(&context), loc(b.getUnknownLoc()), random(seed), options(options),
      module(ModuleOp::create(b, loc)) {
  b.setInsertionPointToStart(module->getBody());
  function = func::FuncOp::create(b, loc, "forward", b.getFunctionType({}, {}));
  block = function.addEntryBlock();
  b.setInsertionPointToStart(block);
}

Type GraphBuilder::element() const {
  return options.f32 ? Type(Float32Type::get(b.getContext()))
                     : Type(Float64Type::get(b.getContext()));
}

RankedTensorType GraphBuilder::tensor(Shape shape) const {
  return RankedTensorType::get(shape, element());
}

RankedTensorType GraphBuilder::tensor(Shape shape, Type element) const {
  return RankedTensorType::get(shape, element);
}

SmallVector<int64_t> GraphBuilder::shape(int64_t rank) {
  SmallVector<int64_t> result;
  for (int64_t dim = 0; dim < rank; ++dim)
    result.push_back(dim == 0 ? options.batch : size());
  return result;
}

Value GraphBuilder::argument(Type type, StringRef role, StringRef prefix,
                             int64_t below) {
  Value value = block->addArgument(type, loc);
  NamedAttrList attrs;
  attrs.set(TrainDialect::kRole,
            train::RoleAttr::get(b.getContext(), *train::symbolizeRole(role)));
  std::string name = prefix.str() + std::to_string(argAttrs.size());
  attrs.set(TrainDialect::kName, b.getStringAttr(name));
  if (below)
    attrs.set("test.below", b.getI64IntegerAttr(below));
  argAttrs.push_back(attrs);
  isBatch[value] = role == "batch";
  return value;
}

Value GraphBuilder::param(Shape shape) {
  return argument(tensor(shape), "param", "p");
}

Value GraphBuilder::state(Shape shape) {
  return argument(tensor(shape), "state", "s");
}

Value GraphBuilder::batch(RankedTensorType type, int64_t below) {
  return argument(type, "batch", "b", below);
}

Value GraphBuilder::seed() {
  if (!seedArgument)
    seedArgument = argument(tensor({2}, b.getI64Type()), "scalar", "seed", 100);
  return seedArgument;
}

Value GraphBuilder::samples(int64_t count) {
  Value &value = samplesOf[count];
  if (!value)
    value = batch(tensor({count}, b.getI64Type()), 1000);
  return value;
}

/// Constants of every kind that a frontend makes.
Value GraphBuilder::anyConstant(RankedTensorType type) {
  constexpr double kNumbers[] = {0, 1, -1, 0.5, 3, -2.25};
  switch (random.below(4)) {
  case 0: { // a table
    SmallVector<Attribute> values;
    for (int64_t i = 0; i < type.getNumElements(); ++i)
      values.push_back(b.getFloatAttr(type.getElementType(), number(-2, 2)));
    return arith::ConstantOp::create(b, loc,
                                     DenseElementsAttr::get(type, values));
  }
  case 1: { // positions
    auto whole = type.clone(b.getI64Type());
    Value positions =
        nn::IotaOp::create(b, loc, whole, random.below(type.getRank()));
    return arith::SIToFPOp::create(b, loc, type, positions);
  }
  default:
    return nn::splat(b, loc, type, kNumbers[random.below(std::size(kNumbers))]);
  }
}

Value GraphBuilder::pick(int64_t rank) {
  if (options.constants && random.below(3) == 0)
    return anyConstant(tensor(shape(rank > 0 ? rank : random.between(1, 5))));
  SmallVector<Value> fitting;
  for (Value value : pool)
    if (rank < 0 || nn::tensorType(value).getRank() == rank)
      fitting.push_back(value);
  // Rather what is young: graphs become deep, not only wide.
  if (!fitting.empty() && random.below(4) != 0) {
    int64_t back =
        std::min(random.below(fitting.size()), random.below(fitting.size()));
    return fitting[fitting.size() - 1 - back];
  }
  if (!fitting.empty() && random.coin())
    return fitting[random.below(fitting.size())];
  if (rank < 0)
    rank = random.between(1, 5);
  Value value = batch(tensor(shape(rank)));
  add(value);
  return value;
}

Value GraphBuilder::like(Value x) {
  RankedTensorType type = nn::tensorType(x);
  if (options.constants && type.getRank() > 0 && random.below(3) == 0)
    return anyConstant(type);
  SmallVector<Value> fitting;
  for (Value value : pool)
    if (value.getType() == type && isBatch[value] == isBatch[x])
      fitting.push_back(value);
  if (!fitting.empty() && random.below(3) != 0)
    return fitting[random.below(fitting.size())];
  if (type.getRank() > 0 && random.coin())
    return nn::broadcastTrailing(b, loc, param({type.getShape().back()}), type);
  return isBatch[x] && type.getRank() > 0 ? batch(type)
                                          : param(type.getShape());
}

Value GraphBuilder::constant(Value like, double value) {
  return nn::splat(b, loc, like.getType(), value);
}

Value GraphBuilder::squash(Value x) { return math::TanhOp::create(b, loc, x); }

Value GraphBuilder::positive(Value x) {
  Value squashed = squash(math::AbsFOp::create(b, loc, x));
  return nn::add(b, loc, squashed, constant(x, 0.5));
}

/// True if a tensor that doesn't depend on the batch is the same along
/// dimension 0, so that it may meet one that is cut there.
static bool isSpread(Value value) {
  if (matchPattern(value, m_Constant()))
    return true;
  if (auto op = value.getDefiningOp<nn::BroadcastOp>())
    return op.getDims().empty() || op.getDims()[0] != 0;
  return false;
}

/// Says whether `op` leaves the batch in dimension 0, and notes which results
/// hold it.
bool GraphBuilder::keepsBatch(Operation *op) {
  auto split = dyn_cast<CutOpInterface>(op);
  if (!split)
    return false;
  SmallVector<int64_t> dims;
  for (Value operand : op->getOperands())
    dims.push_back(isBatch[operand] ? 0 : -1);
  bool any = llvm::is_contained(dims, 0);
  bool isPointwise =
      isa<arith::ArithDialect, math::MathDialect>(op->getDialect());
  for (auto [operand, dim] : llvm::zip(op->getOperands(), dims)) {
    if (!any || !isPointwise || dim == 0)
      continue;
    if (!isSpread(operand))
      return false;
    dim = 0;
  }
  BatchSplit answer = split.getSplit(dims);
  if (!answer)
    return false;
  for (auto [result, how] : llvm::zip(op->getResults(), answer.results)) {
    if (llvm::is_contained(losses, result)) {
      if (how.kind != Rejoin::Sum)
        return false; // each micro-batch would count it again
      continue;
    }
    if (how.kind == Rejoin::Sum ||
        (how.kind == Rejoin::Concat &&
         (how.dim != 0 ||
          nn::tensorType(result).getDimSize(0) % options.batch != 0)))
      return false;
    isBatch[result] = how.kind == Rejoin::Concat;
  }
  return true;
}

/// Applies a rule; takes back what it added if that isn't wanted.
bool GraphBuilder::applyRule() {
  Operation *before = block->empty() ? nullptr : &block->back();
  size_t lossCount = losses.size(), updateCount = updates.size();
  unsigned argCount = block->getNumArguments();
  ArrayRef<Rule> rules = allRules();
  if (options.exported && random.coin())
    rules = exportRules();
  if (options.narrow && random.coin())
    rules = narrowRules();
  rules[random.below(rules.size())](*this);

  bool wanted = true;
  for (Operation *op = before ? before->getNextNode()
                              : (block->empty() ? nullptr : &block->front());
       op && wanted; op = op->getNextNode()) {
    for (Type type : op->getResultTypes())
      wanted &= cast<ShapedType>(type).getNumElements() <= kMostElements;
    if (options.batchSafe && wanted)
      wanted = keepsBatch(op);
  }
  if (wanted)
    return true;
  while (!block->empty() && &block->back() != before) {
    Operation *op = &block->back();
    llvm::erase_if(pool, [&](Value v) { return v.getDefiningOp() == op; });
    op->erase();
  }
  for (unsigned i = argCount; i < block->getNumArguments(); ++i) {
    Value argument = block->getArgument(i);
    llvm::erase(pool, argument);
    isBatch.erase(argument);
    for (auto &[count, value] : samplesOf)
      if (value == argument)
        value = Value();
    if (seedArgument == argument)
      seedArgument = Value();
  }
  block->eraseArguments(argCount, block->getNumArguments() - argCount);
  argAttrs.truncate(argCount);
  losses.truncate(lossCount);
  updates.truncate(updateCount);
  return false;
}

void GraphBuilder::close() {
  // Everything that nothing uses is a leaf of the loss.
  SmallVector<Value> leaves;
  for (Value value : pool)
    if (value.use_empty() && (!options.batchSafe || isBatch[value]))
      leaves.push_back(value);
  if (leaves.empty())
    leaves.push_back(pool.back());
  for (Value leaf : leaves) {
    RankedTensorType type = nn::tensorType(leaf);
    Value share = constant(leaf, 1.0 / type.getNumElements());
    Value term = nn::mul(b, loc, squash(leaf), share);
    addLoss(nn::reduceSum(b, loc, term, nn::firstDims(type.getRank())));
  }
  Value loss = losses[0];
  for (Value term : ArrayRef<Value>(losses).drop_front())
    loss = nn::add(b, loc, loss, term);

  SmallVector<Value> results{loss};
  SmallVector<DictionaryAttr> attrs;
  NamedAttrList lossAttrs;
  lossAttrs.set(TrainDialect::kLoss, b.getUnitAttr());
  lossAttrs.set(TrainDialect::kName, b.getStringAttr("loss"));
  attrs.push_back(lossAttrs.getDictionary(b.getContext()));
  for (auto [value, state] : updates) {
    NamedAttrList update;
    unsigned index = cast<BlockArgument>(state).getArgNumber();
    update.set(TrainDialect::kUpdates, b.getI64IntegerAttr(index));
    update.set(TrainDialect::kName, argAttrs[index].get(TrainDialect::kName));
    results.push_back(value);
    attrs.push_back(update.getDictionary(b.getContext()));
  }
  for (int64_t i = 0, e = random.below(3); i < e; ++i) {
    NamedAttrList output;
    output.set(TrainDialect::kName, b.getStringAttr("out" + std::to_string(i)));
    results.push_back(pool[random.below(pool.size())]);
    attrs.push_back(output.getDictionary(b.getContext()));
  }
  func::ReturnOp::create(b, loc, results);
  function.setFunctionType(b.getFunctionType(block->getArgumentTypes(),
                                             TypeRange(ValueRange(results))));
  SmallVector<Attribute> arguments, outputs(attrs.begin(), attrs.end());
  for (NamedAttrList &list : argAttrs)
    arguments.push_back(list.getDictionary(b.getContext()));
  function.setArgAttrsAttr(b.getArrayAttr(arguments));
  function.setResAttrsAttr(b.getArrayAttr(outputs));
}

OwningOpRef<ModuleOp> GraphBuilder::build() {
  // There is always something to train.
  Value x = batch(tensor(shape(2)));
  Value w = param({nn::tensorType(x).getDimSize(1), size()});
  add(nn::MatmulOp::create(b, loc, x, w));
  isBatch[pool.back()] = true;
  for (int64_t applied = 0; applied < options.rules;)
    applied += applyRule();
  close();
  if (failed(verify(*module)))
    llvm::report_fatal_error("a random graph isn't valid");
  return std::move(module);
}

OwningOpRef<ModuleOp> tmc::test::randomGraph(MLIRContext &context,
                                             uint64_t seed,
                                             const GraphOptions &options) {
  return GraphBuilder(context, seed, options).build();
}
