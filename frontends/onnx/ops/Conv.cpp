// Conv.cpp - convolutions and their transposes.

#include "frontends/onnx/ops/Spatial.h"

using namespace mlir;
using namespace tmc;
using namespace tmc::onnx_import;

/// True if input `i` is a constant of zeros: the bias that an exporter adds
/// where the model has none.
static FailureOr<bool> isZero(Node &n, int i) {
  if (!n.foldable(i))
    return false;
  ASSIGN_OR_FAIL(Array array, n.array(i));
  Array compact = array.compressed();
  Dims kept;
  Array part = compact.unrepeated(kept);
  return part.rank() == 0 && part.size() == 1 &&
         part.reshaped({}).floats()[0] == 0;
}

/// Adds input 2, a vector of channels, to `y`, and gives it the shape `dims`.
static LogicalResult finish(Node &n, Value y, ArrayRef<int64_t> dims) {
  auto type = nn::tensorType(y);
  if (n.has(2)) {
    const Val bias = n.input(2);
    if (bias.dims != Dims{type.getDimSize(1)})
      return n.error("a bias of shape " + str(bias.dims) + " for " +
                     Twine(type.getDimSize(1)) + " channels");
    ASSIGN_OR_FAIL(bool zero, isZero(n, 2));
    if (!zero) {
      ASSIGN_OR_FAIL(Value b, n.value(2));
      y = nn::add(n.b, n.loc, y, nn::broadcastTo(n.b, n.loc, b, type, {1}));
    }
  }
  return n.set(n.reshape(y, dims));
}

static LogicalResult checkOperands(Node &n) {
  const Val &x = n.input(0), &w = n.input(1);
  if (!isFloat(x.type))
    return n.unsupported("elements of type " + nameOf(x.type));
  if (x.type != w.type || (n.has(2) && n.input(2).type != x.type))
    return n.error("the operands' elements differ in type");
  if (x.rank() < 3 || x.rank() != w.rank())
    return n.error("an input of shape " + str(x.dims) +
                   " and a filter of shape " + str(w.dims));
  if (x.rank() > 4)
    return n.unsupported("an input of shape " + str(x.dims));
  if (auto kernel = n.intsAttr("kernel_shape"))
    if (!kernel->empty() && *kernel != Dims(w.dims.begin() + 2, w.dims.end()))
      return n.error("kernel_shape is " + str(*kernel) +
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

static LogicalResult importConv(Node &n) {
  const Val x = n.input(0), w = n.input(1);
  int64_t groups = n.intAttr("group", 1);
  if (failed(checkOperands(n)))
    return failure();
  if (groups < 1 || x.dims[1] % groups || w.dims[0] % groups ||
      w.dims[1] != x.dims[1] / groups)
    return n.error("an input of shape " + str(x.dims) + ", a filter of shape " +
                   str(w.dims) + " and " + Twine(groups) + " groups");
  ASSIGN_OR_FAIL(Window window,
                 windowOf(n, x, ArrayRef<int64_t>(w.dims).drop_front(2)));
  ASSIGN_OR_FAIL(Value input, asImage(n, 0));
  ASSIGN_OR_FAIL(Value filter, asImage(n, 1));
  Value y = nn::ConvOp::create(n.b, n.loc, input, filter, window.strides,
                               window.padding, window.dilations,
                               /*channels_last=*/false, groups);
  return finish(n, y, withoutHeight(nn::tensorType(y).getShape(), x.rank()));
}
static Register conv("Conv", importConv);

/// The adjoint of a convolution: `nn.conv_grad_input`, whose result's size says
/// how much padding counts.
static LogicalResult importConvTranspose(Node &n) {
  const Val x = n.input(0), w = n.input(1);
  int64_t groups = n.intAttr("group", 1);
  if (failed(checkOperands(n)))
    return failure();
  if (groups < 1 || x.dims[1] % groups || w.dims[0] != x.dims[1])
    return n.error("an input of shape " + str(x.dims) + ", a filter of shape " +
                   str(w.dims) + " and " + Twine(groups) + " groups");
  if (n.stringAttr("auto_pad", "NOTSET") != "NOTSET" ||
      n.attribute("output_shape"))
    return n.unsupported("padding by the result's shape");
  size_t spatial = x.rank() - 2;
  auto attribute = [&](StringRef name, size_t size, int64_t otherwise) {
    Dims list = n.intsAttr(name).value_or(Dims(size, otherwise));
    list.resize(size, otherwise);
    return list;
  };
  Dims strides = attribute("strides", spatial, 1);
  Dims dilations = attribute("dilations", spatial, 1);
  Dims pads = attribute("pads", 2 * spatial, 0);
  Dims extra = attribute("output_padding", spatial, 0);
  constexpr int64_t kLimit = 1 << 24;
  for (const Dims &list : {strides, dilations, pads, extra})
    for (int64_t entry : list)
      if (entry < 0 || entry > kLimit)
        return n.error("an attribute is " + str(list));
  Dims image = asImageDims(x.dims), filterDims = asImageDims(w.dims);
  Dims dims{image[0], w.dims[1] * groups};
  Window window;
  for (int d = 0; d < 2; ++d) {
    int64_t s = d - 2 + static_cast<int64_t>(spatial); // -1: put in by us.
    int64_t stride = s < 0 ? 1 : strides[s];
    int64_t dilation = s < 0 ? 1 : dilations[s];
    int64_t low = s < 0 ? 0 : pads[s], high = s < 0 ? 0 : pads[s + spatial];
    int64_t more = s < 0 ? 0 : extra[s];
    if (stride < 1 || dilation < 1 || image[2 + d] > kLimit ||
        filterDims[2 + d] > kLimit)
      return n.error("strides " + str(strides) + " and dilations " +
                     str(dilations));
    int64_t size = stride * (image[2 + d] - 1) + more +
                   (filterDims[2 + d] - 1) * dilation + 1 - low - high;
    if (size < 1 || windowCount(size, low, high, filterDims[2 + d], stride,
                                dilation) != image[2 + d])
      return n.unsupported("a result of " + Twine(size) + " elements from " +
                           Twine(image[2 + d]));
    dims.push_back(size);
    window.strides.push_back(stride);
    window.dilations.push_back(dilation);
    window.padding.insert(window.padding.begin() + d, low);
    window.padding.push_back(high);
  }
  ASSIGN_OR_FAIL(Value input, asImage(n, 0));
  ASSIGN_OR_FAIL(Value filter, asImage(n, 1));
  auto type = n.tensorType(dims, nn::tensorType(input).getElementType());
  Value y = nn::ConvGradInputOp::create(n.b, n.loc, type, input, filter,
                                        window.strides, window.padding,
                                        window.dilations,
                                        /*channels_last=*/false, groups);
  return finish(n, y, withoutHeight(dims, x.rank()));
}
static Register convTranspose("ConvTranspose", importConvTranspose);
