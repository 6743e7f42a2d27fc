// Windows.cpp - unfolds and folds windows, and turns channels into places or
// into other channels.

#include "frontends/Checked.h"
#include "frontends/common/ops/Activation.h"
#include "frontends/common/ops/PadConcatSplit.h"
#include "frontends/common/ops/Pointwise.h"
#include "frontends/common/ops/Shape.h"
#include "frontends/common/ops/Unfold.h"
#include "frontends/torch/ops/Shape.h"

using namespace mlir;
using namespace tmc;
using namespace tmc::torch_import;

/// Windows of `size` along a dimension, `step` apart; their elements form a new
/// last dimension.
static LogicalResult importUnfold(Call &c) {
  const Val self = c.tensor("self");
  ASSIGN_OR_FAIL(int64_t dim, c.dim("dimension", std::nullopt, self.rank()));
  AxisWindow w;
  ASSIGN_OR_FAIL(w.size, c.integer("size", std::nullopt));
  ASSIGN_OR_FAIL(w.stride, c.integer("step", std::nullopt));
  if (self.dims.empty() || w.size < 1 || w.stride < 1 ||
      w.size > self.dims[dim])
    return c.error("windows of " + Twine(w.size) + ", " + Twine(w.stride) +
                   " apart, of shape " + str(self.dims));
  if (failed(checkApart(c, {w.size})))
    return failure();
  ASSIGN_OR_FAIL(SmallVector<Val> slices, unfolded(c, self, dim, w, 0));
  return c.set(stacked(c, slices, self.rank()));
}
static Register unfold("unfold", importUnfold);

/// The windows over images that the arguments of im2col and col2im describe.
static FailureOr<WindowSpec> columnsOf(Call &c) {
  WindowSpec spec;
  auto pairOf = [&](const char *name) -> FailureOr<Dims> {
    ASSIGN_OR_FAIL(Dims list, c.integers(name, std::nullopt));
    if (list.size() == 1)
      list.push_back(list[0]);
    if (list.size() != 2)
      return c.error("'" + Twine(name) + "' is " + str(list));
    return list;
  };
  ASSIGN_OR_FAIL(spec.size, pairOf("kernel_size"));
  ASSIGN_OR_FAIL(spec.dilations, pairOf("dilation"));
  ASSIGN_OR_FAIL(spec.padding, pairOf("padding"));
  ASSIGN_OR_FAIL(spec.strides, pairOf("stride"));
  Dims after(spec.padding);
  spec.padding.append(after);
  return spec;
}

/// Images [N, C, H, W] as [N, C * window, windows].
static LogicalResult importIm2col(Call &c) {
  const Val x = c.tensor("self");
  if (x.rank() != 4)
    return c.unsupported("images of shape " + str(x.dims));
  ASSIGN_OR_FAIL(WindowSpec spec, columnsOf(c));
  if (failed(checkApart(c, spec.size)))
    return failure();
  ASSIGN_OR_FAIL(AxisWindows windows, windowsOf(c, x.dims, spec));
  ASSIGN_OR_FAIL(SmallVector<Val> rows, unfolded(c, x, 2, windows[0], 0));
  SmallVector<Val> elements;
  for (const Val &row : rows) {
    ASSIGN_OR_FAIL(SmallVector<Val> each, unfolded(c, row, 3, windows[1], 0));
    elements.append(each.begin(), each.end());
  }
  ASSIGN_OR_FAIL(Val y, stacked(c, elements, 2));
  return c.set(reshaped(
      c, y, {x.dims[0], x.dims[1] * y.dims[2], y.dims[3] * y.dims[4]}));
}
static Register im2col("im2col", importIm2col);

static LogicalResult importCol2im(Call &c) {
  ASSIGN_OR_FAIL(WindowSpec spec, columnsOf(c));
  ASSIGN_OR_FAIL(Dims size, c.integers("output_size", std::nullopt));
  if (c.tensor("self").rank() != 3)
    return c.unsupported("columns of shape " + str(c.tensor("self").dims));
  return c.set(foldColumns(c, c.tensor("self"), size, spec));
}
static Register col2im("col2im", importCol2im);

