// ViewMap.cpp - chains of reshapes, transposes and broadcasts, in a normal
// form.

#include "passes/raise/ViewMap.h"

#include "passes/raise/Matchers.h"

#include "dialects/nn/Builders.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace tmc;
using namespace tmc::nn;

ViewMap ViewMap::identity(Value value) {
  ViewMap map;
  map.source = value;
  for (auto [dim, size] : llvm::enumerate(tensorType(value).getShape())) {
    map.groups.emplace_back();
    if (size == 1)
      continue;
    map.groups.back().push_back(map.sizes.size());
    map.order.push_back(map.sizes.size());
    map.sourceDims.push_back(dim);
    map.sizes.push_back(size);
  }
  return map;
}

/// The value that `op` views in another shape, or null.
static Value viewed(Operation *op) {
  if (isa_and_nonnull<ReshapeOp, TransposeOp, BroadcastOp>(op))
    return op->getOperand(0);
  return {};
}

/// The operand that `op` multiplies or divides by a splat, and the factor.
static std::pair<Value, double> scaled(Operation *op) {
  if (auto mul = dyn_cast_or_null<arith::MulFOp>(op)) {
    for (int i : {0, 1})
      if (auto factor = constantNumber(op->getOperand(i)))
        return {op->getOperand(1 - i), *factor};
  } else if (auto div = dyn_cast_or_null<arith::DivFOp>(op)) {
    if (auto divisor = constantNumber(op->getOperand(1));
        divisor && *divisor != 0)
      return {op->getOperand(0), 1 / *divisor};
  }
  return {};
}

ViewMap ViewMap::of(Value value, double *scale) {
  SmallVector<Operation *> chain; // From the value back to the source.
  for (Value at = value;;) {
    Operation *op = at.getDefiningOp();
    if (Value next = viewed(op))
      at = next;
    else if (auto [next, factor] = scaled(op); scale && next)
      at = next;
    else
      break;
    chain.push_back(op);
  }
  // If a reshape cuts an atom in the middle, the view starts there.
  while (true) {
    Value source = value;
    if (!chain.empty())
      source = scaled(chain.back()).first;
    if (!source)
      source = viewed(chain.back());
    ViewMap map = identity(source);
    double factor = 1;
    size_t done = chain.size();
    while (done > 0) {
      Operation *op = chain[done - 1];
      if (scale && scaled(op).first)
        factor *= scaled(op).second;
      else if (!apply(map, op))
        break;
      map.ops.push_back(op);
      --done;
    }
    if (done == 0) {
      if (scale)
        *scale *= factor;
      return map;
    }
    chain.resize(done - 1);
  }
}

int64_t ViewMap::sizeOf(ArrayRef<int> atoms) const {
  int64_t size = 1;
  for (int atom : atoms)
    size *= sizes[atom];
  return size;
}

int64_t ViewMap::getDim(unsigned dim) const { return sizeOf(groups[dim]); }

SmallVector<int64_t> ViewMap::getShape() const {
  SmallVector<int64_t> shape;
  for (unsigned dim = 0; dim < getRank(); ++dim)
    shape.push_back(getDim(dim));
  return shape;
}

int ViewMap::split(int atom, int64_t outer) {
  int inner = sizes.size();
  sizes.push_back(sizes[atom] / outer);
  sourceDims.push_back(sourceDims[atom]);
  sizes[atom] = outer;
  if (auto *it = llvm::find(order, atom); it != order.end())
    order.insert(it + 1, inner);
  return inner;
}

bool ViewMap::reshape(ArrayRef<int64_t> shape) {
  ViewMap before = *this;
  SmallVector<int> atoms;
  for (ArrayRef<int> group : groups)
    llvm::append_range(atoms, group);
  groups.clear();
  size_t next = 0;
  for (int64_t size : shape) {
    groups.emplace_back();
    while (size > 1) {
      int64_t have = next < atoms.size() ? sizes[atoms[next]] : 0;
      if (have == 0 || (size % have != 0 && have % size != 0)) {
        *this = before;
        return false;
      }
      int atom = atoms[next];
      if (have > size)
        atoms[next] = split(atom, size);
      else
        ++next;
      groups.back().push_back(atom);
      size /= sizes[atom];
    }
  }
  return true;
}

void ViewMap::transpose(ArrayRef<int64_t> perm) {
  auto before = groups;
  for (auto [dim, from] : llvm::enumerate(perm))
    groups[dim] = before[from];
}

