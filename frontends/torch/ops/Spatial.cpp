// Spatial.cpp - convolutions and pools.

#include "frontends/common/ops/Spatial.h"
#include "frontends/Checked.h"
#include "frontends/common/ops/Expression.h"
#include "frontends/common/ops/Logic.h"
#include "frontends/common/ops/PadConcatSplit.h"
#include "frontends/common/ops/Pointwise.h"
#include "frontends/common/ops/Reduce.h"
#include "frontends/common/ops/Shape.h"
#include "frontends/common/ops/Unfold.h"
#include "frontends/torch/Call.h"

using namespace mlir;
using namespace tmc;
using namespace tmc::torch_import;

/// The argument `name`: one number for all spatial dimensions, or one for each.
static FailureOr<Dims> perDimension(Call &c, const std::string &name,
                                    size_t spatial, int64_t otherwise) {
  ASSIGN_OR_FAIL(Dims list, c.integers(name, Dims(1, otherwise)));
  if (list.empty())
    list.push_back(otherwise);
  if (list.size() == 1)
    list.assign(spatial, list[0]);
  if (list.size() != spatial)
    return c.error("'" + name + "' is " + str(list) + " for " + Twine(spatial) +
                   " dimensions");
  return list;
}

/// stride, padding and dilation. PyTorch pads both sides equally, or enough to
/// keep the size ("same", for windows of stride 1).
static FailureOr<WindowSpec> windowOf(Call &c, size_t spatial) {
  WindowSpec spec;
  ASSIGN_OR_FAIL(spec.strides, perDimension(c, "stride", spatial, 1));
  ASSIGN_OR_FAIL(spec.dilations, perDimension(c, "dilation", spatial, 1));
  const Arg *padding = c.argument("padding");
  if (padding && padding->kind == Arg::String) {
    if (padding->text != "same" && padding->text != "valid")
      return c.unsupported("padding '" + padding->text + "'");
    spec.autoPad =
        padding->text == "same" ? WindowSpec::SameUpper : WindowSpec::Valid;
    return spec;
  }
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
  if (!transposed) {
    c.ignore({"output_padding"});
    return c.set(convolve(c, x, w, c.tensor("bias"), spec, groups));
  }
  ASSIGN_OR_FAIL(Dims extra, perDimension(c, "output_padding", spatial, 0));
  return c.set(
      convolveTransposed(c, x, w, c.tensor("bias"), spec, extra, groups));
}

static LogicalResult importConv(Call &c) { return convolution(c, false); }
static Register conv1d("conv1d", importConv);
static Register conv2d("conv2d", importConv);
static Register conv3d("conv3d", importConv);

static LogicalResult importConvTranspose(Call &c) {
  return convolution(c, true);
}
static Register convTranspose1d("conv_transpose1d", importConvTranspose);
static Register convTranspose2d("conv_transpose2d", importConvTranspose);
static Register convTranspose3d("conv_transpose3d", importConvTranspose);

/// For sequences [T, B, C] with filters [K, C, O].
static LogicalResult importConvTbc(Call &c) {
  const Val x = c.tensor("self"), w = c.tensor("weight");
  ASSIGN_OR_FAIL(int64_t padding, c.integer("pad", 0));
  if (x.rank() != 3 || w.rank() != 3)
    return c.error("a sequence of shape " + str(x.dims));
  ASSIGN_OR_FAIL(Val images, transpose(c, x, {1, 2, 0}));
  ASSIGN_OR_FAIL(Val filters, transpose(c, w, {2, 1, 0}));
  WindowSpec spec;
  spec.padding = {padding, padding};
  ASSIGN_OR_FAIL(Val y,
                 convolve(c, images, filters, c.tensor("bias"), spec, 1));
  return c.set(transpose(c, y, {2, 0, 1}));
}
static Register convTbc("conv_tbc", importConvTbc);

static LogicalResult importConvolution(Call &c) {
  ASSIGN_OR_FAIL(bool transposed, c.flag("transposed", false));
  return convolution(c, transposed);
}
static Register convolutionOp("convolution", importConvolution);

