// Updates.cpp - the rules of the optimizers.

#include "dialects/train/Train.h"

#include "runtime/kernels/Adafactor.h"
#include "runtime/kernels/Optimizer.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace tmc;
using namespace tmc::train;

static int64_t elements(Value value) {
  return cast<RankedTensorType>(value.getType()).getNumElements();
}

/// Whether an update rounds `value` stochastically.
static bool isRounded(Value value) {
  auto element = dyn_cast<FloatType>(
      cast<RankedTensorType>(value.getType()).getElementType());
  return element && element.getWidth() < 32;
}

/// C1 and C2 of the updates. Values may be absent.
static LogicalResult checkUpdate(std::optional<Location> loc, Value param,
                                 Value grad, ArrayRef<Value> moments,
                                 std::optional<uint64_t> stream,
                                 ArrayRef<Value> scalars, Value copy) {
  bool isDrawnFor = isRounded(param);
  SmallVector<Value> like{grad};
  for (Value moment : moments)
    if (moment) {
      like.push_back(moment);
      isDrawnFor = isDrawnFor || isRounded(moment);
    }
  auto type = cast<RankedTensorType>(param.getType());
  MLIRContext *context = type.getContext();
  for (Value value : like)
    if (cast<RankedTensorType>(value.getType()).getShape() != type.getShape())
      return emitOptionalError(loc, "updates a parameter of type ", type,
                               " by a value of type ", value.getType());
  for (Value value : scalars)
    if (value && cast<RankedTensorType>(value.getType()).getRank() != 0)
      return emitOptionalError(loc, "takes ", value.getType(), " for a scalar");
  if (isDrawnFor != stream.has_value())
    return emitOptionalError(loc, "keeps a parameter of type ", type,
                             isDrawnFor ? " in 16 bits, or its moments, without"
                                        : " and its moments in full, but has",
                             " a stream of draws");
  if (copy && (!type.getElementType().isF32() ||
               (copy.getType() != type.clone(BFloat16Type::get(context)) &&
                copy.getType() != type.clone(Float16Type::get(context))))) // C2
    return emitOptionalError(loc, "copies a parameter of type ", type, " to ",
                             copy.getType());
  return success();
}

/// The results of an update: those of `kept`, the copy, the sum of squares.
static void appendResults(Value param, ArrayRef<Value> kept, Value copy,
                          SmallVectorImpl<Type> &results) {
  for (Value value : kept)
    if (value)
      results.push_back(value.getType());
  if (copy)
    results.push_back(copy.getType());
  results.push_back(scalarBeside(param.getType()));
}

template <typename Op> static int64_t bytesOfUpdate(Op op) {
  // The update doesn't read the old copy.
  int64_t unread = op.getCopy() ? sizeInBytes(op.getCopy().getType()) : 0;
  return sumOfTensorBytes(op) - unread;
}

/// `pairs`, and the pair of the copy: the last operand, and the result before
/// the last.
template <typename Op>
static SmallVector<std::pair<unsigned, unsigned>>
overwritesOf(Op op, SmallVector<std::pair<unsigned, unsigned>> pairs) {
  if (op.getCopy())
    pairs.push_back({op->getNumOperands() - 1, op->getNumResults() - 2});
  return pairs;
}

Value train::keepCopy(Operation *update, Value copy) {
  TypeSwitch<Operation *>(update)
      .Case<AdafactorOp, AdamWOp, AdamW4bitOp, AdamW8bitOp, LionOp, SGDOp>(
          [&](auto op) { op.getCopyMutable().assign(copy); });
  SmallVector<Type> types(update->getResultTypes());
  types.insert(std::prev(types.end()), copy.getType());
  Operation *keeping = Operation::create(
      update->getLoc(), update->getName(), types, update->getOperands(),
      update->getDiscardableAttrDictionary(), update->getPropertiesStorage(),
      /*successors=*/{}, /*numRegions=*/0);
  OpBuilder(update).insert(keeping);
  unsigned squares = update->getNumResults() - 1;
  for (unsigned i = 0; i < squares; ++i)
    update->getResult(i).replaceAllUsesWith(keeping->getResult(i));
  update->getResult(squares).replaceAllUsesWith(
      keeping->getResult(squares + 1));
  update->erase();
  return keeping->getResult(squares);
}