void ViewMap::broadcast(ArrayRef<int64_t> dims, ArrayRef<int64_t> shape) {
  auto before = groups;
  groups.assign(shape.size(), {});
  for (auto [from, dim] : llvm::enumerate(dims))
    groups[dim] = before[from];
  for (auto [dim, size] : llvm::enumerate(shape)) {
    if (size == 1 || llvm::is_contained(dims, int64_t(dim)))
      continue;
    groups[dim].push_back(sizes.size());
    sizes.push_back(size);
    sourceDims.push_back(-1);
  }
}

bool tmc::apply(ViewMap &view, Operation *op) {
  if (auto reshape = dyn_cast<ReshapeOp>(op))
    return view.reshape(tensorType(reshape.getResult()).getShape());
  if (auto transpose = dyn_cast<TransposeOp>(op))
    view.transpose(transpose.getPerm());
  else if (auto broadcast = dyn_cast<BroadcastOp>(op))
    view.broadcast(broadcast.getDims(),
                   tensorType(broadcast.getResult()).getShape());
  return true;
}

SmallVector<int> ViewMap::resultOrder() const {
  SmallVector<int> result;
  for (ArrayRef<int> group : groups)
    for (int atom : group)
      if (!isRepeat(atom))
        result.push_back(atom);
  return result;
}

bool ViewMap::needsTranspose() const { return resultOrder() != order; }

bool ViewMap::hasRepeats() const {
  return llvm::any_of(groups, [&](ArrayRef<int> group) {
    return llvm::any_of(group, [&](int atom) { return isRepeat(atom); });
  });
}

bool tmc::isReshape(const ViewMap &view) {
  return !view.hasRepeats() && !view.needsTranspose();
}

bool tmc::isIdentity(const ViewMap &view) {
  return isReshape(view) && ArrayRef<int64_t>(view.getShape()) ==
                                tensorType(view.getSource()).getShape();
}

bool ViewMap::isConstantAlong(unsigned dim) const {
  return llvm::all_of(groups[dim], [&](int atom) { return isRepeat(atom); });
}

bool ViewMap::isDimOfSource(unsigned dim, unsigned sourceDim) const {
  SmallVector<int> atoms;
  for (int atom : order)
    if (sourceDims[atom] == int(sourceDim))
      atoms.push_back(atom);
  return groups[dim] == atoms;
}

void ViewMap::narrowSource(Value narrowed, unsigned sourceDim) {
  source = narrowed;
  llvm::erase_if(order,
                 [&](int atom) { return sourceDims[atom] == int(sourceDim); });
}

int64_t ViewMap::getInnerRepeats(unsigned dim) const {
  int64_t repeats = 1;
  for (int atom : llvm::reverse(groups[dim])) {
    if (!isRepeat(atom))
      break;
    repeats *= sizes[atom];
  }
  return repeats;
}

void ViewMap::dropInnerRepeats(unsigned dim) {
  while (!groups[dim].empty() && isRepeat(groups[dim].back()))
    groups[dim].pop_back();
}

SmallVector<SmallVector<std::pair<int64_t, int64_t>>>
ViewMap::getStrides() const {
  SmallVector<int64_t> strides(sizes.size(), 0);
  int64_t stride = 1;
  for (int atom : llvm::reverse(order)) {
    strides[atom] = stride;
    stride *= sizes[atom];
  }
  SmallVector<SmallVector<std::pair<int64_t, int64_t>>> result;
  for (ArrayRef<int> group : groups) {
    result.emplace_back();
    for (int atom : group)
      result.back().push_back({sizes[atom], strides[atom]});
  }
  return result;
}

