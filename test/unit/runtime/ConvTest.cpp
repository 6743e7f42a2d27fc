//===- ConvTest.cpp - convolutions against naive ones ---------------------===//

#include "Typed.h"

#include "runtime/kernels/Conv.h"

#include <functional>

using namespace tmc;
using namespace tmc::test;

namespace {

ConvParams convParams(int64_t batch, int64_t size, int64_t in, int64_t out,
                      int64_t kernel, int64_t stride, int64_t pad,
                      int64_t dilation = 1, int64_t groups = 1) {
  ConvParams p{};
  p.type = p.filter = DType::F32;
  p.batch = batch;
  p.inHeight = size;
  p.inWidth = size + 1;
  p.inChannels = in;
  p.outChannels = out;
  p.kernelHeight = p.kernelWidth = kernel;
  p.strideHeight = p.strideWidth = stride;
  p.padTop = p.padLeft = pad;
  p.padBottom = pad;
  p.padRight = pad;
  p.dilationHeight = p.dilationWidth = dilation;
  p.groups = groups;
  p.outHeight = outSize(p.inHeight, pad, pad, kernel, dilation, stride);
  p.outWidth = outSize(p.inWidth, pad, pad, kernel, dilation, stride);
  return p;
}

/// Calls body(x index, filter index, y index) for each multiply-add.
template <typename F> void eachProduct(const ConvParams &p, F &&body) {
  const int64_t ci = p.inChannels / p.groups, co = p.outChannels / p.groups;
  for (int64_t n = 0; n < p.batch; ++n)
    for (int64_t oh = 0; oh < p.outHeight; ++oh)
      for (int64_t ow = 0; ow < p.outWidth; ++ow)
        for (int64_t i = 0; i < p.kernelHeight; ++i)
          for (int64_t j = 0; j < p.kernelWidth; ++j) {
            const int64_t h =
                oh * p.strideHeight - p.padTop + i * p.dilationHeight;
            const int64_t w =
                ow * p.strideWidth - p.padLeft + j * p.dilationWidth;
            if (h < 0 || h >= p.inHeight || w < 0 || w >= p.inWidth)
              continue;
            for (int64_t o = 0; o < p.outChannels; ++o)
              for (int64_t c = 0; c < ci; ++c)
                body(((n * p.inHeight + h) * p.inWidth + w) * p.inChannels +
                         o / co * ci + c,
                     ((o * ci + c) * p.kernelHeight + i) * p.kernelWidth + j,
                     ((n * p.outHeight + oh) * p.outWidth + ow) *
                             p.outChannels +
                         o);
          }
}

/// Products that are added up one after the other, at most: of other backends
/// nothing is known.
constexpr int64_t kChain = kBackend == Backend::Cpu ? 256 : INT64_MAX;

/// A sum of products in double, with what its single-precision twin may be off
/// by. Each partial sum S of a chain of fused multiply-adds, and each of the
/// sums of chains, is rounded by at most 2^-24 |S|; spread evenly, that is a
/// variance of (2^-24 S)^2 / 3. The variances of all partial sums add up. Six
/// standard deviations are allowed, and one rounding of the result. A chain of
/// all products has larger partial sums and needs more. The chain may run the
/// other way: its partial sums are then the rest, V - S of a chain that ends in
/// V.
struct Sum {
  double value = 0;
  int64_t terms = 0;
  int64_t chain = kChain;
  double other = 0; // squares of what else is rounded

  void add(double product) {
    value += product;
    part += product;
    sums += part;
    squares += part * part;
    if (++terms % chain == 0)
      join();
  }
  /// Squares of all that is rounded on the way, by 2^-24 at most.
  double roundedSquares() const {
    Sum all = *this;
    all.join();
    return all.rounded + other;
  }
  double tolerance() const {
    const double unit = std::ldexp(1.0, -24);
    return unit * (6 * std::sqrt(roundedSquares() / 3) + std::abs(value));
  }
  /// The same value, made in another way.
  void roundsAs(double squares) {
    part = sums = this->squares = rounded = 0;
    terms = 0;
    other = squares;
  }

private:
  double part = 0, sums = 0, squares = 0; // of this chain
  double rounded = 0; // squares of all partial sums before it

