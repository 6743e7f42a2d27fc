// Tile.cpp - -tmc-tile: computes the work between wide products in tiles of
// rows.
//
// A product whose result has longer rows than its factor opens a region. Ops
// that process those rows one by one belong to it, and products of these rows
// close it. The region is computed for a tile of the rows, then for the next
// one:
//
//     x [rows, 768] -> product -> [rows, 3072] -> gelu -> product
//       -> [rows, 768]
//
// A region whose rows another op reads (attention, a loss, a result of the
// function) isn't tiled.

#include "passes/Passes.h"
#include "passes/raise/Matchers.h"

#include "dialects/interfaces/Fault.h"
#include "dialects/nn/Builders.h"
#include "dialects/train/Train.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/SetVector.h"

#include <algorithm>
#include <optional>

using namespace mlir;

namespace tmc {
#define GEN_PASS_DEF_TILE
#include "passes/Passes.h.inc"

using namespace nn;
using train::TrainDialect;

namespace {

/// Rows of a tensor: all but the innermost dimension.
int64_t rowsOf(Value value) {
  return llvm::product_of(tensorType(value).getShape().drop_back());
}
int64_t widthOf(Value value) { return tensorType(value).getShape().back(); }

/// A product of rows with one matrix for all rows.
bool isRowProduct(Operation *op) {
  auto product = dyn_cast_or_null<MatmulOp>(op);
  return product && tensorType(product.getResult()).getRank() == 2 &&
         !product.getTransposeLhs() && !product.getAcc() &&
         !product.getLhsScale();
}

bool isWidening(Operation *op) {
  return isRowProduct(op) &&
         widthOf(op->getResult(0)) > widthOf(cast<MatmulOp>(op).getLhs());
}

/// A view that keeps rows in place: another shape of the rows, or a part of
/// each.
bool isRowView(Operation *op) {
  if (auto reshape = dyn_cast<ReshapeOp>(op))
    return tensorType(reshape.getResult()).getRank() > 0 &&
           tensorType(reshape.getInput()).getRank() > 0 &&
           widthOf(reshape.getResult()) == widthOf(reshape.getInput());
  auto slice = dyn_cast<SliceOp>(op);
  return slice && rowsOf(slice.getResult()) == rowsOf(slice.getInput());
}

/// A broadcast of one row, of one element for each row, or of one element. A
/// tile needs only its own part of the value.
bool isRepeated(Value value) {
  if (splatValue(value))
    return true;
  auto broadcast = value.getDefiningOp<BroadcastOp>();
  if (!broadcast)
    return false;
  const int64_t rank = tensorType(value).getRank();
  ArrayRef<int64_t> dims = broadcast.getDims();
  return dims.empty() || dims == ArrayRef<int64_t>{rank - 1} ||
         dims == ArrayRef<int64_t>(firstDims(rank - 1));
}

/// Everything between widening products and the products that close it.
class Region {
public:
  /// The region around `seed`, a widening product; none if an op outside reads
  /// its values.
  static std::optional<Region> around(MatmulOp seed) {
    Region region;
    region.rows = rowsOf(seed.getResult());
    SmallVector<Value> work{seed.getResult()};
    while (!work.empty()) {
      Value value = work.pop_back_val();
      if (region.inner.insert(value).second && !region.grow(value, work))
        return std::nullopt;
    }
    region.ops = llvm::to_vector(region.members);
    llvm::sort(region.ops, [](Operation *a, Operation *b) {
      return a->isBeforeInBlock(b);
    });
    for (Operation *op : region.ops)
      for (Operation *user : op->getUsers())
        if (!region.members.contains(user) &&
            user->isBeforeInBlock(region.ops.back()))
          return std::nullopt;
    return region;
  }

  bool holds(Operation *op) const { return members.contains(op); }

  /// Computes the region in `tiles` parts; the last one may have fewer rows.
  void cut(int64_t tiles) {
    const int64_t most = llvm::divideCeil(rows, std::min(tiles, rows));
    OpBuilder b(ops.back()->getBlock(), ++ops.back()->getIterator());
    llvm::MapVector<Value, SmallVector<Value>> parts;
    for (first = 0; first < rows; first += most) {
      count = std::min(most, rows - first);
      IRMapping map;
      for (Operation *op : ops) {
        Value made = clone(b, op, map);
        map.map(op->getResult(0), made);
        if (!inner.contains(op->getResult(0)))
          parts[op->getResult(0)].push_back(made);
      }
    }
    for (auto &[value, pieces] : parts)
      value.replaceAllUsesWith(ConcatOp::create(b, value.getLoc(), pieces, 0));
    for (Operation *op : llvm::reverse(ops))
      op->erase();
  }

private:
  int64_t rows = 0, first = 0, count = 0;
  DenseSet<Value> inner; // Produced and read by its ops alone.
  SetVector<Operation *> members;
  SmallVector<Operation *> ops; // In order.

