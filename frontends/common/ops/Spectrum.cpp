#include "frontends/common/ops/Spectrum.h"
#include "frontends/common/ops/Gather.h"
#include "frontends/common/ops/Linear.h"
#include "frontends/common/ops/PadConcatSplit.h"
#include "frontends/common/ops/Pointwise.h"
#include "frontends/common/ops/Shape.h"

#include <cmath>

using namespace mlir;
using namespace tmc;
using namespace tmc::frontend;

namespace {
/// The sizes of a transform's input and output, and their parts per number.
struct Ends {
  int64_t in, inParts, out, outParts;
};
} // namespace

/// The matrix [in * inParts, out * outParts] that multiplies rows.
static Array matrixOf(const Fourier &how, const Ends &e, ElementType type) {
  std::vector<double> m(e.in * e.inParts * e.out * e.outParts, 0);
  double turn = (how.inverse ? 2 : -2) * M_PI / how.points;
  double scale = how.inverse ? 1.0 / how.points : 1;
  bool isReal = how.inverse && how.oneSided;
  for (int64_t j = 0; j < e.in; ++j)
    for (int64_t k = 0; k < e.out; ++k) {
      double angle = turn * static_cast<double>(j * k % how.points);
      // A missing frequency is the conjugate of another one.
      bool isAlone = j == 0 || 2 * j == how.points;
      double weight = scale * (isReal && !isAlone ? 2 : 1);
      double c = weight * std::cos(angle), d = weight * std::sin(angle);
      auto at = [&](int64_t part, int64_t outPart) -> double & {
        return m[((j * e.inParts + part) * e.out + k) * e.outParts + outPart];
      };
      at(0, 0) = c;
      if (e.outParts == 2)
        at(0, 1) = d;
      if (e.inParts == 2)
        at(1, 0) = -d;
      if (e.inParts == 2 && e.outParts == 2)
        at(1, 1) = c;
    }
  return Array::ofFloats(type, {e.in * e.inParts, e.out * e.outParts},
                         std::move(m));
}

FailureOr<Val> tmc::frontend::fourier(Site &s, const Val &x,
                                      const Fourier &how) {
  if (failed(checkFloats(s, x)))
    return failure();
  int64_t rank = x.rank(), parts = rank ? x.dims.back() : 0;
  if (rank < 2 || parts < 1 || parts > 2 || how.axis < 0 ||
      how.axis >= rank - 1 || x.dims[how.axis] < 1)
    return s.error("a transform along dimension " + Twine(how.axis) +
                   " of shape " + str(x.dims));
  constexpr int64_t kMaxPoints = 1 << 12;
  if (how.points < 1)
    return s.error("a transform of " + Twine(how.points) + " points");
  if (how.points > kMaxPoints)
    return s.unsupported("a transform of " + Twine(how.points) + " points");
  int64_t half = how.points / 2 + 1;
  bool isReal = how.inverse && how.oneSided;
  Ends e{std::min(x.dims[how.axis], isReal ? half : how.points), parts,
         how.oneSided && !how.inverse ? half : how.points, isReal ? 1 : 2};
  ASSIGN_OR_FAIL(Val y, strided(s, x, how.axis, 0, 1, e.in));
  Dims perm, back(rank);
  for (int64_t d = 0; d < rank - 1; ++d)
    if (d != how.axis)
      perm.push_back(d);
  perm.append({how.axis, rank - 1});
  for (auto [i, dim] : llvm::enumerate(perm))
    back[dim] = i;
  ASSIGN_OR_FAIL(y, transpose(s, y, perm));
  Dims dims(y.dims);
  ASSIGN_OR_FAIL(y, viewed(s, y, {-1, e.in * e.inParts}));
  ASSIGN_OR_FAIL(y, matmul(s, y, Val(matrixOf(how, e, x.type))));
  dims[rank - 2] = e.out;
  dims[rank - 1] = e.outParts;
  ASSIGN_OR_FAIL(y, reshaped(s, y, dims));
  return transpose(s, y, back);
}

FailureOr<Val> tmc::frontend::shortFourier(Site &s, const Val &signal,
                                           const Val &window, int64_t points,
                                           int64_t step, bool oneSided) {
  if (signal.rank() != 3)
    return s.error("a signal of shape " + str(signal.dims));
  int64_t length = signal.dims[1];
  if (points < 1 || step < 1 || points > length)
    return s.error("pieces of " + Twine(points) + " elements, " + Twine(step) +
                   " apart, of " + Twine(length));
  if (!window.isAbsent() && window.dims != Dims{points})
    return s.unsupported("a window of shape " + str(window.dims) +
                         " for pieces of " + Twine(points));
  int64_t pieces = 1 + (length - points) / step;
  if (pieces > kMaxFoldElements / points)
    return s.unsupported(Twine(pieces) + " pieces");
  std::vector<int64_t> places;
  for (int64_t i = 0; i < pieces; ++i)
    for (int64_t k = 0; k < points; ++k)
      places.push_back(i * step + k);
  Val at(Array::ofInts(ElementType::I64, {pieces, points}, std::move(places)));
  ASSIGN_OR_FAIL(Val x, gather(s, signal, at, 1));
  if (!window.isAbsent()) {
    ASSIGN_OR_FAIL(Val weights, reshaped(s, window, {1, 1, points, 1}));
    ASSIGN_OR_FAIL(x, multiply(s, {x, weights}));
  }
  Fourier how;
  how.axis = 2;
  how.points = points;
  how.oneSided = oneSided;
  return fourier(s, x, how);
}

/// As in ONNX: edges are rounded down to frequencies, and both slopes of a
/// triangle are straight between them.
FailureOr<Val> tmc::frontend::melWeights(Site &s, const MelScale &mel,
                                         ElementType type) {
  int64_t rows = std::max<int64_t>(mel.points, 0) / 2 + 1;
  bool valid = mel.bands >= 1 && mel.points >= 1 && mel.rate > 0 &&
               mel.low >= 0 && mel.high > mel.low &&
               mel.bands <= kMaxFoldElements / rows;
  if (!valid)
    return s.error("wants " + Twine(mel.bands) + " bands of " +
                   Twine(mel.points) + " points");
  auto toMel = [](double hertz) {
    return 2595 * std::log1p(hertz / 700) / std::log(10.0);
  };
  auto toHertz = [](double m) {
    return 700 * std::expm1(m / 2595 * std::log(10.0));
  };
  double low = toMel(mel.low);
  double step = (toMel(mel.high) - low) / static_cast<double>(mel.bands + 2);
  std::vector<int64_t> edges;
  for (int64_t i = 0; i < mel.bands + 2; ++i) {
    double edge = (mel.points + 1) * toHertz(i * step + low) / mel.rate;
    edges.push_back(std::min(static_cast<int64_t>(std::floor(edge)), rows));
  }
  std::vector<double> weights(rows * mel.bands, 0);
  auto put = [&](int64_t row, int64_t band, double value) {
    if (row < rows)
      weights[row * mel.bands + band] = value;
  };
  for (int64_t band = 0; band < mel.bands; ++band) {
    int64_t left = edges[band], middle = edges[band + 1];
    int64_t right = edges[band + 2];
    for (int64_t row = left; row <= middle; ++row)
      put(row, band, middle == left ? 1 : double(row - left) / (middle - left));
    for (int64_t row = middle; row < right; ++row)
      put(row, band, double(right - row) / (right - middle));
  }
  return Val(
      Array::ofFloats(ElementType::F64, {rows, mel.bands}, std::move(weights))
          .cast(type));
}
