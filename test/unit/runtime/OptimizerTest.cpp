//===- OptimizerTest.cpp - updates against PyTorch's formulas -------------===//

#include "Adam.h"
#include "Testing.h"

#include "runtime/kernels/Adam.h"

#include <algorithm>

using namespace tmc;
using namespace tmc::test;

TEST(AdamW, FollowsPyTorchOverTenSteps) {
  const int64_t count = 70001; // more than one part, and a ragged end
  const AdamParams params = adamParams(count);
  Floats p = randomFloats(count, 1), m(count), v(count);
  Floats p2(p), m2(count), v2(count);
  std::vector<double> wp(p.get(), p.get() + count), wm(size_t(count), 0.0),
      wv(size_t(count), 0.0);
  for (int64_t t = 1; t <= 10; ++t) {
    Floats g = randomFloats(count, unsigned(10 + t));
    const float lr = 0.01f * float(t), clip = 0.5f;
    double squares = 0;
    for (int64_t i = 0; i < count; ++i) {
      const size_t s = size_t(i);
      squares += double(g[i]) * g[i];
      const double d = g[i] * 0.5;
      wp[s] *= 1 - lr * 0.1;
      wm[s] += (d - wm[s]) * 0.1;
      wv[s] = 0.95 * wv[s] + 0.05 * d * d;
      wp[s] -= lr / (1 - std::pow(0.9, t)) * wm[s] /
               (std::sqrt(wv[s]) / std::sqrt(1 - std::pow(0.95, t)) + 1e-8);
    }
    float got = 0, got2 = 0;
    runKernel<AdamW>(1, params, {p, g, m, v, &lr, &t, &clip}, {p, m, v, &got});
    runKernel<AdamW>(2, params, {p2, g, m2, v2, &lr, &t, &clip},
                     {p2, m2, v2, &got2});
    EXPECT_NEAR(got, squares, 1e-5 * squares);
    EXPECT_EQ(got, got2);
  }
  expectClose(p.get(), wp, 1e-5, "p");
  expectClose(m.get(), wm, 1e-6, "m");
  expectClose(v.get(), wv, 1e-6, "v");
  EXPECT_TRUE(p.sameBits(p2) && m.sameBits(m2) && v.sameBits(v2));
}

namespace {

/// The published map, made as it is described: decades between a tenth and one,
/// cut evenly, their middles, 0 and 1, sorted.
std::vector<double> publishedCodes(bool isSigned) {
  std::vector<double> codes{0, 1};
  for (int i = 0; i < 7; ++i) {
    const int intervals = 1 << (isSigned ? i : i + 1);
    for (int k = 0; k < intervals; ++k) {
      const double low = 0.1 + 0.9 * k / intervals;
      const double high = 0.1 + 0.9 * (k + 1) / intervals;
      const double value = (low + high) / 2 * std::pow(10.0, i - 6);
      codes.push_back(value);
      if (isSigned)
        codes.push_back(-value);
    }
  }
  std::sort(codes.begin(), codes.end());
  return codes;
}

/// One moment of a tensor in 8 bits, in double but for the maxima.
struct CodedMoment {
  std::vector<double> codes, values;
  std::vector<uint8_t> code;
  std::vector<float> most;
  std::vector<double> unsure; // how near a value came to half way, relative

  CodedMoment(bool isSigned, int64_t count)
      : codes(publishedCodes(isSigned)), values(size_t(count)),
        code(size_t(count)), most(size_t(count + 255) / 256),
        unsure(size_t(count), 1.0) {}
  void decode() {
    for (size_t i = 0; i < values.size(); ++i)
      values[i] = double(float(codes[code[i]])) * most[i / 256];
  }
  void encode() {
    for (size_t from = 0; from < values.size(); from += 256) {
      const size_t end = std::min(values.size(), from + 256);
      double largest = 0;
      for (size_t i = from; i < end; ++i)
        largest = std::max(largest, std::abs(values[i]));
      most[from / 256] = float(largest);
      for (size_t i = from; i < end; ++i) {
        const double x = largest > 0 ? values[i] / largest : 0;
        // Codes are sorted: only those around x count.
        const size_t above = size_t(
            std::lower_bound(codes.begin(), codes.end(), x) - codes.begin());
        const size_t first = std::max<size_t>(above, 2) - 2,
                     last = std::min(above + 2, codes.size() - 1);
        size_t best = first;
        for (size_t c = first + 1; c <= last; ++c)
          if (std::abs(codes[c] - x) < std::abs(codes[best] - x))
            best = c;
        code[i] = uint8_t(best);
        for (size_t c = first; c < last; ++c) {
          const double middle = (codes[c] + codes[c + 1]) / 2;
          unsure[i] =
              std::min(unsure[i], std::abs(x - middle) / std::abs(middle));
        }
      }
    }
  }
};

} // namespace