  void join() {
    const double backward = double((terms - 1) % chain + 1) * part * part -
                            2 * part * sums + squares;
    rounded += std::max(squares, backward) + value * value;
    part = sums = squares = 0;
  }
};
using Sums = std::vector<Sum>;

/// The matrices of runtime/cpu/Winograd.h, and what they make of n x n numbers.
using Rows = std::vector<std::vector<double>>;
const Rows kPatch{{1, 0, -1, 0}, {0, 1, 1, 0}, {0, -1, 1, 0}, {0, 1, 0, -1}};
const Rows kWindow{{1, 0, 0}, {.5, .5, .5}, {.5, -.5, .5}, {0, 0, 1}};
const Rows kTile{{1, 0}, {.5, .5}, {.5, -.5}, {0, 1}};
const Rows kTileBack{{1, 1, 1, 0}, {0, 1, -1, -1}};
const Rows kWindowBack{{1, 1, 1, 0}, {0, 1, -1, 0}, {0, 1, 1, -1}};

/// A number that was added up, and the sum of its terms' absolute values, which
/// bounds every partial sum.
struct Sized {
  double value = 0, size = 0;
};
template <typename F>
std::vector<Sized> transformed(const Rows &m, F &&element) {
  const size_t n = m[0].size();
  std::vector<Sized> to(m.size() * m.size());
  for (size_t i = 0; i < m.size(); ++i)
    for (size_t j = 0; j < m.size(); ++j)
      for (size_t a = 0; a < n; ++a)
        for (size_t b = 0; b < n; ++b) {
          const double term = m[i][a] * m[j][b] * element(a, b);
          to[i * m.size() + j].value += term;
          to[i * m.size() + j].size += std::abs(term);
        }
  return to;
}

/// A sum of products at each of the 16 points. An operand is rounded, at its
/// size at most, once per addition: a patch twice, a filter four times, so that
/// a product has six of these; a result four.
struct Points {
  std::vector<Sum> sums;

  explicit Points(int64_t chain) : sums(16) {
    for (Sum &sum : sums)
      sum.chain = kBackend == Backend::Cpu ? chain : INT64_MAX;
  }
  void add(const std::vector<Sized> &a, const std::vector<Sized> &b) {
    for (size_t i = 0; i < 16; ++i) {
      const double size = a[i].size * b[i].size;
      sums[i].add(a[i].value * b[i].value);
      sums[i].other += 6 * size * size;
    }
  }
  /// Squares of what is rounded in result (i, j).
  double back(const Rows &m, size_t i, size_t j) const {
    double squares = 0, size = 0;
    for (size_t a = 0; a < 4; ++a)
      for (size_t b = 0; b < 4; ++b) {
        const double factor = m[i][a] * m[j][b];
        squares += factor * factor * sums[a * 4 + b].roundedSquares();
        size += std::abs(factor * sums[a * 4 + b].value);
      }
    return squares + 4 * size * size;
  }
};

/// Images [batch, height, width, channels]; zeros outside.
struct Images {
  const Floats &data;
  int64_t height, width, channels;