/// The type of an update's copy in 16 bits; F32: no copy.
template <typename Op> static DType copyType(Op op) {
  return op.getCopy() ? runtimeType(op.getCopy().getType()) : DType::F32;
}

/// The order of a kernel's values: that of the op, except for a copy. The old
/// copy isn't read, and the new one comes after the sum of squares.
template <typename Op> static void addCopy(KernelCall &call, Op op) {
  if (!op.getCopy())
    return; // The last operand, the clip, may be absent.
  int64_t ins = op->getNumOperands() - 1, outs = op->getNumResults();
  call.ins = llvm::to_vector(llvm::seq<int64_t>(0, ins));
  call.outs = llvm::to_vector(llvm::seq<int64_t>(0, outs));
  std::swap(call.outs[outs - 2], call.outs[outs - 1]);
}

/// A kernel whose parameters are AdamParams.
template <typename Kernel, typename Op>
static KernelCall adamKernel(Op op, Type moment, Backend backend) {
  auto call = KernelCall::of<Kernel>(
      op.getContext(),
      {.param = runtimeType(op.getParam().getType()),
       .grad = runtimeType(op.getGrad().getType()),
       .moment = runtimeType(moment),
       .copy = copyType(op),
       .count = elements(op.getParam()),
       .beta1 = op.getBeta1().convertToDouble(),
       .beta2 = op.getBeta2().convertToDouble(),
       .epsilon = op.getEpsilon().convertToDouble(),
       .weightDecay = op.getWeightDecay().convertToDouble(),
       .stream = int64_t(op.getStream().value_or(0))},
      backend);
  addCopy(call, op);
  return call;
}

LogicalResult AdamWOp::inferReturnTypes(MLIRContext *context,
                                        std::optional<Location> loc, Adaptor op,
                                        SmallVectorImpl<Type> &results) {
  if (failed(checkUpdate(loc, op.getParam(), op.getGrad(),
                         {op.getM(), op.getV()}, op.getStream(),
                         {op.getLr(), op.getStep(), op.getClip()},
                         op.getCopy()))) // C1, C2
    return failure();
  if (op.getM().getType() != op.getV().getType()) // C1
    return emitOptionalError(loc, "keeps moments of types ",
                             op.getM().getType(), " and ", op.getV().getType());
  appendResults(op.getParam(), {op.getParam(), op.getM(), op.getV()},
                op.getCopy(), results);
  return success();
}

int64_t AdamWOp::getFlops() { return 15 * elements(getParam()); }
int64_t AdamWOp::getBytesMoved() { return bytesOfUpdate(*this); }

SmallVector<std::pair<unsigned, unsigned>> AdamWOp::getOverwrites() {
  return overwritesOf(*this, {{0, 0}, {2, 1}, {3, 2}});
}

KernelCall AdamWOp::getKernel(ArrayRef<MemRefType>, Backend backend) {
  return adamKernel<AdamW>(*this, getM().getType(), backend);
}

/// The results of an update whose moments are codes with a scale for each
/// block; `mScale` and `vScale` are these scales.
template <typename Op>
static LogicalResult
inferCodedUpdate(std::optional<Location> loc, typename Op::Adaptor op,
                 Value mScale, Value vScale, SmallVectorImpl<Type> &results) {
  if (failed(checkUpdate(loc, op.getParam(), op.getGrad(), {}, op.getStream(),
                         {op.getLr(), op.getStep(), op.getClip()},
                         op.getCopy()))) // C1, C2
    return failure();
  auto param = cast<RankedTensorType>(op.getParam().getType());
  if (std::is_same_v<Op, AdamW4bitOp> &&
      param.getNumElements() % Op::kBlock != 0) // C1
    return emitOptionalError(loc, "keeps moments of ", param,
                             ", whose elements are no multiple of ",
                             Op::kBlock);
  for (auto [moment, scale] :
       {std::pair(op.getM(), mScale), std::pair(op.getV(), vScale)})
    if (moment.getType() != Op::codesOf(param) ||
        scale.getType() != Op::scalesOf(param)) // C1
      return emitOptionalError(loc, "keeps a moment of ", param, " as ",
                               moment.getType(), " and ", scale.getType());
  appendResults(op.getParam(),
                {op.getParam(), op.getM(), mScale, op.getV(), vScale},
                op.getCopy(), results);
  return success();
}