TEST(AdamW8bit, HasThePublishedCodes) {
  for (bool isSigned : {false, true}) {
    const std::vector<double> published = publishedCodes(isSigned);
    ASSERT_EQ(published.size(), size_t(adam::kCodes));
    for (int c = 0; c < adam::kCodes; ++c)
      EXPECT_EQ(adam::codeValue(isSigned, c), float(published[size_t(c)])) << c;
  }
  EXPECT_EQ(adam::codeValue(true, 0), -0.99296875f);
}

/// Floats that begin with the same 16 bits have one code, or two that follow
/// each other: the cpu's way to the nearest.
TEST(AdamW8bit, HasCodesThatLieApart) {
  for (bool isSigned : {false, true}) {
    float above[adam::kCodes];
    for (int c = 0; c + 1 < adam::kCodes; ++c)
      above[c] = adam::boundBetween(adam::codeValue(isSigned, c),
                                    adam::codeValue(isSigned, c + 1));
    for (uint32_t top = 0; top < 1 << 16; ++top) {
      float ends[2];
      const uint32_t bits[2] = {top << 16, top << 16 | 0xffff};
      std::memcpy(ends, bits, sizeof bits);
      if (std::abs(ends[1]) > 1 || std::isnan(ends[1]))
        continue;
      EXPECT_LE(std::abs(adam::nearestCode(ends[0], above) -
                         adam::nearestCode(ends[1], above)),
                1)
          << ends[0];
    }
  }
}

/// Each step begins with the codes that the kernel left; it must leave those
/// that the model does, save where a value lies half way.
TEST(AdamW8bit, FollowsTheModel) {
  const int64_t count = 70001, blocks = (count + 255) / 256;
  const AdamParams params = adamParams(count);
  using Codes = Buffer<uint8_t>;
  Floats p = randomFloats(count, 1), m(blocks), v(blocks);
  Codes mc(count), vc(count);
  Floats p2(p), m2(m), v2(v);
  Codes mc2(mc), vc2(vc);
  CodedMoment first(true, count), second(false, count);
  int64_t ties = 0;
  Buffer<float> lr(1), clip(1, 0.5f), got(1), got2(1);
  Buffer<int64_t> t(1);
  for (t[0] = 1; t[0] <= 5; ++t[0]) {
    Floats g = randomFloats(count, unsigned(10 + t[0]));
    for (int64_t i = 512; i < 768; ++i)
      g[i] = 0; // a block without any
    g[40000] = NAN;
    g[40001] = -INFINITY;
    lr[0] = 0.01f * float(t[0]);
    for (int64_t i = 0; i < count; ++i) {
      first.code[size_t(i)] = mc[i];
      second.code[size_t(i)] = vc[i];
    }
    for (int64_t b = 0; b < blocks; ++b) {
      first.most[size_t(b)] = m[b];
      second.most[size_t(b)] = v[b];
    }
    first.decode();
    second.decode();
    std::vector<double> want(p.get(), p.get() + count);
    for (int64_t i = 0; i < count; ++i) {
      const double d = g[i] * 0.5;
      if (!std::isfinite(d))
        continue;
      double &x = want[size_t(i)], &a = first.values[size_t(i)],
             &b = second.values[size_t(i)];
      x *= 1 - lr[0] * 0.1;
      a += (d - a) * 0.1;
      b = 0.95 * b + 0.05 * d * d;
      x -= lr[0] / (1 - std::pow(0.9, t[0])) * a /
           (std::sqrt(b) / std::sqrt(1 - std::pow(0.95, t[0])) + 1e-8);
    }
    first.encode();
    second.encode();
    runKernel<AdamW8bit>(1, params, {p, g, mc, m, vc, v, lr, t, clip},
                         {p, mc, m, vc, v, got});
    runKernel<AdamW8bit>(2, params, {p2, g, mc2, m2, vc2, v2, lr, t, clip},
                         {p2, mc2, m2, vc2, v2, got2});
    expectClose(p.get(), want, 1e-5, "p");
    EXPECT_TRUE(std::isnan(got[0]) && std::isnan(got2[0]));
    for (int64_t b = 0; b < blocks; ++b) {
      EXPECT_NEAR(m[b], first.most[size_t(b)], 1e-6 * m[b]);
      EXPECT_NEAR(v[b], second.most[size_t(b)], 1e-6 * v[b]);
    }
    for (int64_t i = 0; i < count; ++i) {
      const size_t s = size_t(i);
      const bool tie = mc[i] != first.code[s] || vc[i] != second.code[s];
      ties += tie;
      if (mc[i] != first.code[s]) {
        EXPECT_LT(first.unsure[s], 1e-5) << "m " << i;
      }
      if (vc[i] != second.code[s]) {
        EXPECT_LT(second.unsure[s], 1e-5) << "v " << i;
      }
      first.unsure[s] = second.unsure[s] = 1;
    }
  }
  EXPECT_LT(ties, count / 100);
  EXPECT_TRUE(p.sameBits(p2) && m.sameBits(m2) && v.sameBits(v2));
  EXPECT_TRUE(mc.sameBits(mc2) && vc.sameBits(vc2));
  EXPECT_EQ(m[2], 0);
}

