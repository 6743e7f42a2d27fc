// FusedPlan.cpp - plans rows, columns, passes and sums for a region.

#include "dialects/nn/FusedPlan.h"

#include "dialects/interfaces/Expressions.h"
#include "dialects/nn/Atoms.h"
#include "dialects/nn/Builders.h"
#include "dialects/nn/NN.h"

#include "runtime/kernels/Generated.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

#include <numeric>

using namespace mlir;
using namespace tmc;
using namespace tmc::nn;

//===----------------------------------------------------------------------===//
// Ops allowed in a region
//===----------------------------------------------------------------------===//

/// Whether the kernels' value types include the element type.
static bool hasKernelType(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type && !storageType(type.getElementType()).empty();
}

static bool isSplat(Operation *op) {
  auto constant = dyn_cast<arith::ConstantOp>(op);
  return constant && isa<SplatElementsAttr>(constant.getValue());
}

static bool isConstant(Value value) {
  return value.getDefiningOp() && isSplat(value.getDefiningOp());
}

bool tmc::nn::isFusible(Operation *op) {
  if (!llvm::all_of(op->getOperands(), hasKernelType) ||
      !llvm::all_of(op->getResults(), hasKernelType))
    return false;
  // A constant has no place among rows and columns, so a kernel can't sum it
  // up. Its reduction is a constant, and is folded.
  if (auto reduce = dyn_cast<ReduceOp>(op))
    return isa<FloatType>(tensorType(reduce.getInput()).getElementType()) &&
           !isConstant(reduce.getInput());
  return isSplat(op) ||
         isa<PointwiseOpInterface, BroadcastOp, ReshapeOp, IotaOp, RandomOp>(
             op);
}

//===----------------------------------------------------------------------===//
// The plan
//===----------------------------------------------------------------------===//

AtomSet FusedPlan::typeAtoms(Value value) const {
  AtomSet set = 0;
  auto found = place.find(value);
  if (found != place.end())
    for (unsigned atom : found->second)
      set |= AtomSet(1) << atom;
  return set;
}

bool FusedPlan::isContiguous(Value value) const {
  // All column atoms, innermost and in order; or none.
  AtomSet cols = typeAtoms(value) & colMask();
  if (!cols)
    return true;
  if (cols != colMask())
    return false;
  ArrayRef<unsigned> own = place.find(value)->second;
  for (auto [i, atom] : llvm::enumerate(own.take_back(atoms.size() - rowAtoms)))
    if (atom != rowAtoms + i)
      return false;
  return true;
}

bool FusedPlan::isContiguous(const FusedAccess &access) const {
  if (!isContiguous(access.value))
    return false;
  int64_t stride = 1;
  if (typeAtoms(access.value) & colMask())
    for (unsigned atom = atoms.size(), i = access.strides.size();
         atom > rowAtoms; --atom) {
      if (access.strides[--i] != stride)
        return false;
      stride *= atoms[atom - 1];
    }
  return true;
}

namespace {

/// The distance of neighbours along each dimension, in elements.
SmallVector<int64_t> stridesOf(RankedTensorType type) {
  SmallVector<int64_t> strides(type.getRank(), 1);
  for (int64_t dim = type.getRank() - 1; dim > 0; --dim)
    strides[dim - 1] = strides[dim] * type.getDimSize(dim);
  return strides;
}

/// Columns of a window begin at a multiple of this, as accesses of 16 bytes
/// want it.
constexpr int64_t kWindowElements = 8;

/// The best number of columns for a sum over all elements.
constexpr int64_t kTotalColumns = 4096;

/// A random op's seed isn't a tensor of the iteration space.
bool isSeed(Value value) {
  return llvm::any_of(value.getUses(), [](OpOperand &use) {
    return isa<RandomOp>(use.getOwner()) && use.getOperandNumber() == 0;
  });
}

/// True if `value` is an operand that is read in slices. It is no tensor of the
/// iteration space either.
bool isSliced(Value value) {
  return isa<BlockArgument>(value) &&
         llvm::any_of(value.getUsers(),
                      [](Operation *user) { return isa<SliceOp>(user); });
}

/// True if the columns of a window begin at multiples of 16 bytes.
bool isAligned(const FusedAccess &access) {
  return access.offset % kWindowElements == 0 &&
         llvm::all_of(access.strides, [](int64_t stride) {
           return stride == 1 || stride % kWindowElements == 0;
         });
}

class Planner {
public:
  explicit Planner(Block &block) : block(block) {}

