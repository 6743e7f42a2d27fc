#include "driver/verify/WholeStep.h"

#include "dialects/nn/Builders.h"
#include "dialects/nn/Ranks.h"

using namespace mlir;
using namespace tmc;
using train::TrainDialect;

namespace {

/// A value that holds tensors, of each of which a rank of tp has a piece.
class CutValue {
public:
  CutValue(OpBuilder &b, Location loc, DictionaryAttr attrs,
           RankedTensorType piece, int64_t ranks)
      : b(b), loc(loc), piece(piece), ranks(ranks) {
    auto cut = attrs.getAs<train::CutAttr>(TrainDialect::kCut);
    whole = cut.getWhole().clone(piece.getElementType());
    for (const train::NamedTensor &tensor : train::namedTensors(attrs, piece))
      parts.push_back({tensor.type, tensor.chunk});
  }

  RankedTensorType wholeType() const { return whole; }

  /// This rank's pieces of all parts.
  Value pieceOf(Value value) {
    SmallVector<Value> pieces;
    int64_t row = 0;
    for (const auto &[type, chunk] : parts) {
      Value part = rowsOf(value, row, type);
      row += type.getDimSize(0);
      const int64_t rows = type.getNumElements() / (chunk * ranks);
      part = nn::reshapeTo(b, loc, part, {rows, ranks, chunk});
      part = nn::TransposeOp::create(b, loc, part, ArrayRef<int64_t>{1, 0, 2});
      auto own = nn::ShardOfOp::create(b, loc, part, nn::Axis::Tensor, ranks);
      own.getResult().setType(
          RankedTensorType::get({rows * chunk}, type.getElementType()));
      pieces.push_back(own);
    }
    return nn::reshapeTo(b, loc, joined(pieces), piece.getShape());
  }

  /// The whole of all ranks' pieces.
  Value wholeOf(Value value) {
    SmallVector<Value> wholes;
    Value flat = nn::reshapeTo(b, loc, value, {piece.getNumElements()});
    int64_t at = 0;
    for (const auto &[type, chunk] : parts) {
      const int64_t rows = type.getNumElements() / (chunk * ranks);
      auto own = RankedTensorType::get({rows * chunk}, type.getElementType());
      Value its = rowsOf(flat, at, own);
      at += rows * chunk;
      Value all = nn::GatherOp::create(
          b, loc,
          RankedTensorType::get({ranks, rows, chunk}, type.getElementType()),
          its, nn::Axis::Tensor, ranks);
      all = nn::TransposeOp::create(b, loc, all, ArrayRef<int64_t>{1, 0, 2});
      wholes.push_back(nn::reshapeTo(b, loc, all, {type.getNumElements()}));
    }
    return nn::reshapeTo(b, loc, joined(wholes), whole.getShape());
  }

private:
  struct Part {
    RankedTensorType type; // The whole's.
    int64_t chunk;
  };
  OpBuilder &b;
  Location loc;
  RankedTensorType piece, whole;
  const int64_t ranks;
  SmallVector<Part> parts;

  /// Rows of `value` from `row` on, as many as `type` has.
  Value rowsOf(Value value, int64_t row, RankedTensorType type) {
    SmallVector<int64_t> offsets(type.getRank(), 0), steps(type.getRank(), 1);
    offsets[0] = row;
    return nn::SliceOp::create(b, loc, type, value, offsets, steps);
  }
  Value joined(ArrayRef<Value> values) {
    return values.size() == 1 ? values[0]
                              : nn::ConcatOp::create(b, loc, values, /*dim=*/0);
  }
};

/// The attributes of an argument that holds whole tensors.
void removeCut(train::StepOp step, unsigned index, int64_t ranks) {
  step.removeArgAttr(index, TrainDialect::kCut);
  auto parts = step.getArgAttrOfType<ArrayAttr>(index, TrainDialect::kParts);
  if (parts)
    step.setArgAttr(index, TrainDialect::kParts,
                    train::partsBeside(parts, 1, ranks, ""));
}

} // namespace

void tmc::makeWhole(train::StepOp step, const Mesh &mesh) {
  Block &block = step.getBody().front();
  Operation *ret = block.getTerminator();
  OpBuilder b = OpBuilder::atBlockBegin(&block);
  auto wholeOf = [&](unsigned index) {
    auto whole = step.getArgAttrOfType<TypeAttr>(index, TrainDialect::kWhole);
    return cast<RankedTensorType>(whole ? whole.getValue()
                                        : step.getArgumentTypes()[index]);
  };
  auto isCut = [&](unsigned index) {
    return bool(step.getArgAttr(index, TrainDialect::kCut));
  };
  for (OpOperand &returned : ret->getOpOperands()) {
    std::optional<unsigned> arg =
        train::updatedArg(step, returned.getOperandNumber());
    if (!arg)
      continue;
    b.setInsertionPoint(ret);
    if (step.getArgAttr(*arg, TrainDialect::kWhole))
      returned.set(nn::GatherOp::create(b, ret->getLoc(), wholeOf(*arg),
                                        returned.get(), nn::Axis::Data,
                                        mesh.data));
    if (isCut(*arg))
      returned.set(CutValue(b, ret->getLoc(), step.getArgAttrDict(*arg),
                            wholeOf(*arg), mesh.tensor)
                       .wholeOf(returned.get()));
  }
  for (BlockArgument argument : block.getArguments()) {
    const unsigned index = argument.getArgNumber();
    const auto held = cast<RankedTensorType>(argument.getType()),
               piece = wholeOf(index);
    const bool isShard =
        step.getArgAttr(index, TrainDialect::kWhole) != Attribute();
    if (!isShard && !isCut(index))
      continue;
    b.setInsertionPointToStart(&block);
    Value own = argument;
    if (isCut(index)) {
      CutValue cut(b, argument.getLoc(), step.getArgAttrDict(index), piece,
                   mesh.tensor);
      argument.setType(cut.wholeType());
      own = cut.pieceOf(argument);
    } else {
      argument.setType(piece);
    }
    // A state has an element for several of its parameter's: shards of both are
    // cut alike, and nn.shard_of would cut the state by itself.
    if (isShard) {
      auto shard = nn::ShardOfOp::create(b, argument.getLoc(), own,
                                         nn::Axis::Data, mesh.data);
      shard.getResult().setType(held);
      own = shard;
    }
    Operation *last = own.getDefiningOp();
    argument.replaceUsesWithIf(own, [&](OpOperand &use) {
      Operation *user = use.getOwner();
      return user->getBlock() != &block || last->isBeforeInBlock(user);
    });
    step.removeArgAttr(index, TrainDialect::kWhole);
    if (isCut(index))
      removeCut(step, index, mesh.tensor);
  }
  step.setFunctionType(FunctionType::get(
      step.getContext(), block.getArgumentTypes(), ret->getOperandTypes()));
}
