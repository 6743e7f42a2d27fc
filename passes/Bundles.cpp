#include "passes/Bundles.h"

#include "compiler/analysis/StepProblem.h"
#include "dialects/nn/Builders.h"
#include "dialects/nn/NN.h"
#include "dialects/train/Train.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"

#include <optional>

using namespace mlir;
using namespace tmc;
using namespace tmc::nn;

namespace {

/// True if a piece of `value` is made for each reader: it has one value for all
/// elements.
bool isSplat(Value value) {
  DenseElementsAttr constant;
  return matchPattern(value, m_Constant(&constant)) && constant.isSplat();
}

/// The parts that are known of an op's operands and results.
struct Known {
  SmallVector<Part> operands, results;
};

/// True if `part` is as known, or nothing is known.
bool agrees(const Part &known, const Part &part) {
  return !known.isCut() || (part.isCut() && known.liesAs(part));
}

/// One operand and one result, cut alike by two functions between them.
template <typename Forth, typename Back>
std::optional<CutPiece> pieceOfView(const Known &known, Forth &&forth,
                                    Back &&back) {
  Part from = known.operands[0], to = known.results[0];
  if (from.isCut())
    to = forth(from);
  else
    from = back(to);
  if (!from.isCut() || !to.isCut() || !agrees(known.operands[0], from) ||
      !agrees(known.results[0], to) || !forth(from).liesAs(to) ||
      !back(to).liesAs(from))
    return std::nullopt;
  return CutPiece{{from}, {to}};
}

std::optional<CutPiece> pieceOf(ReshapeOp op, const Known &known) {
  ArrayRef<int64_t> from = tensorType(op.getInput()).getShape(),
                    to = tensorType(op.getResult()).getShape();
  return pieceOfView(
      known, [&](const Part &part) { return reshaped(part, from, to); },
      [&](const Part &part) { return reshaped(part, to, from); });
}

/// A slice of whole runs.
std::optional<CutPiece> pieceOf(SliceOp op, const Known &known) {
  auto runsOf = [&](const Part &part, Value one, Value other) -> Part {
    const int64_t size = tensorType(one).getDimSize(part.dim),
                  its = tensorType(other).getDimSize(part.dim);
    if (size == its)
      return part;
    const int64_t run = size / part.runs;
    if (op.getSteps()[part.dim] != 1 || size % part.runs || its % run ||
        op.getOffsets()[part.dim] % run)
      return {};
    return Part::along(part.dim, its / run);
  };
  Value from = op.getInput(), to = op.getResult();
  return pieceOfView(
      known, [&](const Part &part) { return runsOf(part, from, to); },
      [&](const Part &part) { return runsOf(part, to, from); });
}

/// Runs side by side.
std::optional<CutPiece> pieceOf(ConcatOp op, const Known &known) {
  const int64_t dim = op.getDim();
  int64_t run = 0;
  auto meet = [&](const Part &part, Value value) {
    if (part.isCut() && part.dim == dim)
      run = tensorType(value).getDimSize(dim) / part.runs;
  };
  meet(known.results[0], op.getResult());
  for (auto [part, value] : llvm::zip_equal(known.operands, op->getOperands()))
    meet(part, value);
  if (!run)
    return std::nullopt;
  CutPiece piece;
  auto add = [&](Value value, const Part &part, SmallVector<Part> &parts) {
    const int64_t size = tensorType(value).getDimSize(dim);
    parts.push_back(Part::along(dim, size / run));
    return size % run == 0 && agrees(part, parts.back());
  };
  for (auto [value, part] : llvm::zip_equal(op->getOperands(), known.operands))
    if (!add(value, part, piece.operands))
      return std::nullopt;
  if (!add(op.getResult(), known.results[0], piece.results))
    return std::nullopt;
  return piece;
}

/// Random numbers of a part of each sample, which other sample numbers draw.
std::optional<CutPiece> pieceOf(RandomOp op, const Known &known) {
  const Part &part = known.results[0];
  if (part.dim == 0 || part.runs > 1 || known.operands[1].isCut())
    return std::nullopt;
  CutPiece piece{{Part(), Part()}, {part}};
  piece.numbered = 1;
  return piece;
}

/// The cut of `op` as a piece whose cut dimensions have `runs` runs, if it is
/// as known.
std::optional<CutPiece> pieceOf(Operation *op, const OpCut &cut, int64_t runs,
                                const Known &known) {
  CutPiece piece;
  int64_t size = 0;
  // Runs stay runs if each index has its own result.
  auto keepsRuns = [&](Type type, int64_t dim) {
    const int64_t its = cast<RankedTensorType>(type).getDimSize(dim);
    size = size ? size : its;
    return runs == 1 || its == size;
  };
  for (auto [i, dim] : llvm::enumerate(cut.operands)) {
    if (dim == OpCut::kOnFirst)
      piece.onFirst = int64_t(i);
    if (dim == OpCut::kNumbered)
      piece.numbered = int64_t(i);
    piece.operands.push_back(dim < 0 ? Part() : Part::along(dim, runs));
    if (!agrees(known.operands[i], piece.operands.back()) ||
        (dim >= 0 && !keepsRuns(op->getOperand(i).getType(), dim)))
      return std::nullopt;
  }
  for (auto [i, how] : llvm::enumerate(cut.results)) {
    piece.results.push_back(how.kind == Rejoin::Concat
                                ? Part::along(how.dim, runs)
                            : how.kind == Rejoin::Sum ? Part{Part::Sum}
                                                      : Part());
    if (!agrees(known.results[i], piece.results.back()) ||
        (how.kind == Rejoin::Concat &&
         !keepsRuns(op->getResult(i).getType(), how.dim)))
      return std::nullopt;
  }
  // The bias of a product is added behind its sum.
  auto product = dyn_cast<MatmulOp>(op);
  if (piece.onFirst >= 0 && (!product || product.getAcc()))
    return std::nullopt;
  return piece;
}

/// The piece of `op` that is as known; none if it has no such cut.
std::optional<CutPiece> pieceOf(Operation *op, const Known &known) {
  if (op->getNumRegions() > 0)
    return std::nullopt;
  if (auto reshape = dyn_cast<ReshapeOp>(op))
    return pieceOf(reshape, known);
  if (auto slice = dyn_cast<SliceOp>(op))
    return pieceOf(slice, known);
  if (auto random = dyn_cast<RandomOp>(op))
    return pieceOf(random, known);
  if (auto concat = dyn_cast<ConcatOp>(op))
    if (auto piece = pieceOf(concat, known))
      return piece;
  auto interface = dyn_cast<CutOpInterface>(op);
  if (!interface)
    return std::nullopt;
  int64_t runs = 1;
  for (const SmallVector<Part> *parts : {&known.operands, &known.results})
    for (const Part &part : *parts)
      if (part.isCut())
        runs = part.runs;
  for (const OpCut &cut : interface.getCuts())
    if (auto piece = pieceOf(op, cut, runs, known))
      return piece;
  return std::nullopt;
}

/// Follows one bundle from a product that is cut along its sum.
class Finder {
public:
  Finder(func::FuncOp forward, int64_t ranks,
         const llvm::DenseSet<Operation *> &taken)
      : forward(forward), shares{1, ranks}, taken(taken) {}

