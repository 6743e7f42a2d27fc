// Shape.cpp - shapes as values, and tensors in other shapes.

#include "frontends/Checked.h"
#include "frontends/onnx/ops/Pointwise.h"

using namespace mlir;
using namespace tmc;
using namespace tmc::onnx_import;

static LogicalResult importShape(Node &n) {
  const Val &x = n.input(0);
  int64_t rank = x.rank();
  auto clamp = [&](int64_t at) {
    return std::clamp<int64_t>(at < 0 ? at + rank : at, 0, rank);
  };
  int64_t start = clamp(n.intAttr("start", 0));
  int64_t end = clamp(n.intAttr("end", rank));
  ArrayRef<int64_t> dims(x.dims);
  return n.set(
      Array::ofShape(dims.slice(start, std::max<int64_t>(end - start, 0))));
}
static Register shape("Shape", importShape);

static LogicalResult importSize(Node &n) {
  auto count = checkedNumElements(n.input(0).dims);
  if (!count)
    return n.error("the number of elements is too large");
  return n.set(Array::ofInts(ElementType::I64, {}, {*count}));
}
static Register size("Size", importSize);

/// Input 0 in the shape `dims`, which has as many elements.
static LogicalResult reshape(Node &n, ArrayRef<int64_t> dims) {
  const Val &x = n.input(0);
  auto before = checkedNumElements(x.dims), after = checkedNumElements(dims);
  if (!after || before != after)
    return n.error("a tensor of shape " + str(x.dims) +
                   " can't take the shape " + str(dims));
  if (n.foldable(0)) {
    ASSIGN_OR_FAIL(Array array, n.array(0));
    return n.set(array.reshaped(dims));
  }
  ASSIGN_OR_FAIL(Value value, n.value(0));
  return n.set(n.reshape(value, dims));
}

static LogicalResult importReshape(Node &n) {
  ASSIGN_OR_FAIL(Dims dims, n.ints(1));
  const Val &x = n.input(0);
  bool allowZero = n.intAttr("allowzero", 0);
  int64_t known = 1;
  int inferred = -1;
  for (auto [i, dim] : llvm::enumerate(dims)) {
    if (dim == 0 && !allowZero) {
      if (static_cast<int64_t>(i) >= x.rank())
        return n.error("copies dimension " + Twine(i) +
                       " of a tensor of shape " + str(x.dims));
      dim = x.dims[i];
    }
    if (dim == -1) {
      if (inferred >= 0)
        return n.error("leaves two dimensions open in " + str(dims));
      inferred = i;
      continue;
    }
    auto product = checkedMul(known, dim);
    if (dim < 0 || !product)
      return n.error("asks for the shape " + str(dims));
    known = *product;
  }
  if (inferred >= 0) {
    auto count = checkedNumElements(x.dims);
    if (!count || known == 0 || *count % known)
      return n.error("a tensor of shape " + str(x.dims) +
                     " can't take the shape " + str(dims));
    dims[inferred] = *count / known;
  }
  return reshape(n, dims);
}
static Register reshapeOp("Reshape", importReshape);

static LogicalResult importFlatten(Node &n) {
  const Val &x = n.input(0);
  int64_t axis = n.intAttr("axis", 1);
  if (axis < -x.rank() || axis > x.rank())
    return n.error("axis " + Twine(axis) + " of a tensor of shape " +
                   str(x.dims));
  if (axis < 0)
    axis += x.rank();
  auto rows = checkedNumElements(ArrayRef<int64_t>(x.dims).take_front(axis));
  auto columns = checkedNumElements(ArrayRef<int64_t>(x.dims).drop_front(axis));
  if (!rows || !columns)
    return n.error("the number of elements is too large");
  return reshape(n, {*rows, *columns});
}
static Register flatten("Flatten", importFlatten);

static LogicalResult importSqueeze(Node &n) {
  const Val &x = n.input(0);
  ASSIGN_OR_FAIL(std::optional<Dims> axes, n.axes(1, x.rank()));
  Dims dims;
  for (auto [i, dim] : llvm::enumerate(x.dims)) {
    bool drop =
        axes ? llvm::is_contained(*axes, static_cast<int64_t>(i)) : dim == 1;
    if (drop && dim != 1)
      return n.error("squeezes dimension " + Twine(i) + " of shape " +
                     str(x.dims));
    if (!drop)
      dims.push_back(dim);
  }
  return reshape(n, dims);
}
static Register squeeze("Squeeze", importSqueeze);

static LogicalResult importUnsqueeze(Node &n) {
  const Val &x = n.input(0);
  std::optional<Dims> list = n.intsAttr("axes");
  if (!list) {
    ASSIGN_OR_FAIL(list, n.ints(1));
  }
  int64_t rank = x.rank() + list->size();
  SmallVector<bool> isNew(rank);
  for (int64_t entry : *list) {
    ASSIGN_OR_FAIL(int64_t axis, n.axis(entry, rank));
    if (isNew[axis])
      return n.error("an axis is named twice in " + str(*list));
    isNew[axis] = true;
  }
  Dims dims;
  size_t next = 0;
  for (bool one : isNew)
    dims.push_back(one ? 1 : x.dims[next++]);
  return reshape(n, dims);
}
static Register unsqueeze("Unsqueeze", importUnsqueeze);