  double at(int64_t n, int64_t h, int64_t w, int64_t c) const {
    if (h < 0 || h >= height || w < 0 || w >= width)
      return 0;
    return data[((n * height + h) * width + w) * channels + c];
  }
};

/// What sums of the forward pass or the input gradient may be off by that are
/// made at points: `to` [batch, height, width, columns].
void expectPoints(Sums &to, int64_t batch, int64_t height, int64_t width,
                  int64_t columns, const Images &from, int64_t top,
                  int64_t left,
                  const std::function<double(int64_t column, int64_t channel,
                                             int64_t i, int64_t j)> &filter) {
  std::vector<std::vector<Sized>> filters;
  for (int64_t k = 0; k < columns; ++k)
    for (int64_t c = 0; c < from.channels; ++c)
      filters.push_back(transformed(
          kWindow, [&](size_t i, size_t j) { return filter(k, c, i, j); }));
  for (int64_t n = 0; n < batch; ++n)
    for (int64_t h = 0; h < height; h += 2)
      for (int64_t w = 0; w < width; w += 2) {
        std::vector<std::vector<Sized>> patches;
        for (int64_t c = 0; c < from.channels; ++c)
          patches.push_back(transformed(kPatch, [&](int64_t i, int64_t j) {
            return from.at(n, h - top + i, w - left + j, c);
          }));
        for (int64_t k = 0; k < columns; ++k) {
          Points points(128);
          for (int64_t c = 0; c < from.channels; ++c)
            points.add(filters[size_t(k * from.channels + c)],
                       patches[size_t(c)]);
          for (int64_t i = 0; i < 2 && h + i < height; ++i)
            for (int64_t j = 0; j < 2 && w + j < width; ++j)
              to[size_t(((n * height + h + i) * width + w + j) * columns + k)]
                  .roundsAs(points.back(kTileBack, size_t(i), size_t(j)));
        }
      }
}

/// The same of a filter gradient.
void expectFilterPoints(Sums &to, const ConvParams &p, const Images &x,
                        const Images &dy) {
  std::vector<Points> points(size_t(p.outChannels * p.inChannels), Points(64));
  for (int64_t n = 0; n < p.batch; ++n)
    for (int64_t h = 0; h < p.outHeight; h += 2)
      for (int64_t w = 0; w < p.outWidth; w += 2) {
        std::vector<std::vector<Sized>> patches, tiles;
        for (int64_t c = 0; c < p.inChannels; ++c)
          patches.push_back(transformed(kPatch, [&](int64_t i, int64_t j) {
            return x.at(n, h - p.padTop + i, w - p.padLeft + j, c);
          }));
        for (int64_t o = 0; o < p.outChannels; ++o)
          tiles.push_back(transformed(kTile, [&](int64_t i, int64_t j) {
            return dy.at(n, h + i, w + j, o);
          }));
        for (int64_t o = 0; o < p.outChannels; ++o)
          for (int64_t c = 0; c < p.inChannels; ++c)
            points[size_t(o * p.inChannels + c)].add(tiles[size_t(o)],
                                                     patches[size_t(c)]);
      }
  for (size_t i = 0; i < to.size(); ++i)
    to[i].roundsAs(points[i / 9].back(kWindowBack, i % 9 / 3, i % 3));
}

/// Each element is within its tolerance; names the worst.
void expectSums(const Floats &got, const Sums &want, const char *what,
                double factor = 1) {
  double worst = 0;
  size_t where = 0;
  for (size_t i = 0; i < want.size(); ++i) {
    const double allowed = factor * want[i].tolerance();
    const double error = std::abs(got[i] - factor * want[i].value);
    const double ratio = error == 0 ? 0 : error / allowed;
    if (!(ratio <= worst)) {
      worst = ratio;
      where = i;
      if (std::isnan(ratio))
        break;
    }
  }
  // cuDNN takes transforms where it likes.
  EXPECT_LE(worst, kOnCard ? 4 : 1)
      << what << " element " << where << " of " << want[where].terms
      << " products: got " << got[where] << ", want "
      << factor * want[where].value;
}

void checkConv(ConvParams p) {
  SCOPED_TRACE(
      std::to_string(p.inChannels) + " to " + std::to_string(p.outChannels) +
      " channels in " + std::to_string(p.groups) + " groups, window " +
      std::to_string(p.kernelHeight) + " x " + std::to_string(p.kernelWidth));
  const int64_t xs = p.batch * p.inHeight * p.inWidth * p.inChannels;
  const int64_t ys = p.batch * p.outHeight * p.outWidth * p.outChannels;
  const int64_t fs = p.outChannels * (p.inChannels / p.groups) *
                     p.kernelHeight * p.kernelWidth;
  Floats x = randomFloats(xs, 1), f = randomFloats(fs, 2),
         dy = randomFloats(ys, 3);
  Sums y(static_cast<size_t>(ys)), dx(static_cast<size_t>(xs)),
      df(static_cast<size_t>(fs));
  eachProduct(p, [&](int64_t xi, int64_t fi, int64_t yi) {
    y[size_t(yi)].add(double(x[xi]) * f[fi]);
    dx[size_t(xi)].add(double(dy[yi]) * f[fi]);
    df[size_t(fi)].add(double(dy[yi]) * x[xi]);
  });
  const Images xImages{x, p.inHeight, p.inWidth, p.inChannels};
  const Images dyImages{dy, p.outHeight, p.outWidth, p.outChannels};
  auto filter = [&](int64_t o, int64_t c, int64_t i, int64_t j) {
    return f[((o * p.inChannels + c) * 3 + i) * 3 + j];
  };
  if (conv::isWinograd(p, false))
    expectPoints(y, p.batch, p.outHeight, p.outWidth, p.outChannels, xImages,
                 p.padTop, p.padLeft, filter);
  if (conv::isWinograd(p, true))
    expectPoints(dx, p.batch, p.inHeight, p.inWidth, p.inChannels, dyImages,
                 2 - p.padTop, 2 - p.padLeft,
                 [&](int64_t c, int64_t o, int64_t i, int64_t j) {
                   return filter(o, c, 2 - i, 2 - j);
                 });
  if (conv::isWinogradFilter(p))
    expectFilterPoints(df, p, xImages, dyImages);
  Floats gy(ys), gx(xs), gf(fs, 3.0f), gy2(ys), gx2(xs), gf2(fs);
  runKernel<Conv>(1, p, {x, f}, {gy});
  expectSums(gy, y, "y");
  runKernel<ConvGradInput>(1, p, {dy, f}, {gx});
  expectSums(gx, dx, "dx");
  runKernel<ConvGradFilter>(1, p, {x, dy}, {gf});
  expectSums(gf, df, "dfilter");
  runKernel<Conv>(3, p, {x, f}, {gy2});
  runKernel<ConvGradInput>(3, p, {dy, f}, {gx2});
  runKernel<ConvGradFilter>(3, p, {x, dy}, {gf2});
  EXPECT_TRUE(gy.sameBits(gy2) && gx.sameBits(gx2) && gf.sameBits(gf2))
      << "one thread and three differ";
  runKernel<ConvGradFilter>(1, p, {x, dy}, {gf2}, true);
  expectSums(gf2, df, "accumulated dfilter", 2);
}

} // namespace

