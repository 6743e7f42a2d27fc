// Loss.cpp - cross-entropies, whole and in chunks.

#include "dialects/nn/Builders.h"
#include "dialects/nn/NN.h"

#include "runtime/kernels/CrossEntropy.h"

using namespace mlir;
using namespace tmc;
using namespace tmc::nn;

/// C1 of the losses: one label per row, and scalars and lse in the accumulation
/// type.
static LogicalResult checkLoss(std::optional<Location> loc, int64_t rows,
                               Type element, Value labels, Value scalar,
                               Value lse) {
  Type sums = accumulationType(element);
  if (tensorType(labels).getShape() != ArrayRef<int64_t>{rows})
    return emitOptionalError(loc, rows, " rows and labels of type ",
                             labels.getType());
  if (scalar.getType() != RankedTensorType::get({}, sums))
    return emitOptionalError(loc, "the weight of the loss is ",
                             scalar.getType(), ", no scalar of ", sums);
  if (lse && lse.getType() != RankedTensorType::get({rows}, sums))
    return emitOptionalError(loc, rows, " rows and log-sum-exps of type ",
                             lse.getType());
  return success();
}

static void lossTypes(int64_t rows, Type element,
                      SmallVectorImpl<Type> &results) {
  Type sums = accumulationType(element);
  results.push_back(RankedTensorType::get({}, sums));
  results.push_back(RankedTensorType::get({rows}, sums));
}

/// The gradient of the loss times the loss's weight.
static Value lossScale(OpBuilder &b, Location loc, Value dloss, Value weight) {
  return mul(b, loc, dloss, weight);
}

/// The cut of the rows, of the operands `rowOperands`. Losses are added up, as
/// gradients of a table are. Columns aren't cut: a label counts all of them.
static OpCuts lossCuts(Operation *op, ArrayRef<unsigned> rowOperands,
                       ArrayRef<Rejoin> results, bool hasAcc = false) {
  OpCuts cuts(op, "its weights depend on the batch, or its rows don't hold the "
                  "batch");
  SmallVector<int64_t> operands(op->getNumOperands(), OpCut::kWhole);
  for (unsigned index : rowOperands)
    operands[index] = 0;
  if (hasAcc)
    operands.back() = OpCut::kOnFirst;
  cuts.add(operands, results);
  return cuts;
}

//===----------------------------------------------------------------------===//
// nn.cross_entropy
//===----------------------------------------------------------------------===//

/// C2 of the losses, C6 of those in chunks.
static LogicalResult checkVocabulary(std::optional<Location> loc,
                                     std::optional<uint64_t> vocabulary,
                                     int64_t columns) {
  if (vocabulary &&
      (int64_t(*vocabulary) <= 0 || int64_t(*vocabulary) > columns))
    return emitOptionalError(loc, "has ", int64_t(*vocabulary),
                             " classes in rows of ", columns);
  return success();
}

static LogicalResult checkLogits(std::optional<Location> loc, Value logits,
                                 std::optional<uint64_t> vocabulary) {
  if (tensorType(logits).getRank() != 2) // C1
    return emitOptionalError(loc, "wants logits [rows, classes], and has ",
                             logits.getType());
  return checkVocabulary(loc, vocabulary, tensorType(logits).getDimSize(1));
}

LogicalResult CrossEntropyOp::inferReturnTypes(MLIRContext *context,
                                               std::optional<Location> loc,
                                               Adaptor op,
                                               SmallVectorImpl<Type> &results) {
  if (failed(checkLogits(loc, op.getLogits(), op.getVocabulary())))
    return failure();
  auto logits = cast<RankedTensorType>(op.getLogits().getType());
  int64_t rows = logits.getDimSize(0);
  if (failed(checkLoss(loc, rows, logits.getElementType(), op.getLabels(),
                       op.getWeight(), Value()))) // C1
    return failure();
  lossTypes(rows, logits.getElementType(), results);
  return success();
}

int64_t CrossEntropyOp::getFlops() {
  return 4 * tensorType(getLogits()).getNumElements();
}

SmallVector<Value> CrossEntropyOp::buildVjp(OpBuilder &b, ArrayRef<Value> grads,
                                            ArrayRef<bool> wanted) {
  SmallVector<Value> result(getNumOperands());
  if (!grads[0])
    return result;
  if (wanted[0])
    result[0] = CrossEntropyGradOp::create(
        b, getLoc(), getLogits(), getLabels(), getLse(),
        lossScale(b, getLoc(), grads[0], getWeight()), getIgnoreIndexAttr(),
        getVocabularyAttr());
  if (wanted[2]) // loss is weight times a sum.
    result[2] =
        mul(b, getLoc(), grads[0], div(b, getLoc(), getLoss(), getWeight()));
  return result;
}

