// Train.cpp - the train dialect: steps, micro-batches and optimizer rules.

#include "dialects/train/Train.h"

#include "runtime/kernels/Optimizer.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Interfaces/FunctionImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace tmc;
using namespace tmc::train;

#include "dialects/train/TrainDialect.cpp.inc"
#include "dialects/train/TrainEnums.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "dialects/train/TrainAttrs.cpp.inc"
#define GET_OP_CLASSES
#include "dialects/train/Train.cpp.inc"

void TrainDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialects/train/TrainAttrs.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialects/train/Train.cpp.inc"
      >();
}

std::optional<Role> train::roleOf(FunctionOpInterface function,
                                  unsigned index) {
  auto attr = function.getArgAttrOfType<RoleAttr>(index, TrainDialect::kRole);
  return attr ? std::optional(attr.getValue()) : std::nullopt;
}

StringRef train::argName(FunctionOpInterface function, unsigned index) {
  auto attr = function.getArgAttrOfType<StringAttr>(index, TrainDialect::kName);
  return attr ? attr.getValue() : StringRef();
}

StringRef train::resultName(FunctionOpInterface function, unsigned index) {
  auto attr =
      function.getResultAttrOfType<StringAttr>(index, TrainDialect::kName);
  return attr ? attr.getValue() : StringRef();
}

std::optional<unsigned> train::lossResult(FunctionOpInterface function) {
  for (unsigned i = 0, n = function.getNumResults(); i < n; ++i)
    if (function.getResultAttr(i, TrainDialect::kLoss))
      return i;
  return std::nullopt;
}

std::optional<unsigned> train::updatedArg(FunctionOpInterface function,
                                          unsigned index) {
  auto attr =
      function.getResultAttrOfType<IntegerAttr>(index, TrainDialect::kUpdates);
  return attr ? std::optional<unsigned>(attr.getInt()) : std::nullopt;
}

std::optional<unsigned> train::copiedArg(FunctionOpInterface function,
                                         unsigned index) {
  auto name =
      function.getArgAttrOfType<StringAttr>(index, TrainDialect::kCopyOf);
  for (unsigned i = 0, n = function.getNumArguments(); name && i < n; ++i)
    if (roleOf(function, i) == Role::Param &&
        argName(function, i) == name.getValue())
      return i;
  return std::nullopt;
}

BlockArgument train::addState(StepOp step, StringRef name, Type type,
                              ArrayRef<NamedAttribute> attrs) {
  Builder b(step.getContext());
  SmallVector<NamedAttribute> all(attrs);
  all.push_back(b.getNamedAttr(TrainDialect::kRole,
                               RoleAttr::get(step.getContext(), Role::State)));
  all.push_back(b.getNamedAttr(TrainDialect::kName, b.getStringAttr(name)));
  unsigned index = step.getNumArguments();
  LogicalResult inserted =
      step.insertArgument(index, type, b.getDictionaryAttr(all),
                          NameLoc::get(b.getStringAttr(name)));
  assert(succeeded(inserted) && "a step takes any argument");
  (void)inserted;
  return step.getBody().front().getArgument(index);
}

void train::addNewValue(StepOp step, BlockArgument argument, Value value) {
  Builder b(step.getContext());
  unsigned index = argument.getArgNumber();
  LogicalResult inserted = step.insertResult(
      step.getNumResults(), argument.getType(),
      b.getDictionaryAttr(
          {b.getNamedAttr(TrainDialect::kName,
                          b.getStringAttr(argName(step, index))),
           b.getNamedAttr(TrainDialect::kUpdates,
                          b.getI64IntegerAttr(index))}));
  assert(succeeded(inserted) && "a step returns any number of results");
  (void)inserted;
  Operation *end = step.getBody().front().getTerminator();
  end->insertOperands(end->getNumOperands(), value);
}

//===----------------------------------------------------------------------===//
// train.step and train.micro_batch
//===----------------------------------------------------------------------===//

ParseResult StepOp::parse(OpAsmParser &parser, OperationState &result) {
  auto buildType = [](Builder &builder, ArrayRef<Type> arguments,
                      ArrayRef<Type> results,
                      function_interface_impl::VariadicFlag, std::string &) {
    return builder.getFunctionType(arguments, results);
  };
  return function_interface_impl::parseFunctionOp(
      parser, result, /*allowVariadic=*/false,
      getFunctionTypeAttrName(result.name), buildType,
      getArgAttrsAttrName(result.name), getResAttrsAttrName(result.name));
}