TEST(Conv, AgreesWithTheNaiveOne) {
  checkConv(convParams(2, 8, 3, 16, 3, 1, 1));
  checkConv(convParams(5, 9, 16, 20, 3, 2, 1));
  checkConv(convParams(4, 14, 64, 32, 1, 1, 0));
  checkConv(convParams(3, 7, 8, 8, 3, 1, 2, 2));
  checkConv(convParams(2, 8, 16, 32, 3, 1, 1, 1, 4));
  checkConv(convParams(2, 8, 32, 32, 3, 1, 1, 1, 32)); // depthwise
  checkConv(convParams(2, 12, 48, 48, 7, 1, 3, 1, 48));
  checkConv(convParams(2, 12, 20, 20, 5, 2, 2, 1, 20));
  checkConv(convParams(3, 12, 24, 24, 3, 2, 1, 2, 24));
  checkConv(convParams(2, 12, 7, 7, 9, 1, 4, 1, 7));
  for (int64_t window : {1, 2, 3, 4, 5, 6, 7}) { // vectors that aren't full
    checkConv(convParams(2, 19, 37, 37, window, 1, window / 2, 1, 37));
    checkConv(convParams(2, 19, 37, 37, window, 2, window / 2, 1, 37));
    checkConv(convParams(2, 5, 16, 16, window, 3, window / 2, 1, 16));
  }
  checkConv(convParams(2, 4, 40, 40, 7, 1, 3, 1, 40));  // larger than the image
  checkConv(convParams(2, 12, 16, 32, 3, 1, 1, 1, 16)); // two filters a channel
  checkConv(convParams(2, 12, 128, 128, 3, 1, 1, 1, 32));
  checkConv(convParams(2, 12, 24, 36, 5, 2, 2, 1, 2));
  checkConv(convParams(2, 16, 3, 24, 8, 8, 0)); // patches
  checkConv(convParams(2, 6, 40, 40, 1, 2, 0, 1, 2));
  checkConv(convParams(1, 16, 3, 8, 7, 2, 3));
  checkConv(convParams(9, 16, 64, 64, 3, 1, 1)); // several parts, one smaller
}