  /// Adds the producer and the readers of `value`; false if one can't be added.
  bool grow(Value value, SmallVectorImpl<Value> &work) {
    Operation *made = value.getDefiningOp();
    if (!made || rowsOf(value) != rows || !take(made, work))
      return false;
    for (Operation *user : value.getUsers()) {
      if (!take(user, work))
        return false;
      if (!isRowProduct(user) || isWidening(user))
        work.push_back(user->getResult(0));
    }
    return true;
  }

  bool take(Operation *op, SmallVectorImpl<Value> &work) {
    if (op->getNumResults() != 1)
      return false;
    if (isRowProduct(op)) {
      // Rows of the region may be the left factor only.
      bool isRight =
          llvm::any_of(op->getOperands().drop_front(),
                       [&](Value operand) { return inner.contains(operand); });
      if (isRight || (inner.contains(op->getResult(0)) && !isWidening(op)))
        return false;
    } else if (isRowView(op)) {
      work.push_back(op->getOperand(0));
    } else if (isPointwise(op) || isa<GeluOp>(op)) {
      for (Value operand : op->getOperands())
        if (!isRepeated(operand))
          work.push_back(operand);
    } else {
      return false;
    }
    members.insert(op);
    return true;
  }

  RankedTensorType tileOf(Value value) {
    return RankedTensorType::get({count, widthOf(value)},
                                 tensorType(value).getElementType());
  }

  /// The rows of `value`, which is computed outside.
  Value sliced(OpBuilder &b, Value value) {
    Location loc = value.getLoc();
    const int64_t width = widthOf(value);
    Value flat = reshapeTo(b, loc, value, {rows, width});
    return SliceOp::create(b, loc, tileOf(value), flat,
                           ArrayRef<int64_t>{first, 0},
                           ArrayRef<int64_t>{1, 1});
  }

  Value repeated(OpBuilder &b, Value value) {
    Location loc = value.getLoc();
    RankedTensorType type = tileOf(value);
    if (std::optional<double> number = splatValue(value))
      return splat(b, loc, type, *number);
    auto broadcast = value.getDefiningOp<BroadcastOp>();
    Value input = broadcast.getInput();
    if (broadcast.getDims().empty())
      return broadcastTo(b, loc, input, type, {});
    if (broadcast.getDims().back() == tensorType(value).getRank() - 1)
      return broadcastTo(b, loc, input, type, {1});
    Value column = reshapeTo(b, loc, input, {rows});
    auto piece = RankedTensorType::get({count}, type.getElementType());
    column = SliceOp::create(b, loc, piece, column, ArrayRef<int64_t>{first},
                             ArrayRef<int64_t>{1});
    return broadcastTo(b, loc, column, type, {0});
  }

  Value clone(OpBuilder &b, Operation *op, const IRMapping &map) {
    Location loc = op->getLoc();
    if (auto product = dyn_cast<MatmulOp>(op)) {
      Value lhs = product.getLhs();
      Value piece = inner.contains(lhs) ? map.lookup(lhs) : sliced(b, lhs);
      auto made = cast<MatmulOp>(b.clone(*op));
      made.getLhsMutable().assign(piece); // Both factors may be one value.
      made.getResult().setType(tileOf(product.getResult()));
      return made;
    }
    if (isa<ReshapeOp>(op))
      return map.lookup(op->getOperand(0)); // Tiles have two dimensions.
    if (auto slice = dyn_cast<SliceOp>(op))
      return SliceOp::create(b, loc, tileOf(slice.getResult()),
                             map.lookup(slice.getInput()),
                             ArrayRef<int64_t>{0, slice.getOffsets().back()},
                             ArrayRef<int64_t>{1, slice.getSteps().back()});
    IRMapping operands;
    for (Value operand : op->getOperands())
      if (!operands.contains(operand))
        operands.map(operand, inner.contains(operand) ? map.lookup(operand)
                                                      : repeated(b, operand));
    Operation *made = b.clone(*op, operands);
    made->getResult(0).setType(tileOf(op->getResult(0)));
    return made->getResult(0);
  }
};

struct Tile : impl::TileBase<Tile> {
  using TileBase::TileBase;

  void runOnOperation() override {
    func::FuncOp function = getOperation();
    if (tiles < 1) {
      emitFault(function.getLoc(), FailureKind::Usage)
          << "can't cut rows into " << tiles.getValue() << " tiles";
      return signalPassFailure();
    }
    if (tiles == 1 || function.isDeclaration())
      return;
    SmallVector<Region> regions;
    for (auto product : function.getOps<MatmulOp>())
      if (isWidening(product) && llvm::none_of(regions, [&](const Region &r) {
            return r.holds(product);
          }))
        if (std::optional<Region> region = Region::around(product))
          regions.push_back(std::move(*region));
    for (Region &region : regions)
      region.cut(tiles);
    if (!regions.empty())
      function->setAttr(TrainDialect::kTiles,
                        Builder(function).getI64IntegerAttr(tiles));
  }
};

} // namespace
} // namespace tmc