Value ViewMap::build(OpBuilder &b, Location loc) const {
  Value value = source;
  SmallVector<int> wanted = resultOrder();
  if (wanted != order) {
    // Atoms that stay neighbours move as one dimension.
    SmallVector<int64_t> runOf(sizes.size(), -1), runShape, perm;
    DenseSet<std::pair<int, int>> together;
    for (auto [left, right] : llvm::zip(wanted, ArrayRef(wanted).drop_front()))
      together.insert({left, right});
    for (auto [i, atom] : llvm::enumerate(order)) {
      bool joins = i > 0 && together.contains({order[i - 1], atom});
      if (!joins)
        runShape.push_back(1);
      runShape.back() *= sizes[atom];
      runOf[atom] = runShape.size() - 1;
    }
    for (int atom : wanted)
      if (perm.empty() || perm.back() != runOf[atom])
        perm.push_back(runOf[atom]);
    value = nn::reshapeTo(b, loc, value, runShape);
    value = TransposeOp::create(b, loc, value, perm);
  }
  SmallVector<int64_t> shape = getShape();
  if (hasRepeats()) {
    // One dimension per atom; before the broadcast, only atoms of the source
    // exist.
    SmallVector<int64_t> atomShape, own, dims;
    for (ArrayRef<int> group : groups)
      for (int atom : group) {
        if (!isRepeat(atom)) {
          own.push_back(sizes[atom]);
          dims.push_back(atomShape.size());
        }
        atomShape.push_back(sizes[atom]);
      }
    value = nn::reshapeTo(b, loc, value, own);
    value = BroadcastOp::create(
        b, loc,
        RankedTensorType::get(atomShape, tensorType(value).getElementType()),
        value, dims);
  }
  return nn::reshapeTo(b, loc, value, shape);
}

//===----------------------------------------------------------------------===//
// Transposes through other ops
//===----------------------------------------------------------------------===//

/// With `alone`, only if no other op uses the ops on the way, so that none is
/// duplicated.
static bool canTransposeFreely(Value value, ArrayRef<int64_t> perm, bool alone,
                               int depth) {
  if (llvm::is_sorted(perm) || constantNumber(value))
    return true;
  ViewMap map = ViewMap::of(value);
  map.transpose(perm);
  if (!map.needsTranspose())
    return true;
  Operation *op = value.getDefiningOp();
  if (!op || depth == 0 || (alone && !value.hasOneUse()))
    return false;
  bool keepsRows = perm.back() == int64_t(perm.size()) - 1;
  if (isa<RMSNormOp, LayerNormOp>(op) && keepsRows) // Vectors stay.
    return canTransposeFreely(op->getOperand(0), perm, alone, depth - 1);
  if (!isPointwise(op) && !isa<SliceOp, ConcatOp>(op) &&
      !(isa<RotaryEmbeddingOp>(op) && keepsRows))
    return false;
  // Heads are along the second innermost dimension.
  if (auto rotary = dyn_cast<RotaryEmbeddingOp>(op);
      rotary && rotary.getHeads())
    return false;
  return llvm::all_of(op->getOperands(), [&](Value operand) {
    return canTransposeFreely(operand, perm, alone, depth - 1);
  });
}

/// Enough for rotary positions, and small enough to be fast.
constexpr int maxTransposeDepth = 8;

bool tmc::canTransposeFreely(Value value, ArrayRef<int64_t> perm) {
  return ::canTransposeFreely(value, perm, /*alone=*/false, maxTransposeDepth);
}

template <typename T>
static SmallVector<T> permuted(ArrayRef<T> list, ArrayRef<int64_t> perm) {
  SmallVector<T> result;
  for (int64_t from : perm)
    result.push_back(list[from]);
  return result;
}

static Value transposeFreely(OpBuilder &b, Value value, ArrayRef<int64_t> perm,
                             DenseMap<Value, Value> &done) {
  if (llvm::is_sorted(perm))
    return value;
  Value &result = done[value];
  if (result)
    return result;
  RankedTensorType type = tensorType(value);
  SmallVector<int64_t> shape = permuted(type.getShape(), perm);
  Type newType = RankedTensorType::get(shape, type.getElementType());
  if (auto number = constantNumber(value))
    return result = splat(b, value.getLoc(), newType, *number);
  ViewMap map = ViewMap::of(value);
  map.transpose(perm);
  if (!map.needsTranspose())
    return result = map.build(b, value.getLoc());

  Operation *op = value.getDefiningOp();
  if (isa<RMSNormOp, LayerNormOp>(op)) {
    Value input = transposeFreely(b, op->getOperand(0), perm, done);
    Operation *norm = b.clone(*op);
    norm->setOperand(0, input);
    norm->getResult(0).setType(newType);
    return done[value] = norm->getResult(0);
  }
  SmallVector<Value> operands;
  for (Value operand : op->getOperands())
    operands.push_back(transposeFreely(b, operand, perm, done));
  Value made;
  if (auto slice = dyn_cast<SliceOp>(op)) {
    made = SliceOp::create(b, op->getLoc(), newType, operands[0],
                           permuted(slice.getOffsets(), perm),
                           permuted(slice.getSteps(), perm));
  } else if (auto concat = dyn_cast<ConcatOp>(op)) {
    int64_t dim = llvm::find(perm, int64_t(concat.getDim())) - perm.begin();
    made = ConcatOp::create(b, op->getLoc(), operands, dim);
  } else if (auto rotary = dyn_cast<RotaryEmbeddingOp>(op)) {
    made = RotaryEmbeddingOp::create(b, op->getLoc(), operands[0], operands[1],
                                     operands[2], rotary.getInterleaved(),
                                     rotary.getTransposed());
  } else {
    made = clonePointwise(b, op, operands);
  }
  return done[value] = made;
}

