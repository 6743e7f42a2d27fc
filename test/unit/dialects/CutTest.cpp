// CutTest.cpp - every cut of every op (CutOpInterface).
//
// The operands are cut as an op's list says, and the op is run on each piece
// with the same attributes and smaller types. The results, put together as the
// list says, must be those of the whole.

#include "test/unit/dialects/Cases.h"

#include "dialects/interfaces/Interfaces.h"
#include "dialects/nn/NN.h"

#include "mlir/IR/Verifier.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

using namespace mlir;
using namespace tmc;
using namespace tmc::test;
using reference::Tensor;

constexpr double kTolerance = 1e-12;

/// Units of one piece: `count` from `first` on.
struct Share {
  int64_t first, count;
};

/// The elements of `whole` that a piece has.
static Tensor take(const Tensor &whole, int64_t dim, int64_t units,
                   Share share) {
  if (dim == OpCut::kWhole)
    return whole;
  if (dim == OpCut::kNumbered) { // Pieces of one unit.
    Tensor piece = whole;
    for (int64_t &number : piece.ints)
      number = number * units + share.first;
    return piece;
  }
  if (dim == OpCut::kOnFirst)
    return share.first == 0 ? whole : Tensor(whole.element, whole.shape);
  SmallVector<int64_t> shape = whole.shape;
  const int64_t unit = shape[dim] / units;
  shape[dim] = unit * share.count;
  Tensor piece(whole.element, shape);
  reference::forEachIndex(shape, [&](ArrayRef<int64_t> index, int64_t i) {
    SmallVector<int64_t> source(index);
    source[dim] += unit * share.first;
    piece.set(i, whole, reference::linearIndex(source, whole.shape));
  });
  return piece;
}

/// Puts the results of the pieces together.
static Tensor join(ArrayRef<Tensor> pieces, Rejoin how,
                   ArrayRef<int64_t> shape) {
  Tensor whole(pieces[0].element, shape);
  if (how.kind == Rejoin::Whole)
    return pieces.back();
  int64_t begin = 0;
  for (const Tensor &piece : pieces) {
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
          target[how.dim] += begin;
          whole.set(reference::linearIndex(target, whole.shape), piece, i);
        });
    begin += piece.shape[how.dim];
  }
  return whole;
}

/// The op with the types of a piece of `mine` units, in a function of its own.
static OwningOpRef<func::FuncOp> buildPiece(Operation *op, const OpCut &cut,
                                            int64_t mine) {
  SmallVector<Type> operands, results;
  for (auto [type, dim] : llvm::zip_equal(op->getOperandTypes(), cut.operands))
    operands.push_back(cut.pieceOf(cast<RankedTensorType>(type), dim, mine));
  for (auto [type, how] : llvm::zip_equal(op->getResultTypes(), cut.results))
    results.push_back(cut.pieceOf(cast<RankedTensorType>(type), how.dim, mine));

  OpBuilder builder(op->getContext());
  OwningOpRef<func::FuncOp> function =
      func::FuncOp::create(builder, op->getLoc(), "piece",
                           builder.getFunctionType(operands, results));
  Block *block = function->addEntryBlock();
  builder.setInsertionPointToStart(block);
  OperationState state(op->getLoc(), op->getName());
  state.addOperands(block->getArguments());
  state.addTypes(results);
  state.addAttributes(op->getAttrs());
  Operation *piece = builder.create(state);
  func::ReturnOp::create(builder, op->getLoc(), piece->getResults());
  return function;
}

/// A case with values: the whole's operands and results.
struct Values {
  SmallVector<Tensor> operands, results;
};

static Values valuesOf(func::FuncOp function, Operation *op,
                       reference::Rounding rounding) {
  Random random(3);
  SmallVector<Tensor> inputs = randomInputs(function, random);
  llvm::DenseMap<Operation *, SmallVector<Tensor>> results;
  reference::InterpreterOptions options;
  options.rounding = rounding;
  options.observe = [&](Operation *ran, ArrayRef<Tensor> outputs) {
    results[ran] = SmallVector<Tensor>(outputs);
  };
  EXPECT_TRUE(succeeded(reference::interpret(function, inputs, options)));
  Values values{{}, results[op]};
  for (Value operand : op->getOperands()) {
    if (auto argument = dyn_cast<BlockArgument>(operand))
      values.operands.push_back(inputs[argument.getArgNumber()]);
    else
      values.operands.push_back(
          results[operand.getDefiningOp()]
                 [cast<OpResult>(operand).getResultNumber()]);
  }
  return values;
}