/// Windows of 3 x 3 on enough channels and pixels: odd sizes, every padding,
/// several chunks of channels, slabs that aren't full, parts of the tiles.
TEST(Conv, AgreesWithTheNaiveOneWhereWindowsAreTransformed) {
  for (const ConvParams &p :
       {convParams(2, 14, 48, 80, 3, 1, 1), convParams(4, 11, 32, 32, 3, 1, 0),
        convParams(2, 13, 96, 48, 3, 1, 2), convParams(1, 19, 160, 32, 3, 1, 1),
        convParams(1, 6, 64, 144, 3, 1, 1),  // few tiles
        convParams(8, 15, 32, 64, 3, 1, 1)}) // many: parts
  {
    EXPECT_TRUE(conv::isWinogradFilter(p));
    EXPECT_EQ(conv::isWinograd(p, false), p.inHeight > 6);
    checkConv(p);
  }
  ConvParams uneven = convParams(2, 14, 32, 48, 3, 1, 1);
  uneven.padTop = 2;
  uneven.padRight = 0;
  uneven.outHeight += 1;
  uneven.outWidth -= 1;
  EXPECT_TRUE(conv::isWinograd(uneven, true));
  checkConv(uneven);
}

/// Windows that aren't square, paddings that differ by side, taps that only see
/// padding, strides that leave out pixels and whole taps.
TEST(Conv, AgreesWithTheNaiveOneWhereSidesDiffer) {
  auto check = [](ConvParams p, std::array<int64_t, 2> kernel,
                  std::array<int64_t, 2> stride,
                  std::array<int64_t, 2> dilation,
                  std::array<int64_t, 4> padding) {
    p.kernelHeight = kernel[0];
    p.kernelWidth = kernel[1];
    p.strideHeight = stride[0];
    p.strideWidth = stride[1];
    p.dilationHeight = dilation[0];
    p.dilationWidth = dilation[1];
    p.padTop = padding[0];
    p.padLeft = padding[1];
    p.padBottom = padding[2];
    p.padRight = padding[3];
    p.outHeight = outSize(p.inHeight, p.padTop, p.padBottom, kernel[0],
                          dilation[0], stride[0]);
    p.outWidth = outSize(p.inWidth, p.padLeft, p.padRight, kernel[1],
                         dilation[1], stride[1]);
    checkConv(p);
  };
  for (int64_t groups : {1, 2, 6}) {
    const ConvParams p = convParams(2, 9, 6, 6, 1, 1, 0, 1, groups);
    check(p, {3, 5}, {1, 2}, {1, 1}, {1, 0, 2, 3});
    check(p, {1, 3}, {3, 1}, {1, 3}, {0, 4, 0, 1});
    check(p, {2, 2}, {3, 4}, {1, 1}, {0, 0, 0, 0});    // gaps between windows
    check(p, {3, 3}, {2, 3}, {2, 3}, {7, 6, 5, 8});    // gcd(2, 2): empty grids
    check(p, {9, 10}, {12, 11}, {1, 1}, {0, 0, 0, 0}); // strides beyond it
  }
  // A row of text, Conv1d(64, 64, 16, padding=8).
  ConvParams text = convParams(2, 1, 64, 64, 1, 1, 0);
  text.inWidth = 39;
  check(text, {1, 16}, {1, 1}, {1, 1}, {0, 8, 0, 8});
  // More channels than a slab of the filter gradient, and than a panel.
  check(convParams(1, 5, 40, 300, 1, 1, 0), {3, 3}, {1, 1}, {1, 1},
        {1, 1, 1, 1});
  check(convParams(3, 20, 260, 33, 1, 1, 0), {1, 1}, {1, 1}, {1, 1},
        {0, 0, 0, 0});
}

