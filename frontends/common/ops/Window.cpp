#include "frontends/common/ops/Spatial.h"

using namespace mlir;
using namespace tmc;
using namespace tmc::frontend;

/// Beyond these, sizes are nonsense, and below them no sum can wrap around.
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

/// `given`, or `wanted` times `otherwise` where it is empty, checked.
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

FailureOr<Window> tmc::frontend::windowOf(Site &s, const Val &input,
                                          const WindowSpec &spec) {
  if (input.rank() < 3)
    return s.error("an input of shape " + str(input.dims));
  if (input.rank() > 4)
    return s.unsupported("an input of shape " + str(input.dims));
  size_t spatial = input.rank() - 2;
  Window w;
  if (spec.size.empty())
    return s.error("has no kernel_shape");
  ASSIGN_OR_FAIL(w.size, listOf(s, "kernel_shape", spec.size, spatial, 1, 1));
  ASSIGN_OR_FAIL(w.strides, listOf(s, "strides", spec.strides, spatial, 1, 1));
  ASSIGN_OR_FAIL(w.dilations,
                 listOf(s, "dilations", spec.dilations, spatial, 1, 1));
  ASSIGN_OR_FAIL(w.padding, listOf(s, "pads", spec.padding, 2 * spatial, 0, 0));
  if (spatial == 1) {
    w.size.insert(w.size.begin(), 1);
    w.strides.insert(w.strides.begin(), 1);
    w.dilations.insert(w.dilations.begin(), 1);
    w.padding = {0, w.padding[0], 0, w.padding[1]};
  }
  Dims image = asImageDims(input.dims);
  for (int d = 0; d < 2; ++d) {
    int64_t size = image[2 + d];
    int64_t &low = w.padding[d], &high = w.padding[2 + d];
    if (size >= kMaxSpatial || w.size[d] >= kMaxSpatial)
      return s.error("an input of shape " + str(input.dims));
    int64_t extent = (w.size[d] - 1) * w.dilations[d] + 1;
    if (spec.autoPad == WindowSpec::SameUpper ||
        spec.autoPad == WindowSpec::SameLower) {
      int64_t out = (size + w.strides[d] - 1) / w.strides[d];
      int64_t total =
          std::max<int64_t>((out - 1) * w.strides[d] + extent - size, 0);
      low =
          spec.autoPad == WindowSpec::SameUpper ? total / 2 : total - total / 2;
      high = total - low;
    } else if (spec.autoPad == WindowSpec::Valid) {
      low = high = 0;
    }
    int64_t room = size + low + high - extent;
    if (spec.ceil && room > 0 && room % w.strides[d]) {
      // One window more, if it begins within the input or its padding before.
      int64_t begin = (room / w.strides[d] + 1) * w.strides[d];
      if (begin < size + low)
        high += w.strides[d] - room % w.strides[d];
    }
    if (room < 0)
      return s.error("a window of " + Twine(extent) + " doesn't fit in " +
                     Twine(size + low + high) + " elements");
  }
  return w;
}