/// Runs `op` on pieces, and says where the rejoined results differ from the
/// whole's; "" if nowhere.
static std::string tryCut(func::FuncOp function, Operation *op,
                          const OpCut &cut, ArrayRef<Share> shares) {
  // Sums of rounded pieces aren't the rounded sum.
  const bool areSummed = llvm::is_contained(cut.results, Rejoin::sum());
  reference::InterpreterOptions options;
  options.rounding =
      areSummed ? reference::Rounding::None : reference::Rounding::Narrow;
  const Values whole = valuesOf(function, op, options.rounding);
  SmallVector<SmallVector<Tensor>> pieces(op->getNumResults());
  for (Share share : shares) {
    OwningOpRef<func::FuncOp> piece = buildPiece(op, cut, share.count);
    if (failed(verify(*piece)))
      return "a piece is no valid op";
    SmallVector<Tensor> arguments;
    for (auto [operand, dim] : llvm::zip_equal(whole.operands, cut.operands))
      arguments.push_back(take(operand, dim, cut.units, share));
    FailureOr<SmallVector<Tensor>> results =
        reference::interpret(piece->getOperation(), arguments, options);
    if (failed(results))
      return "a piece can't be interpreted";
    for (auto [list, result] : llvm::zip_equal(pieces, *results))
      list.push_back(result);
  }
  for (auto [i, how] : llvm::enumerate(cut.results)) {
    const Tensor &expected = whole.results[i];
    std::string fault =
        compare(expected, join(pieces[i], how, expected.shape), kTolerance);
    if (!fault.empty())
      return "result " + std::to_string(i) + ": " + fault;
  }
  return "";
}

static std::string textOf(const OpCut &cut) {
  std::string text = "operands";
  for (int64_t dim : cut.operands)
    text += dim == OpCut::kWhole      ? " whole"
            : dim == OpCut::kOnFirst  ? " first"
            : dim == OpCut::kNumbered ? " numbered"
                                      : " " + std::to_string(dim);
  text += ", results";
  for (Rejoin how : cut.results)
    text += how.kind == Rejoin::Whole ? " whole"
            : how.kind == Rejoin::Sum ? " sum"
                                      : " " + std::to_string(how.dim);
  return text + ", " + std::to_string(cut.units) + " units";
}

/// The number of cuts in all cases of an op: of operands' dimensions 0 alone,
/// where the batch is, and others.
struct Count {
  int64_t along0 = 0, others = 0;
};

static std::map<std::string, Count> countCuts() {
  std::map<std::string, Count> counts;
  for (func::FuncOp function : Cases::get().getFunctions()) {
    Operation *op = Cases::getOp(function);
    auto interface = dyn_cast<CutOpInterface>(op);
    if (!interface)
      continue;
    Count &count = counts[op->getName().getStringRef().str()];
    for (const OpCut &cut : interface.getCuts()) {
      const bool isAlong0 =
          llvm::is_contained(cut.operands, 0) &&
          llvm::none_of(cut.operands, [](int64_t dim) { return dim > 0; });
      ++(isAlong0 ? count.along0 : count.others);
    }
  }
  return counts;
}

TEST(Cuts, PiecesRejoinedAreTheWhole) {
  int64_t ran = 0, summed = 0, onFirst = 0, numbered = 0;
  for (func::FuncOp function : Cases::get().getFunctions()) {
    Operation *op = Cases::getOp(function);
    auto interface = dyn_cast<CutOpInterface>(op);
    if (!interface)
      continue;
    SCOPED_TRACE(function.getName().str());
    for (const OpCut &cut : interface.getCuts()) {
      SCOPED_TRACE(textOf(cut));
      ++ran;
      summed += llvm::is_contained(cut.results, Rejoin::sum());
      onFirst += llvm::is_contained(cut.operands, OpCut::kOnFirst);
      // Two pieces, of which the second may be larger.
      const bool areEqual = llvm::is_contained(cut.operands, OpCut::kNumbered);
      numbered += areEqual;
      if (!areEqual || cut.units == 2)
        EXPECT_EQ(tryCut(function, op, cut, {{0, 1}, {1, cut.units - 1}}), "");
      // A piece for each unit.
      SmallVector<Share> shares;
      for (int64_t unit = 0; unit < cut.units; ++unit)
        shares.push_back({unit, 1});
      if (cut.units > 2)
        EXPECT_EQ(tryCut(function, op, cut, shares), "");
    }
  }
  EXPECT_GT(ran, 300);
  EXPECT_GT(numbered, 1);
  std::printf("  %lld cuts, %lld with sums, %lld with an operand on piece 0\n",
              (long long)ran, (long long)summed, (long long)onFirst);
}

