#include "frontends/common/ops/Sample.h"
#include "frontends/Checked.h"
#include "frontends/common/ops/Elementary.h"
#include "frontends/common/ops/Expression.h"
#include "frontends/common/ops/Gather.h"
#include "frontends/common/ops/Generate.h"
#include "frontends/common/ops/Linear.h"
#include "frontends/common/ops/PadConcatSplit.h"
#include "frontends/common/ops/Reduce.h"
#include "frontends/common/ops/Shape.h"

using namespace mlir;
using namespace tmc;
using namespace tmc::frontend;

/// The coefficient of Keys' convolution in GridSample.
constexpr double kCubic = -0.75;

namespace {
/// One of the elements along a dimension that contribute at a position.
struct Tap {
  Expression index;  ///< An i64 index within the image.
  Expression weight; ///< Zero if the element doesn't exist.
};
using Taps = SmallVector<Tap>;

/// The image elements `rows` [images * elements, C], and the positions to read.
struct Reading {
  Val rows;
  Val image;                  ///< [M, 1]: the index of each row's image.
  SmallVector<Expression> at; ///< [M, P] for each spatial dimension.
  ArrayRef<int64_t> spatial;  ///< The image's sizes.
};
} // namespace

/// `x` mirrored at `low` and at `high` until it lies between them.
static Expression reflected(const Expression &x, double low, double high) {
  if (low == high)
    return x * 0 + low;
  Expression far = (x - low).of(absolute);
  Expression times = (far / (high - low)).of(floorOf);
  Expression rest = far - times * (high - low);
  Expression isEven = (times * 0.5).of(floorOf) * 2 == times;
  return (rest + low).when(isEven, high - rest);
}

static Expression clamped(const Expression &x, double low, double high) {
  return x.with(maximum, x.number(low)).with(minimum, x.number(high));
}

/// The tap of element `at`, a whole number, among `size` elements, with
/// `weight`.
static Tap tapAt(const Expression &at, const Expression &weight, int64_t size,
                 const Sampling &how) {
  double last = static_cast<double>(size - 1);
  Expression place = at, share = weight;
  if (how.beyond == Sampling::Reflection)
    place = how.alignCorners ? reflected(at, 0, last)
                             : reflected(at, -0.5, last + 0.5);
  if (how.beyond == Sampling::Zeros) {
    Expression exists = (at > -0.5) & (at < last + 0.5);
    share = weight.when(exists, weight.number(0));
  }
  // A NaN isn't above zero, so it reads element 0.
  place = place.when(place > 0, place.number(0));
  place = place.when(place < last, place.number(last));
  return {place.cast(ElementType::I64), share};
}

/// The taps of the position `x`, in elements.
static Taps tapsOf(const Expression &x, int64_t size, const Sampling &how) {
  if (how.mode == Sampling::Nearest)
    return {tapAt(x.of(rounded), x.number(1) + x * 0, size, how)};
  Expression below = x.of(floorOf), t = x - below;
  if (how.mode == Sampling::Linear)
    return {tapAt(below, 1 - t, size, how), tapAt(below + 1, t, size, how)};
  auto near = [](const Expression &d) {
    return (d * (kCubic + 2) - (kCubic + 3)) * d * d + 1;
  };
  auto far = [](const Expression &d) {
    return ((d * kCubic - 5 * kCubic) * d + 8 * kCubic) * d - 4 * kCubic;
  };
  return {tapAt(below - 1, far(t + 1), size, how),
          tapAt(below, near(t), size, how),
          tapAt(below + 1, near(1 - t), size, how),
          tapAt(below + 2, far(2 - t), size, how)};
}

