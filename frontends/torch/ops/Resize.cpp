// Resize.cpp - resizes images.

#include "frontends/common/ops/Resize.h"
#include "frontends/torch/Call.h"

#include <cmath>

using namespace mlir;
using namespace tmc;
using namespace tmc::torch_import;

/// The scale factors beside `output_size` that determine positions, from the
/// exporter's decomposition of a call with factors. Nothing for factors that
/// aren't given.
static FailureOr<SmallVector<std::optional<double>>>
givenFactors(Call &c, size_t spatial) {
  static constexpr const char *kNames[] = {"scales_d", "scales_h", "scales_w"};
  SmallVector<std::optional<double>> factors;
  for (size_t i = 0; i < spatial && spatial <= std::size(kNames); ++i) {
    const char *name =
        spatial == 1 ? "scales" : kNames[std::size(kNames) - spatial + i];
    std::optional<double> factor;
    if (c.has(name)) {
      ASSIGN_OR_FAIL(factor, c.number(name, std::nullopt));
    }
    factors.push_back(factor);
  }
  return factors;
}

static LogicalResult upsample(Call &c, ResizeRule rule,
                              const std::string &input) {
  const Val x = c.tensor(input);
  if (x.rank() < 3)
    return c.error("an input of shape " + str(x.dims));
  Dims axes;
  std::vector<double> scales, sizes;
  for (int64_t d = 2; d < x.rank(); ++d)
    axes.push_back(d);
  const bool hasSizes = c.has("output_size");
  Dims wanted;
  if (hasSizes) {
    ASSIGN_OR_FAIL(wanted, c.integers("output_size", std::nullopt));
  }
  ASSIGN_OR_FAIL(SmallVector<double> factors, numbers(c, "scale_factors"));
  if (hasSizes ? wanted.size() != axes.size() : factors.size() != axes.size())
    return c.unsupported("resizing shape " + str(x.dims));
  ASSIGN_OR_FAIL(auto beside, givenFactors(c, axes.size()));
  for (auto [i, axis] : llvm::enumerate(axes)) {
    double in = static_cast<double>(x.dims[axis]);
    sizes.push_back(hasSizes ? static_cast<double>(wanted[i])
                             : std::floor(in * factors[i]));
    std::optional<double> factor =
        hasSizes ? beside[i] : std::optional<double>(factors[i]);
    scales.push_back(factor ? *factor : sizes[i] / in);
  }
  if (rule.antialias && rule.place == ResizeRule::AlignCorners)
    stretchFilter(rule, ArrayRef<int64_t>(x.dims).drop_front(2), sizes, scales);
  return c.set(resize(c, x, axes, scales, sizes, rule));
}

static LogicalResult nearest(Call &c, ResizeRule::Place place) {
  ResizeRule rule;
  rule.place = place;
  rule.rounding = ResizeRule::Floor;
  rule.copiesEqual = c.data.op() == "upsample_nearest2d";
  return upsample(c, rule, c.has("input") ? "input" : "self");
}
static LogicalResult importNearest(Call &c) {
  return nearest(c, ResizeRule::Asymmetric);
}
static Register nearest1d("upsample_nearest1d", importNearest);
static Register nearest2d("upsample_nearest2d", importNearest);
static Register nearest3d("upsample_nearest3d", importNearest);

/// The element at the centre of each output element.
static LogicalResult importNearestExact(Call &c) {
  return nearest(c, ResizeRule::HalfPixelUp);
}
static Register exact1d("_upsample_nearest_exact1d", importNearestExact);
static Register exact2d("_upsample_nearest_exact2d", importNearestExact);
static Register exact3d("_upsample_nearest_exact3d", importNearestExact);

static LogicalResult interpolated(Call &c, ResizeRule::Mode mode) {
  ResizeRule rule;
  rule.mode = mode;
  rule.antialias = StringRef(c.data.op()).ends_with("_aa");
  if (rule.antialias) { // Pillow's rule.
    rule.excludeOutside = true;
    rule.cubic = -0.5;
  }
  rule.copiesEqual = rule.antialias || mode == ResizeRule::Linear;
  ASSIGN_OR_FAIL(bool corners, c.flag("align_corners", false));
  rule.place = corners ? ResizeRule::AlignCorners : ResizeRule::HalfPixel;
  return upsample(c, rule, c.has("input") ? "input" : "self");
}
static LogicalResult importLinear(Call &c) {
  return interpolated(c, ResizeRule::Linear);
}
static Register linear1d("upsample_linear1d", importLinear);
static Register bilinear2d("upsample_bilinear2d", importLinear);
static Register trilinear3d("upsample_trilinear3d", importLinear);
static Register bilinearAa("_upsample_bilinear2d_aa", importLinear);
static LogicalResult importCubic(Call &c) {
  return interpolated(c, ResizeRule::Cubic);
}
static Register bicubic2d("upsample_bicubic2d", importCubic);
static Register bicubicAa("_upsample_bicubic2d_aa", importCubic);
