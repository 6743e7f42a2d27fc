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
// Gradients and updates
//===----------------------------------------------------------------------===//

static RankedTensorType scalarOf(Type tensor) {
  Type element = cast<RankedTensorType>(tensor).getElementType();
  if (!element.isF64())
    element = Float32Type::get(tensor.getContext());
  return RankedTensorType::get({}, element);
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

/// C1 of the updates. Values may be absent.
static LogicalResult checkUpdate(std::optional<Location> loc, Value param,
                                 Value grad, ArrayRef<Value> moments,
                                 std::optional<uint64_t> stream,
                                 ArrayRef<Value> scalars) {
  bool isDrawnFor = isRounded(param);
  SmallVector<Value> like{grad};
  for (Value moment : moments)
    if (moment) {
      like.push_back(moment);
      isDrawnFor = isDrawnFor || isRounded(moment);
    }
  auto type = cast<RankedTensorType>(param.getType());
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
  return success();
}

/// A kernel whose parameters are AdamParams.
template <typename Kernel, typename Op>
static KernelCall adamKernel(Op op, const char *name, Type moment) {
  Type param = op.getParam().getType(), grad = op.getGrad().getType();
  KernelCall call(op.getContext(), name,
                  Kernel::takes(runtimeType(param), runtimeType(grad),
                                runtimeType(moment)));
  call.type("param", param)
      .type("grad", grad)
      .type("moment", moment)
      .integer("count", elements(op.getParam()))
      .real("beta1", op.getBeta1().convertToDouble())
      .real("beta2", op.getBeta2().convertToDouble())
      .real("epsilon", op.getEpsilon().convertToDouble())
      .real("weightDecay", op.getWeightDecay().convertToDouble())
      .integer("stream", int64_t(op.getStream().value_or(0)));
  call.scratchBytes = squareSumScratchBytes(elements(op.getParam()));
  return call;
}

LogicalResult AdamWOp::inferReturnTypes(MLIRContext *context,
                                        std::optional<Location> loc, Adaptor op,
                                        SmallVectorImpl<Type> &results) {
  if (failed(checkUpdate(loc, op.getParam(), op.getGrad(),
                         {op.getM(), op.getV()}, op.getStream(),
                         {op.getLr(), op.getStep(), op.getClip()}))) // C1
    return failure();
  if (op.getM().getType() != op.getV().getType()) // C1
    return emitOptionalError(loc, "keeps moments of types ",
                             op.getM().getType(), " and ", op.getV().getType());
  results.append(
      {op.getParam().getType(), op.getM().getType(), op.getV().getType()});
  results.push_back(scalarOf(op.getParam().getType()));
  return success();
}

int64_t AdamWOp::getFlops() { return 15 * elements(getParam()); }

KernelCall AdamWOp::getKernel(ArrayRef<MemRefType>, Backend) {
  return adamKernel<AdamW>(*this, "AdamW", getM().getType());
}

LogicalResult AdamW8bitOp::inferReturnTypes(MLIRContext *context,
                                            std::optional<Location> loc,
                                            Adaptor op,
                                            SmallVectorImpl<Type> &results) {
  if (failed(checkUpdate(loc, op.getParam(), op.getGrad(), {}, op.getStream(),
                         {op.getLr(), op.getStep(), op.getClip()}))) // C1
    return failure();
  auto param = cast<RankedTensorType>(op.getParam().getType());
  Type codes = param.clone(IntegerType::get(context, 8));
  Type maxima = RankedTensorType::get(
      {int64_t(llvm::divideCeil(param.getNumElements(), kBlock))},
      Float32Type::get(context));
  for (auto [moment, largest] :
       {std::pair(op.getM(), op.getMMax()), std::pair(op.getV(), op.getVMax())})
    if (moment.getType() != codes || largest.getType() != maxima) // C1
      return emitOptionalError(loc, "keeps a moment of ", param, " as ",
                               moment.getType(), " and ", largest.getType());
  results.append({param, codes, maxima, codes, maxima, scalarOf(param)});
  return success();
}

int64_t AdamW8bitOp::getFlops() {
  // Beside AdamW's: two codes read, two found among neighbours.
  return 40 * elements(getParam());
}

KernelCall AdamW8bitOp::getKernel(ArrayRef<MemRefType>, Backend) {
  return adamKernel<AdamW8bit>(*this, "AdamW8bit", getMMax().getType());
}

LogicalResult SGDOp::inferReturnTypes(MLIRContext *context,
                                      std::optional<Location> loc, Adaptor op,
                                      SmallVectorImpl<Type> &results) {
  if (failed(checkUpdate(loc, op.getParam(), op.getGrad(),
                         {op.getMomentumBuffer()}, op.getStream(),
                         {op.getLr(), op.getStep(), op.getClip()}))) // C1
    return failure();
  if (bool(op.getMomentumBuffer()) !=
      (op.getMomentum().convertToDouble() > 0)) // C1
    return emitOptionalError(
        loc, "has a momentum of ", op.getMomentum().convertToDouble(),
        op.getMomentumBuffer() ? " and a" : " but no", " buffer");
  results.push_back(op.getParam().getType());
  if (op.getMomentumBuffer())
    results.push_back(op.getMomentumBuffer().getType());
  results.push_back(scalarOf(op.getParam().getType()));
  return success();
}

int64_t SGDOp::getFlops() { return 6 * elements(getParam()); }

KernelCall SGDOp::getKernel(ArrayRef<MemRefType>, Backend) {
  Type param = getParam().getType(), grad = getGrad().getType();
  Type moment = getMomentumBuffer() ? getMomentumBuffer().getType()
                                    : Type(Float32Type::get(getContext()));
  KernelCall call(
      getContext(), "Sgd",
      Sgd::takes(runtimeType(param), runtimeType(grad), runtimeType(moment)));
  call.type("param", param)
      .type("grad", grad)
      .type("moment", moment)
      .integer("count", elements(getParam()))
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
  call.outs = getMomentumBuffer() ? SmallVector<int64_t>{0, 1, 2}
                                  : SmallVector<int64_t>{0, -1, 1};
  return call;
}