  std::optional<FusedPlan> run(std::string &why) {
    if (!collect() || !order()) {
      why = reason;
      return std::nullopt;
    }
    // The fewest rows, so the longest columns, that work.
    std::string first;
    for (bool strict : {true, false})
      for (unsigned p = 0; p <= plan.atoms.size(); ++p) {
        FusedPlan candidate = plan;
        if (split(candidate, p, strict))
          return finish(std::move(candidate));
        if (first.empty())
          first = reason;
      }
    // A lone reduction over dimensions in the middle: these dimensions become
    // the columns, and their elements are read one by one.
    if (permuteForReduction()) {
      FusedPlan candidate = plan;
      if (split(candidate, permutedRows, /*strict=*/false))
        return finish(std::move(candidate));
    }
    why = first;
    return std::nullopt;
  }

private:
  Block &block;
  Atoms atoms;
  /// Per value, per dimension.
  DenseMap<Value, SmallVector<Atoms::List>> dims;
  FusedPlan plan;
  std::string reason;
  unsigned permutedRows = 0;

  static bool hasAtoms(BlockArgument argument) {
    return !isSeed(argument) && !isSliced(argument);
  }

  bool refuse(const llvm::Twine &why) {
    reason = why.str();
    return false;
  }
  bool refuse(Operation *op, const llvm::Twine &why) {
    return refuse("'" + op->getName().getStringRef() + "' " + why);
  }

  Operation *terminator() { return block.getTerminator(); }

  Atoms::List flat(Value value) {
    Atoms::List list;
    for (const Atoms::List &dim : dims[value])
      list.append(dim.begin(), dim.end());
    return list;
  }

  /// Declares scalars too: a later insertion by `dims[value]` would move the
  /// other entries.
  void declare(Value value) {
    auto &list = dims[value];
    for (int64_t size : tensorType(value).getShape())
      list.push_back(atoms.make(size));
  }

  /// Equates dimensions, op by op.
  bool collect() {
    if (llvm::range_size(block.getOps<RandomOp>()) > kMostStreams)
      return refuse("it draws from more than 8 streams");
    for (BlockArgument argument : block.getArguments()) {
      if (!hasKernelType(argument))
        return refuse("an operand's element type has no kernel");
      if (hasAtoms(argument))
        declare(argument);
    }
    for (Operation &op : block.without_terminator()) {
      if (!isFusible(&op) && !isa<SliceOp, ConcatOp>(op))
        return refuse(&op, "can't be fused");
      if (isa<SliceOp>(op) != llvm::any_of(op.getOperands(), isSliced))
        return refuse(&op, "reads a whole operand of which there are slices, "
                           "or a slice of none");
      if (auto concat = dyn_cast<ConcatOp>(op)) {
        if (!equateParts(concat))
          return false;
        continue;
      }
      if (auto random = dyn_cast<RandomOp>(op))
        if (!isa<BlockArgument>(random.getSeed()) ||
            !isa<BlockArgument>(random.getSamples()) ||
            !tensorType(random.getSeed()).getElementType().isInteger(64) ||
            !tensorType(random.getSamples()).getElementType().isInteger(64))
          return refuse(&op, "has a seed or samples that the kernel makes");
      for (Value operand : op.getOperands())
        if (isa<BlockArgument>(operand) && isSeed(operand) &&
            !isa<RandomOp>(op))
          return refuse(&op, "computes with a seed");
      for (Value result : op.getResults())
        declare(result);
      if (!equate(&op))
        return refuse(&op, "has dimensions that don't go with the others'");
    }
    return true;
  }

  /// The parts of a concatenation are results of one shape.
  bool equateParts(ConcatOp concat) {
    if (!llvm::all_of(concat->getUsers(),
                      [&](Operation *user) { return user == terminator(); }))
      return refuse(concat, "is read by the kernel itself");
    Value first = concat.getInputs()[0];
    for (Value part : concat.getInputs()) {
      if (part.getType() != first.getType() || isConstant(part) ||
          isa<BlockArgument>(part))
        return refuse(concat, "has parts that differ, or that aren't made");
      for (auto [a, b] : llvm::zip(dims[part], dims[first]))
        if (!atoms.unify(a, b))
          return refuse(concat,
                        "has dimensions that don't go with the others'");
    }
    return true;
  }