void StepOp::print(OpAsmPrinter &printer) {
  function_interface_impl::printFunctionOp(
      printer, *this, /*isVariadic=*/false, getFunctionTypeAttrName(),
      getArgAttrsAttrName(), getResAttrsAttrName());
}

LogicalResult MicroBatchOp::verify() {
  Block &block = getBlock();
  size_t slices = getSlices().size();
  if (int64_t(getCount()) < 1)
    return emitOpError("runs ") << getCount() << " times"; // C1
  if (block.getNumArguments() != slices + getNumResults()) // C1
    return emitOpError("has a region of ")
           << block.getNumArguments() << " arguments for " << slices
           << " slices and " << getNumResults() << " carried values";
  for (auto [slice, argument] : llvm::zip(getSlices(), block.getArguments())) {
    auto whole = cast<RankedTensorType>(slice.getType());
    SmallVector<int64_t> shape(whole.getShape());
    if (shape.empty() || shape[0] % int64_t(getCount())) // C1
      return emitOpError("can't cut ")
             << whole << " into " << getCount() << " pieces";
    shape[0] /= int64_t(getCount());
    if (argument.getType() !=
        RankedTensorType::get(shape, whole.getElementType())) // C1
      return emitOpError("hands its region a piece of type ")
             << argument.getType() << " of a slice of type " << whole;
  }
  auto yield = cast<YieldOp>(block.getTerminator());
  for (auto [argument, value, type] :
       llvm::zip_longest(getCarried(), yield.getValues(), getResultTypes()))
    if (!argument || !value || !type || argument->getType() != *type ||
        value->getType() != *type) // C2
      return emitOpError("carries values of other types than it yields");
  return success();
}

namespace {
/// A carried value that every run hands on as it came is zeros, as it began:
/// the gradient of a parameter that the loss doesn't depend on.
struct DropIdleCarried : OpRewritePattern<MicroBatchOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(MicroBatchOp op,
                                PatternRewriter &rewriter) const override {
    auto yield = cast<YieldOp>(op.getBlock().getTerminator());
    SmallVector<bool> idle;
    SmallVector<Type> kept;
    SmallVector<Value> yielded;
    for (auto [argument, value] :
         llvm::zip(op.getCarried(), yield.getValues())) {
      idle.push_back(argument == value);
      if (!idle.back()) {
        kept.push_back(argument.getType());
        yielded.push_back(value);
      }
    }
    if (!llvm::is_contained(idle, true))
      return failure();
    rewriter.setInsertionPoint(op);
    auto zeros = [&](Type type) -> Value {
      return arith::ConstantOp::create(
          rewriter, op.getLoc(), cast<TypedAttr>(rewriter.getZeroAttr(type)));
    };
    SmallVector<Value> results(op.getNumResults());
    for (unsigned i = 0; i < idle.size(); ++i)
      if (idle[i])
        results[i] = zeros(op.getResult(i).getType());
    auto fewer = MicroBatchOp::create(rewriter, op.getLoc(), kept,
                                      op.getCountAttr(), op.getSlices());
    rewriter.inlineRegionBefore(op.getBody(), fewer.getBody(),
                                fewer.getBody().end());
    rewriter.modifyOpInPlace(yield,
                             [&] { yield.getValuesMutable().assign(yielded); });
    Block &block = fewer.getBlock();
    for (unsigned i = idle.size(); i-- > 0;)
      if (idle[i]) {
        unsigned index = fewer.getSlices().size() + i;
        rewriter.replaceAllUsesWith(block.getArgument(index), results[i]);
        block.eraseArgument(index);
      }
    auto next = fewer.getResults().begin();
    for (unsigned i = 0; i < idle.size(); ++i)
      if (!idle[i])
        results[i] = *next++;
    rewriter.replaceOp(op, results);
    return success();
  }
};
} // namespace

void MicroBatchOp::getCanonicalizationPatterns(RewritePatternSet &patterns,
                                               MLIRContext *context) {
  patterns.add<DropIdleCarried>(context);
}

