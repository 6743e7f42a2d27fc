#include "frontends/common/ops/Unfold.h"
#include "frontends/Checked.h"
#include "frontends/common/ops/Generate.h"
#include "frontends/common/ops/Logic.h"
#include "frontends/common/ops/PadConcatSplit.h"
#include "frontends/common/ops/Pointwise.h"
#include "frontends/common/ops/Scatter.h"
#include "frontends/common/ops/Shape.h"

#include <cmath>

using namespace mlir;
using namespace tmc;
using namespace tmc::frontend;

/// The largest window that is unfolded.
constexpr int64_t kMaxWindow = 1 << 10;

LogicalResult tmc::frontend::checkApart(Site &s, ArrayRef<int64_t> sizes) {
  for (int64_t size : sizes)
    if (size > kMaxWindow)
      return s.unsupported("windows of " + str(sizes));
  return success();
}

int64_t tmc::frontend::countOf(const AxisWindow &w, int64_t size) {
  return windowCount(size, w.low, w.high + w.extra, w.size, w.stride,
                     w.dilation);
}

FailureOr<SmallVector<Val>> tmc::frontend::unfolded(Site &s, const Val &x,
                                                    int64_t axis,
                                                    const AxisWindow &w,
                                                    double fill) {
  if (failed(checkApart(s, {w.size})))
    return failure();
  Dims low(x.rank(), 0), high(x.rank(), 0);
  low[axis] = w.low;
  high[axis] = w.high + w.extra;
  ASSIGN_OR_FAIL(Val padded, pad(s, x, low, high, fill));
  int64_t count = countOf(w, x.dims[axis]);
  SmallVector<Val> slices;
  for (int64_t k = 0; k < w.size; ++k) {
    ASSIGN_OR_FAIL(Val slice,
                   strided(s, padded, axis, k * w.dilation, w.stride, count));
    slices.push_back(slice);
  }
  return slices;
}

/// Places `x` at low + i * step into `size` zeros along `axis`; elements
/// outside are dropped. Null if nothing is left.
static FailureOr<Value> spread(Site &s, const Val &x, int64_t axis, int64_t low,
                               int64_t step, int64_t size) {
  int64_t first = low < 0 ? (-low + step - 1) / step : 0;
  int64_t end = size > low ? (size - low + step - 1) / step : 0;
  end = std::min(end, x.dims[axis]);
  if (first >= end)
    return Value();
  ASSIGN_OR_FAIL(Val part, strided(s, x, axis, first, 1, end - first));
  ASSIGN_OR_FAIL(Value v, s.materialise(part));
  Dims dims(x.dims), lows(x.rank(), 0), steps(x.rank(), 1);
  dims[axis] = size;
  lows[axis] = low + first * step;
  steps[axis] = step;
  return Value(nn::PadOp::create(
      s.b, s.loc, s.tensorType(dims, nn::tensorType(v).getElementType()), v,
      lows, steps));
}

FailureOr<Val> tmc::frontend::folded(Site &s, ArrayRef<Val> slices,
                                     int64_t axis, const AxisWindow &w,
                                     int64_t size) {
  Value all;
  for (auto [k, slice] : llvm::enumerate(slices)) {
    int64_t low = static_cast<int64_t>(k) * w.dilation - w.low;
    ASSIGN_OR_FAIL(Value v, spread(s, slice, axis, low, w.stride, size));
    if (v)
      all = all ? nn::add(s.b, s.loc, all, v) : v;
  }
  if (!all)
    return s.unsupported("windows that lie in the padding alone");
  return Val(all);
}

