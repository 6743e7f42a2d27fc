// Complex.cpp - complex numbers, as pairs of floats along a last dimension that
// PyTorch doesn't count.
//
//   z: complex [B, T]   here [B, T, 2]
//
// Calls that read or make complex numbers are imported only by functions that
// are registered for them (here, ComplexShape.cpp, ComplexProducts.cpp). All
// other operators are refused, so that none takes the last dimension for one of
// the user's.

#include "frontends/torch/ops/Complex.h"
#include "frontends/Checked.h"
#include "frontends/common/Importer.h"
#include "frontends/common/ops/Elementary.h"
#include "frontends/common/ops/Gather.h"
#include "frontends/common/ops/PadConcatSplit.h"
#include "frontends/common/ops/Reduce.h"
#include "frontends/common/ops/Shape.h"
#include "frontends/common/ops/Spectrum.h"
#include "frontends/torch/Importer.h"
#include "frontends/torch/ops/Shape.h"

#include <cmath>

using namespace mlir;
using namespace tmc;
using namespace tmc::torch_import;

FailureOr<Val> tmc::torch_import::halfOf(Call &c, const Val &z, int64_t which) {
  ASSIGN_OR_FAIL(Val part, strided(c, z, z.rank() - 1, which, 1, 1));
  return squeeze(c, part, Dims{z.rank() - 1});
}

FailureOr<Parts> tmc::torch_import::partsOf(Call &c, const char *name) {
  const Val v = c.tensor(name);
  if (!c.isComplex(name)) {
    ASSIGN_OR_FAIL(Val real, castTo(c, v, ElementType::F32));
    Expression x(c, real);
    return Parts{x, x.number(0)};
  }
  ASSIGN_OR_FAIL(Val real, halfOf(c, v, 0));
  ASSIGN_OR_FAIL(Val imaginary, halfOf(c, v, 1));
  return Parts{Expression(c, real), Expression(c, imaginary)};
}

LogicalResult tmc::torch_import::setParts(Call &c, const Expression &real,
                                          const Expression &imaginary) {
  ASSIGN_OR_FAIL(Val a, real.value());
  ASSIGN_OR_FAIL(Val b, imaginary.value());
  ASSIGN_OR_FAIL(Dims dims, commonShape(c, {a, b}));
  ASSIGN_OR_FAIL(a, expand(c, a, dims));
  ASSIGN_OR_FAIL(b, expand(c, b, dims));
  return c.set(stacked(c, {a, b}, a.rank()));
}

//===----------------------------------------------------------------------===//
// To and from floats
//===----------------------------------------------------------------------===//

static LogicalResult importPairs(Call &c) {
  const Val self = c.tensor("self");
  if (self.dims.empty() || self.dims.back() != 2)
    return c.error("pairs of shape " + str(self.dims));
  return c.set(castTo(c, self, ElementType::F32));
}
static RegisterComplex viewAsComplex("view_as_complex", importPairs);
static RegisterComplex viewAsReal("view_as_real", importPairs);

static LogicalResult importReal(Call &c) {
  return c.set(halfOf(c, c.tensor("self"), 0));
}
static RegisterComplex realOp("real", importReal);
static LogicalResult importImaginary(Call &c) {
  return c.set(halfOf(c, c.tensor("self"), 1));
}
static RegisterComplex imaginaryOp("imag", importImaginary);

/// abs * (cos(angle) + i sin(angle)).
static LogicalResult importPolar(Call &c) {
  Expression size(c, c.tensor("abs")), angle(c, c.tensor("angle"));
  return setParts(c, size * angle.of(cosine), size * angle.of(sine));
}
static RegisterComplex polar("polar", importPolar);

static LogicalResult importComplex(Call &c) {
  return setParts(c, Expression(c, c.tensor("real")),
                  Expression(c, c.tensor("imag")));
}
static RegisterComplex complexOp("complex", importComplex);

/// The absolute value, without a gradient at 0.
static LogicalResult importAbs(Call &c) {
  ASSIGN_OR_FAIL(Parts z, partsOf(c, "self"));
  return c.set(rootOf(z.real * z.real + z.imaginary * z.imaginary).value());
}
static RegisterComplex absOp("abs", importAbs);

