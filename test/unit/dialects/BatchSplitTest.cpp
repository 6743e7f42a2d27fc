// BatchSplitTest.cpp - interpreter(pieces, rejoined) = interpreter(whole).
//
// For each case and each way of saying which dimension of each operand holds
// the batch (or that none does), `getSplit` either refuses or says how results
// rejoin. Whatever it accepts is tried: operands are cut into pieces, the op is
// run on each with the same attributes and smaller types, and the results, put
// together as it says, must be those of the whole.

#include "test/unit/dialects/Cases.h"

#include "dialects/interfaces/Interfaces.h"
#include "dialects/nn/NN.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Verifier.h"

#include <gtest/gtest.h>

#include <map>

using namespace mlir;
using namespace tmc;
using namespace tmc::test;
using reference::Tensor;

constexpr int64_t kPieces = 2;
constexpr double kTolerance = 1e-12;

static RankedTensorType pieceType(Type type, int64_t dim) {
  auto tensor = cast<RankedTensorType>(type);
  if (dim < 0)
    return tensor;
  SmallVector<int64_t> shape(tensor.getShape());
  shape[dim] /= kPieces;
  return RankedTensorType::get(shape, tensor.getElementType());
}

/// Piece `k` of `whole` along `dim`.
static Tensor cut(const Tensor &whole, int64_t dim, int64_t k) {
  if (dim < 0)
    return whole;
  SmallVector<int64_t> shape = whole.shape;
  shape[dim] /= kPieces;
  Tensor piece(whole.element, shape);
  reference::forEachIndex(shape, [&](ArrayRef<int64_t> index, int64_t i) {
    SmallVector<int64_t> source(index);
    source[dim] += k * shape[dim];
    piece.set(i, whole, reference::linearIndex(source, whole.shape));
  });
  return piece;
}

/// Puts the results of the pieces together.
static Tensor rejoin(ArrayRef<Tensor> pieces, Rejoin how,
                     ArrayRef<int64_t> shape) {
  Tensor whole(pieces[0].element, shape);
  if (how.kind == Rejoin::Whole)
    return pieces.back();
  for (auto [k, piece] : llvm::enumerate(pieces)) {
    if (how.kind == Rejoin::Sum) {
      for (int64_t i = 0; i < piece.size(); ++i) {
        if (piece.isFloat())
          whole.floats[i] += piece.floats[i];
        else
          whole.ints[i] += piece.ints[i];
      }
      continue;
    }
    reference::forEachIndex(
        piece.shape, [&](ArrayRef<int64_t> index, int64_t i) {
          SmallVector<int64_t> target(index);
          target[how.dim] += k * piece.shape[how.dim];
          whole.set(reference::linearIndex(target, whole.shape), piece, i);
        });
  }
  return whole;
}

/// The op with the piece's types, in a function of its own; null if those types
/// don't make a valid op, `*why` says how so.
static OwningOpRef<func::FuncOp> buildPiece(Operation *op,
                                            ArrayRef<int64_t> batchDims,
                                            ArrayRef<Rejoin> rejoins) {
  MLIRContext *context = op->getContext();
  SmallVector<Type> operands, results;
  for (auto [type, dim] : llvm::zip_equal(op->getOperandTypes(), batchDims))
    operands.push_back(pieceType(type, dim));
  for (auto [type, how] : llvm::zip_equal(op->getResultTypes(), rejoins))
    results.push_back(
        pieceType(type, how.kind == Rejoin::Concat ? how.dim : -1));

  OpBuilder builder(context);
  OwningOpRef<func::FuncOp> function =
      func::FuncOp::create(builder, op->getLoc(), "piece",
                           builder.getFunctionType(operands, results));
  Block *block = function->addEntryBlock();
  builder.setInsertionPointToStart(block);
  OperationState state(op->getLoc(), op->getName());
  state.addOperands(block->getArguments());
  state.addTypes(results);
  state.addAttributes(op->getAttrs());
  for (Region &region : op->getRegions()) {
    IRMapping mapping;
    region.cloneInto(state.addRegion(), mapping);
  }
  Operation *piece = builder.create(state);
  func::ReturnOp::create(builder, op->getLoc(), piece->getResults());
  return function;
}

