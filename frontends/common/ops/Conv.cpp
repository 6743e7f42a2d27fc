#include "frontends/common/ops/PadConcatSplit.h"
#include "frontends/common/ops/Shape.h"
#include "frontends/common/ops/Spatial.h"
#include "frontends/common/ops/Unfold.h"

using namespace mlir;
using namespace tmc;
using namespace tmc::frontend;

/// True if `v` is a constant of zeros: exporters add such a bias to a
/// convolution without one.
static FailureOr<bool> isZero(Site &s, const Val &v) {
  if (!s.foldable(v))
    return false;
  ASSIGN_OR_FAIL(Array array, s.arrayOf(v));
  Array compact = array.compressed();
  Dims kept;
  Array part = compact.unrepeated(kept);
  return part.rank() == 0 && part.size() == 1 &&
         part.reshaped({}).floats()[0] == 0;
}

/// Adds `bias`, a vector of channels, to `y`, and gives it the shape `dims`.
static FailureOr<Val> finish(Site &s, Value y, const Val &bias,
                             ArrayRef<int64_t> dims) {
  auto type = nn::tensorType(y);
  if (!bias.isAbsent()) {
    if (bias.dims != Dims{type.getDimSize(1)})
      return s.error("a bias of shape " + str(bias.dims) + " for " +
                     Twine(type.getDimSize(1)) + " channels");
    ASSIGN_OR_FAIL(bool zero, isZero(s, bias));
    if (!zero) {
      ASSIGN_OR_FAIL(Value b, s.materialise(bias));
      y = nn::add(s.b, s.loc, y, nn::broadcastTo(s.b, s.loc, b, type, {1}));
    }
  }
  return Val(s.reshape(y, dims));
}

static LogicalResult checkOperands(Site &s, const Val &x, const Val &w,
                                   const Val &bias, const WindowSpec &spec) {
  if (!isFloat(x.type))
    return s.unsupported("elements of type " + nameOf(x.type));
  if (x.type != w.type || (!bias.isAbsent() && bias.type != x.type))
    return s.error("the operands' elements differ in type");
  if (x.rank() < 3 || x.rank() != w.rank())
    return s.error("an input of shape " + str(x.dims) +
                   " and a filter of shape " + str(w.dims));
  if (x.rank() > 5)
    return s.unsupported("an input of shape " + str(x.dims));
  if (!spec.size.empty() && spec.size != Dims(w.dims.begin() + 2, w.dims.end()))
    return s.error("kernel_shape is " + str(spec.size) +
                   ", but the filter has shape " + str(w.dims));
  if (llvm::any_of(ArrayRef<int64_t>(w.dims).drop_front(2),
                   [](int64_t size) { return size < 1; }))
    return s.error("a filter of shape " + str(w.dims));
  return success();
}

/// Drops the height that `asImage` has added.
static Dims withoutHeight(ArrayRef<int64_t> dims, int64_t rank) {
  Dims result(dims);
  if (rank == 3)
    result.erase(result.begin() + 2);
  return result;
}

/// [N, C, D, H, W] as [N * D, C, H, W].
static FailureOr<Val> asSlices(Site &s, const Val &x) {
  ASSIGN_OR_FAIL(Val y, transpose(s, x, {0, 2, 1, 3, 4}));
  return viewed(s, y, {-1, x.dims[1], x.dims[3], x.dims[4]});
}

/// The inverse of `asSlices`, for `images`.
static FailureOr<Val> asVolume(Site &s, const Val &x, int64_t images) {
  ASSIGN_OR_FAIL(Val y,
                 viewed(s, x, {images, -1, x.dims[1], x.dims[2], x.dims[3]}));
  return transpose(s, y, {0, 2, 1, 3, 4});
}

/// `spec` without its first spatial dimension.
static WindowSpec withoutDepth(const WindowSpec &spec) {
  WindowSpec inner = spec;
  for (Dims *list : {&inner.size, &inner.strides, &inner.dilations})
    if (!list->empty())
      list->erase(list->begin());
  if (!inner.padding.empty()) {
    inner.padding.erase(inner.padding.begin() + inner.padding.size() / 2);
    inner.padding.erase(inner.padding.begin());
  }
  return inner;
}