RankedTensorType AdamW8bitOp::codesOf(RankedTensorType param) {
  return cast<RankedTensorType>(
      param.clone(IntegerType::get(param.getContext(), 8)));
}
RankedTensorType AdamW8bitOp::scalesOf(RankedTensorType param) {
  return RankedTensorType::get(
      {int64_t(llvm::divideCeil(param.getNumElements(), kBlock))},
      Float32Type::get(param.getContext()), param.getEncoding());
}

LogicalResult AdamW8bitOp::inferReturnTypes(MLIRContext *,
                                            std::optional<Location> loc,
                                            Adaptor op,
                                            SmallVectorImpl<Type> &results) {
  return inferCodedUpdate<AdamW8bitOp>(loc, op, op.getMMax(), op.getVMax(),
                                       results);
}

int64_t AdamW8bitOp::getFlops() {
  // In addition to AdamW: two codes are read, two are found among neighbours.
  return 40 * elements(getParam());
}
int64_t AdamW8bitOp::getBytesMoved() { return bytesOfUpdate(*this); }

SmallVector<std::pair<unsigned, unsigned>> AdamW8bitOp::getOverwrites() {
  return overwritesOf(*this, {{0, 0}, {2, 1}, {3, 2}, {4, 3}, {5, 4}});
}

KernelCall AdamW8bitOp::getKernel(ArrayRef<MemRefType>, Backend backend) {
  return adamKernel<AdamW8bit>(*this, getMMax().getType(), backend);
}

RankedTensorType AdamW4bitOp::codesOf(RankedTensorType param) {
  return RankedTensorType::get({param.getNumElements() / 2},
                               IntegerType::get(param.getContext(), 8),
                               param.getEncoding());
}
RankedTensorType AdamW4bitOp::scalesOf(RankedTensorType param) {
  return RankedTensorType::get({param.getNumElements() / kBlock},
                               Float32Type::get(param.getContext()),
                               param.getEncoding());
}

LogicalResult AdamW4bitOp::inferReturnTypes(MLIRContext *,
                                            std::optional<Location> loc,
                                            Adaptor op,
                                            SmallVectorImpl<Type> &results) {
  return inferCodedUpdate<AdamW4bitOp>(loc, op, op.getMScale(), op.getVScale(),
                                       results);
}

int64_t AdamW4bitOp::getFlops() {
  // In addition to AdamW: two codes are read, two are found by comparison with
  // 15 bounds.
  return 55 * elements(getParam());
}
int64_t AdamW4bitOp::getBytesMoved() { return bytesOfUpdate(*this); }

SmallVector<std::pair<unsigned, unsigned>> AdamW4bitOp::getOverwrites() {
  return overwritesOf(*this, {{0, 0}, {2, 1}, {3, 2}, {4, 3}, {5, 4}});
}

KernelCall AdamW4bitOp::getKernel(ArrayRef<MemRefType>, Backend backend) {
  return adamKernel<AdamW4bit>(*this, getMScale().getType(), backend);
}

SmallVector<RankedTensorType, 2>
AdafactorOp::momentsOf(RankedTensorType param) {
  int64_t rank = param.getRank();
  auto like = RankedTensorType::get(param.getShape(),
                                    Float32Type::get(param.getContext()),
                                    param.getEncoding());
  if (rank < 2)
    return {like};
  SmallVector<int64_t> rows(param.getShape()), columns(param.getShape());
  rows[rank - 1] = columns[rank - 2] = 1;
  return {like.clone(rows), like.clone(columns)};
}