  bool equate(Operation *op) {
    if (isSplat(op) || isa<IotaOp, SliceOp>(op))
      return true;
    Value result = op->getResult(0);
    if (auto broadcast = dyn_cast<BroadcastOp>(op)) {
      for (auto [i, dim] : llvm::enumerate(broadcast.getDims()))
        if (!atoms.unify(dims[broadcast.getInput()][i], dims[result][dim]))
          return false;
      return true;
    }
    if (auto reduce = dyn_cast<ReduceOp>(op)) {
      unsigned next = 0;
      for (int64_t dim = 0; dim < tensorType(reduce.getInput()).getRank();
           ++dim)
        if (!llvm::is_contained(reduce.getDims(), dim) &&
            !atoms.unify(dims[reduce.getInput()][dim], dims[result][next++]))
          return false;
      return true;
    }
    if (auto reshape = dyn_cast<ReshapeOp>(op))
      return atoms.unify(flat(reshape.getInput()), flat(result));
    if (auto random = dyn_cast<RandomOp>(op)) {
      // The samples are the outer part of dimension 0.
      int64_t samples = tensorType(random.getSamples()).getDimSize(0);
      Atoms::List whole = dims[random.getSamples()][0];
      Atoms::List inner =
          atoms.make(tensorType(result).getDimSize(0) / samples);
      whole.append(inner.begin(), inner.end());
      return atoms.unify(whole, dims[result][0]);
    }
    for (Value operand : op->getOperands())
      if (!operand.getDefiningOp() || !isSplat(operand.getDefiningOp()))
        for (auto [a, b] : llvm::zip(dims[operand], dims[result]))
          if (!atoms.unify(a, b))
            return false;
    return true;
  }

  /// Cuts a very large innermost atom that is summed completely, so that the
  /// sum can be computed in parts.
  void cutTotals(Value root) {
    bool hasTotal = false;
    for (Operation &op : block.without_terminator())
      if (auto reduce = dyn_cast<ReduceOp>(op))
        hasTotal |= reduce.getResult().getType() ==
                    RankedTensorType::get(
                        {}, tensorType(reduce.getInput()).getElementType());
    Atoms::List list = atoms.resolve(flat(root));
    if (!hasTotal || list.empty() ||
        atoms.size(list.back()) <= 4 * kTotalColumns)
      return;
    int64_t size = atoms.size(list.back()), best = 1;
    for (int64_t d = 1; d <= 2 * kTotalColumns; ++d)
      if (size % d == 0 && (d % kTileQuantum == 0 || best % kTileQuantum != 0))
        best = d;
    atoms.split(list.back(), best);
  }
  static constexpr int64_t kTileQuantum = 64;

  /// Orders the atoms by the value that has all of them.
  bool order() {
    Value root;
    size_t most = 0;
    auto consider = [&](Value value) {
      Atoms::List list = atoms.resolve(flat(value));
      if (!isConstant(value) && (!root || list.size() > most)) {
        root = value;
        most = list.size();
      }
    };
    for (BlockArgument argument : block.getArguments())
      if (hasAtoms(argument))
        consider(argument);
    for (Operation &op : block.without_terminator())
      for (Value result : op.getResults())
        if (!isa<ConcatOp>(op))
          consider(result);
    if (!root)
      return refuse("it holds nothing but constants");
    cutTotals(root);
    Atoms::List list = atoms.resolve(flat(root));
    if (list.size() > 48)
      return refuse("it has more than 48 dimensions");
    DenseMap<unsigned, unsigned> number;
    for (unsigned atom : list) {
      number[atom] = plan.atoms.size();
      plan.atoms.push_back(atoms.size(atom));
    }
    if (number.size() != list.size())
      return refuse("a value has one dimension twice");
    for (auto &[value, ignored] : dims) {
      if (isConstant(value))
        continue;
      AtomSet seen = 0;
      SmallVector<unsigned> &place = plan.place[value];
      for (unsigned atom : atoms.resolve(flat(value))) {
        auto found = number.find(atom);
        if (found == number.end())
          return refuse("two values have dimensions that no value has both of");
        if (seen >> found->second & 1)
          return refuse("a value has one dimension twice");
        seen |= AtomSet(1) << found->second;
        place.push_back(found->second);
      }
    }
    return findAccesses();
  }

  /// The elements that `value` stands for in a tensor where its dimensions have
  /// these strides.
  FusedAccess accessOf(Value value, unsigned number, int64_t offset,
                       SmallVector<int64_t> strides) {
    FusedAccess access{value, number, offset, {}};
    for (auto [dim, stride] : llvm::zip_equal(dims[value], strides)) {
      SmallVector<int64_t> inner;
      for (unsigned atom : llvm::reverse(atoms.resolve(dim))) {
        inner.push_back(stride);
        stride *= atoms.size(atom);
      }
      llvm::append_range(access.strides, llvm::reverse(inner));
    }
    return access;
  }

