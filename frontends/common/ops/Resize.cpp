// Resize.cpp - resizes images.
//
// Along each axis, the result is a matrix times the input, and the matrix is
// known at import: row i holds the weights of the input elements in element i
// of the result. So every mode is a product, and so is its gradient.
//
//   2 -> 4, linear, half pixels      1     0
//                                    0.75  0.25
//                                    0.25  0.75
//                                    0     1
//
// If each row has a single one and each element repeats equally often,
// repetition is cheaper than a product; most networks use this case.

#include "frontends/common/ops/Resize.h"

#include <cmath>

using namespace mlir;
using namespace tmc;
using namespace tmc::frontend;

/// Weights of the result's elements, [out, in].
using Weights = std::vector<double>;

namespace {
/// One dimension: `scale` is out / in, or the node's own scale.
struct Axis {
  int64_t in, out;
  double scale;
  std::pair<double, double> crop;
};
} // namespace

/// The position of element `i` of the result among those of the input.
static double sourceOf(const ResizeRule &rule, int64_t i, const Axis &a) {
  double in = static_cast<double>(a.in), out = static_cast<double>(a.out);
  switch (rule.place) {
  case ResizeRule::AlignCorners:
    return a.out == 1 ? 0 : i * (in - 1) / (out - 1);
  case ResizeRule::Asymmetric:
    return i / a.scale;
  case ResizeRule::TorchHalfPixel:
    return a.out == 1 ? 0 : (i + 0.5) / a.scale - 0.5;
  case ResizeRule::Symmetric:
    return in / 2 * (1 - out / (in * a.scale)) + (i + 0.5) / a.scale - 0.5;
  case ResizeRule::HalfPixelUp:
    return (i + 0.5) / a.scale;
  case ResizeRule::Crop: {
    double extent = (a.crop.second - a.crop.first) * (in - 1);
    return a.crop.first * (in - 1) +
           (a.out == 1 ? extent / 2 : i * extent / (out - 1));
  }
  case ResizeRule::HalfPixel:
    break;
  }
  return (i + 0.5) / a.scale - 0.5;
}

static int64_t nearestTo(const ResizeRule &rule, double x) {
  if (rule.rounding == ResizeRule::Floor)
    return std::floor(x);
  if (rule.rounding == ResizeRule::Ceil)
    return std::ceil(x);
  bool halfway = x - std::floor(x) == 0.5;
  if (!halfway)
    return std::lround(x);
  return rule.rounding == ResizeRule::PreferCeil ? std::ceil(x) : std::floor(x);
}

/// Cubic convolution of Keys: weights of the elements at distance `t`.
static double cubicWeight(double a, double t) {
  t = std::fabs(t);
  if (t <= 1)
    return ((a + 2) * t - (a + 3)) * t * t + 1;
  return t < 2 ? ((a * t - 5 * a) * t + 8 * a) * t - 4 * a : 0;
}

/// The weights along one axis. `outside` marks the results beyond the image,
/// which have no weights.
static Weights weightsOf(const ResizeRule &rule, const Axis &a,
                         std::vector<bool> &outside) {
  Weights weights(a.in * a.out, 0);
  // A stretched filter reaches farther.
  double squeeze = rule.antialias ? std::min(a.scale, 1.0) : 1;
  double reach = (rule.mode == ResizeRule::Cubic ? 2 : 1) / squeeze;
  for (int64_t i = 0; i < a.out; ++i) {
    double x = sourceOf(rule, i, a);
    double *row = &weights[i * a.in];
    auto clamp = [&](int64_t k) { return std::clamp<int64_t>(k, 0, a.in - 1); };
    if (rule.place == ResizeRule::Crop && !(x >= 0 && x <= a.in - 1)) {
      outside[i] = true;
      continue;
    }
    if (rule.mode == ResizeRule::Nearest) {
      row[clamp(nearestTo(rule, x))] = 1;
      continue;
    }
    int64_t below = std::floor(x), width = std::ceil(reach);
    double total = 0;
    for (int64_t k = below - width + 1; k <= below + width; ++k) {
      double t = (x - k) * squeeze;
      double w = rule.mode == ResizeRule::Cubic
                     ? cubicWeight(rule.cubic, t)
                     : std::max(1 - std::fabs(t), 0.0);
      if (rule.excludeOutside && k != clamp(k))
        continue;
      row[clamp(k)] += w;
      total += w;
    }
    if (rule.excludeOutside || rule.antialias)
      for (int64_t k = 0; k < a.in; ++k)
        row[k] /= total;
  }
  return weights;
}

/// The number of repetitions of each element, if `weights` only repeat; else 0.
static int64_t repetition(const Weights &weights, int64_t in, int64_t out) {
  if (out % in)
    return 0;
  int64_t times = out / in;
  for (int64_t i = 0; i < out; ++i)
    for (int64_t k = 0; k < in; ++k)
      if (weights[i * in + k] != (k == i / times ? 1 : 0))
        return 0;
  return times;
}