//===----------------------------------------------------------------------===//
// Moves and other work beside the device's kernels
//===----------------------------------------------------------------------===//

Space train::spaceOf(Type tensor) {
  auto space =
      dyn_cast_or_null<SpaceAttr>(cast<RankedTensorType>(tensor).getEncoding());
  return space ? space.getValue() : Space::Device;
}

RankedTensorType train::inSpace(Type tensor, Space space) {
  auto type = cast<RankedTensorType>(tensor);
  return RankedTensorType::get(type.getShape(), type.getElementType(),
                               space == Space::Device
                                   ? Attribute()
                                   : SpaceAttr::get(type.getContext(), space));
}

/// C1 and C2 of the moves; `steps`: how many spaces away from the device.
static LogicalResult checkMove(Operation *op, int steps) {
  Type source = op->getOperand(0).getType(),
       result = op->getResult(0).getType();
  Space from = spaceOf(source), to = spaceOf(result);
  if (inSpace(source, to) != result) // C1
    return op->emitOpError("copies ") << source << " to " << result;
  if (int(to) - int(from) != steps) // C2
    return op->emitOpError("goes from the ")
           << stringifySpace(from) << " to the " << stringifySpace(to);
  return success();
}

LogicalResult StashStartOp::verify() { return checkMove(*this, 1); }
LogicalResult FetchStartOp::verify() { return checkMove(*this, -1); }

LogicalResult StashDoneOp::verify() {
  Operation *start = getValue().getDefiningOp<StashStartOp>();
  if (!start || start->getBlock() != (*this)->getBlock()) // C1
    return emitOpError("ends no stash of its block");
  return success();
}

LogicalResult FetchDoneOp::verify() {
  Operation *start = getValue().getDefiningOp<FetchStartOp>();
  if (!start || start->getBlock() != (*this)->getBlock()) // C1
    return emitOpError("ends no fetch of its block");
  return success();
}

LogicalResult UpdateDoneOp::verify() {
  Operation *update =
      getValues().empty() ? nullptr : getValues()[0].getDefiningOp();
  if (!update || update->getBlock() != (*this)->getBlock() ||
      !update->hasAttr(TrainDialect::kOnHost) ||
      llvm::any_of(getValues(), [&](Value value) {
        return value.getDefiningOp() != update;
      })) // C1
    return emitOpError("ends no update that the host runs in its block");
  return success();
}

Operation *train::startOf(Operation *done) {
  return isa<StashDoneOp, FetchDoneOp, UpdateDoneOp>(done)
             ? done->getOperand(0).getDefiningOp()
             : nullptr;
}

bool train::isWork(Operation *op) {
  return isa<StashStartOp, FetchStartOp>(op) ||
         op->hasAttr(TrainDialect::kOnHost);
}

//===----------------------------------------------------------------------===//
// Gradients and updates
//===----------------------------------------------------------------------===//

/// A scalar beside `tensor`, in the same space.
static RankedTensorType scalarOf(Type tensor) {
  auto type = cast<RankedTensorType>(tensor);
  Type element = type.getElementType();
  if (!element.isF64())
    element = Float32Type::get(tensor.getContext());
  return RankedTensorType::get({}, element, type.getEncoding());
}

static int64_t elements(Value value) {
  return cast<RankedTensorType>(value.getType()).getNumElements();
}

LogicalResult SquareSumOp::inferReturnTypes(MLIRContext *context,
                                            std::optional<Location> loc,
                                            Adaptor op,
                                            SmallVectorImpl<Type> &results) {
  results.push_back(scalarOf(op.getGrad().getType()));
  return success();
}

int64_t SquareSumOp::getFlops() { return 2 * elements(getGrad()); }

KernelCall SquareSumOp::getKernel(ArrayRef<MemRefType>, Backend) {
  KernelCall call(getContext(), "SquareSum",
                  SquareSum::takes(runtimeType(getGrad().getType())));
  call.type("type", getGrad().getType()).integer("count", elements(getGrad()));
  call.scratchBytes = squareSumScratchBytes(elements(getGrad()));
  return call;
}

