#include "frontends/common/ops/Spatial.h"

using namespace mlir;
using namespace tmc;
using namespace tmc::frontend;

/// True if `v` is a constant of zeros: the bias that an exporter adds where the
/// model has none.
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
  if (x.rank() > 4)
    return s.unsupported("an input of shape " + str(x.dims));
  if (!spec.size.empty() && spec.size != Dims(w.dims.begin() + 2, w.dims.end()))
    return s.error("kernel_shape is " + str(spec.size) +
                   ", but the filter has shape " + str(w.dims));
  return success();
}

/// Drops the height that `asImage` has put in.
static Dims withoutHeight(ArrayRef<int64_t> dims, int64_t rank) {
  Dims result(dims);
  if (rank == 3)
    result.erase(result.begin() + 2);
  return result;
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
  ASSIGN_OR_FAIL(Window window, windowOf(s, x, spec));
  ASSIGN_OR_FAIL(Value input, asImage(s, x));
  ASSIGN_OR_FAIL(Value filter, asImage(s, w));
  Value y = nn::ConvOp::create(s.b, s.loc, input, filter, window.strides,
                               window.padding, window.dilations,
                               /*channels_last=*/false, groups);
  return finish(s, y, bias,
                withoutHeight(nn::tensorType(y).getShape(), x.rank()));
}

/// By `nn.conv_grad_input`, whose result's size says how much padding counts.
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
  Dims image = asImageDims(x.dims), filterDims = asImageDims(w.dims);
  Dims dims{image[0], w.dims[1] * groups};
  Window window;
  for (int d = 0; d < 2; ++d) {
    int64_t k = d - 2 + static_cast<int64_t>(spatial); // -1: put in by us.
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