LogicalResult AdafactorOp::inferReturnTypes(MLIRContext *,
                                            std::optional<Location> loc,
                                            Adaptor op,
                                            SmallVectorImpl<Type> &results) {
  if (failed(checkUpdate(loc, op.getParam(), op.getGrad(), {}, op.getStream(),
                         {op.getLr(), op.getStep(), op.getClip()},
                         op.getCopy()))) // C1, C2
    return failure();
  auto param = cast<RankedTensorType>(op.getParam().getType());
  SmallVector<RankedTensorType, 2> wanted = momentsOf(param);
  if (op.getMoments().size() != wanted.size()) // C1
    return emitOptionalError(loc, "keeps ", op.getMoments().size(),
                             " moments of ", param);
  for (auto [moment, type] : llvm::zip_equal(op.getMoments(), wanted))
    if (moment.getType() != type) // C1
      return emitOptionalError(loc, "keeps a moment of ", param, " as ",
                               moment.getType());
  SmallVector<Value> kept{op.getParam()};
  llvm::append_range(kept, op.getMoments());
  appendResults(op.getParam(), kept, op.getCopy(), results);
  return success();
}

int64_t AdafactorOp::getFlops() { return 30 * elements(getParam()); }
int64_t AdafactorOp::getBytesMoved() {
  // The gradient is read for the moments, for the update's size and for the
  // update; if each element has a moment, the first two are one pass.
  int64_t reads = getMoments().size();
  return bytesOfUpdate(*this) + reads * sizeInBytes(getGrad().getType()) +
         sizeInBytes(getParam().getType());
}

SmallVector<std::pair<unsigned, unsigned>> AdafactorOp::getOverwrites() {
  SmallVector<std::pair<unsigned, unsigned>> pairs{{0, 0}};
  for (unsigned i = 0; i < getMoments().size(); ++i)
    pairs.push_back({2 + i, 1 + i});
  return overwritesOf(*this, pairs);
}

KernelCall AdafactorOp::getKernel(ArrayRef<MemRefType>, Backend backend) {
  auto param = cast<RankedTensorType>(getParam().getType());
  Adafactor::Params p{.param = runtimeType(param),
                      .grad = runtimeType(getGrad().getType()),
                      .copy = copyType(*this),
                      .count = param.getNumElements(),
                      .batch = param.getNumElements(),
                      .rows = 0,
                      .columns = 0,
                      .beta2Decay = getBeta2Decay().convertToDouble(),
                      .eps1 = getEps1().convertToDouble(),
                      .eps2 = getEps2().convertToDouble(),
                      .d = getD().convertToDouble(),
                      .weightDecay = getWeightDecay().convertToDouble(),
                      .stream = int64_t(getStream().value_or(0))};
  if (int64_t rank = param.getRank(); rank >= 2) {
    p.rows = param.getDimSize(rank - 2);
    p.columns = param.getDimSize(rank - 1);
    p.batch = p.count / (p.rows * p.columns);
  }
  auto call = KernelCall::of<Adafactor>(getContext(), p, backend);
  // param, grad, moments, lr, step, clip; the second moment and the clip may be
  // absent.
  int64_t at = 3;
  call.ins = {0, 1, 2};
  call.ins.push_back(getMoments().size() > 1 ? at++ : -1);
  call.ins.append({at, at + 1});
  call.ins.push_back(getClip() ? at + 2 : -1);
  // param, moments, sum of squares, copy; the copy is the result before that
  // sum.
  int64_t last = getOperation()->getNumResults() - 1;
  call.outs = {0, 1, getMoments().size() > 1 ? 2 : -1, last};
  if (getCopy())
    call.outs.push_back(last - 1);
  return call;
}