LogicalResult GradNormOp::inferReturnTypes(MLIRContext *context,
                                           std::optional<Location> loc,
                                           Adaptor op,
                                           SmallVectorImpl<Type> &results) {
  for (Value square : op.getSquares())
    if (square.getType() != op.getSquares()[0].getType() ||
        cast<RankedTensorType>(square.getType()).getRank() != 0) // C1
      return emitOptionalError(loc, "sums squares of type ", square.getType());
  if (Value scale = op.getScale();
      scale && cast<RankedTensorType>(scale.getType()).getRank() != 0) // C1
    return emitOptionalError(loc, "takes ", scale.getType(), " for a scalar");
  Type type = op.getSquares().empty()
                  ? RankedTensorType::get({}, Float32Type::get(context))
                  : op.getSquares()[0].getType();
  results.append(2, type);
  return success();
}

int64_t GradNormOp::getFlops() { return getSquares().size(); }

KernelCall GradNormOp::getKernel(ArrayRef<MemRefType>, Backend backend) {
  GradNorm::Params p{.count = int64_t(getSquares().size()),
                     .maxNorm = getMaxNorm().convertToDouble(),
                     .scratchBytes = 0};
  KernelCall call(getContext(), "GradNorm",
                  GradNorm::takes(runtimeType(getNorm().getType())));
  call.integer("count", p.count)
      .real("maxNorm", p.maxNorm)
      .flag("isScaled", bool(getScale()));
  call.scratchBytes = GradNorm::scratchCap(p, backend);
  return call;
}

LogicalResult LossScaleOp::inferReturnTypes(MLIRContext *,
                                            std::optional<Location> loc,
                                            Adaptor op,
                                            SmallVectorImpl<Type> &results) {
  for (Value operand : op.getOperands())
    if (cast<RankedTensorType>(operand.getType()).getRank() != 0) // C1
      return emitOptionalError(loc, "takes ", operand.getType(),
                               " for a scalar");
  Type count = op.getCount().getType();
  results.append(
      {op.getScale().getType(), op.getClean().getType(), count, count});
  return success();
}

int64_t LossScaleOp::getFlops() { return 1; }

KernelCall LossScaleOp::getKernel(ArrayRef<MemRefType>, Backend) {
  KernelCall call(getContext(), "LossScale",
                  LossScale::takes(runtimeType(getNorm().getType()),
                                   runtimeType(getScale().getType())));
  call.real("growth", getGrowth().convertToDouble())
      .real("backoff", getBackoff().convertToDouble())
      .integer("interval", int64_t(getInterval()));
  return call;
}

/// Whether an update rounds by chance what it keeps in `value`.
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
  results.push_back(scalarOf(param.getType()));
}

template <typename Op> static int64_t bytesOfUpdate(Op op) {
  // The old copy takes no part in the new one.
  int64_t unread = op.getCopy() ? sizeInBytes(op.getCopy().getType()) : 0;
  return sumOfTensorBytes(op) - unread;
}

/// `pairs`, and the copy, which is the last operand and the last result but
/// one.
template <typename Op>
static SmallVector<std::pair<unsigned, unsigned>>
overwritesOf(Op op, SmallVector<std::pair<unsigned, unsigned>> pairs) {
  if (op.getCopy())
    pairs.push_back({op->getNumOperands() - 1, op->getNumResults() - 2});
  return pairs;
}