static LogicalResult importConjugate(Call &c) {
  ASSIGN_OR_FAIL(Parts z, partsOf(c, "self"));
  return setParts(c, z.real, -z.imaginary);
}
static RegisterComplex conjugate("conj", importConjugate);
static RegisterComplex conjugateView("_conj", importConjugate);
static RegisterComplex conjugateCopy("conj_physical", importConjugate);

//===----------------------------------------------------------------------===//
// Arithmetic
//===----------------------------------------------------------------------===//

static LogicalResult importProduct(Call &c) {
  ASSIGN_OR_FAIL(Parts x, partsOf(c, "self"));
  ASSIGN_OR_FAIL(Parts y, partsOf(c, "other"));
  if (!c.isComplex("other"))
    return setParts(c, x.real * y.real, x.imaginary * y.real);
  if (!c.isComplex("self"))
    return setParts(c, x.real * y.real, x.real * y.imaginary);
  return setParts(c, x.real * y.real - x.imaginary * y.imaginary,
                  x.real * y.imaginary + x.imaginary * y.real);
}
static RegisterComplex productOp("mul", importProduct);

static LogicalResult importQuotient(Call &c) {
  ASSIGN_OR_FAIL(Parts x, partsOf(c, "self"));
  ASSIGN_OR_FAIL(Parts y, partsOf(c, "other"));
  if (!c.isComplex("other"))
    return setParts(c, x.real / y.real, x.imaginary / y.real);
  Expression size = y.real * y.real + y.imaginary * y.imaginary;
  return setParts(c, (x.real * y.real + x.imaginary * y.imaginary) / size,
                  (x.imaginary * y.real - x.real * y.imaginary) / size);
}
static RegisterComplex quotientOp("div", importQuotient);

static LogicalResult combined(Call &c, double sign) {
  ASSIGN_OR_FAIL(double alpha, c.number("alpha", 1));
  ASSIGN_OR_FAIL(Parts x, partsOf(c, "self"));
  ASSIGN_OR_FAIL(Parts y, partsOf(c, "other"));
  double factor = sign * alpha;
  return setParts(c, x.real + y.real * factor,
                  x.imaginary + y.imaginary * factor);
}
static LogicalResult importSum(Call &c) { return combined(c, 1); }
static RegisterComplex sumOp("add", importSum);
static LogicalResult importDifference(Call &c) { return combined(c, -1); }
static RegisterComplex differenceOp("sub", importDifference);

/// exp(real) * (cos(imaginary) + i sin(imaginary)).
static LogicalResult importExponential(Call &c) {
  ASSIGN_OR_FAIL(Parts z, partsOf(c, "self"));
  Expression size = z.real.of(exponential);
  return setParts(c, size * z.imaginary.of(cosine),
                  size * z.imaginary.of(sine));
}
static RegisterComplex exponentialOp("exp", importExponential);

static LogicalResult importSquare(Call &c) {
  ASSIGN_OR_FAIL(Parts z, partsOf(c, "self"));
  return setParts(c, z.real * z.real - z.imaginary * z.imaginary,
                  z.real * z.imaginary * 2);
}
static RegisterComplex squareOp("square", importSquare);

static LogicalResult importReciprocal(Call &c) {
  ASSIGN_OR_FAIL(Parts z, partsOf(c, "self"));
  Expression size = z.real * z.real + z.imaginary * z.imaginary;
  return setParts(c, z.real / size, -z.imaginary / size);
}
static RegisterComplex reciprocalOp("reciprocal", importReciprocal);

static LogicalResult importNegative(Call &c) {
  return c.set(negate(c, c.tensor("self")));
}
static RegisterComplex negativeOp("neg", importNegative);

//===----------------------------------------------------------------------===//
// Transforms
//===----------------------------------------------------------------------===//

namespace {
/// The divisor of a transform, as a power of its number of points.
enum class Norm { None, Root, All };
} // namespace

/// The normalization of a forward or an inverse transform.
static FailureOr<Norm> normOf(Call &c, bool inverse) {
  ASSIGN_OR_FAIL(std::string name, c.text("norm", "backward"));
  if (name == "ortho")
    return Norm::Root;
  if (name != "backward" && name != "forward")
    return c.error("norm '" + name + "'");
  return (name == "backward") == inverse ? Norm::All : Norm::None;
}

namespace {
struct Transform {
  bool inverse = false;
  bool oneSided = false; ///< Along the last of the dimensions.
};
} // namespace