OpCuts CrossEntropyOp::getCuts() {
  return lossCuts(*this, {0, 1}, {Rejoin::sum(), Rejoin::concat(0)});
}

template <typename Kernel>
static KernelCall
crossEntropyKernel(Value logits, Value labels, int64_t ignoreIndex,
                   std::optional<uint64_t> vocabulary, Backend backend) {
  RankedTensorType type = tensorType(logits);
  const int64_t columns = type.getDimSize(1);
  return KernelCall::of<Kernel>(
      logits.getContext(),
      {.type = runtimeType(type),
       .labelType = runtimeType(labels.getType()),
       .rows = type.getDimSize(0),
       .vocabulary = int64_t(vocabulary.value_or(columns)),
       .ignoreIndex = ignoreIndex,
       .columns = vocabulary ? columns : 0},
      backend);
}

KernelCall CrossEntropyOp::getKernel(ArrayRef<MemRefType> inputs,
                                     Backend backend) {
  return crossEntropyKernel<CrossEntropy>(
      getLogits(), getLabels(), getIgnoreIndex(), getVocabulary(), backend);
}

LogicalResult
CrossEntropyGradOp::inferReturnTypes(MLIRContext *context,
                                     std::optional<Location> loc, Adaptor op,
                                     SmallVectorImpl<Type> &results) {
  if (failed(checkLogits(loc, op.getLogits(), op.getVocabulary())))
    return failure();
  auto logits = cast<RankedTensorType>(op.getLogits().getType());
  if (failed(checkLoss(loc, logits.getDimSize(0), logits.getElementType(),
                       op.getLabels(), op.getScale(), op.getLse()))) // C1
    return failure();
  results.push_back(logits);
  return success();
}

int64_t CrossEntropyGradOp::getFlops() {
  return 3 * tensorType(getLogits()).getNumElements();
}

OpCuts CrossEntropyGradOp::getCuts() {
  return lossCuts(*this, {0, 1, 2}, Rejoin::concat(0));
}

SmallVector<std::pair<unsigned, unsigned>> CrossEntropyGradOp::getOverwrites() {
  return {{0, 0}};
}

KernelCall CrossEntropyGradOp::getKernel(ArrayRef<MemRefType> inputs,
                                         Backend backend) {
  return crossEntropyKernel<CrossEntropyGrad>(
      getLogits(), getLabels(), getIgnoreIndex(), getVocabulary(), backend);
}

LogicalResult CrossEntropyWithGradOp::inferReturnTypes(
    MLIRContext *context, std::optional<Location> loc, Adaptor op,
    SmallVectorImpl<Type> &results) {
  if (failed(checkLogits(loc, op.getLogits(), op.getVocabulary())))
    return failure();
  auto logits = cast<RankedTensorType>(op.getLogits().getType());
  for (Value scalar : {op.getWeight(), op.getScale()})
    if (failed(checkLoss(loc, logits.getDimSize(0), logits.getElementType(),
                         op.getLabels(), scalar, Value()))) // C1
      return failure();
  results.push_back(
      RankedTensorType::get({}, accumulationType(logits.getElementType())));
  results.push_back(logits);
  return success();
}

int64_t CrossEntropyWithGradOp::getFlops() {
  return 7 * tensorType(getLogits()).getNumElements();
}

OpCuts CrossEntropyWithGradOp::getCuts() {
  return lossCuts(*this, {0, 1}, {Rejoin::sum(), Rejoin::concat(0)});
}

SmallVector<std::pair<unsigned, unsigned>>
CrossEntropyWithGradOp::getOverwrites() {
  return {{0, 1}};
}

KernelCall CrossEntropyWithGradOp::getKernel(ArrayRef<MemRefType> inputs,
                                             Backend backend) {
  return crossEntropyKernel<CrossEntropyWithGrad>(
      getLogits(), getLabels(), getIgnoreIndex(), getVocabulary(), backend);
}

//===----------------------------------------------------------------------===//
// nn.linear_cross_entropy
//===----------------------------------------------------------------------===//