  bool run(Operation *product, const OpCut &cut) {
    auto piece = ::pieceOf(product, cut, /*runs=*/1, knownOf(product));
    if (!piece)
      return refuse(product, "adds something else to its sum");
    if (!choose(product, std::move(*piece)))
      return false;
    while (!open.empty()) {
      Value value = open.pop_back_val();
      if (Operation *maker = value.getDefiningOp(); maker && !decide(maker))
        return false;
      for (Operation *user : value.getUsers()) {
        if (user->hasTrait<OpTrait::IsTerminator>())
          return refuse(value, "is a result of the model");
        if (!decide(user))
          return false;
      }
    }
    return hasParameter || refuse(product, "has no parameter");
  }

  Bundle bundle;
  std::string why;

private:
  func::FuncOp forward;
  const Samples shares;
  const llvm::DenseSet<Operation *> &taken;
  SmallVector<Value> open;
  bool hasParameter = false;

  bool refuse(const Twine &what, const Twine &reason) {
    why = (what + " " + reason).str();
    return false;
  }
  bool refuse(Operation *op, const Twine &reason) {
    return refuse(tmc::nameOf(op), reason);
  }
  bool refuse(Value value, const Twine &reason) {
    if (Operation *maker = value.getDefiningOp())
      return refuse(maker, reason);
    const unsigned index = cast<BlockArgument>(value).getArgNumber();
    return refuse("'" + train::argName(forward, index) + "'", reason);
  }

  /// True for a parameter, or a state that no step changes.
  bool mayBeCut(BlockArgument argument) {
    const unsigned index = argument.getArgNumber();
    const auto role = train::roleOf(forward, index);
    if (role != train::Role::State)
      return role == train::Role::Param;
    for (unsigned i = 0; i < forward.getNumResults(); ++i)
      if (train::updatedArg(forward, i) == index)
        return false;
    return true;
  }

  Part partOf(Value value) const {
    auto at = bundle.values.find(value);
    return at == bundle.values.end() ? Part() : at->second;
  }