  bool findAccesses() {
    for (BlockArgument argument : block.getArguments())
      if (hasAtoms(argument))
        plan.loads[argument] = accessOf(argument, argument.getArgNumber(), 0,
                                        stridesOf(tensorType(argument)));
    for (auto slice : block.getOps<SliceOp>()) {
      SmallVector<int64_t> strides = stridesOf(tensorType(slice.getInput()));
      int64_t offset = 0;
      for (auto [stride, from, step] :
           llvm::zip_equal(strides, slice.getOffsets(), slice.getSteps())) {
        offset += from * stride;
        stride *= step;
      }
      Value result = slice.getResult();
      FusedAccess access =
          accessOf(result, cast<BlockArgument>(slice.getInput()).getArgNumber(),
                   offset, strides);
      if (!isAligned(access))
        return refuse(slice, "has columns that aren't aligned");
      plan.loads[result] = access;
    }
    for (auto [number, yielded] :
         llvm::enumerate(terminator()->getOperands())) {
      auto concat = yielded.getDefiningOp<ConcatOp>();
      if (!concat) {
        plan.stores.push_back(
            accessOf(yielded, number, 0, stridesOf(tensorType(yielded))));
        continue;
      }
      SmallVector<int64_t> strides = stridesOf(tensorType(yielded));
      int64_t offset = 0;
      for (Value part : concat.getInputs()) {
        plan.stores.push_back(accessOf(part, number, offset, strides));
        offset += tensorType(part).getDimSize(concat.getDim()) *
                  strides[concat.getDim()];
        if (!isAligned(plan.stores.back()))
          return refuse(concat, "has parts that aren't aligned");
      }
    }
    return true;
  }

  AtomSet atomsOfDim(Value value, unsigned dim) {
    AtomSet set = 0;
    unsigned first = 0;
    for (unsigned d = 0; d < dim; ++d)
      first += atoms.resolve(dims[value][d]).size();
    for (unsigned i = 0, n = atoms.resolve(dims[value][dim]).size(); i < n; ++i)
      set |= AtomSet(1) << plan.place[value][first + i];
    return set;
  }

  /// Tries the first `p` atoms as rows.
  bool split(FusedPlan &candidate, unsigned p, bool strict) {
    candidate.rowAtoms = p;
    FusedShape &shape = candidate.shape;
    shape.rows = shape.cols = 1;
    for (auto [i, size] : llvm::enumerate(candidate.atoms))
      (i < p ? shape.rows : shape.cols) *= size;
    const AtomSet rows = candidate.rowMask(), cols = candidate.colMask();

    for (auto &[value, access] : candidate.loads) {
      candidate.varies[value] = candidate.typeAtoms(value);
      if (strict && !candidate.isContiguous(access))
        return refuse("an operand's columns are no run of memory");
    }
    for (Operation &op : block.without_terminator()) {
      if (isa<SliceOp, ConcatOp>(op))
        continue;
      Value result = op.getResult(0);
      unsigned level = 0;
      AtomSet varies = 0;
      for (Value operand : op.getOperands()) {
        level = std::max(level, candidate.level.lookup(operand));
        varies |= candidate.varies.lookup(operand);
        if (candidate.late.contains(operand))
          candidate.late.insert(result);
      }
      if (isa<IotaOp>(op)) {
        varies = atomsOfDim(result, cast<IotaOp>(op).getDim());
      } else if (auto random = dyn_cast<RandomOp>(op)) {
        varies = candidate.typeAtoms(result);
        // A sample begins at the first column of a row.
        if (candidate.typeAtoms(random.getSamples()) & cols)
          return refuse(&op, "has samples within its columns");
        if (!candidate.isContiguous(result))
          return refuse(&op, "has columns that are no run of its numbers");
      } else if (auto reduce = dyn_cast<ReduceOp>(op)) {
        if (!classify(candidate, reduce, level))
          return false;
        if (candidate.reductions.contains(reduce))
          varies = candidate.typeAtoms(result);
      }
      if (candidate.late.contains(result) && (varies & rows))
        return refuse(&op, "uses in each row what all rows add up to");
      candidate.level[result] = level;
      candidate.varies[result] = varies;
    }
    for (const FusedAccess &store : candidate.stores) {
      Value yielded = store.value;
      if (isConstant(yielded))
        return refuse("it yields a constant");
      if (isa<BlockArgument>(yielded))
        return refuse("it yields an operand");
      AtomSet type = candidate.typeAtoms(yielded);
      bool wholeRows = (type & rows) == rows, wholeCols = (type & cols) == cols;
      if ((type & rows && !wholeRows) || (type & cols && !wholeCols))
        return refuse("a result has some dimensions of the rows or columns");
      if (!candidate.isContiguous(store) ||
          !llvm::is_sorted(candidate.place[yielded]))
        return refuse("a result's elements are in another order");
      if (isPart(store) && type != candidate.allMask())
        return refuse("a part of a result doesn't vary by row and column");
      if (shape.rows > 1 && !(type & rows) &&
          (candidate.varies[yielded] & rows))
        return refuse("a result has fewer rows than its value");
      if (candidate.isFinished(yielded)) {
        if (wantsRowSum(candidate, yielded))
          return refuse("what is made when all rows are done wants a sum over "
                        "the columns");
        shape.finish = true;
      }
    }
    return true;
  }