/// `self` transformed along `dims`, each cut or padded to its entry of `sizes`.
static LogicalResult transformed(Call &c, const Transform &how, Norm norm,
                                 ArrayRef<int64_t> dims,
                                 ArrayRef<int64_t> sizes) {
  Val x = c.tensor("self");
  if (!c.isComplex("self")) {
    if (!isFloat(x.type)) {
      ASSIGN_OR_FAIL(x, castTo(c, x, ElementType::F32));
    }
    ASSIGN_OR_FAIL(x, unsqueeze(c, x, {x.rank()}));
  }
  double points = 1, divided = 1;
  bool isToReal = how.inverse && how.oneSided;
  // Real numbers are transformed along the last dimension first; real results
  // are made along it last.
  for (size_t i = 0; i < dims.size(); ++i) {
    size_t k = isToReal ? i : dims.size() - 1 - i;
    Fourier along;
    along.axis = dims[k];
    along.points = sizes[k];
    along.inverse = how.inverse;
    along.oneSided = how.oneSided && k + 1 == dims.size();
    ASSIGN_OR_FAIL(x, fourier(c, x, along));
    points *= static_cast<double>(sizes[k]);
  }
  if (how.inverse)
    divided = points;
  double wanted = norm == Norm::None   ? 1
                  : norm == Norm::Root ? std::sqrt(points)
                                       : points;
  if (wanted != divided) {
    ASSIGN_OR_FAIL(
        x, multiply(c, {x, Val(Array::splat(x.type, {}, divided / wanted))}));
  }
  if (isToReal) {
    ASSIGN_OR_FAIL(x, squeeze(c, x, Dims{x.rank() - 1}));
  }
  return c.set(x);
}

/// The default sizes of the transform along `dims`.
static Dims sizesOf(Call &c, const Transform &how, ArrayRef<int64_t> dims) {
  Dims sizes;
  for (int64_t dim : dims)
    sizes.push_back(c.tensor("self").dims[dim]);
  if (how.inverse && how.oneSided)
    sizes.back() = 2 * (sizes.back() - 1);
  return sizes;
}

static int64_t countedRank(Call &c) {
  return c.tensor("self").rank() - (c.isComplex("self") ? 1 : 0);
}

static LogicalResult alongOne(Call &c, const Transform &how) {
  ASSIGN_OR_FAIL(int64_t dim, c.dim("dim", -1, countedRank(c)));
  if (countedRank(c) < 1)
    return c.error("a transform of a number");
  ASSIGN_OR_FAIL(int64_t size, c.integer("n", sizesOf(c, how, Dims{dim})[0]));
  ASSIGN_OR_FAIL(Norm norm, normOf(c, how.inverse));
  return transformed(c, how, norm, Dims{dim}, Dims{size});
}

/// `otherwise`: the default dimensions, all if it is empty.
static LogicalResult alongMany(Call &c, const Transform &how,
                               ArrayRef<int64_t> otherwise) {
  int64_t rank = countedRank(c);
  Dims dims(otherwise);
  if (c.has("dim")) {
    ASSIGN_OR_FAIL(dims, c.integers("dim", std::nullopt));
  } else if (dims.empty()) {
    dims = Dims(nn::firstDims(rank));
  }
  for (int64_t &dim : dims) {
    ASSIGN_OR_FAIL(dim, c.axis(dim, rank));
  }
  if (dims.empty())
    return c.error("a transform along no dimension");
  Dims sizes = sizesOf(c, how, dims);
  if (c.has("s")) {
    ASSIGN_OR_FAIL(sizes, c.integers("s", std::nullopt));
  }
  if (sizes.size() != dims.size())
    return c.unsupported("a transform of sizes " + str(sizes));
  ASSIGN_OR_FAIL(Norm norm, normOf(c, how.inverse));
  return transformed(c, how, norm, dims, sizes);
}

#define TMC_TRANSFORM(NAME, INVERSE, ONE_SIDED)                                \
  static LogicalResult import_##NAME(Call &c) {                                \
    return alongOne(c, {INVERSE, ONE_SIDED});                                  \
  }                                                                            \
  static RegisterComplex register_##NAME("fft_" #NAME, import_##NAME);         \
  static LogicalResult import_##NAME##2(Call & c) {                            \
    return alongMany(c, {INVERSE, ONE_SIDED}, {-2, -1});                       \
  }                                                                            \
  static RegisterComplex register_##NAME##2("fft_" #NAME "2",                  \
                                            import_##NAME##2);                 \
  static LogicalResult import_##NAME##n(Call &c) {                             \
    return alongMany(c, {INVERSE, ONE_SIDED}, {});                             \
  }                                                                            \
  static RegisterComplex register_##NAME##n("fft_" #NAME "n", import_##NAME##n)