static LogicalResult checkLinear(std::optional<Location> loc, Value x,
                                 Value table, Value bias, int64_t chunk,
                                 bool tf32) {
  RankedTensorType tx = tensorType(x), tt = tensorType(table);
  Type multiplied = tx.getElementType();
  bool isReadAs =
      tt.getElementType().isF32() && multiplied.getIntOrFloatBitWidth() == 16;
  if (tx.getRank() != 2 || tt.getRank() != 2 ||
      tx.getDimSize(1) != tt.getDimSize(1) ||
      (multiplied != tt.getElementType() && !isReadAs) ||
      (tf32 && !multiplied.isF32())) // C1
    return emitOptionalError(loc, "wants x [rows, C] and a table [classes, C],",
                             " and has ", tx, " and ", tt);
  if (chunk <= 0) // C2
    return emitOptionalError(loc, "takes ", chunk, " rows at a time");
  if (bias &&
      bias.getType() !=
          RankedTensorType::get({tt.getDimSize(0)},
                                accumulationType(tt.getElementType()))) // C3
    return emitOptionalError(loc, "the bias is ", bias.getType(), " for ",
                             tt.getDimSize(0), " classes");
  return success();
}

/// C1 to C3 of the losses in chunks, for one of their scalars.
template <typename Adaptor>
static LogicalResult checkChunked(std::optional<Location> loc, Adaptor op,
                                  Value scalar, Value lse) {
  if (failed(checkLinear(loc, op.getX(), op.getTable(), op.getBias(),
                         op.getChunk(), op.getTf32())))
    return failure();
  auto table = cast<RankedTensorType>(op.getTable().getType());
  if (failed(checkVocabulary(loc, op.getVocabulary(), table.getDimSize(0))))
    return failure();
  auto x = cast<RankedTensorType>(op.getX().getType());
  return checkLoss(loc, x.getDimSize(0), x.getElementType(), op.getLabels(),
                   scalar, lse);
}

/// Adds the types of the gradients, which equal the types of the operands. The
/// results that are already in `results` must always be computed.
template <typename Adaptor>
static LogicalResult appendGradients(std::optional<Location> loc, Adaptor op,
                                     SmallVectorImpl<Type> &results) {
  int64_t next = results.size();
  auto table = cast<RankedTensorType>(op.getTable().getType());
  const Type dtable = table.clone(accumulationType(table.getElementType()));
  results.append({op.getX().getType(), dtable});
  if (op.getBias())
    results.push_back(op.getBias().getType());
  ArrayRef<int64_t> unread = op.getUnread().value_or(ArrayRef<int64_t>());
  for (int64_t number : unread) { // C4
    if (number < next || number >= int64_t(results.size()))
      return emitOptionalError(loc, "leaves out result ", number,
                               ", which is no gradient or comes twice");
    next = number + 1;
  }
  if (op.getAcc() && op.getAcc().getType() != dtable) // C5
    return emitOptionalError(loc, "adds a gradient of ", dtable, " to ",
                             op.getAcc().getType());
  if (op.getAcc() && op.getBias()) // C5
    return emitOptionalError(loc, "adds to a gradient of the table, and not to "
                                  "that of the bias");
  return success();
}

LogicalResult
LinearCrossEntropyOp::inferReturnTypes(MLIRContext *context,
                                       std::optional<Location> loc, Adaptor op,
                                       SmallVectorImpl<Type> &results) {
  if (failed(checkChunked(loc, op, op.getWeight(), Value())))
    return failure();
  auto x = cast<RankedTensorType>(op.getX().getType());
  lossTypes(x.getDimSize(0), x.getElementType(), results);
  return success();
}

static int64_t logitCount(Value x, Value table) {
  return tensorType(x).getDimSize(0) * tensorType(table).getDimSize(0);
}

/// The bytes that chunks move: `tablePasses` times the table (or its gradient)
/// per chunk, and `logitPasses` times each logit.
static int64_t chunkBytes(Value x, Value table, int64_t chunk,
                          int64_t tablePasses, int64_t logitPasses) {
  int64_t rows = tensorType(x).getDimSize(0);
  int64_t chunks = rows / chunk + (rows % chunk != 0);
  int64_t width =
      accumulationType(tensorType(x).getElementType()).getIntOrFloatBitWidth() /
      8;
  return chunks * tablePasses * sizeInBytes(table.getType()) +
         logitPasses * logitCount(x, table) * width + sizeInBytes(x.getType());
}

int64_t LinearCrossEntropyOp::getBytesMoved() {
  return chunkBytes(getX(), getTable(), getChunk(), 1, 2);
}

int64_t LinearCrossEntropyOp::getFlops() {
  return logitCount(getX(), getTable()) *
         (2 * tensorType(getX()).getDimSize(1) + 4);
}

