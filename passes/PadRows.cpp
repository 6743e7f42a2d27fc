// PadRows.cpp - -tmc-pad-rows: rows of logits in whole 16 bytes.
//
// Tensor cores want the rows of factors and results in multiples of 16 bytes. A
// vocabulary of 50257 classes breaks that for the three largest products of a
// step: the logits, and both products by their gradient. So the table gets rows
// of zeros behind its own, and the loss knows how many columns are classes:
//
//     logits = x table^T                      [R, 50257]
//     loss   = cross_entropy(logits)
//
//     padded = pad(table)                     [50304, C]
//     logits = x padded^T                     [R, 50304]
//     loss   = cross_entropy(logits) {vocabulary = 50257}
//
// The gradient of the padded logits is zero behind the classes, and that of the
// table is a slice: the first rows, where they lie. Model, checkpoint and names
// stay as they are.

#include "passes/Passes.h"

#include "dialects/nn/Builders.h"
#include "dialects/nn/NN.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;

namespace tmc {
#define GEN_PASS_DEF_PADROWS
#include "passes/Passes.h.inc"

namespace {
using namespace nn;

/// Columns of padded logits are a multiple of the first number, 16 bytes in 16
/// bits, or of the second, a tile of a product's result, if that adds at most
/// one part in `kFewPart`.
constexpr int64_t kAligned = 8, kTile = 64, kFewPart = 64;

int64_t paddedColumns(int64_t classes) {
  const int64_t tiled = (classes + kTile - 1) / kTile * kTile;
  if ((tiled - classes) * kFewPart <= classes)
    return tiled;
  return (classes + kAligned - 1) / kAligned * kAligned;
}

/// `type` with another size of dimension `dim`.
RankedTensorType resized(RankedTensorType type, int64_t dim, int64_t size) {
  SmallVector<int64_t> shape(type.getShape());
  shape[dim] = size;
  return type.clone(shape);
}

/// `value` with zeros behind it along `dim`.
Value padTo(OpBuilder &b, Location loc, Value value, int64_t dim,
            int64_t size) {
  RankedTensorType type = tensorType(value);
  return PadOp::create(b, loc, resized(type, dim, size), value,
                       SmallVector<int64_t>(type.getRank(), 0),
                       SmallVector<int64_t>(type.getRank(), 1));
}

/// A product that gives logits, and the ops that pick and order the rows of
/// these, the last first.
struct Logits {
  MatmulOp product;
  SmallVector<Operation *> picks;
};

/// The product that makes `logits`, if only reshapes and slices stand between,
/// and these leave the columns as they are.
std::optional<Logits> logitsOf(Value logits) {
  Logits found;
  const int64_t columns = tensorType(logits).getShape().back();
  while (true) {
    Operation *op = logits.getDefiningOp();
    if (auto product = dyn_cast_or_null<MatmulOp>(op)) {
      found.product = product;
      const bool isPlain =
          !product.getAcc() && !product.getLhsScale() && !product.getRhsScale();
      return isPlain ? std::optional(found) : std::nullopt;
    }
    if (!isa_and_nonnull<ReshapeOp, SliceOp>(op))
      return std::nullopt;
    logits = op->getOperand(0);
    RankedTensorType type = tensorType(logits);
    if (type.getRank() == 0 || type.getShape().back() != columns)
      return std::nullopt;
    found.picks.push_back(op);
  }
}

struct PadRows : impl::PadRowsBase<PadRows> {
  using PadRowsBase::PadRowsBase;

  void runOnOperation() override {
    getOperation()->walk([&](CrossEntropyOp loss) { pad(loss); });
    getOperation()->walk([&](LinearCrossEntropyOp loss) { pad(loss); });
  }

private:
  /// The padded columns; nothing where rows are aligned or no tensor core
  /// multiplies `element`.
  std::optional<int64_t> columnsFor(Type element, int64_t classes) const {
    const bool isNarrow = element.isBF16() || element.isF16();
    if (!(isNarrow || (narrow && element.isF32())) || classes % kAligned == 0)
      return std::nullopt;
    return paddedColumns(classes);
  }

  void pad(CrossEntropyOp loss) {
    std::optional<Logits> found = logitsOf(loss.getLogits());
    if (loss.getVocabulary() || !found)
      return;
    RankedTensorType type = tensorType(found->product.getResult());
    const int64_t classes = type.getShape().back();
    std::optional<int64_t> columns = columnsFor(type.getElementType(), classes);
    if (!columns)
      return;
    OpBuilder b(loss.getContext());
    Value padded = pad(b, found->product, *columns);
    for (Operation *pick : llvm::reverse(found->picks)) {
      b.setInsertionPointAfter(pick);
      Operation *wider = b.clone(*pick);
      RankedTensorType old = tensorType(pick->getResult(0));
      wider->setOperand(0, padded);
      padded = wider->getResult(0);
      padded.setType(resized(old, old.getRank() - 1, *columns));
    }
    loss.getLogitsMutable().assign(padded);
    loss.setVocabulary(classes);
    for (Operation *pick : found->picks)
      if (pick->use_empty())
        pick->erase();
  }

  /// The product with `columns`; what else reads the old one reads a slice.
  Value pad(OpBuilder &b, MatmulOp product, int64_t columns) {
    b.setInsertionPoint(product);
    Location loc = product.getLoc();
    RankedTensorType type = tensorType(product.getResult());
    const int64_t last = type.getRank() - 1;
    const int64_t rank = tensorType(product.getRhs()).getRank();
    Value rhs = padTo(b, loc, product.getRhs(),
                      rank - 1 - product.getTransposeRhs(), columns);
    Value bias = product.getBias();
    if (bias)
      bias = padTo(b, loc, bias, 0, columns);
    auto wide = MatmulOp::create(
        b, loc, resized(type, last, columns), product.getLhs(), rhs, bias,
        Value(), Value(), Value(), product.getTransposeLhsAttr(),
        product.getTransposeRhsAttr(), product.getTf32Attr());
    wide->setDiscardableAttrs(product->getDiscardableAttrDictionary());
    product.replaceAllUsesWith(
        SliceOp::create(b, loc, type, wide,
                        SmallVector<int64_t>(type.getRank(), 0),
                        SmallVector<int64_t>(type.getRank(), 1))
            .getResult());
    product.erase();
    return wide;
  }

  void pad(LinearCrossEntropyOp loss) {
    const int64_t classes = tensorType(loss.getTable()).getDimSize(0);
    std::optional<int64_t> columns =
        columnsFor(tensorType(loss.getX()).getElementType(), classes);
    if (loss.getVocabulary() || !columns)
      return;
    OpBuilder b(loss);
    Location loc = loss.getLoc();
    loss.getTableMutable().assign(padTo(b, loc, loss.getTable(), 0, *columns));
    if (loss.getBias())
      loss.getBiasMutable().assign(padTo(b, loc, loss.getBias(), 0, *columns));
    loss.setVocabulary(classes);
  }
};

} // namespace
} // namespace tmc