/// `x` with each element along dimension i repeated times[i] times.
static FailureOr<Value> repeat(Site &s, Value x, ArrayRef<int64_t> times) {
  Dims apart, repeated, dims;
  for (auto [dim, count] : llvm::zip(nn::tensorType(x).getShape(), times)) {
    apart.push_back(dim);
    repeated.push_back(dim);
    dims.push_back(dim * count);
    if (count != 1) {
      apart.push_back(1);
      repeated.push_back(count);
    }
  }
  ASSIGN_OR_FAIL(Value wide, s.broadcast(Val(s.reshape(x, apart)), repeated));
  return s.reshape(wide, dims);
}

/// The matrix `weights` [out, in] times `x` along `axis`.
static FailureOr<Value> multiply(Site &s, Value x, int64_t axis, int64_t out,
                                 Weights weights) {
  auto type = nn::tensorType(x);
  int64_t rank = type.getRank(), in = type.getDimSize(axis);
  Dims swap(nn::firstDims(rank));
  std::swap(swap[axis], swap.back());
  Value inner =
      axis == rank - 1
          ? x
          : Value(nn::TransposeOp::create(s.b, s.loc, x, ArrayRef(swap)));
  Dims dims(nn::tensorType(inner).getShape());
  Array matrix = Array::ofFloats(elementTypeOf(type.getElementType()),
                                 {out, in}, std::move(weights));
  ASSIGN_OR_FAIL(Value table, s.materialise(Val(matrix)));
  Value rows = s.reshape(inner, {type.getNumElements() / in, in});
  Value y = nn::MatmulOp::create(s.b, s.loc, rows, table,
                                 /*transposeLhs=*/false,
                                 /*transposeRhs=*/true);
  dims.back() = out;
  y = s.reshape(y, dims);
  return axis == rank - 1
             ? y
             : Value(nn::TransposeOp::create(s.b, s.loc, y, ArrayRef(swap)));
}

/// `y` with the extrapolation number where `outside` is true along `axis`.
static FailureOr<Value> extrapolated(Site &s, Value y, int64_t axis,
                                     const std::vector<bool> &outside,
                                     double number) {
  if (number == 0 || !llvm::is_contained(outside, true))
    return y;
  auto type = nn::tensorType(y);
  std::vector<double> added;
  for (bool isOutside : outside)
    added.push_back(isOutside ? number : 0);
  Dims dims(type.getRank(), 1);
  dims[axis] = type.getDimSize(axis);
  Val line(Array::ofFloats(elementTypeOf(type.getElementType()), dims,
                           std::move(added)));
  ASSIGN_OR_FAIL(Value wide, s.broadcast(line, type.getShape()));
  return nn::add(s.b, s.loc, y, wide);
}

void tmc::frontend::stretchFilter(ResizeRule &rule, ArrayRef<int64_t> in,
                                  ArrayRef<double> sizes,
                                  std::vector<double> &scales) {
  rule.place = ResizeRule::HalfPixel;
  for (size_t i = 0; i < in.size(); ++i)
    scales[i] = sizes[i] > 1 && in[i] > 1
                    ? (sizes[i] - 1) / static_cast<double>(in[i] - 1)
                    : HUGE_VAL;
}

FailureOr<Val> tmc::frontend::resize(Site &s, const Val &x,
                                     ArrayRef<int64_t> axes,
                                     ArrayRef<double> scales,
                                     ArrayRef<double> sizes,
                                     const ResizeRule &rule) {
  if (failed(checkFloats(s, x)))
    return failure();
  ASSIGN_OR_FAIL(Value y, s.materialise(x));
  Dims times(x.rank(), 1);
  bool isCrop = rule.place == ResizeRule::Crop;
  for (auto [i, axis] : llvm::enumerate(axes)) {
    int64_t in = x.dims[axis];
    double scale = scales[i], wanted = sizes[i];
    constexpr double kMaxSize = 1 << 20;
    if (in < 1 || !(wanted >= 1 && wanted <= kMaxSize))
      return s.error("resizes " + Twine(in) + " elements by " +
                     std::to_string(scale));
    Axis a{in, static_cast<int64_t>(wanted), scale, {0, 1}};
    if (isCrop)
      a.crop = rule.crop[i];
    if (in == a.out && (scale == 1 || rule.copiesEqual) &&
        a.crop == std::pair(0.0, 1.0))
      continue;
    if (in > kMaxFoldElements / a.out)
      return s.unsupported("resizing " + Twine(in) + " elements to " +
                           Twine(a.out));
    std::vector<bool> outside(a.out);
    Weights weights = weightsOf(rule, a, outside);
    if (int64_t count = repetition(weights, in, a.out)) {
      times[axis] = count;
      continue;
    }
    ASSIGN_OR_FAIL(y, multiply(s, y, axis, a.out, std::move(weights)));
    ASSIGN_OR_FAIL(y, extrapolated(s, y, axis, outside, rule.extrapolation));
  }
  ASSIGN_OR_FAIL(Value result, repeat(s, y, times));
  return Val(result);
}
