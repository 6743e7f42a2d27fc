// Resize.cpp - resizes images.

#include "frontends/common/ops/Resize.h"
#include "frontends/onnx/Node.h"
#include "frontends/onnx/TorchCall.h"

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
  static const std::pair<StringRef, ResizeRule::Place> places[] = {
      {"half_pixel", ResizeRule::HalfPixel},
      {"pytorch_half_pixel", ResizeRule::TorchHalfPixel},
      {"align_corners", ResizeRule::AlignCorners},
      {"asymmetric", ResizeRule::Asymmetric},
      {"half_pixel_symmetric", ResizeRule::Symmetric},
      {"tf_half_pixel_for_nn", ResizeRule::HalfPixelUp},
      {"tf_crop_and_resize", ResizeRule::Crop}};
  const auto *found =
      llvm::find_if(places, [&](const auto &p) { return p.first == place; });
  if (found == std::end(places))
    return n.unsupported("resizing by coordinates '" + place + "'");
  rule.place = found->second;
  rule.antialias = n.intAttr("antialias", 0);
  rule.extrapolation = n.floatAttr("extrapolation_value", 0);
  rule.mode = mode == "nearest"  ? ResizeRule::Nearest
              : mode == "linear" ? ResizeRule::Linear
                                 : ResizeRule::Cubic;
  rule.rounding = nearest == "floor"               ? ResizeRule::Floor
                  : nearest == "ceil"              ? ResizeRule::Ceil
                  : nearest == "round_prefer_ceil" ? ResizeRule::PreferCeil
                                                   : ResizeRule::PreferFloor;
  return rule;
}

/// The begin and end of a crop along each axis: all beginnings, then all ends.
static LogicalResult readCrop(Node &n, size_t axes, ResizeRule &rule) {
  ASSIGN_OR_FAIL(Array array, n.array(1));
  std::vector<double> roi = array.floats();
  if (roi.size() != 2 * axes)
    return n.error("has a region of " + Twine(roi.size()) + " numbers for " +
                   Twine(axes) + " axes");
  for (size_t i = 0; i < axes; ++i)
    rule.crop.push_back({roi[i], roi[axes + i]});
  return success();
}

/// The product is computed in f32, whose rounding gives whole numbers: ten
/// times 0.7 is seven.
static double sizeOf(int64_t in, double scale) {
  return std::floor(static_cast<float>(in) * static_cast<float>(scale));
}

/// One scale for all axes, so that no axis becomes larger (or smaller) than
/// requested.
static LogicalResult keepAspect(Node &n, ArrayRef<int64_t> in,
                                std::vector<double> &scales,
                                std::vector<double> &sizes) {
  std::string policy = n.stringAttr("keep_aspect_ratio_policy", "stretch");
  if (policy == "stretch")
    return success();
  if (policy != "not_larger" && policy != "not_smaller")
    return n.unsupported("the aspect ratio's policy '" + policy + "'");
  double scale = policy == "not_larger"
                     ? *std::min_element(scales.begin(), scales.end())
                     : *std::max_element(scales.begin(), scales.end());
  for (auto [i, size] : llvm::enumerate(in)) {
    scales[i] = scale;
    sizes[i] = std::floor(scale * size + 0.5);
  }
  return success();
}

/// Reads more from PyTorch's call than the node holds: the exporter leaves out
/// factors if it writes sizes, and it writes aligned corners only in ONNX's
/// meaning. `sizes` are those of the last dimensions.
static void readCall(Node &n, ArrayRef<int64_t> in, ArrayRef<double> sizes,
                     std::vector<double> &scales, ResizeRule &rule) {
  std::optional<TorchCall> call = torchCallOf(n.proto);
  StringRef op = call ? StringRef(call->target) : StringRef();
  if (!op.consume_front("aten.") || !op.contains("upsample_"))
    return;
  rule.copiesEqual = op.contains("linear") || op.contains("_aa") ||
                     op.starts_with("upsample_nearest2d");
  if (op.contains("_aa") && rule.place == ResizeRule::AlignCorners) {
    stretchFilter(rule, in, sizes, scales);
    return;
  }
  // (self, output_size, align_corners, factors...), or without the corners.
  const bool isNearest = op.contains("nearest");
  const size_t spatial = in.size() - 2;
  static constexpr const char *kNames[] = {"scales_d", "scales_h", "scales_w"};
  if (!op.ends_with(".default") || in.size() < 3 || spatial > 3)
    return;
  for (size_t i = 0; i < spatial; ++i)
    if (auto factor =
            call->number((isNearest ? 2 : 3) + i,
                         spatial == 1 ? "scales" : kNames[3 - spatial + i]))
      scales[2 + i] = *factor;
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
  n.ignoreInput(1); // A region is used only by crops.
  if (rule.place == ResizeRule::Crop && failed(readCrop(n, axes.size(), rule)))
    return failure();
  std::vector<double> scales, sizes;
  Dims in;
  bool hasSizes = n.has(3);
  n.ignoreInput(2); // Older sets require an empty `scales` input beside sizes.
  ASSIGN_OR_FAIL(Array given, n.array(hasSizes ? 3 : 2));
  (hasSizes ? sizes : scales) = given.floats();
  for (double &scale : scales)
    scale = shortest(scale);
  if ((hasSizes ? sizes.size() : scales.size()) != axes.size() || axes.empty())
    return n.error("has sizes for other than " + Twine(axes.size()) + " axes");
  for (auto [i, axis] : llvm::enumerate(axes)) {
    in.push_back(x.dims[axis]);
    double size = static_cast<double>(in.back());
    if (hasSizes)
      scales.push_back(sizes[i] / size);
    else
      sizes.push_back(sizeOf(in.back(), scales[i]));
  }
  if (hasSizes && failed(keepAspect(n, in, scales, sizes)))
    return failure();
  if (static_cast<int64_t>(axes.size()) == x.rank())
    readCall(n, in, sizes, scales, rule);
  return n.set(resize(n, x, axes, scales, sizes, rule));
}
static Register resizeOp("Resize", importResize);

/// The same in operator set 9: elements repeat, or are interpolated, from the
/// beginning of each one.
static LogicalResult importUpsample(Node &n) {
  const Val x = n.input(0);
  ResizeRule rule;
  rule.place = ResizeRule::Asymmetric;
  rule.rounding = ResizeRule::Floor;
  std::string mode = n.stringAttr("mode", "nearest");
  if (mode != "nearest" && mode != "linear")
    return n.unsupported("resizing by mode '" + mode + "'");
  rule.mode = mode == "nearest" ? ResizeRule::Nearest : ResizeRule::Linear;
  ASSIGN_OR_FAIL(Array given, n.array(1));
  std::vector<double> scales = given.floats(), sizes;
  for (double &scale : scales)
    scale = shortest(scale);
  if (static_cast<int64_t>(scales.size()) != x.rank())
    return n.error("has " + Twine(scales.size()) + " scales for shape " +
                   str(x.dims));
  for (auto [size, scale] : llvm::zip(x.dims, scales))
    sizes.push_back(sizeOf(size, scale));
  return n.set(resize(n, x, nn::firstDims(x.rank()), scales, sizes, rule));
}
static Register upsample("Upsample", importUpsample);