/// One product over depth, height and width: the slices that a window reads are
/// concatenated as channels of an image.
static FailureOr<Val> convolveVolume(Site &s, const Val &x, const Val &w,
                                     const Val &bias, const WindowSpec &spec,
                                     int64_t groups) {
  ASSIGN_OR_FAIL(AxisWindows axes, windowsOf(s, x.dims, spec));
  ASSIGN_OR_FAIL(SmallVector<Val> slices, unfolded(s, x, 2, axes[0], 0));
  int64_t depth = slices.size(), height = x.dims[3], width = x.dims[4];
  for (Val &slice : slices) {
    ASSIGN_OR_FAIL(slice, asSlices(s, slice));
    ASSIGN_OR_FAIL(slice, viewed(s, slice, {-1, x.dims[1], 1, height * width}));
  }
  ASSIGN_OR_FAIL(Val all, concat(s, slices, 2));
  ASSIGN_OR_FAIL(all, viewed(s, all, {-1, x.dims[1] * depth, height, width}));
  ASSIGN_OR_FAIL(
      Val filter,
      reshaped(s, w, {w.dims[0], w.dims[1] * depth, w.dims[3], w.dims[4]}));
  ASSIGN_OR_FAIL(Val y,
                 convolve(s, all, filter, bias, withoutDepth(spec), groups));
  return asVolume(s, y, x.dims[0]);
}

FailureOr<Val> tmc::frontend::convolve(Site &s, const Val &x, const Val &w,
                                       const Val &bias, WindowSpec spec,
                                       int64_t groups) {
  if (failed(checkOperands(s, x, w, bias, spec)))
    return failure();
  if (groups < 1 || x.dims[1] % groups || w.dims[0] % groups ||
      w.dims[1] != x.dims[1] / groups)
    return s.error("an input of shape " + str(x.dims) + ", a filter of shape " +
                   str(w.dims) + " and " + Twine(groups) + " groups");
  spec.size.assign(w.dims.begin() + 2, w.dims.end());
  if (x.rank() == 5)
    return convolveVolume(s, x, w, bias, spec, groups);
  ASSIGN_OR_FAIL(Window window, windowOf(s, x, spec));
  ASSIGN_OR_FAIL(Value input, asImage(s, x));
  ASSIGN_OR_FAIL(Value filter, asImage(s, w));
  Value y = nn::ConvOp::create(s.b, s.loc, input, filter, window.strides,
                               window.padding, window.dilations,
                               /*channels_last=*/false, groups);
  return finish(s, y, bias,
                withoutHeight(nn::tensorType(y).getShape(), x.rank()));
}

/// Each input slice yields separate channels for each output slice that it
/// contributes to.
static FailureOr<Val> transposeVolume(Site &s, const Val &x, const Val &w,
                                      const Val &bias, const WindowSpec &spec,
                                      const Dims &extra, int64_t groups) {
  int64_t depth = w.dims[2];
  if (failed(checkApart(s, {depth})))
    return failure();
  AxisWindow axis{depth,           spec.strides[0], spec.dilations[0],
                  spec.padding[0], spec.padding[3], 0};
  int64_t size = axis.stride * (x.dims[2] - 1) + extra[0] +
                 (depth - 1) * axis.dilation + 1 - axis.low - axis.high;
  if (axis.stride < 1 || axis.dilation < 1 || size < 1)
    return s.unsupported("a result of " + Twine(size) + " slices from " +
                         Twine(x.dims[2]));
  ASSIGN_OR_FAIL(Val images, asSlices(s, x));
  ASSIGN_OR_FAIL(
      Val filter,
      reshaped(s, w, {w.dims[0], w.dims[1] * depth, w.dims[3], w.dims[4]}));
  ASSIGN_OR_FAIL(Val y, convolveTransposed(s, images, filter, Val(),
                                           withoutDepth(spec),
                                           {extra[1], extra[2]}, groups));
  ASSIGN_OR_FAIL(y, asVolume(s, y, x.dims[0]));
  int64_t height = y.dims[3], width = y.dims[4];
  int64_t channels = y.dims[1] / depth;
  ASSIGN_OR_FAIL(
      y,
      reshaped(s, y, {x.dims[0] * channels, depth, x.dims[2], height * width}));
  SmallVector<Val> slices;
  for (int64_t k = 0; k < depth; ++k) {
    ASSIGN_OR_FAIL(Val slice, strided(s, y, 1, k, 1, 1));
    ASSIGN_OR_FAIL(slice, squeeze(s, slice, Dims{1}));
    slices.push_back(slice);
  }
  ASSIGN_OR_FAIL(Val all, folded(s, slices, 1, axis, size));
  Dims dims{x.dims[0], channels, size, height, width};
  ASSIGN_OR_FAIL(all, reshaped(s, all, dims));
  ASSIGN_OR_FAIL(Value value, s.materialise(all));
  return finish(s, value, bias, dims);
}

