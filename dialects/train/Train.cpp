// Train.cpp - the train dialect: steps, micro-batches and moves.

#include "dialects/train/Train.h"

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

int64_t train::chunkOf(CutAttr cut, ShapedType piece) {
  return llvm::product_of(piece.getShape().drop_front(cut.getDim())) /
         cut.getRuns();
}

SmallVector<train::NamedTensor> train::namedTensors(DictionaryAttr attrs,
                                                    ShapedType type) {
  auto name = attrs.getAs<StringAttr>(TrainDialect::kName);
  auto parts = attrs.getAs<ArrayAttr>(TrainDialect::kParts);
  if (auto whole = attrs.getAs<TypeAttr>(TrainDialect::kWhole))
    type = cast<ShapedType>(whole.getValue());
  SmallVector<int64_t> shape(type.getShape());
  auto cut = attrs.getAs<CutAttr>(TrainDialect::kCut);
  int64_t chunk = 0;
  if (cut) {
    chunk = chunkOf(cut, type);
    shape.assign(cut.getWhole().getShape());
  }
  if (!parts)
    return {{name ? name.str() : "",
             RankedTensorType::get(shape, type.getElementType()), 0,
             attrs.get(TrainDialect::kInit), chunk}};
  // Parts that are cut are so along their rows.
  SmallVector<NamedTensor> tensors;
  const int64_t pieces = cut ? shape[0] / type.getDimSize(0) : 1;
  int64_t row = 0;
  for (auto part : parts.getAsRange<PartAttr>()) {
    shape[0] = part.getRows() * pieces;
    auto whole = RankedTensorType::get(shape, type.getElementType());
    tensors.push_back({part.getName().str(), whole, row, part.getInit(),
                       cut ? whole.getNumElements() / pieces : 0});
    row += part.getRows();
  }
  return tensors;
}

ArrayAttr train::partsBeside(ArrayAttr parts, int64_t all, int64_t rows,
                             const Twine &suffix) {
  if (!parts)
    return {};
  Builder b(parts.getContext());
  SmallVector<Attribute> beside;
  for (auto part : parts.getAsRange<PartAttr>()) {
    assert(part.getRows() * rows % all == 0 && "a part has whole rows");
    beside.push_back(PartAttr::get(
        b.getContext(), b.getStringAttr(part.getName().strref() + suffix),
        part.getRows() * rows / all, /*init=*/Attribute()));
  }
  return b.getArrayAttr(beside);
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
/// A carried value that every run passes on unchanged stays zero, its initial
/// value: the gradient of a parameter on which the loss doesn't depend.
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

SpaceKind train::spaceOf(Type tensor) {
  auto space =
      dyn_cast_or_null<SpaceAttr>(cast<RankedTensorType>(tensor).getEncoding());
  return space ? space.getValue() : SpaceKind(); // The device.
}

RankedTensorType train::inSpace(Type tensor, SpaceKind space) {
  auto type = cast<RankedTensorType>(tensor);
  return RankedTensorType::get(
      type.getShape(), type.getElementType(),
      onDevice(space) ? Attribute() : SpaceAttr::get(type.getContext(), space));
}

/// C1 and C2 of the moves; `isStash`: the copy goes away from the device.
static LogicalResult checkMove(Operation *op, bool isStash) {
  Type source = op->getOperand(0).getType(),
       result = op->getResult(0).getType();
  SpaceKind from = spaceOf(source), to = spaceOf(result);
  if (inSpace(source, to) != result) // C1
    return op->emitOpError("copies ") << source << " to " << result;
  if (!copyEngine(from, to) || (from < to) != isStash) // C2
    return op->emitOpError("goes from the ")
           << nameOf(from) << " to the " << nameOf(to);
  return success();
}

LogicalResult StashStartOp::verify() {
  return checkMove(*this, /*isStash=*/true);
}
LogicalResult FetchStartOp::verify() {
  return checkMove(*this, /*isStash=*/false);
}

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

LogicalResult WorkDoneOp::verify() {
  Operation *work =
      getValues().empty() ? nullptr : getValues()[0].getDefiningOp();
  if (!isa_and_nonnull<KernelOpInterface>(work) || !isWork(work) ||
      work->getBlock() != (*this)->getBlock() ||
      llvm::any_of(getValues(), [&](Value value) {
        return value.getDefiningOp() != work;
      })) // C1
    return emitOpError("ends no work of the host or the network in its block");
  return success();
}

Operation *train::startOf(Operation *done) {
  return isa<StashDoneOp, FetchDoneOp, WorkDoneOp>(done)
             ? done->getOperand(0).getDefiningOp()
             : nullptr;
}

Operation *train::doneOf(Operation *start) {
  for (Operation *user : start->getUsers())
    if (startOf(user) == start)
      return user;
  return nullptr;
}

EngineKind train::engineOf(Operation *op) {
  if (isa<StashStartOp, FetchStartOp>(op))
    return copyEngine(spaceOf(op->getOperand(0).getType()),
                      spaceOf(op->getResult(0).getType()))
        ->kind;
  if (op->hasAttr(TrainDialect::kOnHost))
    return EngineKind::Host;
  auto kernel = dyn_cast<KernelOpInterface>(op);
  return kernel && kernel.isOnNetwork() ? EngineKind::Network
                                        : EngineKind::Compute;
}

bool train::isWork(Operation *op) {
  return engineOf(op) != EngineKind::Compute;
}
