// Spatial.cpp - convolutions, their transposes, and pools.

#include "frontends/common/ops/Spatial.h"
#include "frontends/onnx/Node.h"

using namespace mlir;
using namespace tmc;
using namespace tmc::onnx_import;

/// The attributes auto_pad, kernel_shape, pads, strides, dilations, ceil_mode.
static WindowSpec windowOf(Node &n) {
  WindowSpec spec;
  spec.size = n.intsAttr("kernel_shape").value_or(Dims());
  spec.strides = n.intsAttr("strides").value_or(Dims());
  spec.dilations = n.intsAttr("dilations").value_or(Dims());
  spec.padding = n.intsAttr("pads").value_or(Dims());
  std::string autoPad = n.stringAttr("auto_pad", "NOTSET");
  spec.autoPad = autoPad == "SAME_UPPER"   ? WindowSpec::SameUpper
                 : autoPad == "SAME_LOWER" ? WindowSpec::SameLower
                 : autoPad == "VALID"      ? WindowSpec::Valid
                                           : WindowSpec::Given;
  spec.ceil = n.intAttr("ceil_mode", 0);
  return spec;
}

static LogicalResult importConv(Node &n) {
  return n.set(convolve(n, n.input(0), n.input(1), n.input(2), windowOf(n),
                        n.intAttr("group", 1)));
}
static Register conv("Conv", importConv);

static LogicalResult importConvTranspose(Node &n) {
  const Val x = n.input(0), w = n.input(1);
  WindowSpec spec = windowOf(n);
  Dims extra = n.intsAttr("output_padding").value_or(Dims());
  std::string how = n.stringAttr("auto_pad", "NOTSET");
  std::optional<Dims> wanted = n.intsAttr("output_shape");
  spec.autoPad = WindowSpec::Given;
  if ((wanted || how.rfind("SAME", 0) == 0) && x.rank() > 2 &&
      w.rank() == x.rank()) {
    // What is too much is cut off at both ends.
    size_t spatial = x.rank() - 2;
    auto entry = [&](const Dims &list, size_t i, int64_t otherwise) {
      return i < list.size() ? list[i] : otherwise;
    };
    if (wanted && wanted->size() != spatial)
      return n.error("asks for the shape " + str(*wanted));
    Dims padding(2 * spatial, 0), more(spatial, 0);
    for (size_t i = 0; i < spatial; ++i) {
      int64_t stride = entry(spec.strides, i, 1), size = x.dims[2 + i];
      int64_t reach = (w.dims[2 + i] - 1) * entry(spec.dilations, i, 1) + 1;
      int64_t full = stride * (size - 1) + entry(extra, i, 0) + reach;
      int64_t total = full - (wanted ? (*wanted)[i] : size * stride);
      more[i] = entry(extra, i, 0) + std::max<int64_t>(-total, 0);
      total = std::max<int64_t>(total, 0);
      int64_t low = how == "SAME_UPPER" ? total / 2 : total - total / 2;
      padding[i] = low;
      padding[spatial + i] = total - low;
    }
    spec.padding = padding;
    extra = more;
  }
  return n.set(convolveTransposed(n, x, w, n.input(2), spec, extra,
                                  n.intAttr("group", 1)));
}
static Register convTranspose("ConvTranspose", importConvTranspose);

static LogicalResult importMaxPool(Node &n) {
  if (n.isUsed(1))
    return n.unsupported("the indices of the largest elements");
  return n.set(maxPool(n, n.input(0), windowOf(n)));
}
static Register maxPoolOp("MaxPool", importMaxPool);

static LogicalResult importAveragePool(Node &n) {
  return n.set(averagePool(n, n.input(0), windowOf(n),
                           n.intAttr("count_include_pad", 0)));
}
static Register averagePoolOp("AveragePool", importAveragePool);

static LogicalResult importGlobalAveragePool(Node &n) {
  return n.set(globalPool(n, n.input(0), nn::ReduceKind::Sum, true));
}
static Register globalAverage("GlobalAveragePool", importGlobalAveragePool);

static LogicalResult importGlobalMaxPool(Node &n) {
  return n.set(globalPool(n, n.input(0), nn::ReduceKind::Max, false));
}
static Register globalMax("GlobalMaxPool", importGlobalMaxPool);