/// Tries what `getSplit` says of `op` with these batch dimensions. Returns true
/// if it accepts to be cut.
static bool checkSplit(Operation *op, ArrayRef<int64_t> batchDims,
                       ArrayRef<Tensor> inputs, ArrayRef<Tensor> whole) {
  BatchSplit split = cast<BatchSplitOpInterface>(op).getSplit(batchDims);
  if (!split) {
    EXPECT_FALSE(split.refusal.empty());
    return false;
  }
  EXPECT_EQ(split.results.size(), op->getNumResults());
  for (auto [type, how] : llvm::zip_equal(op->getResultTypes(), split.results))
    if (how.kind == Rejoin::Concat &&
        (how.dim < 0 || how.dim >= cast<ShapedType>(type).getRank())) {
      ADD_FAILURE() << "it rejoins along dimension " << how.dim
                    << ", which the result doesn't have";
      return false;
    }
  for (auto [type, how] : llvm::zip_equal(op->getResultTypes(), split.results))
    if (how.kind == Rejoin::Concat &&
        cast<ShapedType>(type).getDimSize(how.dim) % kPieces != 0)
      return false; // this number of pieces doesn't fit; others may

  // A region's ops have the whole's types: the fused op is cut by its parts.
  if (op->getNumRegions())
    return true;
  OwningOpRef<func::FuncOp> function = buildPiece(op, batchDims, split.results);
  if (failed(verify(*function))) {
    ADD_FAILURE() << "it accepts a cut that makes no valid op";
    return false;
  }
  SmallVector<SmallVector<Tensor>> pieces(op->getNumResults());
  for (int64_t k = 0; k < kPieces; ++k) {
    SmallVector<Tensor> arguments;
    for (auto [input, dim] : llvm::zip_equal(inputs, batchDims))
      arguments.push_back(cut(input, dim, k));
    FailureOr<SmallVector<Tensor>> results =
        reference::interpret(function->getOperation(), arguments);
    if (failed(results)) {
      ADD_FAILURE() << "a piece can't be interpreted";
      return false;
    }
    for (auto [list, result] : llvm::zip_equal(pieces, *results))
      list.push_back(result);
  }
  for (unsigned r = 0; r < op->getNumResults(); ++r) {
    Tensor joined = rejoin(pieces[r], split.results[r], whole[r].shape);
    EXPECT_EQ(compare(whole[r], joined, kTolerance), "") << "result " << r;
  }
  return llvm::any_of(batchDims, [](int64_t dim) { return dim >= 0; });
}

/// True if some operands of a pointwise op hold the batch and others don't.
/// That is meant for splats, which have any shape that is wanted: it is the
/// caller's to see that the others have the piece's.
static bool needsSplats(Operation *op, ArrayRef<int64_t> batchDims) {
  auto holds = [](int64_t dim) { return dim >= 0; };
  return isa<arith::ArithDialect, math::MathDialect>(op->getDialect()) &&
         llvm::any_of(batchDims, holds) && !llvm::all_of(batchDims, holds);
}

/// Calls `visit` with every choice of one dimension, or -1, per operand, as far
/// as the dimension can be cut.
static void forEachChoice(Operation *op,
                          llvm::function_ref<void(ArrayRef<int64_t>)> visit) {
  SmallVector<SmallVector<int64_t>> choices;
  for (Type type : op->getOperandTypes()) {
    SmallVector<int64_t> dims{-1};
    for (auto [dim, size] :
         llvm::enumerate(cast<RankedTensorType>(type).getShape()))
      if (size % kPieces == 0)
        dims.push_back(dim);
    choices.push_back(dims);
  }
  SmallVector<int64_t> sizes, chosen(choices.size());
  for (ArrayRef<int64_t> dims : choices)
    sizes.push_back(dims.size());
  reference::forEachIndex(sizes, [&](ArrayRef<int64_t> index, int64_t) {
    for (auto [i, choice] : llvm::enumerate(index))
      chosen[i] = choices[i][choice];
    visit(chosen);
  });
}

/// Values of the op's operands and results in the interpreted case.
static std::pair<SmallVector<Tensor>, SmallVector<Tensor>>
valuesOf(func::FuncOp function, Operation *op, Random &random) {
  SmallVector<Tensor> inputs = randomInputs(function, random), operands;
  llvm::DenseMap<Operation *, SmallVector<Tensor>> results;
  reference::InterpreterOptions options;
  options.observe = [&](Operation *ran, ArrayRef<Tensor> outputs) {
    results[ran] = SmallVector<Tensor>(outputs);
  };
  EXPECT_TRUE(succeeded(reference::interpret(function, inputs, options)));
  for (Value operand : op->getOperands()) {
    if (auto argument = dyn_cast<BlockArgument>(operand))
      operands.push_back(inputs[argument.getArgNumber()]);
    else
      operands.push_back(results[operand.getDefiningOp()]
                                [cast<OpResult>(operand).getResultNumber()]);
  }
  return {operands, results[op]};
}

TEST(BatchSplit, PiecesRejoinedAreTheWhole) {
  Random random(3);
  std::map<std::string, int64_t> accepted;
  for (func::FuncOp function : Cases::get().getFunctions()) {
    Operation *op = Cases::getOp(function);
    if (!isa<BatchSplitOpInterface>(op))
      continue;
    SCOPED_TRACE(function.getName().str());
    auto [inputs, whole] = valuesOf(function, op, random);
    int64_t &count = accepted[op->getName().getStringRef().str()];
    forEachChoice(
        op, [&, &inputs = inputs, &whole = whole](ArrayRef<int64_t> dims) {
          if (needsSplats(op, dims))
            return;
          std::string choice;
          for (int64_t dim : dims)
            choice += " " + std::to_string(dim);
          SCOPED_TRACE("batch dimensions" + choice);
          count += checkSplit(op, dims, inputs, whole);
        });
  }
  // An op that is never cut anywhere would be a sure way to be right. Ops whose
  // results depend on no batch, or on all of it, may refuse; ranks exchange
  // what is whole.
  const std::set<std::string> indivisible = {
      "arith.constant",      "nn.iota",          "nn.batch_norm",
      "nn.batch_norm_grad",  "nn.quantize_both", "nn.quantize_blocks",
      "nn.batch_statistics", "nn.dequantize",    "nn.sum_over",
      "nn.exchange",         "nn.gather",        "nn.shard_of"};
  for (auto &[name, count] : accepted)
    EXPECT_EQ(count == 0, indivisible.count(name) == 1) << name;
}
