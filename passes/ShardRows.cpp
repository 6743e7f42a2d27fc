#include "passes/ShardRows.h"

#include "dialects/nn/Builders.h"
#include "dialects/train/Train.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace tmc;

bool ShardRows::areFew(Value ids, RankedTensorType table) const {
  return cast<RankedTensorType>(ids.getType()).getNumElements() <
         int64_t(llvm::divideCeil(table.getDimSize(0), ranks));
}

std::optional<RowsGradient> ShardRows::rowsIn(Value gradient) const {
  RowsGradient part;
  if (auto round = gradient.getDefiningOp<arith::TruncFOp>()) {
    part.rounded = getElementTypeOrSelf(round.getType());
    gradient = round.getIn();
  }
  if (auto sum = gradient.getDefiningOp<arith::AddFOp>()) {
    // Each rank rounds the other part before it travels, and the sum is rounded
    // once: the rows would come between the two.
    if (part.rounded)
      return {};
    for (auto [one, other] :
         {std::pair(sum.getLhs(), sum.getRhs()), {sum.getRhs(), sum.getLhs()}})
      if (auto rows = one.getDefiningOp<nn::EmbeddingGradOp>();
          rows && !part.rows) {
        part.rows = rows;
        part.rest = other;
      }
    // A loop adds up all gradients of the table, so the rows are in both parts.
    if (part.rest && part.rest.getDefiningOp<train::MicroBatchOp>())
      return {};
  } else {
    part.rows = gradient.getDefiningOp<nn::EmbeddingGradOp>();
  }
  if (!part.rows || part.rows.getAcc() ||
      !areFew(part.rows.getIds(), part.rows.getType()))
    return {};
  return part;
}

/// The values of all ranks, rank by rank.
Value ShardRows::valuesOfAll(OpBuilder &b, Value value) const {
  auto type = cast<RankedTensorType>(value.getType());
  SmallVector<int64_t> shape{ranks};
  llvm::append_range(shape, type.getShape());
  return nn::GatherOp::create(b, value.getLoc(), type.clone(shape), value,
                              nn::Axis::Data, ranks);
}

Value ShardRows::idsOfAll(OpBuilder &b, Value ids) {
  Block *block = b.getInsertionBlock();
  Value &known = gathered[{ids, block}];
  if (known)
    return known;
  OpBuilder::InsertionGuard guard(b);
  Operation *maker = ids.getDefiningOp();
  if (maker && maker->getBlock() == block)
    b.setInsertionPointAfter(maker);
  else
    b.setInsertionPointToStart(block);
  return known = valuesOfAll(b, ids);
}

Value ShardRows::sum(OpBuilder &b, RowsGradient part, Value rest) {
  Location loc = part.rows.getLoc();
  Value rows = part.rows.getGrad();
  Type element = getElementTypeOrSelf(rows);
  if (auto wide = rows.getDefiningOp<arith::ExtFOp>())
    rows = wide.getIn();
  Value ids = idsOfAll(b, part.rows.getIds());
  Value all = nn::convertTo(b, loc, valuesOfAll(b, rows), element);
  Value sum = nn::EmbeddingGradShardOp::create(
      b, loc, ids, all, rest, nn::Axis::Data, ranks, part.rows.getType());
  return part.rounded ? nn::convertTo(b, loc, sum, part.rounded) : sum;
}

Value ShardRows::lookUp(OpBuilder &b, nn::EmbeddingOp lookup, Value shard) {
  Location loc = lookup.getLoc();
  Value pieces = nn::EmbeddingPiecesOp::create(
      b, loc, shard, idsOfAll(b, lookup.getIds()), nn::Axis::Data, ranks,
      lookup.getTable().getType());
  Value own = nn::ExchangeOp::create(b, loc, pieces, nn::Axis::Data, ranks);
  Value rows = nn::SumPiecesOp::create(b, loc, own);
  RankedTensorType type = lookup.getType();
  Value unpadded = nn::SliceOp::create(
      b, loc,
      RankedTensorType::get({type.getNumElements()}, type.getElementType()),
      rows, ArrayRef<int64_t>{0}, ArrayRef<int64_t>{1});
  return nn::ReshapeOp::create(b, loc, type, unpadded);
}

void ShardRows::lookUpInShards(Operation *step) {
  SmallVector<nn::EmbeddingOp> lookups;
  step->walk([&](nn::EmbeddingOp lookup) {
    if (auto gather = lookup.getTable().getDefiningOp<nn::GatherOp>();
        gather && gather->getBlock() == lookup->getBlock() &&
        areFew(lookup.getIds(), lookup.getTable().getType()))
      lookups.push_back(lookup);
  });
  for (nn::EmbeddingOp lookup : lookups) {
    auto gather = lookup.getTable().getDefiningOp<nn::GatherOp>();
    OpBuilder b(lookup);
    lookup.replaceAllUsesWith(lookUp(b, lookup, gather.getInput()));
    lookup.erase();
    if (gather->use_empty()) {
      gather.erase();
      continue;
    }
    Operation *first = *gather->user_begin();
    for (Operation *user : gather->getUsers())
      if (user->isBeforeInBlock(first))
        first = user;
    gather->moveBefore(first);
  }
}
