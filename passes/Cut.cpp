// Cut.cpp - -tmc-cut: the forward function of one of several ranks that share
// heads and hidden columns.
//
// Bundles.h says what is cut. Here each of them is rewritten in place: values
// and parameters become a rank's pieces, entries get a `nn.spread`, and exits a
// `nn.sum_over`.

#include "passes/Bundles.h"
#include "passes/Passes.h"

#include "compiler/analysis/StepProblem.h"
#include "dialects/interfaces/Fault.h"
#include "dialects/nn/Builders.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace tmc {
#define GEN_PASS_DEF_CUT
#include "passes/Passes.h.inc"

using namespace nn;
using train::TrainDialect;

namespace {

/// The most reasons in an error.
constexpr size_t kShownReasons = 8;

/// The feed of a rank's number among those that share heads and columns.
constexpr llvm::StringLiteral kPlaceFeed = "tensor_place";

class Rewriter {
public:
  Rewriter(func::FuncOp forward, int64_t ranks)
      : forward(forward), ranks(ranks), b(forward) {}

  void rewrite(Bundle &bundle) {
    spreads.clear();
    for (auto &[value, part] : bundle.values)
      if (auto argument = dyn_cast<BlockArgument>(value))
        cut(argument, part);
    for (Operation &op :
         llvm::make_early_inc_range(forward.front().without_terminator()))
      if (auto at = bundle.ops.find(&op); at != bundle.ops.end())
        rewrite(&op, at->second);
  }

  void finish() {
    forward->setAttr(TrainDialect::kTensorRanks, b.getI64IntegerAttr(ranks));
    forward.setFunctionType(
        b.getFunctionType(forward.front().getArgumentTypes(),
                          forward.getFunctionType().getResults()));
  }

private:
  func::FuncOp forward;
  const int64_t ranks;
  OpBuilder b;
  /// Of the bundle that is rewritten.
  llvm::DenseMap<Value, Value> spreads;
  /// Sample numbers of this rank's pieces.
  llvm::DenseMap<Value, Value> numbered;
  llvm::DenseMap<Value, bool> fromParameter;
  Value place;

  RankedTensorType typeOf(Value value, const Part &part) const {
    return pieceType(value.getType(), part, {1, ranks});
  }

  void cut(BlockArgument argument, const Part &part) {
    auto whole = cast<RankedTensorType>(argument.getType());
    forward.setArgAttr(
        argument.getArgNumber(), TrainDialect::kCut,
        train::CutAttr::get(b.getContext(), whole, part.dim, part.runs));
    argument.setType(typeOf(argument, part));
  }

  bool dependsOnParameter(Value value) {
    if (auto argument = dyn_cast<BlockArgument>(value))
      return train::roleOf(forward, argument.getArgNumber()) ==
             train::Role::Param;
    auto [at, isNew] = fromParameter.try_emplace(value, false);
    if (!isNew)
      return at->second;
    const bool does =
        llvm::any_of(value.getDefiningOp()->getOperands(), [&](Value operand) {
          return dependsOnParameter(operand);
        });
    return fromParameter[value] = does;
  }

  void rewrite(Operation *op, const CutPiece &piece) {
    b.setInsertionPoint(op);
    if (auto random = dyn_cast<RandomOp>(op))
      return draw(random, piece.results[0]);
    for (auto [i, part] : llvm::enumerate(piece.operands))
      if (int64_t(i) != piece.onFirst)
        op->setOperand(i, int64_t(i) == piece.numbered
                              ? number(op->getOperand(i))
                              : read(op->getOperand(i), part, op->getLoc()));
    if (auto slice = dyn_cast<SliceOp>(op))
      moveOffset(slice, piece.operands[0]);
    for (auto [result, part] : llvm::zip_equal(op->getResults(), piece.results))
      if (part.isCut())
        result.setType(typeOf(result, part));
    b.setInsertionPointAfter(op);
    for (auto [result, part] : llvm::zip_equal(op->getResults(), piece.results))
      if (part.kind == Part::Sum)
        sum(result, piece.onFirst);
  }

  /// The operand of a piece.
  Value read(Value value, const Part &part, Location loc) {
    if (auto constant = value.getDefiningOp<arith::ConstantOp>();
        constant && part.isCut())
      return arith::ConstantOp::create(
          b, loc,
          cast<DenseElementsAttr>(constant.getValue())
              .resizeSplat(typeOf(value, part)));
    if (part.isCut() || !isa<FloatType>(getElementTypeOrSelf(value)) ||
        !dependsOnParameter(value))
      return value;
    Value &spread = spreads[value];
    if (!spread)
      spread = SpreadOp::create(b, loc, value, nn::Axis::Tensor, ranks);
    return spread;
  }

  /// A slice of whole runs begins at the same run of a piece.
  void moveOffset(SliceOp slice, const Part &part) {
    SmallVector<int64_t> offsets(slice.getOffsets());
    offsets[part.dim] /= ranks;
    slice.setOffsets(offsets);
  }

