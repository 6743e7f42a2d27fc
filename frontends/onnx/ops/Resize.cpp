// Resize.cpp - images in another size.

#include "frontends/common/ops/Resize.h"
#include "frontends/onnx/Node.h"

#include <cmath>

using namespace mlir;
using namespace tmc;
using namespace tmc::onnx_import;

/// The node's attributes.
static FailureOr<ResizeRule> ruleOf(Node &n) {
  ResizeRule rule;
  std::string mode = n.stringAttr("mode", "nearest");
  std::string place =
      n.stringAttr("coordinate_transformation_mode", "half_pixel");
  std::string nearest = n.stringAttr("nearest_mode", "round_prefer_floor");
  rule.cubic = n.floatAttr("cubic_coeff_a", -0.75);
  rule.excludeOutside = n.intAttr("exclude_outside", 0);
  if (mode != "nearest" && mode != "linear" && mode != "cubic")
    return n.unsupported("resizing by mode '" + mode + "'");
  if (place != "half_pixel" && place != "asymmetric" &&
      place != "pytorch_half_pixel" && place != "align_corners")
    return n.unsupported("resizing by coordinates '" + place + "'");
  if (n.intAttr("antialias", 0) ||
      n.stringAttr("keep_aspect_ratio_policy", "stretch") != "stretch")
    return n.unsupported("resizing with antialiasing or a kept aspect ratio");
  rule.mode = mode == "nearest"  ? ResizeRule::Nearest
              : mode == "linear" ? ResizeRule::Linear
                                 : ResizeRule::Cubic;
  rule.place = place == "align_corners"        ? ResizeRule::AlignCorners
               : place == "asymmetric"         ? ResizeRule::Asymmetric
               : place == "pytorch_half_pixel" ? ResizeRule::TorchHalfPixel
                                               : ResizeRule::HalfPixel;
  rule.rounding = nearest == "floor"               ? ResizeRule::Floor
                  : nearest == "ceil"              ? ResizeRule::Ceil
                  : nearest == "round_prefer_ceil" ? ResizeRule::PreferCeil
                                                   : ResizeRule::PreferFloor;
  return rule;
}

static LogicalResult importResize(Node &n) {
  const Val x = n.input(0);
  if (failed(checkFloats(n, x)))
    return failure();
  ASSIGN_OR_FAIL(ResizeRule rule, ruleOf(n));
  Dims axes(nn::firstDims(x.rank()));
  if (auto given = n.intsAttr("axes")) {
    axes = *given;
    for (int64_t &entry : axes) {
      ASSIGN_OR_FAIL(entry, n.axis(entry, x.rank()));
    }
  }
  std::vector<double> scales, sizes;
  if (n.has(3)) {
    ASSIGN_OR_FAIL(Array array, n.array(3));
    sizes = array.floats();
  } else {
    ASSIGN_OR_FAIL(Array array, n.array(2));
    scales = array.floats();
  }
  if ((n.has(3) ? sizes.size() : scales.size()) != axes.size())
    return n.error("has sizes for other than " + Twine(axes.size()) + " axes");
  for (auto [i, axis] : llvm::enumerate(axes)) {
    double in = static_cast<double>(x.dims[axis]);
    if (n.has(3))
      scales.push_back(sizes[i] / in);
    else
      sizes.push_back(std::floor(in * scales[i]));
  }
  return n.set(resize(n, x, axes, scales, sizes, rule));
}
static Register resizeOp("Resize", importResize);