Value train::keepCopy(Operation *update, Value copy) {
  TypeSwitch<Operation *>(update).Case<AdamWOp, AdamW8bitOp, SGDOp>(
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

/// The types of an update's kernel.
template <typename Op>
static void addTypes(KernelCall &call, Op op, Type moment) {
  call.type("param", op.getParam().getType())
      .type("grad", op.getGrad().getType())
      .type("moment", moment);
  if (op.getCopy())
    call.type("copy", op.getCopy().getType());
}

/// A kernel whose parameters are AdamParams.
template <typename Kernel, typename Op>
static KernelCall adamKernel(Op op, const char *name, Type moment) {
  KernelCall call(op.getContext(), name,
                  Kernel::takes(runtimeType(op.getParam().getType()),
                                runtimeType(op.getGrad().getType()),
                                runtimeType(moment)));
  addTypes(call, op, moment);
  call.integer("count", elements(op.getParam()))
      .real("beta1", op.getBeta1().convertToDouble())
      .real("beta2", op.getBeta2().convertToDouble())
      .real("epsilon", op.getEpsilon().convertToDouble())
      .real("weightDecay", op.getWeightDecay().convertToDouble())
      .integer("stream", int64_t(op.getStream().value_or(0)));
  call.scratchBytes = squareSumScratchBytes(elements(op.getParam()));
  if (!op.getCopy())
    return call;
  // The clip may be absent, and the old copy isn't read; the kernel's copy
  // stands behind the sum of squares.
  int64_t ins = op->getNumOperands() - 1, outs = op->getNumResults();
  call.ins = llvm::to_vector(llvm::seq<int64_t>(0, ins));
  call.outs = llvm::to_vector(llvm::seq<int64_t>(0, outs));
  std::swap(call.outs[outs - 2], call.outs[outs - 1]);
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

KernelCall AdamWOp::getKernel(ArrayRef<MemRefType>, Backend) {
  return adamKernel<AdamW>(*this, "AdamW", getM().getType());
}

LogicalResult AdamW8bitOp::inferReturnTypes(MLIRContext *context,
                                            std::optional<Location> loc,
                                            Adaptor op,
                                            SmallVectorImpl<Type> &results) {
  if (failed(checkUpdate(loc, op.getParam(), op.getGrad(), {}, op.getStream(),
                         {op.getLr(), op.getStep(), op.getClip()},
                         op.getCopy()))) // C1, C2
    return failure();
  auto param = cast<RankedTensorType>(op.getParam().getType());
  Type codes = param.clone(IntegerType::get(context, 8));
  Type maxima = RankedTensorType::get(
      {int64_t(llvm::divideCeil(param.getNumElements(), kBlock))},
      Float32Type::get(context), param.getEncoding());
  for (auto [moment, largest] :
       {std::pair(op.getM(), op.getMMax()), std::pair(op.getV(), op.getVMax())})
    if (moment.getType() != codes || largest.getType() != maxima) // C1
      return emitOptionalError(loc, "keeps a moment of ", param, " as ",
                               moment.getType(), " and ", largest.getType());
  appendResults(
      op.getParam(),
      {op.getParam(), op.getM(), op.getMMax(), op.getV(), op.getVMax()},
      op.getCopy(), results);
  return success();
}

int64_t AdamW8bitOp::getFlops() {
  // Beside AdamW's: two codes read, two found among neighbours.
  return 40 * elements(getParam());
}
int64_t AdamW8bitOp::getBytesMoved() { return bytesOfUpdate(*this); }

SmallVector<std::pair<unsigned, unsigned>> AdamW8bitOp::getOverwrites() {
  return overwritesOf(*this, {{0, 0}, {2, 1}, {3, 2}, {4, 3}, {5, 4}});
}

KernelCall AdamW8bitOp::getKernel(ArrayRef<MemRefType>, Backend) {
  return adamKernel<AdamW8bit>(*this, "AdamW8bit", getMMax().getType());
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

KernelCall SGDOp::getKernel(ArrayRef<MemRefType>, Backend) {
  Type moment = getMomentumBuffer() ? getMomentumBuffer().getType()
                                    : Type(Float32Type::get(getContext()));
  KernelCall call(getContext(), "Sgd",
                  Sgd::takes(runtimeType(getParam().getType()),
                             runtimeType(getGrad().getType()),
                             runtimeType(moment)));
  addTypes(call, *this, moment);
  call.integer("count", elements(getParam()))
      .real("momentum", getMomentum().convertToDouble())
      .real("dampening", getDampening().convertToDouble())
      .real("weightDecay", getWeightDecay().convertToDouble())
      .flag("nesterov", getNesterov())
      .integer("stream", int64_t(getStream().value_or(0)));
  call.scratchBytes = squareSumScratchBytes(elements(getParam()));
  // param, grad, buffer, lr, step, clip; the buffer and the clip may be absent.
  int64_t at = 2;
  call.ins = {0, 1};
  call.ins.push_back(getMomentumBuffer() ? at++ : -1);
  call.ins.append({at, at + 1});
  call.ins.push_back(getClip() ? at + 2 : -1);
  // param, buffer, sum of squares, copy, which is the result before that sum.
  int64_t last = getOperation()->getNumResults() - 1;
  call.outs = {0, getMomentumBuffer() ? 1 : -1, last};
  if (getCopy())
    call.outs.push_back(last - 1);
  return call;
}