//===----------------------------------------------------------------------===//
// Pools
//===----------------------------------------------------------------------===//

/// The window of a pool, whose default stride is its own size.
static FailureOr<WindowSpec> poolOf(Call &c, size_t spatial) {
  ASSIGN_OR_FAIL(WindowSpec spec, windowOf(c, spatial));
  ASSIGN_OR_FAIL(spec.size, perDimension(c, "kernel_size", spatial, 1));
  ASSIGN_OR_FAIL(Dims strides, c.integers("stride", Dims()));
  if (strides.empty())
    spec.strides = spec.size;
  ASSIGN_OR_FAIL(spec.ceil, c.flag("ceil_mode", false));
  return spec;
}

/// Indices of the largest elements count within each plane.
static LogicalResult importMaxPool(Call &c) {
  const Val x = c.tensor("self");
  ASSIGN_OR_FAIL(size_t spatial, spatialOf(c, x));
  ASSIGN_OR_FAIL(WindowSpec spec, poolOf(c, spatial));
  if (c.isUsed(1)) {
    auto plane = checkedNumElements(ArrayRef<int64_t>(x.dims).drop_front(2));
    if (!plane)
      return c.error("the number of elements is too large");
    ASSIGN_OR_FAIL(Val places, placesOfMaxima(c, x, spec, false));
    ASSIGN_OR_FAIL(places,
                   wholeModulo(c, {places, Val(Array::splatInt(places.type, {},
                                                               *plane))}));
    if (failed(c.set(1, places)))
      return failure();
  }
  return c.set(maxPool(c, x, spec));
}
static Register maxPool1d("max_pool1d", importMaxPool);
static Register maxPool2d("max_pool2d", importMaxPool);
static Register maxPool3d("max_pool3d", importMaxPool);
static Register maxPoolIndices("max_pool2d_with_indices", importMaxPool);
static Register maxPoolIndices3d("max_pool3d_with_indices", importMaxPool);

static LogicalResult importAvgPool(Call &c) {
  const Val x = c.tensor("self");
  ASSIGN_OR_FAIL(size_t spatial, spatialOf(c, x));
  ASSIGN_OR_FAIL(WindowSpec spec, poolOf(c, spatial));
  if (c.has("divisor_override")) {
    ASSIGN_OR_FAIL(int64_t divisor,
                   c.integer("divisor_override", std::nullopt));
    if (divisor == 0)
      return c.error("a divisor of 0");
    ASSIGN_OR_FAIL(Val sum, sumPool(c, x, spec));
    return c.set((Expression(c, sum) / static_cast<double>(divisor)).value());
  }
  ASSIGN_OR_FAIL(bool countPadding, c.flag("count_include_pad", true));
  // Without padding, both rules count the whole window.
  bool isPadded = llvm::any_of(spec.padding, [](int64_t p) { return p != 0; });
  return c.set(averagePool(c, x, spec, countPadding && isPadded));
}
static Register avgPool1d("avg_pool1d", importAvgPool);
static Register avgPool2d("avg_pool2d", importAvgPool);
static Register avgPool3d("avg_pool3d", importAvgPool);