/// Uses `nn.conv_grad_input`; the result's size determines which padding
/// counts.
FailureOr<Val> tmc::frontend::convolveTransposed(Site &s, const Val &x,
                                                 const Val &w, const Val &bias,
                                                 WindowSpec spec, Dims extra,
                                                 int64_t groups) {
  if (failed(checkOperands(s, x, w, bias, spec)))
    return failure();
  if (groups < 1 || x.dims[1] % groups || w.dims[0] != x.dims[1])
    return s.error("an input of shape " + str(x.dims) + ", a filter of shape " +
                   str(w.dims) + " and " + Twine(groups) + " groups");
  size_t spatial = x.rank() - 2;
  Dims &strides = spec.strides, &dilations = spec.dilations;
  Dims &pads = spec.padding;
  strides.resize(spatial, 1);
  dilations.resize(spatial, 1);
  pads.resize(2 * spatial, 0);
  extra.resize(spatial, 0);
  constexpr int64_t kLimit = 1 << 24;
  for (const Dims &list : {strides, dilations, pads, extra})
    for (int64_t entry : list)
      if (entry < 0 || entry > kLimit)
        return s.error("an attribute is " + str(list));
  if (spatial == 3)
    return transposeVolume(s, x, w, bias, spec, extra, groups);
  Dims image = asImageDims(x.dims), filterDims = asImageDims(w.dims);
  Dims dims{image[0], w.dims[1] * groups};
  Window window;
  for (int d = 0; d < 2; ++d) {
    // -1: a dimension that `asImage` added.
    int64_t k = d - 2 + static_cast<int64_t>(spatial);
    int64_t stride = k < 0 ? 1 : strides[k];
    int64_t dilation = k < 0 ? 1 : dilations[k];
    int64_t low = k < 0 ? 0 : pads[k], high = k < 0 ? 0 : pads[k + spatial];
    int64_t more = k < 0 ? 0 : extra[k];
    if (stride < 1 || dilation < 1 || image[2 + d] > kLimit ||
        filterDims[2 + d] > kLimit)
      return s.error("strides " + str(strides) + " and dilations " +
                     str(dilations));
    int64_t size = stride * (image[2 + d] - 1) + more +
                   (filterDims[2 + d] - 1) * dilation + 1 - low - high;
    if (size < 1 || windowCount(size, low, high, filterDims[2 + d], stride,
                                dilation) != image[2 + d])
      return s.unsupported("a result of " + Twine(size) + " elements from " +
                           Twine(image[2 + d]));
    dims.push_back(size);
    window.strides.push_back(stride);
    window.dilations.push_back(dilation);
    window.padding.insert(window.padding.begin() + d, low);
    window.padding.push_back(high);
  }
  ASSIGN_OR_FAIL(Value input, asImage(s, x));
  ASSIGN_OR_FAIL(Value filter, asImage(s, w));
  auto type = s.tensorType(dims, nn::tensorType(input).getElementType());
  Value y = nn::ConvGradInputOp::create(s.b, s.loc, type, input, filter,
                                        window.strides, window.padding,
                                        window.dilations,
                                        /*channels_last=*/false, groups);
  return finish(s, y, bias, withoutHeight(dims, x.rank()));
}
