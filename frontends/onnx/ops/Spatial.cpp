#include "frontends/onnx/ops/Spatial.h"

using namespace mlir;
using namespace tmc;
using namespace tmc::onnx_import;

/// Beyond these, sizes are nonsense, and below them no sum can wrap around.
constexpr int64_t kMaxSpatial = int64_t(1) << 31;

Dims tmc::onnx_import::asImageDims(ArrayRef<int64_t> dims) {
  Dims image(dims);
  if (image.size() == 3)
    image.insert(image.begin() + 2, 1);
  return image;
}

FailureOr<Value> tmc::onnx_import::asImage(Node &n, int i) {
  const Val v = n.input(i);
  ASSIGN_OR_FAIL(Value x, n.value(i));
  return n.reshape(x, asImageDims(v.dims));
}

int64_t tmc::onnx_import::windowCount(int64_t size, int64_t low, int64_t high,
                                      int64_t window, int64_t stride,
                                      int64_t dilation) {
  int64_t room = size + low + high - ((window - 1) * dilation + 1);
  return room < 0 ? -1 : room / stride + 1;
}

/// A list of one entry per spatial dimension (or `per` of them), checked.
static FailureOr<Dims> listOf(Node &n, StringRef name, size_t wanted,
                              int64_t otherwise, int64_t least) {
  Dims list(wanted, otherwise);
  if (auto given = n.intsAttr(name))
    list = *given;
  bool valid = list.size() == wanted;
  for (int64_t entry : list)
    valid = valid && entry >= least && entry < kMaxSpatial;
  if (!valid)
    return n.error(name + " is " + str(list));
  return list;
}

FailureOr<Window> tmc::onnx_import::windowOf(Node &n, const Val &input,
                                             ArrayRef<int64_t> kernel) {
  if (input.rank() < 3)
    return n.error("an input of shape " + str(input.dims));
  if (input.rank() > 4)
    return n.unsupported("an input of shape " + str(input.dims));
  size_t spatial = input.rank() - 2;
  Window w;
  if (kernel.empty()) {
    if (!n.attribute("kernel_shape"))
      return n.error("has no kernel_shape");
    ASSIGN_OR_FAIL(w.size, listOf(n, "kernel_shape", spatial, 1, 1));
  } else {
    w.size.assign(kernel.begin(), kernel.end());
  }
  ASSIGN_OR_FAIL(w.strides, listOf(n, "strides", spatial, 1, 1));
  ASSIGN_OR_FAIL(w.dilations, listOf(n, "dilations", spatial, 1, 1));
  ASSIGN_OR_FAIL(w.padding, listOf(n, "pads", 2 * spatial, 0, 0));
  if (spatial == 1) {
    w.size.insert(w.size.begin(), 1);
    w.strides.insert(w.strides.begin(), 1);
    w.dilations.insert(w.dilations.begin(), 1);
    w.padding = {0, w.padding[0], 0, w.padding[1]};
  }
  Dims image = asImageDims(input.dims);
  std::string autoPad = n.stringAttr("auto_pad", "NOTSET");
  bool ceil = n.intAttr("ceil_mode", 0);
  for (int d = 0; d < 2; ++d) {
    int64_t size = image[2 + d];
    int64_t &low = w.padding[d], &high = w.padding[2 + d];
    if (size >= kMaxSpatial || w.size[d] >= kMaxSpatial)
      return n.error("an input of shape " + str(input.dims));
    int64_t extent = (w.size[d] - 1) * w.dilations[d] + 1;
    if (autoPad == "SAME_UPPER" || autoPad == "SAME_LOWER") {
      int64_t out = (size + w.strides[d] - 1) / w.strides[d];
      int64_t total =
          std::max<int64_t>((out - 1) * w.strides[d] + extent - size, 0);
      low = autoPad == "SAME_UPPER" ? total / 2 : total - total / 2;
      high = total - low;
    } else if (autoPad == "VALID") {
      low = high = 0;
    }
    int64_t room = size + low + high - extent;
    if (ceil && room > 0 && room % w.strides[d]) {
      // One window more, if it begins within the input or its padding before.
      int64_t begin = (room / w.strides[d] + 1) * w.strides[d];
      if (begin < size + low)
        high += w.strides[d] - room % w.strides[d];
    }
    if (room < 0)
      return n.error("a window of " + Twine(extent) + " doesn't fit in " +
                     Twine(size + low + high) + " elements");
  }
  return w;
}