//===----------------------------------------------------------------------===//
// Channels
//===----------------------------------------------------------------------===//

/// `x` reshaped to `apart`, permuted by `order`, and reshaped to `dims`.
static LogicalResult rearranged(Call &c, const Val &x, ArrayRef<int64_t> outer,
                                ArrayRef<int64_t> apart,
                                ArrayRef<int64_t> order,
                                ArrayRef<int64_t> dims) {
  Dims wide(outer), perm(nn::firstDims(outer.size())), last(outer);
  wide.append(apart.begin(), apart.end());
  for (int64_t entry : order)
    perm.push_back(static_cast<int64_t>(outer.size()) + entry);
  last.append(dims.begin(), dims.end());
  ASSIGN_OR_FAIL(Val y, reshaped(c, x, wide));
  ASSIGN_OR_FAIL(y, transpose(c, y, perm));
  return c.set(reshaped(c, y, last));
}

/// [..., C * r * r, H, W] as [..., C, H * r, W * r], or back.
static LogicalResult shufflePixels(Call &c, const char *name, bool isBack) {
  const Val x = c.tensor("self");
  ASSIGN_OR_FAIL(int64_t r, c.integer(name, std::nullopt));
  if (x.rank() < 3)
    return c.error("pixels of shape " + str(x.dims));
  ArrayRef<int64_t> dims(x.dims), outer = dims.drop_back(3);
  int64_t channels = dims[outer.size()], h = dims[outer.size() + 1],
          w = dims[outer.size() + 2];
  bool fits = r > 0 && r < (1 << 15) &&
              (isBack ? h % r == 0 && w % r == 0 : channels % (r * r) == 0);
  if (!fits)
    return c.error("a factor of " + Twine(r) + " for shape " + str(dims));
  if (isBack)
    return rearranged(c, x, outer, {channels, h / r, r, w / r, r},
                      {0, 2, 4, 1, 3}, {channels * r * r, h / r, w / r});
  int64_t fewer = channels / (r * r);
  return rearranged(c, x, outer, {fewer, r, r, h, w}, {0, 3, 1, 4, 2},
                    {fewer, h * r, w * r});
}
static LogicalResult importPixelShuffle(Call &c) {
  return shufflePixels(c, "upscale_factor", false);
}
static Register pixelShuffle("pixel_shuffle", importPixelShuffle);
static LogicalResult importPixelUnshuffle(Call &c) {
  return shufflePixels(c, "downscale_factor", true);
}
static Register pixelUnshuffle("pixel_unshuffle", importPixelUnshuffle);

/// Divides channels of [N, C, ...] into groups and interleaves the groups.
static LogicalResult importChannelShuffle(Call &c) {
  const Val x = c.tensor("self");
  ASSIGN_OR_FAIL(int64_t groups, c.integer("groups", std::nullopt));
  if (x.rank() < 2 || groups < 1 || x.dims[1] % groups)
    return c.error(Twine(groups) + " groups of shape " + str(x.dims));
  auto each = checkedNumElements(ArrayRef<int64_t>(x.dims).drop_front(2));
  if (!each)
    return c.error("the number of elements is too large");
  return rearranged(c, x, {x.dims[0]}, {groups, x.dims[1] / groups, *each},
                    {1, 0, 2}, ArrayRef<int64_t>(x.dims).drop_front());
}
static Register channelShuffle("channel_shuffle", importChannelShuffle);
static Register nativeShuffle("native_channel_shuffle", importChannelShuffle);

/// The first half times the sigmoid of the second.
static LogicalResult importGlu(Call &c) {
  const Val x = c.tensor("self");
  ASSIGN_OR_FAIL(int64_t dim, c.dim("dim", -1, x.rank()));
  if (x.dims.empty() || x.dims[dim] % 2)
    return c.error("halves of shape " + str(x.dims));
  int64_t half = x.dims[dim] / 2;
  ASSIGN_OR_FAIL(SmallVector<Val> parts, cut(c, x, dim, {half, half}));
  ASSIGN_OR_FAIL(Val gate, sigmoid(c, parts[1]));
  return c.set(multiply(c, {parts[0], gate}));
}
static Register glu("glu", importGlu);