TMC_TRANSFORM(fft, false, false);
TMC_TRANSFORM(ifft, true, false);
TMC_TRANSFORM(rfft, false, true);
TMC_TRANSFORM(irfft, true, true);

/// Core ATen's operators: the kinds of norm are numbers.
static LogicalResult core(Call &c, const Transform &how) {
  ASSIGN_OR_FAIL(Dims dims, c.integers("dim", std::nullopt));
  ASSIGN_OR_FAIL(int64_t norm, c.integer("normalization", std::nullopt));
  for (int64_t &dim : dims) {
    ASSIGN_OR_FAIL(dim, c.axis(dim, countedRank(c)));
  }
  if (norm < 0 || norm > 2 || dims.empty())
    return c.error("normalization " + Twine(norm));
  Dims sizes = sizesOf(c, how, dims);
  if (c.has("last_dim_size")) {
    ASSIGN_OR_FAIL(sizes.back(), c.integer("last_dim_size", std::nullopt));
  }
  return transformed(c, how, Norm(norm), dims, sizes);
}
static LogicalResult importRealToComplex(Call &c) {
  ASSIGN_OR_FAIL(bool oneSided, c.flag("onesided", true));
  return core(c, {false, oneSided});
}
static RegisterComplex realToComplex("_fft_r2c", importRealToComplex);
static LogicalResult importComplexToComplex(Call &c) {
  ASSIGN_OR_FAIL(bool forward, c.flag("forward", true));
  return core(c, {!forward, false});
}
static RegisterComplex complexToComplex("_fft_c2c", importComplexToComplex);
static LogicalResult importComplexToReal(Call &c) {
  return core(c, {true, true});
}
static RegisterComplex complexToReal("_fft_c2r", importComplexToReal);

/// For a signal [L] or [B, L]: [..., frequencies, pieces].
static LogicalResult importStft(Call &c) {
  Val x = c.tensor("self");
  ASSIGN_OR_FAIL(int64_t points, c.integer("n_fft", std::nullopt));
  ASSIGN_OR_FAIL(int64_t step, c.integer("hop_length", points / 4));
  ASSIGN_OR_FAIL(int64_t length, c.integer("win_length", points));
  ASSIGN_OR_FAIL(bool normalized, c.flag("normalized", false));
  ASSIGN_OR_FAIL(bool oneSided, c.flag("onesided", !c.isComplex("self")));
  // One overload has this argument, by default true.
  ASSIGN_OR_FAIL(
      bool center,
      c.flag("center", StringRef(c.data.target).ends_with(".center")));
  // The result is complex, or the file has another operator. A signal that
  // isn't centred isn't padded.
  c.ignore({"return_complex", "pad_mode"});
  Val window = c.tensor("window");
  if (center || c.isComplex("self") || x.rank() < 1 || x.rank() > 2 ||
      length < 1 || length > points)
    return c.unsupported("a spectrum of shape " + str(x.dims) + " in " +
                         Twine(points) + " points");
  if (window.isAbsent())
    window = Val(Array::splat(x.type, {length}, 1));
  if (length < points) {
    int64_t left = (points - length) / 2;
    ASSIGN_OR_FAIL(window, pad(c, window, {left}, {points - length - left}, 0));
  }
  Dims outer(ArrayRef<int64_t>(x.dims).drop_back());
  ASSIGN_OR_FAIL(x, viewed(c, x, {-1, x.dims.back(), 1}));
  ASSIGN_OR_FAIL(Val y, shortFourier(c, x, window, points, step, oneSided));
  ASSIGN_OR_FAIL(y, transpose(c, y, {0, 2, 1, 3}));
  if (normalized) {
    double root = std::sqrt(static_cast<double>(points));
    ASSIGN_OR_FAIL(y,
                   multiply(c, {y, Val(Array::splat(y.type, {}, 1 / root))}));
  }
  outer.append(y.dims.begin() + 1, y.dims.end());
  return c.set(reshaped(c, y, outer));
}
static RegisterComplex stft("stft", importStft);