/// Windows that divide the input evenly: the i-th of n from floor(i size / n)
/// to ceil((i + 1) size / n), one dimension after the other.
static LogicalResult adaptivePool(Call &c, bool isMean) {
  const Val x = c.tensor("self");
  ASSIGN_OR_FAIL(size_t spatial, spatialOf(c, x));
  ASSIGN_OR_FAIL(Dims size, perDimension(c, "output_size", spatial, 1));
  if (c.isUsed(1))
    return c.unsupported("the indices of the largest elements");
  auto kind = isMean ? nn::ReduceKind::Sum : nn::ReduceKind::Max;
  if (llvm::all_of(size, [](int64_t s) { return s == 1; }))
    return c.set(globalPool(c, x, kind, isMean));
  WindowSpec spec;
  bool isEven = true;
  for (size_t i = 0; i < spatial; ++i) {
    int64_t from = x.dims[2 + i];
    if (size[i] < 1 || size[i] > from)
      return c.unsupported("a pool of " + Twine(from) + " elements to " +
                           Twine(size[i]));
    isEven = isEven && from % size[i] == 0;
    spec.size.push_back(from / size[i]);
  }
  if (isEven) {
    spec.strides = spec.size;
    return c.set(isMean ? averagePool(c, x, spec, false) : maxPool(c, x, spec));
  }
  Val y = x;
  for (size_t i = 0; i < spatial; ++i) {
    int64_t dim = 2 + static_cast<int64_t>(i), from = x.dims[dim], to = size[i];
    if (failed(checkApart(c, {to})))
      return failure();
    SmallVector<Val> parts;
    for (int64_t k = 0; k < to; ++k) {
      int64_t begin = k * from / to, end = ((k + 1) * from - 1) / to + 1;
      ASSIGN_OR_FAIL(Val part, strided(c, y, dim, begin, 1, end - begin));
      if (isMean) {
        ASSIGN_OR_FAIL(part, reduceMean(c, part, Dims{dim}, true));
      } else { // The gradient goes to one element.
        WindowSpec window;
        window.size.assign(spatial, 1);
        window.size[i] = end - begin;
        ASSIGN_OR_FAIL(part, maxPool(c, part, window));
      }
      parts.push_back(part);
    }
    ASSIGN_OR_FAIL(y, concat(c, parts, dim));
  }
  return c.set(y);
}
static LogicalResult importAdaptiveAvg(Call &c) {
  return adaptivePool(c, true);
}
static Register adaptive1d("adaptive_avg_pool1d", importAdaptiveAvg);
static Register adaptive2d("adaptive_avg_pool2d", importAdaptiveAvg);
static Register adaptive3d("adaptive_avg_pool3d", importAdaptiveAvg);
static Register adaptiveCore("_adaptive_avg_pool2d", importAdaptiveAvg);
static Register adaptiveCore3d("_adaptive_avg_pool3d", importAdaptiveAvg);
static LogicalResult importAdaptiveMax(Call &c) {
  return adaptivePool(c, false);
}
static Register adaptiveMax1d("adaptive_max_pool1d", importAdaptiveMax);
static Register adaptiveMax2d("adaptive_max_pool2d", importAdaptiveMax);
static Register adaptiveMax3d("adaptive_max_pool3d", importAdaptiveMax);

/// Writes elements back to the places of the maxima; zeros elsewhere.
static LogicalResult importMaxUnpool(Call &c) {
  const Val x = c.tensor("self"), indices = c.tensor("indices");
  ASSIGN_OR_FAIL(size_t spatial, spatialOf(c, x));
  ASSIGN_OR_FAIL(Dims size, perDimension(c, "output_size", spatial, 1));
  Dims dims{x.dims[0], x.dims[1]};
  dims.append(size.begin(), size.end());
  auto plane = checkedNumElements(size), all = checkedNumElements(dims);
  if (!plane || !all || indices.dims != x.dims)
    return c.error("places of shape " + str(indices.dims) + " for shape " +
                   str(x.dims));
  if (*all / std::max<int64_t>(*plane, 1) > kMaxFoldElements)
    return c.unsupported("planes of shape " + str(x.dims));
  // The position of each plane's first element in the result.
  std::vector<int64_t> begins;
  for (int64_t i = 0; i < x.dims[0] * x.dims[1]; ++i)
    begins.push_back(i * *plane);
  Dims planes(x.rank(), 1);
  planes[0] = x.dims[0];
  planes[1] = x.dims[1];
  ASSIGN_OR_FAIL(Val places, castTo(c, indices, ElementType::I64));
  ASSIGN_OR_FAIL(places,
                 add(c, {places, Val(Array::ofInts(ElementType::I64, planes,
                                                   std::move(begins)))}));
  return c.set(unpool(c, x, places, dims));
}
static Register unpool2d("max_unpool2d", importMaxUnpool);
static Register unpool3d("max_unpool3d", importMaxUnpool);