Value tmc::transposeFreely(OpBuilder &b, Value value, ArrayRef<int64_t> perm) {
  DenseMap<Value, Value> done;
  return ::transposeFreely(b, value, perm, done);
}

//===----------------------------------------------------------------------===//
// Patterns
//===----------------------------------------------------------------------===//

namespace {

int64_t countTransposes(ArrayRef<Operation *> ops) {
  return llvm::count_if(ops,
                        [](Operation *op) { return isa<TransposeOp>(op); });
}

/// Rebuilds a chain of views that has more transposes than needed.
template <typename ViewOp> struct ShortenViews : OpRewritePattern<ViewOp> {
  using OpRewritePattern<ViewOp>::OpRewritePattern;
  LogicalResult matchAndRewrite(ViewOp op,
                                PatternRewriter &rewriter) const override {
    ViewMap map = ViewMap::of(op.getResult());
    int64_t have = countTransposes(map.getOps());
    if (have <= int64_t(map.needsTranspose()))
      return failure();
    rewriter.replaceOp(op, map.build(rewriter, op.getLoc()));
    return success();
  }
};

/// A transpose that cancels an earlier one, through other ops.
struct UndoTranspose : OpRewritePattern<TransposeOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(TransposeOp op,
                                PatternRewriter &rewriter) const override {
    if (!canTransposeFreely(op.getInput(), op.getPerm(), /*alone=*/true,
                            maxTransposeDepth))
      return failure();
    rewriter.replaceOp(op,
                       transposeFreely(rewriter, op.getInput(), op.getPerm()));
    return success();
  }
};

/// Two consecutive reshapes become one.
struct MergeReshapes : OpRewritePattern<ReshapeOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(ReshapeOp op,
                                PatternRewriter &rewriter) const override {
    Value source = op.getInput();
    while (auto inner = source.getDefiningOp<ReshapeOp>())
      source = inner.getInput();
    if (source.getType() == op.getType())
      rewriter.replaceOp(op, source);
    else if (source != op.getInput())
      rewriter.replaceOpWithNewOp<ReshapeOp>(op, op.getType(), source);
    else
      return failure();
    return success();
  }
};

/// A slice of a transpose becomes a transpose of a slice: it is smaller, and
/// may cancel with another transpose there.
struct SliceBeforeTranspose : OpRewritePattern<SliceOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(SliceOp op,
                                PatternRewriter &rewriter) const override {
    auto transpose = op.getInput().getDefiningOp<TransposeOp>();
    if (!transpose)
      return failure();
    ArrayRef<int64_t> perm = transpose.getPerm();
    SmallVector<int64_t> offsets(perm.size()), steps(perm.size()),
        shape(perm.size());
    for (auto [dim, from] : llvm::enumerate(perm)) {
      offsets[from] = op.getOffsets()[dim];
      steps[from] = op.getSteps()[dim];
      shape[from] = tensorType(op.getResult()).getDimSize(dim);
    }
    auto type = RankedTensorType::get(
        shape, tensorType(op.getResult()).getElementType());
    Value slice = SliceOp::create(rewriter, op.getLoc(), type,
                                  transpose.getInput(), offsets, steps);
    rewriter.replaceOpWithNewOp<TransposeOp>(op, slice, perm);
    return success();
  }
};

} // namespace

void tmc::populateViewPatterns(RewritePatternSet &patterns) {
  patterns.add<ShortenViews<ReshapeOp>, ShortenViews<TransposeOp>,
               ShortenViews<BroadcastOp>, UndoTranspose, MergeReshapes,
               SliceBeforeTranspose>(patterns.getContext());
}
