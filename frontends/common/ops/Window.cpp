#include "frontends/common/ops/Spatial.h"

using namespace mlir;
using namespace tmc;
using namespace tmc::frontend;

/// Larger sizes make no sense, and below this limit no sum can wrap around.
constexpr int64_t kMaxSpatial = int64_t(1) << 31;

Dims tmc::frontend::asImageDims(ArrayRef<int64_t> dims) {
  Dims image(dims);
  if (image.size() == 3)
    image.insert(image.begin() + 2, 1);
  return image;
}

FailureOr<Value> tmc::frontend::asImage(Site &s, const Val &v) {
  ASSIGN_OR_FAIL(Value x, s.materialise(v));
  return s.reshape(x, asImageDims(v.dims));
}

int64_t tmc::frontend::windowCount(int64_t size, int64_t low, int64_t high,
                                   int64_t window, int64_t stride,
                                   int64_t dilation) {
  int64_t room = size + low + high - ((window - 1) * dilation + 1);
  return room < 0 ? -1 : room / stride + 1;
}

/// `given`, checked, or `wanted` times `otherwise` if it is empty.
static FailureOr<Dims> listOf(Site &s, StringRef name, const Dims &given,
                              size_t wanted, int64_t otherwise, int64_t least) {
  Dims list = given.empty() ? Dims(wanted, otherwise) : given;
  bool valid = list.size() == wanted;
  for (int64_t entry : list)
    valid = valid && entry >= least && entry < kMaxSpatial;
  if (!valid)
    return s.error(name + " is " + str(list));
  return list;
}

/// The resolved padding of one axis; an error if no window fits.
static LogicalResult resolve(Site &s, const WindowSpec &spec, int64_t size,
                             AxisWindow &w) {
  if (size >= kMaxSpatial || w.size >= kMaxSpatial)
    return s.error("an input of " + Twine(size) + " elements");
  int64_t extent = (w.size - 1) * w.dilation + 1;
  bool isUpper = spec.autoPad == WindowSpec::SameUpper;
  if (isUpper || spec.autoPad == WindowSpec::SameLower) {
    int64_t out = (size + w.stride - 1) / w.stride;
    int64_t total = std::max<int64_t>((out - 1) * w.stride + extent - size, 0);
    w.low = isUpper ? total / 2 : total - total / 2;
    w.high = total - w.low;
  } else if (spec.autoPad == WindowSpec::Valid) {
    w.low = w.high = 0;
  }
  int64_t room = size + w.low + w.high - extent;
  if (room < 0)
    return s.error("a window of " + Twine(extent) + " doesn't fit in " +
                   Twine(size + w.low + w.high) + " elements");
  if (spec.ceil && room % w.stride) {
    // One more window, if it begins within the input or its padding before.
    int64_t begin = (room / w.stride + 1) * w.stride;
    if (begin < size + w.low)
      w.extra = w.stride - room % w.stride;
  }
  return success();
}

FailureOr<AxisWindows> tmc::frontend::windowsOf(Site &s,
                                                ArrayRef<int64_t> input,
                                                const WindowSpec &spec) {
  if (input.size() < 3)
    return s.error("an input of shape " + str(input));
  size_t spatial = input.size() - 2;
  if (spec.size.empty())
    return s.error("has no kernel_shape");
  ASSIGN_OR_FAIL(Dims size,
                 listOf(s, "kernel_shape", spec.size, spatial, 1, 1));
  ASSIGN_OR_FAIL(Dims strides,
                 listOf(s, "strides", spec.strides, spatial, 1, 1));
  ASSIGN_OR_FAIL(Dims dilations,
                 listOf(s, "dilations", spec.dilations, spatial, 1, 1));
  ASSIGN_OR_FAIL(Dims padding,
                 listOf(s, "pads", spec.padding, 2 * spatial, 0, 0));
  AxisWindows axes;
  for (size_t d = 0; d < spatial; ++d) {
    AxisWindow w{size[d],    strides[d],           dilations[d],
                 padding[d], padding[spatial + d], 0};
    if (failed(resolve(s, spec, input[2 + d], w)))
      return failure();
    axes.push_back(w);
  }
  return axes;
}

FailureOr<Window> tmc::frontend::windowOf(Site &s, const Val &input,
                                          const WindowSpec &spec) {
  if (input.rank() > 4)
    return s.unsupported("an input of shape " + str(input.dims));
  ASSIGN_OR_FAIL(AxisWindows axes, windowsOf(s, input.dims, spec));
  if (axes.size() == 1)
    axes.insert(axes.begin(), AxisWindow());
  return imageWindow(axes[0], axes[1]);
}

Window tmc::frontend::imageWindow(const AxisWindow &h, const AxisWindow &w) {
  return {{h.size, w.size},
          {h.stride, w.stride},
          {h.dilation, w.dilation},
          {h.low, w.low, h.high + h.extra, w.high + w.extra}};
}
