// Resize.cpp - images in another size.
//
// Along each axis, the result is a matrix times the input, and the matrix is
// known at import: row i holds the weights of the elements that element i of
// the result is made of. So every mode is a product, whose gradient is one too.
//
//   2 -> 4, linear, half pixels      1     0
//                                    0.75  0.25
//                                    0.25  0.75
//                                    0     1
//
// Where each row has a single one and each element repeats equally often,
// repetition is cheaper than a product, and is what networks use most.

#include "frontends/common/ops/Resize.h"

#include <cmath>

using namespace mlir;
using namespace tmc;
using namespace tmc::frontend;

/// Weights of the result's elements, [out, in].
using Weights = std::vector<double>;

/// Where element `i` of `out` lies among `in` elements; `scale` is out / in, or
/// what the node says.
static double sourceOf(const ResizeRule &rule, int64_t i, int64_t in,
                       int64_t out, double scale) {
  if (rule.place == ResizeRule::AlignCorners)
    return out == 1 ? 0 : i * (in - 1) / (in * scale - 1);
  if (rule.place == ResizeRule::Asymmetric)
    return i / scale;
  if (rule.place == ResizeRule::TorchHalfPixel && out == 1)
    return 0;
  return (i + 0.5) / scale - 0.5;
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

static Weights weightsOf(const ResizeRule &rule, int64_t in, int64_t out,
                         double scale) {
  Weights weights(in * out, 0);
  for (int64_t i = 0; i < out; ++i) {
    double x = sourceOf(rule, i, in, out, scale);
    double *row = &weights[i * in];
    auto clamp = [&](int64_t k) { return std::clamp<int64_t>(k, 0, in - 1); };
    if (rule.mode == ResizeRule::Nearest) {
      row[clamp(nearestTo(rule, x))] = 1;
      continue;
    }
    int64_t below = std::floor(x);
    int64_t reach = rule.mode == ResizeRule::Cubic ? 2 : 1;
    double total = 0;
    for (int64_t k = below - reach + 1; k <= below + reach; ++k) {
      double w = rule.mode == ResizeRule::Cubic ? cubicWeight(rule.cubic, x - k)
                                                : 1 - std::fabs(x - k);
      if (rule.excludeOutside && k != clamp(k))
        continue;
      row[clamp(k)] += w;
      total += w;
    }
    if (rule.excludeOutside)
      for (int64_t k = 0; k < in; ++k)
        row[k] /= total;
  }
  return weights;
}

/// How often each element repeats, if that is all that `weights` do.
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

/// `x` with each element along dimension i in a row times[i] times.
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

FailureOr<Val> tmc::frontend::resize(Site &s, const Val &x,
                                     ArrayRef<int64_t> axes,
                                     ArrayRef<double> scales,
                                     ArrayRef<double> sizes,
                                     const ResizeRule &rule) {
  if (failed(checkFloats(s, x)))
    return failure();
  ASSIGN_OR_FAIL(Value y, s.materialise(x));
  Dims times(x.rank(), 1);
  for (auto [i, axis] : llvm::enumerate(axes)) {
    int64_t in = x.dims[axis];
    double scale = scales[i], wanted = sizes[i];
    constexpr double kMaxSize = 1 << 20;
    if (in < 1 || !(wanted >= 1 && wanted <= kMaxSize))
      return s.error("resizes " + Twine(in) + " elements by " +
                     std::to_string(scale));
    int64_t out = static_cast<int64_t>(wanted);
    if (in == out && scale == 1)
      continue;
    if (in > kMaxFoldElements / out)
      return s.unsupported("resizing " + Twine(in) + " elements to " +
                           Twine(out));
    Weights weights = weightsOf(rule, in, out, scale);
    if (int64_t count = repetition(weights, in, out)) {
      times[axis] = count;
    } else {
      ASSIGN_OR_FAIL(y, multiply(s, y, axis, out, std::move(weights)));
    }
  }
  ASSIGN_OR_FAIL(Value result, repeat(s, y, times));
  return Val(result);
}