/// Windows of one pixel: products, with a Matmul's bits whichever of the two
/// computes them, which depends on how many columns there are.
TEST(Conv, OfOnePixelIsAProduct) {
  if (kBackend != Backend::Cpu)
    GTEST_SKIP() << "of the cpu backend";
  int64_t handedOn = 0;
  for (const ConvParams &p :
       {convParams(2, 3, 5, 7, 1, 1, 0), convParams(1, 5, 300, 520, 1, 1, 0),
        convParams(4, 12, 24, 310, 1, 1, 0),
        convParams(3, 17, 280, 36, 1, 1, 0)}) {
    const int64_t pixels = p.batch * p.inHeight * p.inWidth;
    const int64_t in = p.inChannels, out = p.outChannels;
    Floats x = randomFloats(pixels * in, 1), f = randomFloats(out * in, 2);
    Floats dy = randomFloats(pixels * out, 3);
    Floats y(pixels * out), dx(pixels * in), df(out * in, 0.5f);
    Floats wantY(y), wantDx(dx), wantDf(df);
    const Matmul::Params forward = conv::pointwiseProduct(p, false);
    const Matmul::Params gradInput = conv::pointwiseProduct(p, true);
    const Matmul::Params gradFilter = conv::pointwiseFilterGradient(p);
    runKernel<Matmul>(1, forward, {x, f}, {wantY});
    runKernel<Matmul>(1, gradInput, {dy, f}, {wantDx});
    runKernel<Matmul>(1, gradFilter, {dy, x}, {wantDf}, true);
    for (int threads : {1, 3}) {
      runKernel<Conv>(threads, p, {x, f}, {y});
      runKernel<ConvGradInput>(threads, p, {dy, f}, {dx});
      Floats sum(df);
      runKernel<ConvGradFilter>(threads, p, {x, dy}, {sum}, true);
      EXPECT_TRUE(y.sameBits(wantY));
      EXPECT_TRUE(dx.sameBits(wantDx));
      // Without parts of its own.
      if (conv::isPointwiseProduct(p, gradFilter) ||
          conv::filterUnits(p).parts == 1) {
        EXPECT_TRUE(sum.sameBits(wantDf));
      }
    }
    for (const Matmul::Params &m : {forward, gradInput, gradFilter})
      handedOn += conv::isPointwiseProduct(p, m);
  }
  // Some are, some aren't.
  EXPECT_GT(handedOn, 4);
  EXPECT_LT(handedOn, 10);
}

namespace {

/// The same bits on cpu; on cuda, where a filter gradient is another sum, at
/// most one rounding off.
void expectSame(Typed &got, const Typed &want, bool isExact, const char *what) {
  if (isExact && !kOnCard) {
    EXPECT_TRUE(got.bytes.sameBits(want.bytes)) << what;
    return;
  }
  got.read();
  double size = 0, worst = 0;
  for (int64_t i = 0; i < want.values.size(); ++i) {
    size = std::max(size, std::abs(double(want.values[i])));
    worst = std::max(worst, std::abs(double(got.values[i]) - want.values[i]));
  }
  EXPECT_LE(worst, size * std::max(2 * roundingOf(got.type), 1e-6)) << what;
}

/// Narrow activations, and a filter of their type or of f32, which is rounded
/// to it: the sums are f32's of the widened numbers, and rounded once.
void checkNarrow(const ConvParams &wide, DType type, DType filter) {
  SCOPED_TRACE(std::string(nameOf(type)) + " times " + nameOf(filter) + ", " +
               std::to_string(wide.inChannels) + " to " +
               std::to_string(wide.outChannels) + " channels in " +
               std::to_string(wide.groups) + " groups, window " +
               std::to_string(wide.kernelHeight));
  ConvParams p = wide;
  p.type = type;
  p.filter = filter;
  const int64_t xs = p.batch * p.inHeight * p.inWidth * p.inChannels;
  const int64_t ys = p.batch * p.outHeight * p.outWidth * p.outChannels;
  const int64_t fs = p.outChannels * (p.inChannels / p.groups) *
                     p.kernelHeight * p.kernelWidth;
  Typed x(type, randomFloats(xs, 1)), f(type, randomFloats(fs, 2)),
      dy(type, randomFloats(ys, 3));
  Typed stored(filter, randomFloats(fs, 2)); // before it is rounded
  Floats y(ys), dx(xs), df(fs), nans(std::max(xs, ys), NAN);
  runKernel<Conv>(1, wide, {x.values, f.values}, {y});
  runKernel<ConvGradInput>(1, wide, {dy.values, f.values}, {dx});
  runKernel<ConvGradFilter>(1, wide, {x.values, dy.values}, {df});
  const Typed wantY(type, y), wantDx(type, dx), wantDf(filter, df);
  for (int threads : {1, 3}) {
    if (kBackend != Backend::Cpu && threads > 1)
      break;
    Typed gotY(type, Floats(ys, NAN)), gotDx(type, Floats(xs, NAN));
    Typed gotDf(filter, Floats(fs, NAN));
    runKernel<Conv>(threads, p, {x, stored}, {gotY});
    runKernel<ConvGradInput>(threads, p, {dy, stored}, {gotDx});
    runKernel<ConvGradFilter>(threads, p, {x, dy}, {gotDf});
    const bool isProduct = kBackend == Backend::Cpu && conv::isPointwise(p);
    const bool isGathered = kBackend != Backend::Cpu;
    expectSame(gotY, wantY, !isProduct, "y");
    expectSame(gotDx, wantDx, !isProduct, "dx");
    expectSame(gotDf, wantDf, !isProduct && !isGathered, "dfilter");
    // Added up before it is rounded.
    gotDf.read();
    Floats sum = gotDf.values;
    runKernel<ConvGradFilter>(1, wide, {x.values, dy.values}, {sum}, true);
    runKernel<ConvGradFilter>(threads, p, {x, dy}, {gotDf}, true);
    expectSame(gotDf, Typed(filter, sum), !isProduct && !isGathered,
               "accumulated dfilter");
  }
}

} // namespace