SmallVector<Value> LinearCrossEntropyOp::buildVjp(OpBuilder &b,
                                                  ArrayRef<Value> grads,
                                                  ArrayRef<bool> wanted) {
  SmallVector<Value> result(getNumOperands());
  if (!grads[0])
    return result;
  if (wanted[0] || wanted[1] || (getBias() && wanted[4])) {
    auto grad = LinearCrossEntropyGradOp::create(
        b, getLoc(), getX(), getTable(), getLabels(), getLse(),
        lossScale(b, getLoc(), grads[0], getWeight()), getBias(),
        /*acc=*/Value(), getChunkAttr(), getIgnoreIndexAttr(),
        getVocabularyAttr(), /*unread=*/nullptr, getTf32Attr());
    result[0] = grad.getDx();
    result[1] = convertTo(b, getLoc(), grad.getDtable(),
                          tensorType(getTable()).getElementType());
    if (getBias())
      result[4] = grad.getDbias();
  }
  if (wanted[3])
    result[3] =
        mul(b, getLoc(), grads[0], div(b, getLoc(), getLoss(), getWeight()));
  return result;
}

OpCuts LinearCrossEntropyOp::getCuts() {
  return lossCuts(*this, {0, 2}, {Rejoin::sum(), Rejoin::concat(0)});
}

/// For the chunked losses: x and the table are multiplied, dx is rounded.
bool LinearCrossEntropyOp::takesTF32() { return true; }
bool LinearCrossEntropyGradOp::takesTF32() { return true; }
bool LinearCrossEntropyWithGradOp::takesTF32() { return true; }
/// A table of parameters is rounded when it is read.
static bool roundsTable(unsigned factor, bool onCard) {
  return factor == 1 && !onCard;
}
bool LinearCrossEntropyOp::roundsAsRead(unsigned factor, bool onCard) {
  return roundsTable(factor, onCard);
}
bool LinearCrossEntropyGradOp::roundsAsRead(unsigned factor, bool onCard) {
  return roundsTable(factor, onCard);
}
bool LinearCrossEntropyWithGradOp::roundsAsRead(unsigned factor, bool onCard) {
  return roundsTable(factor, onCard);
}
SmallVector<unsigned> LinearCrossEntropyOp::getFactors() { return {0, 1}; }
SmallVector<unsigned> LinearCrossEntropyOp::getRoundedResults() { return {}; }
SmallVector<unsigned> LinearCrossEntropyGradOp::getFactors() { return {0, 1}; }
SmallVector<unsigned> LinearCrossEntropyGradOp::getRoundedResults() {
  return {0};
}
SmallVector<unsigned> LinearCrossEntropyWithGradOp::getFactors() {
  return {0, 1};
}
SmallVector<unsigned> LinearCrossEntropyWithGradOp::getRoundedResults() {
  return {1};
}

template <typename Kernel>
static KernelCall linearKernel(Value x, Value table, Value labels, bool bias,
                               int64_t chunk, int64_t ignoreIndex,
                               std::optional<uint64_t> vocabulary, bool tf32,
                               Backend backend) {
  RankedTensorType type = tensorType(x);
  const int64_t columns = tensorType(table).getDimSize(0);
  auto call = KernelCall::of<Kernel>(
      x.getContext(),
      {.type = runtimeType(type),
       .table = runtimeType(table.getType()),
       .labelType = runtimeType(labels.getType()),
       .rows = type.getDimSize(0),
       .channels = type.getDimSize(1),
       .vocabulary = int64_t(vocabulary.value_or(columns)),
       .chunkRows = chunk,
       .ignoreIndex = ignoreIndex,
       .bias = bias,
       .tf32 = tf32,
       .columns = vocabulary ? columns : 0},
      backend);
  call.products = tf32 ? DType::TF32 : runtimeType(type);
  return call;
}

/// The kernel's operands. The accumulator is the last operand and the result's
/// own buffer, so it is left out.
static KernelCall withoutAccumulator(KernelOpInterface op, KernelCall call) {
  const int64_t last = op.getAccumulator();
  if (last >= 0)
    call.ins.append(llvm::to_vector(llvm::seq<int64_t>(0, last)));
  return call;
}

KernelCall LinearCrossEntropyOp::getKernel(ArrayRef<MemRefType> inputs,
                                           Backend backend) {
  return linearKernel<LinearCrossEntropy>(
      getX(), getTable(), getLabels(), bool(getBias()), getChunk(),
      getIgnoreIndex(), getVocabulary(), getTf32(), backend);
}

LogicalResult LinearCrossEntropyGradOp::inferReturnTypes(
    MLIRContext *context, std::optional<Location> loc, Adaptor op,
    SmallVectorImpl<Type> &results) {
  if (failed(checkChunked(loc, op, op.getScale(), op.getLse())))
    return failure();
  return appendGradients(loc, op, results);
}