FailureOr<Val> tmc::frontend::foldColumns(Site &s, const Val &columns,
                                          ArrayRef<int64_t> spatial,
                                          const WindowSpec &spec) {
  if (failed(checkFloats(s, columns)))
    return failure();
  if (columns.rank() != 3)
    return s.error("columns of shape " + str(columns.dims));
  Dims image{columns.dims[0], 1};
  image.append(spatial.begin(), spatial.end());
  ASSIGN_OR_FAIL(AxisWindows axes, windowsOf(s, image, spec));
  Dims counts;
  int64_t window = 1;
  for (auto [w, size] : llvm::zip(axes, spatial)) {
    if (failed(checkApart(s, {w.size})))
      return failure();
    counts.push_back(countOf(w, size));
    window *= w.size;
  }
  auto total = checkedNumElements(counts);
  if (!total || *total != columns.dims[2] || columns.dims[1] % window)
    return s.error("columns of shape " + str(columns.dims) + " for windows " +
                   str(counts) + " of an image of shape " + str(spatial));
  // [N, C, window..., windows...]; each fold removes one dimension of both.
  Dims dims{columns.dims[0], columns.dims[1] / window};
  for (const AxisWindow &w : axes)
    dims.push_back(w.size);
  dims.append(counts);
  ASSIGN_OR_FAIL(Val x, reshaped(s, columns, dims));
  int64_t k = axes.size();
  for (int64_t d = k; d-- > 0;) {
    SmallVector<Val> slices;
    for (int64_t i = 0; i < axes[d].size; ++i) {
      ASSIGN_OR_FAIL(Val slice, strided(s, x, 2 + d, i, 1, 1));
      ASSIGN_OR_FAIL(slice, squeeze(s, slice, Dims{2 + d}));
      slices.push_back(slice);
    }
    // `d` window dimensions remain, and the image's dimensions follow them.
    ASSIGN_OR_FAIL(x, folded(s, slices, 2 + d + d, axes[d], spatial[d]));
  }
  return x;
}

FailureOr<Val> tmc::frontend::placesOfMaxima(Site &s, const Val &x,
                                             const WindowSpec &spec,
                                             bool byColumns) {
  if (failed(checkFloats(s, x)))
    return failure();
  ASSIGN_OR_FAIL(AxisWindows axes, windowsOf(s, x.dims, spec));
  // The position of each element within its channel, as a sum over dimensions.
  Dims spatial(x.dims);
  spatial[0] = spatial[1] = 1;
  auto each = checkedNumElements(spatial);
  auto channels = checkedNumElements(Dims{x.dims[0], x.dims[1]});
  if (!each || *each > kMaxFoldElements || !channels ||
      *channels > kMaxFoldElements)
    return s.unsupported("places in an input of shape " + str(x.dims));
  Array place = Array::splatInt(ElementType::I64, spatial, 0);
  int64_t stride = 1;
  for (int64_t i = 2; i < x.rank(); ++i) {
    int64_t d = byColumns ? i : x.rank() + 1 - i;
    place = mapInts(ElementType::I64, {place, iota(spatial, d)},
                    [&](Ints v) { return v[0] + v[1] * stride; });
    stride *= x.dims[d];
  }
  // The innermost dimension first: among equal elements, the first of each row,
  // then the first row.
  Val best = x, places(place);
  for (int64_t d = x.rank() - 1; d >= 2; --d) {
    const AxisWindow &w = axes[d - 2];
    ASSIGN_OR_FAIL(SmallVector<Val> values, unfolded(s, best, d, w, -INFINITY));
    ASSIGN_OR_FAIL(SmallVector<Val> at, unfolded(s, places, d, w, 0));
    best = values[0];
    places = at[0];
    for (int64_t k = 1; k < w.size; ++k) {
      ASSIGN_OR_FAIL(Val isMore, greater(s, {values[k], best}));
      ASSIGN_OR_FAIL(best, where(s, isMore, values[k], best));
      ASSIGN_OR_FAIL(places, where(s, isMore, at[k], places));
    }
  }
  Dims lead(x.rank(), 1);
  lead[0] = x.dims[0];
  lead[1] = x.dims[1];
  Array first =
      mapInts(ElementType::I64, {iota(lead, 0), iota(lead, 1)},
              [&](Ints v) { return (v[0] * x.dims[1] + v[1]) * stride; });
  return add(s, {places, Val(first)});
}

FailureOr<Val> tmc::frontend::unpool(Site &s, const Val &x, const Val &places,
                                     ArrayRef<int64_t> dims) {
  auto count = checkedNumElements(dims);
  if (failed(checkFloats(s, x)))
    return failure();
  if (!count || places.dims != x.dims || isFloat(places.type))
    return s.error("places of shape " + str(places.dims) +
                   " for a tensor of shape " + str(x.dims));
  ASSIGN_OR_FAIL(Val list, viewed(s, x, {-1}));
  ASSIGN_OR_FAIL(Val at, viewed(s, places, {-1}));
  Val zeros(Array::splat(x.type, {*count}, 0));
  ASSIGN_OR_FAIL(Val all,
                 scatterElements(s, zeros, at, list, 0, Joining::Replace));
  return reshaped(s, all, dims);
}