TEST(NarrowConv, RoundsWhatF32Gives) {
  constexpr double kMostEmulated = 1e6; // flops: what takes a second or less
  const ConvParams shapes[] = {
      convParams(2, 8, 3, 16, 3, 1, 1),
      convParams(5, 9, 16, 20, 3, 2, 1),
      convParams(3, 7, 8, 8, 3, 1, 2, 2),
      convParams(2, 8, 16, 32, 3, 1, 1, 1, 4),
      convParams(2, 12, 20, 20, 5, 2, 2, 1, 20), // depthwise
      convParams(2, 14, 37, 37, 7, 1, 3, 1, 37),
      convParams(4, 14, 64, 40, 1, 1, 0),  // a product
      convParams(3, 17, 280, 36, 1, 1, 0), // in pieces
      convParams(1, 5, 300, 520, 1, 1, 0), // one of Matmul's
      convParams(2, 16, 3, 24, 8, 8, 0),   // patches
      convParams(1, 9, 40, 300, 3, 3, 0),  // taps outside the image
      convParams(2, 14, 48, 80, 3, 1, 1),  // transformed
      convParams(1, 6, 64, 144, 3, 1, 1),  // its filter gradient alone
  };
  for (DType type : {DType::BF16, DType::F16})
    for (DType filter : {DType::F32, type})
      for (const ConvParams &p : shapes)
        if (kBackend == Backend::Cpu || conv::flops(p) < kMostEmulated)
          checkNarrow(p, type, filter);
}

/// Pieces of a product of bf16 have the product's bits; the parts of a filter
/// gradient are added up in order.
TEST(NarrowConv, OfOnePixelIsAProductInPieces) {
  if (kBackend != Backend::Cpu)
    GTEST_SKIP() << "of the cpu backend";
  ConvParams p = convParams(3, 17, 280, 36, 1, 1, 0);
  p.type = p.filter = DType::BF16;
  const Matmul::Params forward = conv::pointwiseProduct(p, false);
  ConvParams wide = p; // its filter's gradient isn't rounded
  wide.filter = DType::F32;
  const Matmul::Params gradFilter = conv::pointwiseFilterGradient(wide);
  ASSERT_GT(conv::cutRows(p, forward).pieces, 2);
  const conv::PointwiseCut sums = conv::cutSums(wide, gradFilter);
  ASSERT_GT(sums.pieces, 2);
  const int64_t pixels = forward.m, in = p.inChannels, out = p.outChannels;
  Typed x(p.type, randomFloats(pixels * in, 1)),
      f(p.type, randomFloats(out * in, 2)),
      dy(p.type, randomFloats(pixels * out, 3)),
      want(p.type, Floats(pixels * out)), dx(p.type, Floats(pixels * in));
  runKernel<Matmul>(1, forward, {x, f}, {want});
  runKernel<Matmul>(1, conv::pointwiseProduct(p, true), {dy, f}, {dx});
  Floats df(out * in);
  for (int64_t from = 0; from < pixels; from += sums.each) {
    const int64_t count = std::min(sums.each, pixels - from);
    auto part = [&](const Typed &whole, int64_t channels) {
      Floats values(count * channels);
      for (int64_t i = 0; i < count * channels; ++i)
        values[i] = whole.values[from * channels + i];
      return Typed(p.type, values);
    };
    Floats sum(out * in);
    runKernel<Matmul>(1, conv::pieceOfSums(gradFilter, count),
                      {part(dy, out), part(x, in)}, {sum});
    for (int64_t i = 0; i < df.size(); ++i)
      df[i] = from ? df[i] + sum[i] : sum[i];
  }
  for (int threads : {1, 3}) {
    Typed gotY(p.type, Floats(pixels * out, NAN)),
        gotDx(p.type, Floats(pixels * in, NAN));
    Floats gotDf(out * in, NAN);
    runKernel<Conv>(threads, p, {x, f}, {gotY});
    runKernel<ConvGradInput>(threads, p, {dy, f}, {gotDx});
    runKernel<ConvGradFilter>(threads, wide, {x, dy}, {gotDf});
    EXPECT_TRUE(gotY.bytes.sameBits(want.bytes));
    EXPECT_TRUE(gotDx.bytes.sameBits(dx.bytes));
    EXPECT_TRUE(gotDf.sameBits(df));
  }
}