  Known knownOf(Operation *op) const {
    Known known;
    for (Value operand : op->getOperands())
      known.operands.push_back(partOf(operand));
    for (Value result : op->getResults())
      known.results.push_back(partOf(result));
    return known;
  }

  bool decide(Operation *op) {
    const Known known = knownOf(op);
    if (auto at = bundle.ops.find(op); at != bundle.ops.end()) {
      auto agreesAll = [](ArrayRef<Part> a, ArrayRef<Part> b) {
        return llvm::all_of(llvm::zip_equal(a, b), [](auto pair) {
          return agrees(std::get<0>(pair), std::get<1>(pair));
        });
      };
      return (agreesAll(known.operands, at->second.operands) &&
              agreesAll(known.results, at->second.results)) ||
             refuse(op, "would be cut in two ways");
    }
    std::optional<CutPiece> piece = ::pieceOf(op, known);
    if (!piece)
      return refuse(op, "can't be cut so");
    return choose(op, std::move(*piece));
  }

  bool choose(Operation *op, CutPiece piece) {
    if (taken.contains(op))
      return refuse(op, "is cut otherwise already");
    for (auto [operand, part] :
         llvm::zip_equal(op->getOperands(), piece.operands))
      if (part.isCut() && !add(operand, part))
        return false;
    for (auto [result, part] : llvm::zip_equal(op->getResults(), piece.results))
      if (part.isCut() && !add(result, part))
        return false;
    bundle.ops.insert({op, std::move(piece)});
    return true;
  }

  bool add(Value value, const Part &part) {
    if (!pieceType(value.getType(), part, shares))
      return refuse(
          value, "has " +
                     Twine(tensorType(value).getDimSize(part.dim) / part.runs) +
                     " parts, which " + Twine(shares.all) +
                     " ranks can't share equally");
    if (isSplat(value))
      return true;
    if (auto at = bundle.values.find(value); at != bundle.values.end())
      return at->second.liesAs(part) ||
             refuse(value, "would be cut in two ways");
    if (auto argument = dyn_cast<BlockArgument>(value)) {
      if (!mayBeCut(argument))
        return refuse(value, "would be cut, and is no parameter");
      hasParameter = true;
    }
    bundle.values.insert({value, part});
    open.push_back(value);
    return true;
  }
};

/// True for a parameter, or the same numbers in another shape or type.
bool isParameter(func::FuncOp forward, Value value) {
  if (auto argument = dyn_cast<BlockArgument>(value))
    return train::roleOf(forward, argument.getArgNumber()) ==
           train::Role::Param;
  Operation *maker = value.getDefiningOp();
  return isa<ReshapeOp, TransposeOp, BroadcastOp, arith::ExtFOp,
             arith::TruncFOp>(maker) &&
         isParameter(forward, maker->getOperand(0));
}

/// True for the cut of a product of something and a parameter along its sum. A
/// product of two activations is cut with the others that it stands between:
/// its own sum may be larger than what it is made of.
bool isSumOfProduct(func::FuncOp forward, Operation *op, const OpCut &cut) {
  int64_t factors = 0, parameters = 0;
  for (auto [operand, dim] : llvm::zip_equal(op->getOperands(), cut.operands)) {
    factors += dim >= 0;
    parameters += dim >= 0 && isParameter(forward, operand);
  }
  return factors > 1 && parameters == 1 &&
         llvm::all_of(cut.results, [](const Rejoin &how) {
           return how.kind == Rejoin::Sum;
         });
}

} // namespace

Bundles tmc::findBundles(func::FuncOp forward, int64_t ranks) {
  Bundles bundles;
  llvm::DenseSet<Operation *> taken;
  llvm::DenseSet<Value> cut;
  for (Operation &op : forward.front()) {
    auto interface = dyn_cast<CutOpInterface>(op);
    if (!interface || taken.contains(&op))
      continue;
    std::string why;
    for (const OpCut &its : interface.getCuts()) {
      if (!isSumOfProduct(forward, &op, its))
        continue;
      Finder finder(forward, ranks, taken);
      bool isFound = finder.run(&op, its);
      // Another bundle's ops read its values in their way.
      for (auto &[value, part] : finder.bundle.values)
        if (isFound && !cut.insert(value).second)
          isFound = false;
      if (isFound) {
        for (auto &[each, piece] : finder.bundle.ops)
          taken.insert(each);
        bundles.found.push_back(std::move(finder.bundle));
        why.clear();
        break;
      }
      why = finder.why;
    }
    if (!why.empty())
      bundles.refused.push_back({&op, why});
  }
  return bundles;
}