TEST(Sgd, FollowsPyTorch) {
  const int64_t count = 100;
  for (bool nesterov : {false, true})
    for (double momentum : {0.0, 0.9}) {
      if (nesterov && momentum == 0)
        continue;
      Sgd::Params params{.param = DType::F32,
                         .grad = DType::F32,
                         .moment = DType::F32,
                         .count = count,
                         .momentum = momentum,
                         .dampening = nesterov ? 0 : 0.1,
                         .weightDecay = 0.01,
                         .nesterov = nesterov,
                         .stream = 0,
                         .scratchBytes = 0};
      Floats p = randomFloats(count, 1), b(count, 99.0f);
      std::vector<double> wp(p.get(), p.get() + count), wb(size_t(count), 0.0);
      for (int64_t t = 1; t <= 5; ++t) {
        Floats g = randomFloats(count, unsigned(t + 3));
        const float lr = 0.1f;
        for (int64_t i = 0; i < count; ++i) {
          const size_t s = size_t(i);
          double d = g[i] + 0.01 * wp[s];
          if (momentum != 0) {
            wb[s] = t == 1 ? d : momentum * wb[s] + (1 - params.dampening) * d;
            d = nesterov ? d + momentum * wb[s] : wb[s];
          }
          wp[s] -= lr * d;
        }
        runKernel<Sgd>(1, params,
                       {p, g, momentum != 0 ? b.get() : nullptr, &lr, &t},
                       {p, momentum != 0 ? b.get() : nullptr});
      }
      expectClose(p.get(), wp, 1e-5, "p");
    }
}

// Buffers that begin between two multiples of 16 bytes are read and written
// element by element.
TEST(Updates, HaveTheSameBitsWhereverTheirBuffersBegin) {
  const int64_t count = 9001, step = 3;
  const float lr = 0.01f;
  AdamParams adam = adamParams(count);
  adam.copy = DType::BF16;
  const Sgd::Params sgd{.param = DType::F32,
                        .grad = DType::F32,
                        .moment = DType::F32,
                        .count = count,
                        .momentum = 0.9,
                        .dampening = 0,
                        .weightDecay = 0.01,
                        .nesterov = true,
                        .stream = 0,
                        .scratchBytes = 0};
  const Floats p = randomFloats(count, 1), g = randomFloats(count, 2),
               m = randomFloats(count, 3);
  // The parameters, moments and sums of squares of both updates.
  auto results = [&](int64_t shift) {
    auto shifted = [&](const Floats &x) {
      Floats moved(count + shift);
      std::copy(x.get(), x.get() + count, moved.get() + shift);
      return moved;
    };
    Floats param = shifted(p), grad = shifted(g), first = shifted(m),
           second(count + shift, 0.5f), other = shifted(p), buffer = shifted(m);
    Buffer<uint16_t> copy(count + shift);
    float squares = 0, same = 0;
    float *pp = param + shift, *gg = grad + shift, *mm = first + shift,
          *vv = second + shift, *oo = other + shift, *bb = buffer + shift;
    runKernel<AdamW>(1, adam, {pp, gg, mm, vv, &lr, &step, nullptr},
                     {pp, mm, vv, &squares, copy + shift});
    runKernel<Sgd>(1, sgd, {oo, gg, bb, &lr, &step}, {oo, bb, &same});
    EXPECT_EQ(squares, same);
    std::vector<float> all{squares};
    for (const float *x : {pp, mm, vv, oo, bb})
      all.insert(all.end(), x, x + count);
    for (int64_t i = 0; i < count; ++i)
      all.push_back(float(copy[shift + i]));
    return all;
  };
  EXPECT_EQ(results(0), results(1));
}

TEST(GradNorm, AddsAndClips) {
  Floats g = randomFloats(150000, 1);
  float squares = 0, squares2 = 0;
  SquareSum::Params params{
      .type = DType::F32, .count = 150000, .scratchBytes = 0};
  runKernel<SquareSum>(1, params, {g}, {&squares});
  runKernel<SquareSum>(2, params, {g}, {&squares2});
  EXPECT_EQ(squares, squares2);
  double want = 0;
  for (int64_t i = 0; i < g.size(); ++i)
    want += double(g[i]) * g[i];
  EXPECT_NEAR(squares, want, 1e-5 * want);

  const float other = 16;
  float norm = 0, clip = 0;
  runKernel<GradNorm>(
      1, {.count = 2, .maxNorm = 1, .isScaled = false, .scratchBytes = 0},
      {&squares, &other}, {&norm, &clip});
  EXPECT_NEAR(norm, std::sqrt(want + 16), 1e-2);
  EXPECT_NEAR(clip, 1 / (norm + 1e-6), 1e-7);
  const float tiny = 0.25f;
  runKernel<GradNorm>(
      1, {.count = 1, .maxNorm = 1, .isScaled = false, .scratchBytes = 0},
      {&tiny}, {&norm, &clip});
  EXPECT_EQ(norm, 0.5f);
  EXPECT_EQ(clip, 1);
}
