// LayOutCodes.cpp - codes of 8 bits in the order in which a GPU sums them.
//
//     one scale           nn.quantize               ->  nn.quantize_both
//     128 of rows and of columns:
//                         nn.quantize, nn.quantize  ->  nn.quantize_blocks
//     squares             nn.quantize               ->  nn.quantize_blocks
//
// Codes with one scale are the same in both orders. Codes in blocks along the
// summed dimension differ by order, and their scales are packed (Scales.h).

#include "passes/Passes.h"

#include "compiler/analysis/Storage.h"
#include "dialects/nn/Builders.h"
#include "dialects/nn/Scales.h"
#include "runtime/kernels/Matmul.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;

namespace tmc {
#define GEN_PASS_DEF_LAYOUTCODES
#include "passes/Passes.h.inc"

namespace {

using nn::tensorType;

struct LayOutCodes : impl::LayOutCodesBase<LayOutCodes> {
  using LayOutCodesBase::LayOutCodesBase;

  void runOnOperation() override {
    made.clear();
    replaced.clear();
    blocks.clear();
    SmallVector<nn::MatmulOp> products;
    auto isWhole = [](Value scale) {
      return scale && tensorType(scale).getRank() == 0;
    };
    getOperation().walk([&](nn::MatmulOp op) {
      if (isWhole(op.getLhsScale()) && isWhole(op.getRhsScale()))
        products.push_back(op);
      else if (std::optional<InBlocks> found = inBlocks(op))
        layOut(*found);
    });
    for (nn::MatmulOp op : products) {
      if (op.getTransposeLhs())
        op.getLhsMutable().assign(turned(op.getLhs()));
      if (!op.getTransposeRhs())
        op.getRhsMutable().assign(turned(op.getRhs()));
      op.setTransposeLhs(false);
      op.setTransposeRhs(true);
    }
    for (auto &[key, op] : blocks)
      markUnread(op);
    for (Operation *op : replaced)
      if (op->use_empty())
        op->erase();
  }

private:
  /// `codes` with their two innermost dimensions exchanged: if possible, by the
  /// kernel that makes the codes.
  Value turned(Value codes) {
    if (Value known = made.lookup(codes))
      return known;
    Operation *op = codes.getDefiningOp();
    Value result;
    if (auto quantize = dyn_cast_or_null<nn::QuantizeOp>(op);
        quantize && codes == quantize.getCodes())
      result = makeBoth(quantize, tensorType(codes)).getTurned();
    else if (nn::QuantizeOp source = quantizedBehindView(op))
      result = makeBoth(source, tensorType(codes), op).getTurned();
    else
      result = transpose(codes);
    return made[codes] = result;
  }

  /// The quantization whose codes `op` views.
  nn::QuantizeOp quantizedBehindView(Operation *op) {
    if (!op || !isView(op))
      return nullptr;
    auto source = op->getOperand(0).getDefiningOp<nn::QuantizeOp>();
    return source && op->getOperand(0) == source.getCodes() ? source : nullptr;
  }

  /// Quantizes in the shape of `type`, in both orders. Replaces `op`, and the
  /// view of its codes that has this shape.
  nn::QuantizeBothOp makeBoth(nn::QuantizeOp op, RankedTensorType type,
                              Operation *view = nullptr) {
    OpBuilder b(op);
    Location loc = op.getLoc();
    Value input = op.getInput();
    if (tensorType(input).getShape() != type.getShape())
      input = nn::ReshapeOp::create(
          b, loc, type.clone(tensorType(input).getElementType()), input);
    auto typeOf = [](Value value) { return value ? value.getType() : Type(); };
    auto both = nn::QuantizeBothOp::create(
        b, loc, type, op.getScale().getType(), nn::turnedType(type),
        typeOf(op.getAmax()), typeOf(op.getSaturated()), input,
        op.getHistory());
    made[both.getCodes()] = both.getTurned();
    if (view) {
      view->getResult(0).replaceAllUsesWith(both.getCodes());
      replaced.push_back(view);
    }
    Value codes = both.getCodes();
    if (tensorType(op.getCodes()).getShape() != type.getShape())
      codes = nn::ReshapeOp::create(b, loc, op.getCodes().getType(), codes);
    op.getCodes().replaceAllUsesWith(codes);
    op.getScale().replaceAllUsesWith(both.getScale());
    if (op.getHistory()) {
      op.getAmax().replaceAllUsesWith(both.getAmax());
      op.getSaturated().replaceAllUsesWith(both.getSaturated());
    }
    replaced.push_back(op);
    return both;
  }