/// The weighted elements [M, P, C] of each combination of one tap per
/// dimension.
static FailureOr<SmallVector<Val>> weighed(Site &s, const Reading &r,
                                           const Sampling &how) {
  SmallVector<Taps> taps;
  size_t count = 1;
  int64_t elements = 1;
  for (auto [x, size] : llvm::zip(r.at, r.spatial)) {
    taps.push_back(tapsOf(x, size, how));
    count *= taps.back().size();
    elements *= size;
  }
  ElementType type = r.rows.type;
  SmallVector<Val> parts;
  for (size_t choice = 0; choice < count; ++choice) {
    Expression row(s, r.image);
    row = row * static_cast<double>(elements);
    std::optional<Expression> weight;
    int64_t stride = elements;
    for (size_t d = 0, rest = choice; d < taps.size(); ++d) {
      const Tap &tap = taps[d][rest % taps[d].size()];
      rest /= taps[d].size();
      stride /= r.spatial[d];
      row = row + tap.index * static_cast<double>(stride);
      weight = weight ? *weight * tap.weight : tap.weight;
    }
    ASSIGN_OR_FAIL(Val places, row.value());
    ASSIGN_OR_FAIL(Val share, weight->cast(type).value());
    ASSIGN_OR_FAIL(Val found, gather(s, r.rows, places, 0));
    ASSIGN_OR_FAIL(share, unsqueeze(s, share, {share.rank()}));
    ASSIGN_OR_FAIL(found, multiply(s, {found, share}));
    parts.push_back(found);
  }
  return parts;
}

static FailureOr<Val> sampled(Site &s, const Reading &r, const Sampling &how) {
  ASSIGN_OR_FAIL(SmallVector<Val> parts, weighed(s, r, how));
  return sum(s, parts);
}

/// Images [N, C, spatial...] as rows of channels, [N * elements, C].
static FailureOr<Val> asRows(Site &s, const Val &x) {
  Dims perm{0};
  for (int64_t d = 2; d < x.rank(); ++d)
    perm.push_back(d);
  perm.push_back(1);
  ASSIGN_OR_FAIL(Val last, transpose(s, x, perm));
  return viewed(s, last, {-1, x.dims[1]});
}

/// 0, 1, ... as [count, 1].
static Val numbers(int64_t count) { return Val(iota({count, 1}, 0)); }

/// Entry `at` of `x` [M, ...] along `axis`, without that dimension.
static FailureOr<Val> entry(Site &s, const Val &x, int64_t axis, int64_t at) {
  ASSIGN_OR_FAIL(Val part, strided(s, x, axis, at, 1, 1));
  return squeeze(s, part, Dims{axis});
}

FailureOr<Val> tmc::frontend::sampleGrid(Site &s, const Val &x, const Val &grid,
                                         const Sampling &how) {
  if (failed(checkFloats(s, x)) || failed(checkFloats(s, grid)))
    return failure();
  int64_t k = x.rank() - 2;
  if (k < 1 || grid.rank() != x.rank() || grid.dims.back() != k ||
      grid.dims[0] != x.dims[0])
    return s.error("an image of shape " + str(x.dims) +
                   " and a grid of shape " + str(grid.dims));
  if (k > 3)
    return s.unsupported("an image of shape " + str(x.dims));
  ArrayRef<int64_t> spatial = ArrayRef<int64_t>(x.dims).drop_front(2);
  for (int64_t size : spatial)
    if (size < 1)
      return s.error("an image of shape " + str(x.dims));
  // Coordinates in 16 bits are too coarse for images of some hundred elements.
  ElementType wide =
      grid.type == ElementType::F64 ? ElementType::F64 : ElementType::F32;
  ASSIGN_OR_FAIL(Val places, castTo(s, grid, wide));
  ASSIGN_OR_FAIL(places, viewed(s, places, {x.dims[0], -1, k}));
  ASSIGN_OR_FAIL(Val rows, asRows(s, x));
  Reading r{rows, numbers(x.dims[0]), {}, spatial};
  for (int64_t d = 0; d < k; ++d) {
    double size = static_cast<double>(spatial[d]), last = size - 1;
    Expression at(s, entry(s, places, 2, k - 1 - d));
    at = how.alignCorners ? (at + 1) * (last / 2) : ((at + 1) * size - 1) * 0.5;
    if (how.mode == Sampling::Nearest)
      at = at.of(rounded);
    if (how.beyond == Sampling::Border)
      at = clamped(at, 0, last);
    if (how.beyond == Sampling::Reflection)
      at = how.alignCorners ? reflected(at, 0, last)
                            : reflected(at, -0.5, size - 0.5);
    r.at.push_back(at);
  }
  ASSIGN_OR_FAIL(Val y, sampled(s, r, how));
  ASSIGN_OR_FAIL(y, transpose(s, y, {0, 2, 1}));
  Dims dims{x.dims[0], x.dims[1]};
  dims.append(grid.dims.begin() + 1, grid.dims.end() - 1);
  return reshaped(s, y, dims);
}