// A list that takes a sum for the whole, or that adds an operand in each piece,
// is found.
TEST(Cuts, WrongCutsAreFound) {
  int64_t planted = 0;
  for (func::FuncOp function : Cases::get().getFunctions()) {
    Operation *op = Cases::getOp(function);
    auto interface = dyn_cast<CutOpInterface>(op);
    if (!interface)
      continue;
    SCOPED_TRACE(function.getName().str());
    for (const OpCut &cut : interface.getCuts()) {
      const int64_t most =
          llvm::is_contained(cut.operands, OpCut::kNumbered) ? 2 : cut.units;
      if (cut.units > most)
        continue; // Its pieces are equal.
      auto isFound = [&](const OpCut &wrong) {
        SCOPED_TRACE(textOf(wrong));
        ++planted;
        // A piece may have only rows that don't count.
        EXPECT_FALSE(
            tryCut(function, op, wrong, {{0, 1}, {1, cut.units - 1}}).empty() &&
            tryCut(function, op, wrong,
                   {{0, cut.units - 1}, {cut.units - 1, 1}})
                .empty());
      };
      for (size_t i = 0; i < cut.operands.size(); ++i)
        if (cut.operands[i] == OpCut::kOnFirst ||
            cut.operands[i] == OpCut::kNumbered) {
          OpCut wrong = cut;
          wrong.operands[i] = OpCut::kWhole;
          isFound(wrong);
        }
      for (size_t i = 0; i < cut.results.size(); ++i)
        if (cut.results[i].kind == Rejoin::Sum) {
          OpCut wrong = cut;
          wrong.results[i] = Rejoin::whole();
          isFound(wrong);
        }
    }
  }
  EXPECT_GT(planted, 50);
}

// A list has a cut once, and `getSplit` finds it.
TEST(Cuts, AreFoundByTheirOperands) {
  for (func::FuncOp function : Cases::get().getFunctions()) {
    Operation *op = Cases::getOp(function);
    auto interface = dyn_cast<CutOpInterface>(op);
    if (!interface)
      continue;
    SCOPED_TRACE(function.getName().str());
    OpCuts cuts = interface.getCuts();
    std::set<std::string> seen;
    for (const OpCut &cut : cuts) {
      SCOPED_TRACE(textOf(cut));
      seen.insert(textOf(cut));
      EXPECT_GT(cut.units, 1);
      BatchSplit split = interface.getSplit(cut.operands);
      if (llvm::any_of(cut.operands, [](int64_t dim) { return dim >= 0; }))
        EXPECT_EQ(split.results, cut.results);
    }
    EXPECT_EQ(seen.size(), cuts.size());
    SmallVector<int64_t> dims(op->getNumOperands(), OpCut::kWhole);
    EXPECT_EQ(interface.getSplit(dims).results,
              SmallVector<Rejoin>(op->getNumResults(), Rejoin::whole()));
    if (!dims.empty()) { // No op has so many dimensions.
      dims[0] = 9;
      EXPECT_FALSE(interface.getSplit(dims));
    }
  }
}

// A new op has its cuts in the list, or its name here with a reason.
TEST(Cuts, OpsThatListFew) {
  const std::set<std::string> none = {
      "arith.constant",     // an attribute has the whole
      "nn.fused",           // its ops are cut before they are fused
      "nn.quantize_both",   // one scale for all
      "nn.quantize_blocks", // packed scales are in the order of the whole
      "nn.shard_of",        // ranks exchange the whole
      "nn.exchange",
      "nn.gather",
      "nn.embedding_pieces",
      "nn.embedding_grad_shard"};
  const std::set<std::string> batchOnly = {
      "nn.random",                // a number depends on its place
      "nn.packed_attention_grad", // three tensors in one
      "nn.cross_entropy",         // a label counts all columns
      "nn.cross_entropy_grad",
      "nn.cross_entropy_with_grad",
      "nn.linear_cross_entropy",
      "nn.linear_cross_entropy_grad",
      "nn.linear_cross_entropy_with_grad"};
  std::set<std::string> hasNone, hasBatchOnly;
  int64_t cuts = 0, several = 0;
  for (auto &[name, count] : countCuts()) {
    cuts += count.along0 + count.others;
    if (count.others)
      ++several;
    else
      (count.along0 ? hasBatchOnly : hasNone).insert(name);
  }
  EXPECT_EQ(hasNone, none);
  EXPECT_EQ(hasBatchOnly, batchOnly);
  std::printf("  %lld ops cut by more than the batch, %zu by it alone, %zu not "
              "at all; %lld cuts\n",
              (long long)several, hasBatchOnly.size(), hasNone.size(),
              (long long)cuts);
}