  Value transpose(Value codes) {
    OpBuilder b(codes.getContext());
    b.setInsertionPointAfterValue(codes);
    int64_t rank = tensorType(codes).getRank();
    SmallVector<int64_t> order = llvm::to_vector(llvm::seq<int64_t>(0, rank));
    std::swap(order[rank - 1], order[rank - 2]);
    return nn::TransposeOp::create(b, codes.getLoc(), codes, order);
  }

  //===--------------------------------------------------------------------===//
  // Scales of blocks
  //===--------------------------------------------------------------------===//

  /// A product with scales of blocks, and the ops that quantize its factors.
  struct InBlocks {
    nn::MatmulOp product;
    nn::QuantizeOp factors[2];
  };

  /// `op` as a product that a GPU supports: of matrices quantized in blocks
  /// along the summed dimension, at least one of them in rows.
  std::optional<InBlocks> inBlocks(nn::MatmulOp op) {
    if (!op.getLhsScale() || tensorType(op.getLhs()).getRank() != 2)
      return std::nullopt;
    InBlocks found{op, {}};
    int64_t rows[2], k = 0;
    bool hasRows = false;
    for (unsigned i : {0u, 1u}) {
      Value codes = i ? op.getRhs() : op.getLhs(),
            scale = i ? op.getRhsScale() : op.getLhsScale();
      auto quantize = codes.getDefiningOp<nn::QuantizeOp>();
      if (!quantize || codes != quantize.getCodes() ||
          scale != quantize.getScale())
        return std::nullopt;
      RankedTensorType type = tensorType(codes);
      ScaleBlock block = *nn::scaleBlockOf(type, tensorType(scale));
      unsigned summed = op.getSummedDim(i);
      if ((summed ? block.columns : block.rows) != kScaleBlock)
        return std::nullopt;
      k = type.getDimSize(summed);
      rows[i] = type.getDimSize(1 - summed);
      hasRows |= (summed ? block.rows : block.columns) == 1;
      found.factors[i] = quantize;
    }
    DType out = runtimeType(op.getResult().getType());
    if (!hasRows || !Matmul::fitsBlocks(rows[0], rows[1], k, out))
      return std::nullopt;
    return found;
  }

  void layOut(const InBlocks &found) {
    nn::MatmulOp op = found.product;
    for (unsigned i : {0u, 1u}) {
      nn::QuantizeBlocksOp both = blocksOf(found.factors[i]);
      bool isTurned = op.getSummedDim(i) == 0;
      (i ? op.getRhsMutable() : op.getLhsMutable())
          .assign(isTurned ? both.getTurned() : both.getCodes());
      (i ? op.getRhsScaleMutable() : op.getLhsScaleMutable())
          .assign(isTurned ? both.getTurnedScale() : both.getScale());
    }
    op.setTransposeLhs(false);
    op.setTransposeRhs(true);
  }

  /// The op that makes all codes, in rows or in squares, of the input of `op`.
  nn::QuantizeBlocksOp blocksOf(nn::QuantizeOp op) {
    RankedTensorType type = tensorType(op.getCodes());
    ScaleBlock block = *nn::scaleBlockOf(type, tensorType(op.getScale()));
    bool areSquares = block.rows == kScaleBlock && block.columns == kScaleBlock;
    if (!llvm::is_contained(replaced, op))
      replaced.push_back(op);
    nn::QuantizeBlocksOp &both =
        blocks[{op.getInput(), type.getElementType(), unsigned(areSquares)}];
    if (!both) {
      OpBuilder b(op.getContext());
      b.setInsertionPointAfterValue(op.getInput());
      both = nn::QuantizeBlocksOp::create(b, op.getLoc(), op.getInput(),
                                          type.getElementType(), areSquares);
    }
    return both;
  }

  /// Leaves out the order that no product reads.
  void markUnread(nn::QuantizeBlocksOp op) {
    SmallVector<int64_t> unread;
    for (unsigned first : {0u, 2u})
      if (op->getResult(first).use_empty())
        unread.push_back(first);
    if (!unread.empty())
      op.setUnread(unread);
  }

  DenseMap<Value, Value> made;
  SmallVector<Operation *> replaced; // In the order in which they can be
                                     // erased.
  llvm::MapVector<std::tuple<Value, Type, unsigned>, nn::QuantizeBlocksOp>
      blocks;
};

} // namespace
} // namespace tmc