FailureOr<Val> tmc::frontend::affineGrid(Site &s, const Val &theta,
                                         ArrayRef<int64_t> spatial,
                                         bool alignCorners) {
  int64_t k = spatial.size();
  auto count = checkedNumElements(spatial);
  if (failed(checkFloats(s, theta)))
    return failure();
  if (k < 1 || !count || *count < 1 || *count > kMaxFoldElements ||
      theta.rank() != 3 || theta.dims[1] != k || theta.dims[2] != k + 1)
    return s.error("maps of shape " + str(theta.dims) +
                   " for images of shape " + str(spatial));
  // Each position as [x, y, ..., 1], the innermost dimension first.
  std::vector<double> base(*count * (k + 1), 1);
  for (int64_t d = 0; d < k; ++d) {
    int64_t size = spatial[d];
    std::vector<int64_t> at = iota(spatial, d).ints();
    for (int64_t i = 0; i < *count; ++i) {
      double v = alignCorners ? (size > 1 ? 2.0 * at[i] / (size - 1) - 1 : -1)
                              : (2.0 * at[i] + 1) / size - 1;
      base[i * (k + 1) + k - 1 - d] = v;
    }
  }
  Val places(Array::ofFloats(theta.type, {*count, k + 1}, std::move(base)));
  ASSIGN_OR_FAIL(Val maps, transpose(s, theta, {0, 2, 1}));
  ASSIGN_OR_FAIL(Val grid, matmul(s, places, maps));
  Dims dims{theta.dims[0]};
  dims.append(spatial.begin(), spatial.end());
  dims.push_back(k);
  return reshaped(s, grid, dims);
}

/// The sample points of the boxes along one dimension [R, bins, samples]: the
/// clamped position, and whether the point is near the image.
static std::pair<Expression, Expression>
pointsOf(const Expression &low, const Expression &high, int64_t bins,
         const BoxPool &pool, int64_t size) {
  std::vector<double> steps;
  for (int64_t bin = 0; bin < bins; ++bin)
    for (int64_t k = 0; k < pool.samples; ++k)
      steps.push_back((bin + (k + 0.5) / pool.samples) / bins);
  double shift = pool.aligned ? 0.5 : 0;
  Expression from = low * pool.scale - shift;
  Expression extent = high * pool.scale - shift - from;
  if (!pool.aligned)
    extent = extent.with(maximum, extent.number(1));
  int64_t count = steps.size();
  Val along(Array::ofFloats(ElementType::F32, {1, count}, std::move(steps)));
  Expression step = from.other(along).cast(from.type());
  Expression at = from + extent * step;
  Expression exists = !((at < -1) | (at > static_cast<double>(size)));
  return {clamped(at, 0, static_cast<double>(size - 1)), exists};
}

