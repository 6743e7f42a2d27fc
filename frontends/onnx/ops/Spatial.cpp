// Spatial.cpp - convolutions, their transposes, and pools.

#include "frontends/common/ops/Spatial.h"
#include "frontends/common/ops/PadConcatSplit.h"
#include "frontends/common/ops/Unfold.h"
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
    // The excess is cut off at both ends.
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
  // The storage order concerns only the indices.
  n.ignore({"storage_order"});
  if (n.isUsed(1)) {
    ASSIGN_OR_FAIL(Val places, placesOfMaxima(n, n.input(0), windowOf(n),
                                              n.intAttr("storage_order", 0)));
    if (failed(n.set(1, places)))
      return failure();
  }
  return n.set(maxPool(n, n.input(0), windowOf(n)));
}
static Register maxPoolOp("MaxPool", importMaxPool);

static LogicalResult importMaxUnpool(Node &n) {
  const Val x = n.input(0);
  if (x.rank() < 3)
    return n.error("an input of shape " + str(x.dims));
  size_t spatial = x.rank() - 2;
  WindowSpec spec = windowOf(n);
  spec.strides.resize(spatial, 1);
  spec.padding.resize(2 * spatial, 0);
  if (spec.size.size() != spatial)
    return n.error("kernel_shape is " + str(spec.size));
  // The indices refer to the tensor before pooling.
  Dims dims(x.dims);
  constexpr int64_t kLimit = 1 << 24;
  for (size_t d = 0; d < spatial; ++d) {
    for (int64_t entry : {spec.strides[d], spec.size[d], dims[2 + d],
                          spec.padding[d], spec.padding[spatial + d]})
      if (entry < 0 || entry > kLimit)
        return n.error("strides are " + str(spec.strides));
    dims[2 + d] = (dims[2 + d] - 1) * spec.strides[d] + spec.size[d] -
                  spec.padding[d] - spec.padding[spatial + d];
    if (dims[2 + d] < 1)
      return n.error("pads are " + str(spec.padding));
  }
  ASSIGN_OR_FAIL(Val y, unpool(n, x, n.input(1), dims));
  if (!n.has(2))
    return n.set(y);
  ASSIGN_OR_FAIL(Dims wanted, n.ints(2));
  if (wanted.size() != dims.size())
    return n.error("asks for the shape " + str(wanted));
  Dims more;
  for (auto [size, now] : llvm::zip(wanted, dims))
    more.push_back(size - now);
  return n.set(pad(n, y, Dims(dims.size(), 0), more, 0));
}
static Register maxUnpool("MaxUnpool", importMaxUnpool);

static LogicalResult importCol2Im(Node &n) {
  ASSIGN_OR_FAIL(Dims image, n.ints(1));
  WindowSpec spec = windowOf(n);
  ASSIGN_OR_FAIL(spec.size, n.ints(2));
  return n.set(foldColumns(n, n.input(0), image, spec));
}
static Register col2Im("Col2Im", importCol2Im);

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

static LogicalResult importLpPool(Node &n) {
  return n.set(normPool(n, n.input(0), windowOf(n), n.intAttr("p", 2)));
}
static Register lpPool("LpPool", importLpPool);

static LogicalResult importGlobalLpPool(Node &n) {
  WindowSpec all;
  const Val x = n.input(0);
  if (x.rank() < 3)
    return n.error("an input of shape " + str(x.dims));
  all.size.assign(x.dims.begin() + 2, x.dims.end());
  return n.set(normPool(n, x, all, n.intAttr("p", 2)));
}
static Register globalLpPool("GlobalLpPool", importGlobalLpPool);