static SmallVector<unsigned>
unreadResults(std::optional<ArrayRef<int64_t>> numbers) {
  return numbers ? SmallVector<unsigned>(numbers->begin(), numbers->end())
                 : SmallVector<unsigned>();
}

static bool isMade(Value gradient) {
  auto result = cast<OpResult>(gradient);
  return !llvm::is_contained(
      cast<KernelOpInterface>(result.getOwner()).getDroppableResults(),
      result.getResultNumber());
}

int64_t LinearCrossEntropyGradOp::getAccumulator() {
  return getAcc() ? int64_t(getNumOperands()) - 1 : -1;
}
unsigned LinearCrossEntropyGradOp::getAccumulated() {
  return cast<OpResult>(getDtable()).getResultNumber();
}
int64_t LinearCrossEntropyWithGradOp::getAccumulator() {
  return getAcc() ? int64_t(getNumOperands()) - 1 : -1;
}
unsigned LinearCrossEntropyWithGradOp::getAccumulated() {
  return cast<OpResult>(getDtable()).getResultNumber();
}

/// The products for the logits and for dx pass once over the table, that for
/// dtable twice over its accumulator.
template <typename OpTy>
static int64_t gradientBytes(OpTy op, int64_t logitPasses) {
  int64_t dx = isMade(op.getDx()), dtable = isMade(op.getDtable());
  return chunkBytes(op.getX(), op.getTable(), op.getChunk(),
                    1 + dx + 2 * dtable, logitPasses + dx + dtable) +
         dx * sizeInBytes(op.getX().getType());
}

template <typename OpTy>
static int64_t gradientFlops(OpTy op, int64_t perLogit) {
  int64_t products = 1 + isMade(op.getDx()) + isMade(op.getDtable());
  return logitCount(op.getX(), op.getTable()) *
         (2 * products * tensorType(op.getX()).getDimSize(1) + perLogit);
}

/// The logits are computed and turned into their gradient.
int64_t LinearCrossEntropyGradOp::getBytesMoved() {
  return gradientBytes(*this, 3);
}

int64_t LinearCrossEntropyGradOp::getFlops() { return gradientFlops(*this, 3); }

SmallVector<unsigned> LinearCrossEntropyGradOp::getDroppableResults() {
  return unreadResults(getUnread());
}

OpCuts LinearCrossEntropyGradOp::getCuts() {
  SmallVector<Rejoin> results(getNumResults(), Rejoin::sum());
  results[0] = Rejoin::concat(0);
  return lossCuts(*this, {0, 2, 3}, results, bool(getAcc()));
}

KernelCall LinearCrossEntropyGradOp::getKernel(ArrayRef<MemRefType> inputs,
                                               Backend backend) {
  return withoutAccumulator(
      *this, linearKernel<LinearCrossEntropyGrad>(
                 getX(), getTable(), getLabels(), bool(getBias()), getChunk(),
                 getIgnoreIndex(), getVocabulary(), getTf32(), backend));
}

LogicalResult LinearCrossEntropyWithGradOp::inferReturnTypes(
    MLIRContext *context, std::optional<Location> loc, Adaptor op,
    SmallVectorImpl<Type> &results) {
  for (Value scalar : {op.getWeight(), op.getScale()})
    if (failed(checkChunked(loc, op, scalar, Value())))
      return failure();
  results.push_back(op.getWeight().getType());
  return appendGradients(loc, op, results);
}

int64_t LinearCrossEntropyWithGradOp::getBytesMoved() {
  return gradientBytes(*this, 4);
}

int64_t LinearCrossEntropyWithGradOp::getFlops() {
  return gradientFlops(*this, 7);
}

SmallVector<unsigned> LinearCrossEntropyWithGradOp::getDroppableResults() {
  return unreadResults(getUnread());
}

OpCuts LinearCrossEntropyWithGradOp::getCuts() {
  SmallVector<Rejoin> results(getNumResults(), Rejoin::sum());
  results[1] = Rejoin::concat(0);
  return lossCuts(*this, {0, 2}, results, bool(getAcc()));
}

KernelCall LinearCrossEntropyWithGradOp::getKernel(ArrayRef<MemRefType> inputs,
                                                   Backend backend) {
  return withoutAccumulator(
      *this, linearKernel<LinearCrossEntropyWithGrad>(
                 getX(), getTable(), getLabels(), bool(getBias()), getChunk(),
                 getIgnoreIndex(), getVocabulary(), getTf32(), backend));
}