FailureOr<Val> tmc::frontend::poolBoxes(Site &s, const BoxPool &p) {
  const Val &x = p.x;
  constexpr int64_t kLimit = 1 << 12;
  if (failed(checkFloats(s, x)) || failed(checkFloats(s, p.boxes)))
    return failure();
  if (x.rank() != 4 || p.boxes.rank() != 2 || p.boxes.dims[1] != 4 ||
      p.image.dims != Dims{p.boxes.dims[0]} || isFloat(p.image.type))
    return s.error("an image of shape " + str(x.dims) + ", boxes of shape " +
                   str(p.boxes.dims) + " and their images of shape " +
                   str(p.image.dims));
  if (p.height < 1 || p.width < 1 || p.height > kLimit || p.width > kLimit ||
      p.samples > kLimit)
    return s.error("bins of [" + Twine(p.height) + ", " + Twine(p.width) + "]");
  if (p.height * p.width > kMaxFoldElements / std::max<int64_t>(p.samples, 1))
    return s.unsupported("as many points in a box");
  if (p.samples < 1)
    return s.unsupported("as many points in a box as its size says (give "
                         "sampling_ratio)");
  int64_t boxes = p.boxes.dims[0], channels = x.dims[1];
  SmallVector<Expression> side;
  for (int64_t i = 0; i < 4; ++i)
    side.push_back(Expression(s, strided(s, p.boxes, 1, i, 1, 1)));
  auto [down, isDown] = pointsOf(side[1], side[3], p.height, p, x.dims[2]);
  auto [right, isRight] = pointsOf(side[0], side[2], p.width, p, x.dims[3]);
  // Combines all rows of points with all columns: [R, rows * columns].
  int64_t rows = p.height * p.samples, columns = p.width * p.samples;
  auto spread = [&](const Expression &v, bool isRow) {
    return v.of([=](Site &s, const Val &v) -> FailureOr<Val> {
      ASSIGN_OR_FAIL(Val apart, reshaped(s, v,
                                         isRow ? Dims{boxes, rows, 1}
                                               : Dims{boxes, 1, columns}));
      ASSIGN_OR_FAIL(apart, expand(s, apart, {boxes, rows, columns}));
      return reshaped(s, apart, {boxes, rows * columns});
    });
  };
  ASSIGN_OR_FAIL(Val image, castTo(s, p.image, ElementType::I64));
  ASSIGN_OR_FAIL(image, reshaped(s, image, {boxes, 1}));
  ASSIGN_OR_FAIL(Val table, asRows(s, x));
  Reading r{table,
            image,
            {spread(down, true), spread(right, false)},
            ArrayRef<int64_t>(x.dims).drop_front(2)};
  Sampling how;
  how.beyond = Sampling::Border;
  ASSIGN_OR_FAIL(SmallVector<Val> parts, weighed(s, r, how));
  ASSIGN_OR_FAIL(Val y, p.largest ? maximum(s, parts) : sum(s, parts));
  ASSIGN_OR_FAIL(Val exists,
                 (spread(isDown, true) & spread(isRight, false)).value());
  ASSIGN_OR_FAIL(exists, unsqueeze(s, exists, {2}));
  ASSIGN_OR_FAIL(y, where(s, exists, y, Val(Array::splat(y.type, {}, 0))));
  ASSIGN_OR_FAIL(
      y, reshaped(s, y,
                  {boxes, p.height, p.samples, p.width, p.samples, channels}));
  ASSIGN_OR_FAIL(y, p.largest ? reduceMax(s, y, {2, 4}, false)
                              : reduceMean(s, y, {2, 4}, false));
  return transpose(s, y, {0, 3, 1, 2});
}

/// The positions of each window's elements before their offsets, along `axis`
/// of [KH, KW, OH, OW]: [1, number of elements].
static Val restingPlaces(const Window &w, ArrayRef<int64_t> dims, int axis) {
  Array in = iota(dims, axis), out = iota(dims, 2 + axis);
  Array at = mapInts(ElementType::I64, {in, out}, [&](Ints i) {
    return i[0] * w.dilations[axis] + i[1] * w.strides[axis] - w.padding[axis];
  });
  return Val(at.reshaped({1, at.size()}));
}

/// Rows of windows [N * P, C * K] times the filters, group by group.
static FailureOr<Val> timesFilters(Site &s, const Val &windows, const Val &w,
                                   int64_t groups) {
  int64_t rows = windows.dims[0], each = windows.dims[1] / groups;
  int64_t outputs = w.dims[0];
  ASSIGN_OR_FAIL(Val x, reshaped(s, windows, {rows, groups, each}));
  ASSIGN_OR_FAIL(x, transpose(s, x, {1, 0, 2}));
  ASSIGN_OR_FAIL(Val f, reshaped(s, w, {groups, outputs / groups, each}));
  ASSIGN_OR_FAIL(f, transpose(s, f, {0, 2, 1}));
  ASSIGN_OR_FAIL(Val y, matmul(s, x, f));
  ASSIGN_OR_FAIL(y, transpose(s, y, {1, 0, 2}));
  return reshaped(s, y, {rows, outputs});
}