  /// True if `store` is a part of a concatenation.
  bool isPart(const FusedAccess &store) {
    return terminator()->getOperand(store.number) != store.value;
  }

  /// True if `value` depends on a reduction of a row. The finish has only sums
  /// over rows and values that vary by column alone.
  bool wantsRowSum(const FusedPlan &candidate, Value value) {
    DenseSet<Operation *> seen;
    SmallVector<Value> open = {value};
    while (!open.empty()) {
      Operation *op = open.pop_back_val().getDefiningOp();
      if (!op || !seen.insert(op).second)
        continue;
      auto kind = candidate.reductions.find(op);
      if (kind == candidate.reductions.end())
        llvm::append_range(open, op->getOperands());
      else if (kind->second == Reduction::Row)
        return true;
    }
    return false;
  }

  bool classify(FusedPlan &candidate, ReduceOp reduce, unsigned &level) {
    const AtomSet rows = candidate.rowMask(), cols = candidate.colMask();
    AtomSet input = candidate.typeAtoms(reduce.getInput());
    AtomSet kept = candidate.typeAtoms(reduce.getResult());
    AtomSet gone = input & ~kept;
    if (!gone) // Only dimensions of size 1 are reduced.
      return true;
    FusedShape &shape = candidate.shape;
    if (candidate.late.contains(reduce.getInput()))
      return refuse(reduce, "reduces what all rows add up to");
    if (gone == cols && !(kept & cols)) {
      candidate.reductions[reduce] = Reduction::Row;
      shape.wholeRows = true;
      ++level;
      candidate.passes = std::max(candidate.passes, level + 1);
      return true;
    }
    if (gone == (rows | cols) && rows) {
      candidate.reductions[reduce] = Reduction::Total;
      shape.wholeRows = true;
      ++shape.totals;
      ++level;
      candidate.passes = std::max(candidate.passes, level + 1);
    } else if (gone == rows && kept == cols && cols) {
      candidate.reductions[reduce] = Reduction::Column;
      ++shape.columnSums;
    } else if (gone == rows && !kept && rows) {
      // One number per row, added up over the rows.
      candidate.reductions[reduce] = Reduction::Total;
      ++shape.totals;
    } else {
      return refuse(reduce, "reduces neither the rows nor the columns");
    }
    candidate.late.insert(reduce.getResult());
    return true;
  }

  /// Makes the reduced atoms of the only reduction the innermost ones.
  bool permuteForReduction() {
    ReduceOp only;
    for (Operation &op : block.without_terminator())
      if (auto reduce = dyn_cast<ReduceOp>(op)) {
        if (only)
          return false;
        only = reduce;
      }
    if (!only)
      return false;
    AtomSet kept = plan.typeAtoms(only.getResult());
    SmallVector<unsigned> newNumber(plan.atoms.size());
    SmallVector<int64_t> sizes;
    permutedRows = 0;
    for (bool isRow : {true, false})
      for (unsigned i = 0; i < newNumber.size(); ++i)
        if (bool(kept >> i & 1) == isRow) {
          newNumber[i] = sizes.size();
          sizes.push_back(plan.atoms[i]);
          permutedRows += isRow;
        }
    plan.atoms = sizes;
    for (auto &[value, place] : plan.place)
      for (unsigned &atom : place)
        atom = newNumber[atom];
    return true;
  }

  FusedPlan finish(FusedPlan plan) {
    plan.shape.finish |= plan.shape.columnSums + plan.shape.totals > 0;
    chooseKept(plan, block);
    return plan;
  }
};

} // namespace

std::optional<FusedPlan> tmc::nn::planFused(Block &block, std::string *why) {
  std::string reason;
  std::optional<FusedPlan> plan = Planner(block).run(reason);
  if (!plan && why)
    *why = reason;
  return plan;
}
