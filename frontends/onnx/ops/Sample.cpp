// Sample.cpp - reads images at positions that a step may compute.

#include "frontends/common/ops/Sample.h"
#include "frontends/onnx/Node.h"

using namespace mlir;
using namespace tmc;
using namespace tmc::onnx_import;

static LogicalResult importGridSample(Node &n) {
  Sampling how;
  std::string mode = n.stringAttr("mode", "linear");
  std::string beyond = n.stringAttr("padding_mode", "zeros");
  how.alignCorners = n.intAttr("align_corners", 0);
  // Before operator set 20, the modes had the names of two dimensions.
  if (mode == "nearest")
    how.mode = Sampling::Nearest;
  else if (mode == "cubic" || mode == "bicubic")
    how.mode = Sampling::Cubic;
  else if (mode != "linear" && mode != "bilinear")
    return n.unsupported("sampling by mode '" + mode + "'");
  if (beyond == "border")
    how.beyond = Sampling::Border;
  else if (beyond == "reflection")
    how.beyond = Sampling::Reflection;
  else if (beyond != "zeros")
    return n.unsupported("padding by mode '" + beyond + "'");
  return n.set(sampleGrid(n, n.input(0), n.input(1), how));
}
static Register gridSample("GridSample", importGridSample);

static LogicalResult importAffineGrid(Node &n) {
  ASSIGN_OR_FAIL(Dims size, n.ints(1));
  if (size.size() < 3)
    return n.error("wants an image of shape " + str(size));
  return n.set(affineGrid(n, n.input(0), ArrayRef<int64_t>(size).drop_front(2),
                          n.intAttr("align_corners", 0)));
}
static Register affineGridOp("AffineGrid", importAffineGrid);

static LogicalResult importRoiAlign(Node &n) {
  BoxPool pool;
  pool.x = n.input(0);
  pool.boxes = n.input(1);
  pool.image = n.input(2);
  pool.height = n.intAttr("output_height", 1);
  pool.width = n.intAttr("output_width", 1);
  pool.samples = n.intAttr("sampling_ratio", 0);
  pool.scale = n.floatAttr("spatial_scale", 1);
  std::string mode = n.stringAttr("mode", "avg");
  if (mode != "avg" && mode != "max")
    return n.unsupported("boxes pooled by mode '" + mode + "'");
  pool.largest = mode == "max";
  // Set 16 made half pixels the default; sets before it don't have them.
  pool.aligned = n.stringAttr("coordinate_transformation_mode",
                              n.opset < 16 ? "output_half_pixel"
                                           : "half_pixel") == "half_pixel";
  return n.set(poolBoxes(n, pool));
}
static Register roiAlign("RoiAlign", importRoiAlign);

static LogicalResult importDeformConv(Node &n) {
  DeformedConv conv;
  conv.x = n.input(0);
  conv.w = n.input(1);
  conv.offsets = n.input(2);
  conv.bias = n.input(3);
  conv.mask = n.input(4);
  conv.spec.strides = n.intsAttr("strides").value_or(Dims());
  conv.spec.dilations = n.intsAttr("dilations").value_or(Dims());
  conv.spec.padding = n.intsAttr("pads").value_or(Dims());
  n.ignore({"kernel_shape"}); // The filters determine it.
  conv.groups = n.intAttr("group", 1);
  conv.offsetGroups = n.intAttr("offset_group", 1);
  return n.set(convolveDeformed(n, conv));
}
static Register deformConv("DeformConv", importDeformConv);