FailureOr<Val> tmc::frontend::convolveDeformed(Site &s, const DeformedConv &c) {
  const Val &x = c.x, &w = c.w;
  if (failed(checkFloats(s, x)) || x.type != w.type || x.type != c.offsets.type)
    return s.error("the operands' elements differ in type");
  if (x.rank() != 4 || w.rank() != 4)
    return s.unsupported("an input of shape " + str(x.dims));
  int64_t og = c.offsetGroups, taps = w.dims[2] * w.dims[3];
  WindowSpec spec = c.spec;
  spec.size.assign(w.dims.begin() + 2, w.dims.end());
  ASSIGN_OR_FAIL(Window window, windowOf(s, x, spec));
  Dims out;
  for (int d = 0; d < 2; ++d)
    out.push_back(windowCount(x.dims[2 + d], window.padding[d],
                              window.padding[2 + d], window.size[d],
                              window.strides[d], window.dilations[d]));
  int64_t places = out[0] * out[1], images = x.dims[0];
  auto elements = checkedNumElements(Dims{taps, out[0], out[1]});
  if (!elements || *elements > kMaxFoldElements)
    return s.unsupported("offsets of shape " + str(c.offsets.dims));
  bool fits = og >= 1 && c.groups >= 1 && x.dims[1] % og == 0 &&
              w.dims[1] * c.groups == x.dims[1] && w.dims[0] % c.groups == 0 &&
              c.offsets.dims == Dims{images, og * taps * 2, out[0], out[1]} &&
              (c.mask.isAbsent() ||
               c.mask.dims == Dims{images, og * taps, out[0], out[1]});
  if (!fits)
    return s.error("an input of shape " + str(x.dims) + ", a filter of shape " +
                   str(w.dims) + " and offsets of shape " +
                   str(c.offsets.dims));
  // Each group of channels with its own offsets is an image.
  int64_t channels = x.dims[1] / og;
  ASSIGN_OR_FAIL(Val split,
                 reshaped(s, x, {images * og, channels, x.dims[2], x.dims[3]}));
  ASSIGN_OR_FAIL(Val rows, asRows(s, split));
  ASSIGN_OR_FAIL(Val moves,
                 reshaped(s, c.offsets, {images * og, taps, 2, places}));
  Reading r{
      rows, numbers(images * og), {}, ArrayRef<int64_t>(x.dims).drop_front(2)};
  for (int axis = 0; axis < 2; ++axis) {
    ASSIGN_OR_FAIL(Val move, entry(s, moves, 2, axis));
    ASSIGN_OR_FAIL(move, reshaped(s, move, {images * og, taps * places}));
    Val rest =
        restingPlaces(window, {w.dims[2], w.dims[3], out[0], out[1]}, axis);
    Expression at(s, move);
    r.at.push_back(at + at.other(rest).cast(move.type));
  }
  ASSIGN_OR_FAIL(Val y, sampled(s, r, Sampling()));
  if (!c.mask.isAbsent()) {
    ASSIGN_OR_FAIL(Val mask,
                   reshaped(s, c.mask, {images * og, taps * places, 1}));
    ASSIGN_OR_FAIL(y, multiply(s, {y, mask}));
  }
  ASSIGN_OR_FAIL(y, reshaped(s, y, {images, og, taps, places, channels}));
  ASSIGN_OR_FAIL(y, transpose(s, y, {0, 3, 1, 4, 2}));
  ASSIGN_OR_FAIL(y, reshaped(s, y, {images * places, x.dims[1] * taps}));
  ASSIGN_OR_FAIL(y, timesFilters(s, y, w, c.groups));
  if (!c.bias.isAbsent()) {
    ASSIGN_OR_FAIL(y, add(s, {y, c.bias}));
  }
  ASSIGN_OR_FAIL(y, reshaped(s, y, {images, places, w.dims[0]}));
  ASSIGN_OR_FAIL(y, transpose(s, y, {0, 2, 1}));
  return reshaped(s, y, {images, w.dims[0], out[0], out[1]});
}
