#include "passes/Parts.h"

#include "dialects/interfaces/Interfaces.h"
#include "dialects/nn/Builders.h"
#include "dialects/nn/NN.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace tmc;
using namespace tmc::nn;

RankedTensorType tmc::pieceType(Type type, const Part &part, Samples samples) {
  auto tensor = cast<RankedTensorType>(type);
  SmallVector<int64_t> shape(tensor.getShape());
  int64_t &size = shape[part.dim];
  if (size % part.runs || size / part.runs * samples.mine % samples.all)
    return {};
  size = size / part.runs * samples.mine / samples.all * part.runs;
  return RankedTensorType::get(shape, tensor.getElementType());
}

Part tmc::reshaped(const Part &part, ArrayRef<int64_t> from,
                   ArrayRef<int64_t> to) {
  // The samples begin a new run after every `before`-th part of the elements,
  // so they are in the dimension in which such parts end.
  int64_t before = llvm::product_of(from.take_front(part.dim)) * part.runs;
  int64_t outer = 1;
  for (auto [dim, size] : llvm::enumerate(to)) {
    if (before % outer)
      break;
    if (before / outer < size)
      return Part::along(dim, before / outer, part.shift);
    outer *= size;
  }
  return {};
}

static Rejoined refuse(std::string why) { return {{}, std::move(why)}; }

/// Whether the row numbers `ids` of each sample refer to rows of its own in
/// `table`, which has equally many for each sample.
static bool areInOwnRows(const Part &ids, Type table, Samples samples) {
  int64_t rows = cast<RankedTensorType>(table).getDimSize(0);
  return ids.isCut() && ids.shift > 0 && ids.shift * samples.all == rows;
}

/// The shift of an op's result, if an operand has a shift; nothing if the
/// result doesn't follow from the operands' pieces.
static std::optional<int64_t> shiftOf(Operation *op, ArrayRef<Part> operands) {
  auto equal = [&](ArrayRef<Part> parts) -> std::optional<int64_t> {
    for (const Part &part : parts)
      if (!part.isCut() || part.shift != parts[0].shift)
        return std::nullopt;
    return parts[0].shift;
  };
  bool isNarrow =
      isa<arith::TruncIOp>(op) &&
      getElementTypeOrSelf(op->getResult(0)).getIntOrFloatBitWidth() < 32;
  if (isa<ReshapeOp, BroadcastOp, TransposeOp, CopyOp, SliceOp, arith::ExtSIOp,
          arith::TruncIOp>(op) &&
      !isNarrow)
    return operands[0].shift;
  if (isa<ConcatOp>(op))
    return equal(operands);
  if (isa<arith::SelectOp>(op) && operands[0].shift == 0)
    return equal(operands.drop_front());
  if (isa<arith::CmpIOp>(op) && equal(operands))
    return 0; // Both sides have the same shift.
  if (isa<arith::AddIOp>(op))
    return operands[0].shift + operands[1].shift;
  if (isa<arith::SubIOp>(op))
    return operands[0].shift - operands[1].shift;
  if (isa<arith::MulIOp>(op))
    for (unsigned i : {0u, 1u}) {
      DenseElementsAttr factor;
      if (operands[i].shift == 0 &&
          matchPattern(op->getOperand(i), m_Constant(&factor)) &&
          factor.isSplat())
        return operands[1 - i].shift *
               factor.getSplatValue<APInt>().getSExtValue();
    }
  return std::nullopt;
}

/// `rejoin` for ops with an operand that has a shift.
static Rejoined rejoinCounted(Operation *op, ArrayRef<Part> operands,
                              Samples samples) {
  if (auto lookup = dyn_cast<EmbeddingOp>(op)) {
    const Part &table = operands[0], &ids = operands[1];
    if (table.isCut() && table.isPlain() && table.dim == 0 &&
        areInOwnRows(ids, lookup.getTable().getType(), samples))
      return {{Part::along(ids.dim, ids.runs)}, ""};
  }
  if (auto sums = dyn_cast<EmbeddingGradOp>(op); sums && !sums.getAcc()) {
    const Part &ids = operands[0], &rows = operands[1];
    if (rows.isCut() && ids.liesAs(rows) && rows.shift == 0 &&
        areInOwnRows(ids, sums.getType(), samples))
      return {{Part::along(0)}, ""};
  }
  std::optional<int64_t> shift = shiftOf(op, operands);
  if (!shift)
    return refuse("it takes numbers that count over the whole batch");
  SmallVector<Part> still(operands);
  for (Part &part : still)
    part.shift = 0;
  Rejoined made = rejoin(op, still, samples);
  for (Part &part : made.results)
    part.shift = *shift;
  return made;
}

Rejoined tmc::rejoin(Operation *op, ArrayRef<Part> operands, Samples samples) {
  const Part *first = nullptr; // The first cut operand.
  bool isCounted = false;
  SmallVector<int64_t> dims;
  for (const Part &part : operands) {
    dims.push_back(part.dim);
    if (!part.isCut())
      continue;
    isCounted |= part.shift != 0;
    first = first ? first : &part;
    if (part.runs != first->runs)
      return refuse("its operands hold the batch in different orders");
  }
  if (!first)
    return {SmallVector<Part>(op->getNumResults()), ""};
  if (isCounted)
    return rejoinCounted(op, operands, samples);
  if (auto reshape = dyn_cast<ReshapeOp>(op)) {
    Part part = reshaped(*first, tensorType(reshape.getInput()).getShape(),
                         tensorType(reshape.getResult()).getShape());
    if (!part.isCut())
      return refuse(
          "it moves the batch inside a dimension that begins with another");
    return {{part}, ""};
  }
  auto interface = dyn_cast<CutOpInterface>(op);
  if (!interface)
    return refuse("it doesn't say how it is cut");
  BatchSplit split = interface.getSplit(dims);
  if (!split)
    return refuse(split.refusal);
  Rejoined made;
  for (auto [result, how] : llvm::zip_equal(op->getResults(), split.results)) {
    made.results.push_back(how.kind == Rejoin::Concat
                               ? Part::along(how.dim, first->runs)
                           : how.kind == Rejoin::Sum ? Part{Part::Sum}
                                                     : Part{});
    // Runs stay if each index has its own result.
    int64_t cutSize = tensorType(op->getOperand(first - operands.begin()))
                          .getDimSize(first->dim);
    if (first->runs > 1 && how.kind == Rejoin::Concat &&
        tensorType(result).getDimSize(how.dim) != cutSize)
      return refuse("it takes the batch for a dimension's outer part");
  }
  return made;
}
