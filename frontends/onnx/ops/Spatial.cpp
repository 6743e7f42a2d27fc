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
  if (n.stringAttr("auto_pad", "NOTSET") != "NOTSET" ||
      n.attribute("output_shape"))
    return n.unsupported("padding by the result's shape");
  return n.set(convolveTransposed(
      n, n.input(0), n.input(1), n.input(2), windowOf(n),
      n.intsAttr("output_padding").value_or(Dims()), n.intAttr("group", 1)));
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