LogicalResult LionOp::inferReturnTypes(MLIRContext *,
                                       std::optional<Location> loc, Adaptor op,
                                       SmallVectorImpl<Type> &results) {
  if (failed(checkUpdate(loc, op.getParam(), op.getGrad(), {op.getM()},
                         op.getStream(),
                         {op.getLr(), op.getStep(), op.getClip()},
                         op.getCopy()))) // C1, C2
    return failure();
  appendResults(op.getParam(), {op.getParam(), op.getM()}, op.getCopy(),
                results);
  return success();
}

int64_t LionOp::getFlops() { return 9 * elements(getParam()); }
int64_t LionOp::getBytesMoved() { return bytesOfUpdate(*this); }

SmallVector<std::pair<unsigned, unsigned>> LionOp::getOverwrites() {
  return overwritesOf(*this, {{0, 0}, {2, 1}});
}

KernelCall LionOp::getKernel(ArrayRef<MemRefType>, Backend backend) {
  auto call =
      KernelCall::of<Lion>(getContext(),
                           {.param = runtimeType(getParam().getType()),
                            .grad = runtimeType(getGrad().getType()),
                            .moment = runtimeType(getM().getType()),
                            .copy = copyType(*this),
                            .count = elements(getParam()),
                            .beta1 = getBeta1().convertToDouble(),
                            .beta2 = getBeta2().convertToDouble(),
                            .weightDecay = getWeightDecay().convertToDouble(),
                            .stream = int64_t(getStream().value_or(0))},
                           backend);
  addCopy(call, *this);
  return call;
}

LogicalResult SGDOp::inferReturnTypes(MLIRContext *context,
                                      std::optional<Location> loc, Adaptor op,
                                      SmallVectorImpl<Type> &results) {
  if (failed(checkUpdate(loc, op.getParam(), op.getGrad(),
                         {op.getMomentumBuffer()}, op.getStream(),
                         {op.getLr(), op.getStep(), op.getClip()},
                         op.getCopy()))) // C1, C2
    return failure();
  if (bool(op.getMomentumBuffer()) !=
      (op.getMomentum().convertToDouble() > 0)) // C1
    return emitOptionalError(
        loc, "has a momentum of ", op.getMomentum().convertToDouble(),
        op.getMomentumBuffer() ? " and a" : " but no", " buffer");
  appendResults(op.getParam(), {op.getParam(), op.getMomentumBuffer()},
                op.getCopy(), results);
  return success();
}

int64_t SGDOp::getFlops() { return 6 * elements(getParam()); }
int64_t SGDOp::getBytesMoved() { return bytesOfUpdate(*this); }

SmallVector<std::pair<unsigned, unsigned>> SGDOp::getOverwrites() {
  SmallVector<std::pair<unsigned, unsigned>> pairs{{0, 0}};
  if (getMomentumBuffer())
    pairs.push_back({2, 1});
  return overwritesOf(*this, pairs);
}

KernelCall SGDOp::getKernel(ArrayRef<MemRefType>, Backend backend) {
  auto call = KernelCall::of<Sgd>(
      getContext(),
      {.param = runtimeType(getParam().getType()),
       .grad = runtimeType(getGrad().getType()),
       .moment = getMomentumBuffer()
                     ? runtimeType(getMomentumBuffer().getType())
                     : DType::F32,
       .copy = copyType(*this),
       .count = elements(getParam()),
       .momentum = getMomentum().convertToDouble(),
       .dampening = getDampening().convertToDouble(),
       .weightDecay = getWeightDecay().convertToDouble(),
       .nesterov = getNesterov(),
       .stream = int64_t(getStream().value_or(0))},
      backend);
  // param, grad, buffer, lr, step, clip; the buffer and the clip may be absent.
  int64_t at = 2;
  call.ins = {0, 1};
  call.ins.push_back(getMomentumBuffer() ? at++ : -1);
  call.ins.append({at, at + 1});
  call.ins.push_back(getClip() ? at + 2 : -1);
  // param, buffer, sum of squares, copy; the copy is the result before that
  // sum.
  int64_t last = getOperation()->getNumResults() - 1;
  call.outs = {0, getMomentumBuffer() ? 1 : -1, last};
  if (getCopy())
    call.outs.push_back(last - 1);
  return call;
}