TEST(Conv, RefusesTooLittleScratch) {
  auto device = makeDevice(1);
  ConvParams p = convParams(2, 8, 3, 16, 3, 1, 1);
  p.scratchBytes = 100;
  Conv kernel(p);
  EXPECT_EQ(kernel.prepare(*device).code(), Code::OverBudget);
}

/// The bits that products of fused multiply-adds in this order have, whatever
/// the processor and the instruction set of the runtime.
TEST(Conv, HasTheSameBitsOnEveryMachine) {
  if (kBackend != Backend::Cpu)
    GTEST_SKIP() << "of the cpu backend";
  const ConvParams p = convParams(3, 14, 40, 48, 3, 2, 1);
  const int64_t xs = p.batch * p.inHeight * p.inWidth * p.inChannels;
  const int64_t ys = p.batch * p.outHeight * p.outWidth * p.outChannels;
  const int64_t fs = p.outChannels * p.inChannels * 9;
  auto whole = [](int64_t count, uint32_t seed) {
    Floats buffer(count);
    for (int64_t i = 0; i < count; ++i) {
      seed = seed * 1664525 + 1013904223;
      buffer[i] = float(int32_t(seed) >> 8) * 0x1p-23f;
    }
    return buffer;
  };
  Floats x = whole(xs, 1), f = whole(fs, 2), dy = whole(ys, 3);
  Floats y(ys), dx(xs), df(fs);
  runKernel<Conv>(1, p, {x, f}, {y});
  runKernel<ConvGradInput>(1, p, {dy, f}, {dx});
  runKernel<ConvGradFilter>(1, p, {x, dy}, {df});
  auto hash = [](const Floats &buffer) {
    uint64_t state = 14695981039346656037u; // FNV-1a
    for (int64_t i = 0; i < buffer.size(); ++i) {
      uint32_t bits;
      std::memcpy(&bits, &buffer[i], sizeof bits);
      state = (state ^ bits) * 1099511628211u;
    }
    return state;
  };
  EXPECT_EQ(hash(y), 5311269987847176498u);
  EXPECT_EQ(hash(dx), 11508285011039067679u);
  EXPECT_EQ(hash(df), 1398878776963904215u);

  const ConvParams q = convParams(2, 15, 160, 48, 3, 1, 1);
  const int64_t qxs = q.batch * q.inHeight * q.inWidth * q.inChannels;
  const int64_t qys = q.batch * q.outHeight * q.outWidth * q.outChannels;
  const int64_t qfs = q.outChannels * q.inChannels * 9;
  Floats qx = whole(qxs, 1), qf = whole(qfs, 2), qdy = whole(qys, 3);
  Floats qy(qys), qdx(qxs), qdf(qfs);
  ASSERT_TRUE(conv::isWinograd(q, false) && conv::isWinograd(q, true));
  runKernel<Conv>(1, q, {qx, qf}, {qy});
  runKernel<ConvGradInput>(1, q, {qdy, qf}, {qdx});
  runKernel<ConvGradFilter>(1, q, {qx, qdy}, {qdf});
  EXPECT_EQ(hash(qy), 10532212135517941331u);
  EXPECT_EQ(hash(qdx), 2160494187911357755u);
  EXPECT_EQ(hash(qdf), 14325190098445802717u);
}
