// Sample.cpp - reads images at the positions of a grid.

#include "frontends/common/ops/Sample.h"
#include "frontends/torch/Call.h"

using namespace mlir;
using namespace tmc;
using namespace tmc::torch_import;

/// Modes are ATen's numbers.
static LogicalResult importGridSampler(Call &c) {
  ASSIGN_OR_FAIL(int64_t mode, c.integer("interpolation_mode", 0));
  ASSIGN_OR_FAIL(int64_t beyond, c.integer("padding_mode", 0));
  Sampling how;
  ASSIGN_OR_FAIL(how.alignCorners, c.flag("align_corners", false));
  if (mode < 0 || mode > 2 || beyond < 0 || beyond > 2)
    return c.error("modes " + Twine(mode) + " and " + Twine(beyond));
  constexpr Sampling::Mode kModes[] = {Sampling::Linear, Sampling::Nearest,
                                       Sampling::Cubic};
  constexpr Sampling::Beyond kBeyond[] = {Sampling::Zeros, Sampling::Border,
                                          Sampling::Reflection};
  how.mode = kModes[mode];
  how.beyond = kBeyond[beyond];
  return c.set(sampleGrid(c, c.tensor("input"), c.tensor("grid"), how));
}
static Register gridSampler("grid_sampler", importGridSampler);
static Register gridSampler2d("grid_sampler_2d", importGridSampler);
static Register gridSampler3d("grid_sampler_3d", importGridSampler);

/// `size` is the images' shape, [N, C, spatial...].
static LogicalResult importAffineGrid(Call &c) {
  ASSIGN_OR_FAIL(Dims size, c.integers("size", std::nullopt));
  ASSIGN_OR_FAIL(bool corners, c.flag("align_corners", false));
  if (size.size() < 3)
    return c.error("images of shape " + str(size));
  return c.set(affineGrid(c, c.tensor("theta"),
                          ArrayRef<int64_t>(size).drop_front(2), corners));
}
static Register affine("affine_grid_generator", importAffineGrid);
