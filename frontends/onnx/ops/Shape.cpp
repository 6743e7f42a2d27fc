// Shape.cpp - shapes as values, and reshapes.

#include "frontends/common/ops/Shape.h"
#include "frontends/Checked.h"
#include "frontends/onnx/Node.h"

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
static Register shapeOp("Shape", importShape);

static LogicalResult importSize(Node &n) {
  auto count = checkedNumElements(n.input(0).dims);
  if (!count)
    return n.error("the number of elements is too large");
  return n.set(Array::ofInts(ElementType::I64, {}, {*count}));
}
static Register size("Size", importSize);

static LogicalResult importReshape(Node &n) {
  ASSIGN_OR_FAIL(Dims dims, n.ints(1));
  const Val &x = n.input(0);
  if (!n.intAttr("allowzero", 0))
    for (auto [i, dim] : llvm::enumerate(dims)) {
      if (dim != 0)
        continue;
      if (static_cast<int64_t>(i) >= x.rank())
        return n.error("copies dimension " + Twine(i) +
                       " of a tensor of shape " + str(x.dims));
      dim = x.dims[i];
    }
  return n.set(viewed(n, x, dims));
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
  return n.set(reshaped(n, x, {*rows, *columns}));
}
static Register flatten("Flatten", importFlatten);

static LogicalResult importSqueeze(Node &n) {
  const Val &x = n.input(0);
  ASSIGN_OR_FAIL(std::optional<Dims> axes, n.axes(1, x.rank()));
  return n.set(squeeze(n, x, axes));
}
static Register squeezeOp("Squeeze", importSqueeze);

static LogicalResult importUnsqueeze(Node &n) {
  std::optional<Dims> axes = n.intsAttr("axes");
  if (!axes) {
    ASSIGN_OR_FAIL(axes, n.ints(1));
  }
  return n.set(unsqueeze(n, n.input(0), *axes));
}
static Register unsqueezeOp("Unsqueeze", importUnsqueeze);

static LogicalResult importTranspose(Node &n) {
  const Val &x = n.input(0);
  Dims reversed;
  for (int64_t i = x.rank(); i-- > 0;)
    reversed.push_back(i);
  Dims perm = n.intsAttr("perm").value_or(reversed);
  for (int64_t &dim : perm) // Exporters also count from the end.
    if (dim < 0)
      dim += x.rank();
  return n.set(transpose(n, x, perm));
}
static Register transposeOp("Transpose", importTranspose);

static LogicalResult importExpand(Node &n) {
  ASSIGN_OR_FAIL(Dims wanted, n.ints(1));
  return n.set(expand(n, n.input(0), wanted));
}
static Register expandOp("Expand", importExpand);

static LogicalResult importTile(Node &n) {
  ASSIGN_OR_FAIL(Dims times, n.ints(1));
  return n.set(tile(n, n.input(0), times));
}
static Register tileOp("Tile", importTile);

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
  Dims perm = n.stringAttr("mode", "DCR") == "DCR" ? Dims{0, 3, 5, 1, 2, 4}
                                                   : Dims{0, 1, 3, 5, 2, 4};
  return rearrange(n, {x.dims[0], c, h, s, w, s}, perm,
                   {x.dims[0], c * s * s, h, w});
}
static Register spaceToDepth("SpaceToDepth", importSpaceToDepth);