  /// A part of a sum becomes the sum, and a bias is added to it.
  void sum(Value part, int64_t onFirst) {
    Location loc = part.getLoc();
    Value bias;
    if (onFirst >= 0) {
      auto product = cast<MatmulOp>(part.getDefiningOp());
      bias = product.getBias();
      product.getBiasMutable().clear();
    }
    auto total = SumOverOp::create(b, loc, part, nn::Axis::Tensor, ranks);
    Value made = total;
    if (bias)
      made = nn::add(b, loc, total,
                     broadcastTrailing(b, loc, bias,
                                       cast<RankedTensorType>(part.getType())));
    part.replaceAllUsesExcept(made, total);
  }

  /// A rank's part of each sample's numbers. In front of the dimension that is
  /// cut a sample has rows, each with numbers of all ranks: row p of P of
  /// sample s is drawn as part of sample (s * P + p) * ranks + this rank.
  void draw(RandomOp op, const Part &part) {
    Location loc = op.getLoc();
    ArrayRef<int64_t> shape = tensorType(op.getResult()).getShape();
    auto vector = cast<RankedTensorType>(op.getSamples().getType());
    const int64_t rows = llvm::product_of(shape.take_front(part.dim)),
                  each = rows / vector.getDimSize(0);
    Value samples = op.getSamples();
    if (each > 1) {
      auto table = vector.clone({vector.getDimSize(0), each});
      Value of = broadcastLeading(b, loc, samples, table);
      Value first =
          arith::MulIOp::create(b, loc, of, integers(loc, table, each));
      Value row = IotaOp::create(b, loc, table, b.getI64IntegerAttr(1));
      samples =
          reshapeTo(b, loc, arith::AddIOp::create(b, loc, first, row), {rows});
    }
    samples = number(samples);
    const RankedTensorType own = typeOf(op.getResult(), part);
    SmallVector<int64_t> drawn(own.getShape().drop_front(part.dim));
    drawn.insert(drawn.begin(), rows);
    Value made = RandomOp::create(b, loc, own.clone(drawn), op.getSeed(),
                                  samples, op.getStreamAttr());
    op.replaceAllUsesWith(reshapeTo(b, loc, made, own.getShape()));
    op.erase();
    fromParameter.clear(); // A new op may have its address.
  }

  Value integers(Location loc, RankedTensorType type, int64_t number) {
    return arith::ConstantOp::create(
        b, loc,
        DenseElementsAttr::get(
            type, IntegerAttr::get(type.getElementType(), number)));
  }

  /// Each sample's number times the ranks, plus this rank's.
  Value number(Value samples) {
    Value &known = numbered[samples];
    if (known)
      return known;
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(&forward.front());
    if (Operation *maker = samples.getDefiningOp())
      b.setInsertionPointAfter(maker);
    Location loc = samples.getLoc();
    auto type = cast<RankedTensorType>(samples.getType());
    Value first =
        arith::MulIOp::create(b, loc, samples, integers(loc, type, ranks));
    return known = arith::AddIOp::create(
               b, loc, first, broadcastLeading(b, loc, placeArgument(), type));
  }

  /// The argument that holds this rank's number.
  Value placeArgument() {
    if (place)
      return place;
    const unsigned index = forward.getNumArguments();
    std::string name = kPlaceFeed.str();
    for (unsigned i = 0; i < index;)
      if (train::argName(forward, i++) == name) { // An input of the model.
        name += "_of_rank";
        i = 0;
      }
    auto attrs = b.getDictionaryAttr(
        {b.getNamedAttr(
             TrainDialect::kRole,
             train::RoleAttr::get(b.getContext(), train::Role::Scalar)),
         b.getNamedAttr(TrainDialect::kName, b.getStringAttr(name)),
         b.getNamedAttr(TrainDialect::kFeed, b.getStringAttr(kPlaceFeed))});
    LogicalResult inserted =
        forward.insertArgument(index, RankedTensorType::get({}, b.getI64Type()),
                               attrs, NameLoc::get(b.getStringAttr(name)));
    assert(succeeded(inserted) && "a function takes any argument");
    (void)inserted;
    return place = forward.getArgument(index);
  }
};

struct Cut : impl::CutBase<Cut> {
  using CutBase::CutBase;

  void runOnOperation() override {
    auto forward = getOperation().lookupSymbol<func::FuncOp>("forward");
    if (!forward || ranks == 1)
      return;
    if (ranks < 1) {
      emitFault(forward.getLoc(), FailureKind::Usage)
          << "can't deal heads and columns to " << ranks.getValue() << " ranks";
      return signalPassFailure();
    }
    Bundles bundles = findBundles(forward, ranks);
    if (bundles.found.empty()) {
      refuse(forward, bundles.refused);
      return signalPassFailure();
    }
    Rewriter rewriter(forward, ranks);
    for (Bundle &bundle : bundles.found)
      rewriter.rewrite(bundle);
    rewriter.finish();
  }

private:
  void refuse(func::FuncOp forward, ArrayRef<NoBundle> refused) {
    InFlightDiagnostic diag =
        emitFault(forward.getLoc(), FailureKind::Unsupported)
        << "the model has no heads or hidden columns that " << ranks.getValue()
        << " ranks could share";
    for (const NoBundle &each : refused.take_front(kShownReasons))
      diag.attachNote(each.product->getLoc())
          << "the sum of '" << tmc::nameOf(each.product)
          << "' stays whole: " << each.why;
    if (refused.size() > kShownReasons)
      diag.attachNote(forward.getLoc())
          << "and " << refused.size() - kShownReasons << " more";
  }
};

} // namespace
} // namespace tmc