static LogicalResult importTranspose(Node &n) {
  const Val &x = n.input(0);
  Dims perm;
  if (auto given = n.intsAttr("perm"))
    perm = *given;
  else
    for (int64_t i = x.rank(); i-- > 0;)
      perm.push_back(i);
  SmallVector<bool> seen(x.rank());
  bool valid = static_cast<int64_t>(perm.size()) == x.rank();
  for (int64_t dim : perm) {
    valid = valid && dim >= 0 && dim < x.rank() && !seen[dim];
    if (valid)
      seen[dim] = true;
  }
  if (!valid)
    return n.error("permutes shape " + str(x.dims) + " by " + str(perm));
  if (n.foldable(0)) {
    ASSIGN_OR_FAIL(Array array, n.array(0));
    return n.set(array.transposed(perm));
  }
  ASSIGN_OR_FAIL(Value value, n.value(0));
  // A permutation that only moves dimensions of size 1 is another shape.
  Dims moved, dims;
  for (int64_t dim : perm) {
    dims.push_back(x.dims[dim]);
    if (x.dims[dim] != 1)
      moved.push_back(dim);
  }
  if (llvm::is_sorted(moved))
    return n.set(n.reshape(value, dims));
  return n.set(nn::TransposeOp::create(n.b, n.loc, value, perm));
}
static Register transpose("Transpose", importTranspose);

static LogicalResult importExpand(Node &n) {
  const Val &x = n.input(0);
  ASSIGN_OR_FAIL(Dims wanted, n.ints(1));
  auto dims = broadcastShape(x.dims, wanted);
  if (!dims || !checkedNumElements(*dims))
    return n.error("a tensor of shape " + str(x.dims) +
                   " can't be expanded to " + str(wanted));
  if (x.isConst()) {
    ASSIGN_OR_FAIL(Array array, n.arrayOf(x));
    return n.set(array.broadcastTo(*dims));
  }
  ASSIGN_OR_FAIL(Value value, n.broadcast(x, *dims));
  return n.set(value);
}
static Register expand("Expand", importExpand);

/// Repetition as a whole: each dimension d becomes [times, d], then one again.
static LogicalResult importTile(Node &n) {
  const Val &x = n.input(0);
  ASSIGN_OR_FAIL(Dims times, n.ints(1));
  if (static_cast<int64_t>(times.size()) != x.rank())
    return n.error("repeats shape " + str(x.dims) + " by " + str(times));
  Dims apart, repeated, dims;
  for (auto [dim, count] : llvm::zip(x.dims, times)) {
    auto product = checkedMul(dim, count);
    if (count < 0 || !product)
      return n.error("repeats shape " + str(x.dims) + " by " + str(times));
    apart.append({1, dim});
    repeated.append({count, dim});
    dims.push_back(*product);
  }
  if (!checkedNumElements(dims))
    return n.error("the number of elements is too large");
  if (n.foldable(0)) {
    ASSIGN_OR_FAIL(Array array, n.array(0));
    Array wide = array.reshaped(apart).broadcastTo(repeated);
    if (wide.size() <= kMaxFoldElements)
      return n.set(wide.reshaped(dims));
  }
  ASSIGN_OR_FAIL(Value value, n.value(0));
  Val split(n.reshape(value, apart));
  ASSIGN_OR_FAIL(Value wide, n.broadcast(split, repeated));
  return n.set(n.reshape(wide, dims));
}
static Register tile("Tile", importTile);

/// [N, C, H, W] with blocks of pixels as channels, or the reverse: a reshape, a
/// permutation and a reshape.
static LogicalResult rearrange(Node &n, ArrayRef<int64_t> apart,
                               ArrayRef<int64_t> perm, ArrayRef<int64_t> dims) {
  ASSIGN_OR_FAIL(Value x, n.value(0));
  Value y = n.reshape(x, apart);
  y = nn::TransposeOp::create(n.b, n.loc, y, perm);
  return n.set(n.reshape(y, dims));
}

static LogicalResult importDepthToSpace(Node &n) {
  const Val x = n.input(0);
  int64_t s = n.intAttr("blocksize", 0);
  constexpr int64_t kLimit = 1 << 15;
  if (x.rank() != 4 || s < 1 || s > kLimit || x.dims[1] % (s * s))
    return n.error("shape " + str(x.dims) + " in blocks of " + Twine(s));
  int64_t c = x.dims[1] / (s * s), h = x.dims[2], w = x.dims[3];
  Dims dims{x.dims[0], c, h * s, w * s};
  if (n.stringAttr("mode", "DCR") == "DCR")
    return rearrange(n, {x.dims[0], s, s, c, h, w}, {0, 3, 4, 1, 5, 2}, dims);
  return rearrange(n, {x.dims[0], c, s, s, h, w}, {0, 1, 4, 2, 5, 3}, dims);
}
static Register depthToSpace("DepthToSpace", importDepthToSpace);

static LogicalResult importSpaceToDepth(Node &n) {
  const Val x = n.input(0);
  int64_t s = n.intAttr("blocksize", 0);
  if (x.rank() != 4 || s < 1 || x.dims[2] % s || x.dims[3] % s)
    return n.error("shape " + str(x.dims) + " in blocks of " + Twine(s));
  int64_t c = x.dims[1], h = x.dims[2] / s, w = x.dims[3] / s;
  return rearrange(n, {x.dims[0], c, h, s, w, s}, {0, 3, 5, 1, 2, 4},
                   {x.dims[0], c * s * s, h, w});
}
static Register spaceToDepth("SpaceToDepth", importSpaceToDepth);
