// Spatial.cpp - convolutions and pools.

#include "frontends/common/ops/Spatial.h"
#include "frontends/common/ops/Reduce.h"
#include "frontends/common/ops/Shape.h"
#include "frontends/torch/Call.h"

using namespace mlir;
using namespace tmc;
using namespace tmc::torch_import;

/// The argument `name`, a number for all spatial dimensions or one for each.
static FailureOr<Dims> perDimension(Call &c, const std::string &name,
                                    size_t spatial, int64_t otherwise) {
  ASSIGN_OR_FAIL(Dims list, c.integers(name, Dims(1, otherwise)));
  if (list.size() == 1)
    list.assign(spatial, list[0]);
  if (list.size() != spatial)
    return c.error("'" + name + "' is " + str(list) + " for " + Twine(spatial) +
                   " dimensions");
  return list;
}

/// stride, padding and dilation. PyTorch pads both sides alike.
static FailureOr<WindowSpec> windowOf(Call &c, size_t spatial) {
  WindowSpec spec;
  ASSIGN_OR_FAIL(spec.strides, perDimension(c, "stride", spatial, 1));
  ASSIGN_OR_FAIL(spec.dilations, perDimension(c, "dilation", spatial, 1));
  ASSIGN_OR_FAIL(spec.padding, perDimension(c, "padding", spatial, 0));
  Dims after(spec.padding);
  spec.padding.append(after);
  return spec;
}

static FailureOr<size_t> spatialOf(Call &c, const Val &x) {
  if (x.rank() < 3)
    return c.unsupported("an input of shape " + str(x.dims) +
                         ", without a batch");
  return x.rank() - 2;
}

//===----------------------------------------------------------------------===//
// Convolutions
//===----------------------------------------------------------------------===//

static LogicalResult convolution(Call &c, bool transposed) {
  const Val x = c.tensor("input"), w = c.tensor("weight");
  ASSIGN_OR_FAIL(size_t spatial, spatialOf(c, x));
  ASSIGN_OR_FAIL(int64_t groups, c.integer("groups", 1));
  ASSIGN_OR_FAIL(WindowSpec spec, windowOf(c, spatial));
  if (!transposed)
    return c.set(convolve(c, x, w, c.tensor("bias"), spec, groups));
  ASSIGN_OR_FAIL(Dims extra, perDimension(c, "output_padding", spatial, 0));
  return c.set(
      convolveTransposed(c, x, w, c.tensor("bias"), spec, extra, groups));
}

static LogicalResult importConv(Call &c) { return convolution(c, false); }
static Register conv1d("conv1d", importConv);
static Register conv2d("conv2d", importConv);

static LogicalResult importConvTranspose(Call &c) {
  return convolution(c, true);
}
static Register convTranspose1d("conv_transpose1d", importConvTranspose);
static Register convTranspose2d("conv_transpose2d", importConvTranspose);

static LogicalResult importConvolution(Call &c) {
  ASSIGN_OR_FAIL(bool transposed, c.flag("transposed", false));
  return convolution(c, transposed);
}
static Register convolutionOp("convolution", importConvolution);

//===----------------------------------------------------------------------===//
// Pools
//===----------------------------------------------------------------------===//

/// The window of a pool, whose stride is its own size where none is given.
static FailureOr<WindowSpec> poolOf(Call &c, size_t spatial) {
  ASSIGN_OR_FAIL(WindowSpec spec, windowOf(c, spatial));
  ASSIGN_OR_FAIL(spec.size, perDimension(c, "kernel_size", spatial, 1));
  ASSIGN_OR_FAIL(Dims strides, c.integers("stride", Dims()));
  if (strides.empty())
    spec.strides = spec.size;
  ASSIGN_OR_FAIL(spec.ceil, c.flag("ceil_mode", false));
  return spec;
}

static LogicalResult importMaxPool(Call &c) {
  const Val x = c.tensor("self");
  ASSIGN_OR_FAIL(size_t spatial, spatialOf(c, x));
  if (c.isUsed(1))
    return c.unsupported("the indices of the largest elements");
  ASSIGN_OR_FAIL(WindowSpec spec, poolOf(c, spatial));
  return c.set(maxPool(c, x, spec));
}
static Register maxPool1d("max_pool1d", importMaxPool);
static Register maxPool2d("max_pool2d", importMaxPool);
static Register maxPoolIndices("max_pool2d_with_indices", importMaxPool);

static LogicalResult importAvgPool(Call &c) {
  const Val x = c.tensor("self");
  ASSIGN_OR_FAIL(size_t spatial, spatialOf(c, x));
  if (c.has("divisor_override"))
    return c.unsupported("a divisor of its own");
  ASSIGN_OR_FAIL(WindowSpec spec, poolOf(c, spatial));
  ASSIGN_OR_FAIL(bool countPadding, c.flag("count_include_pad", true));
  // Without padding, all of the window counts either way.
  bool isPadded = llvm::any_of(spec.padding, [](int64_t p) { return p != 0; });
  return c.set(averagePool(c, x, spec, countPadding && isPadded));
}
static Register avgPool1d("avg_pool1d", importAvgPool);
static Register avgPool2d("avg_pool2d", importAvgPool);

/// Windows that tile the input, where its size is a multiple of the result's.
static LogicalResult importAdaptiveAvgPool(Call &c) {
  const Val x = c.tensor("self");
  ASSIGN_OR_FAIL(size_t spatial, spatialOf(c, x));
  ASSIGN_OR_FAIL(Dims size, perDimension(c, "output_size", spatial, 1));
  if (llvm::all_of(size, [](int64_t s) { return s == 1; }))
    return c.set(globalPool(c, x, nn::ReduceKind::Sum, true));
  WindowSpec spec;
  for (size_t i = 0; i < spatial; ++i) {
    int64_t from = x.dims[2 + i];
    if (size[i] < 1 || from % size[i])
      return c.unsupported("a pool of " + Twine(from) + " elements to " +
                           Twine(size[i]));
    spec.size.push_back(from / size[i]);
  }
  spec.strides = spec.size;
  return c.set(averagePool(c, x, spec, false));
}
static Register adaptive1d("adaptive_avg_pool1d", importAdaptiveAvgPool);
static Register adaptive2d("adaptive_avg_pool2d", importAdaptiveAvgPool);
static Register adaptiveCore("_adaptive_avg_pool2d", importAdaptiveAvgPool);
