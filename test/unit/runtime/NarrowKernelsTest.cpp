//===- NarrowKernelsTest.cpp - kernels on 16-bit operands -----------------===//
//
// Against the same kernels in f32 on the widened operands, which their own
// tests compare with naive ones. Attention's sums are f32's bit for bit, and
// what is rounded is rounded once. On cuda those of bf16 are added up in
// another order, of probabilities rounded to bf16, or of numbers of 16 bits if
// they are `exact` (TensorAttention.h).
//
//===----------------------------------------------------------------------===//

#include "PackedHeads.h"
#include "Typed.h"

#include "runtime/kernels/Attention.h"
#include "runtime/kernels/CrossEntropy.h"

#include <cmath>

using namespace tmc;
using namespace tmc::test;

namespace {

constexpr DType kHalves[] = {DType::BF16, DType::F16};

/// |got - want| over |want|, as Euclidean norms. Equal infinities don't count.
double distance(const test::Floats &got, const test::Floats &want) {
  double difference = 0, size = 0;
  for (int64_t i = 0; i < want.size(); ++i) {
    if (std::isinf(want[i]) && got[i] == want[i])
      continue;
    difference += (double(got[i]) - want[i]) * (double(got[i]) - want[i]);
    size += double(want[i]) * want[i];
  }
  return std::sqrt(difference / size);
}

/// `got` is `want`, rounded. Where not `exact`, factors of its sums
/// were rounded, too.
void expectRounded(Typed &got, const test::Floats &want, const char *what,
                   bool exact = true) {
  got.read();
  EXPECT_LE(distance(got.values, want), roundingOf(got.type)) << what;
  if (!exact)
    return;
  Typed rounded(got.type, want);
  if (kBackend == Backend::Cpu || got.type != DType::BF16) {
    EXPECT_TRUE(rounded.bytes.sameBits(got.bytes)) << what;
    return;
  }
  // What is off by 2^-17 is rounded to a neighbour once in many times.
  int64_t other = 0;
  for (int64_t i = 0; i < want.size(); ++i)
    other += rounded.values[i] != got.values[i];
  EXPECT_LE(other, 3 + want.size() / 20) << what;
}

AttentionParams attention(int64_t queries, int64_t keys, bool causal,
                          double dropout, int64_t depth = 40) {
  const int64_t heads = 4, kvHeads = 2;
  return {.type = DType::F32,
          .batch = 2,
          .heads = heads,
          .kvHeads = kvHeads,
          .queries = queries,
          .keys = keys,
          .headDim = depth,
          .q = {queries * heads * depth, heads * depth, depth},
          .k = {keys * kvHeads * depth, kvHeads * depth, depth},
          .v = {keys * kvHeads * depth, kvHeads * depth, depth},
          .causal = causal,
          .scale = 0.2,
          .softcap = 0,
          .window = 0,
          .mask = MaskKind::None,
          .maskBatchStride = 0,
          .maskHeadStride = 0,
          .maskQueryStride = 0,
          .groupsBatchStride = 0,
          .prefixBatchStride = 0,
          .dropout = dropout,
          .exact = true,
          .rowsPerSample = 1,
          .stream = 9,
          .scratchBytes = 0};
}

/// `p` with probabilities that are rounded.
AttentionParams rounded(AttentionParams p) {
  p.exact = false;
  return p;
}

/// With `prefix`, each sample has a prefix of its own. `sample`: the number of
/// the second one.
void checkAttention(DType type, AttentionParams wide, bool additive = false,
                    bool hasPrefix = false, int64_t sample = 7) {
  // Mask and bias are f32 in any type: what bf16 can't hold counts.
  test::Floats mask = randomFloats(wide.queries * wide.keys, 5);
  test::Floats biases = randomFloats(wide.queries * wide.keys, 6);
  if (additive) {
    wide.mask = MaskKind::Additive;
    wide.bias = true;
    wide.maskQueryStride = wide.biasQueryStride = wide.keys;
  }
  const void *added = additive ? mask.get() : nullptr;
  const void *bias = additive ? biases.get() : nullptr;
  AttentionParams p = wide;
  p.type = type;
  const int64_t perQuery = p.batch * p.queries * p.heads,
                perKey = p.batch * p.keys * p.kvHeads;
  Typed q(type, randomFloats(perQuery * p.headDim, 1)),
      k(type, randomFloats(perKey * p.headDim, 2)),
      v(type, randomFloats(perKey * p.headDim, 3)),
      dout(type, randomFloats(perQuery * p.headDim, 4));
  Longs seed(2, 5), samples(p.batch, 1);
  samples[1] = sample;
  Longs prefixes(p.batch, 10);
  prefixes[1] = 90;
  const int64_t *prefix = hasPrefix ? prefixes.get() : nullptr;
  if (hasPrefix)
    wide.prefixBatchStride = p.prefixBatchStride = 1;
  const bool exact = type != DType::BF16 || p.exact;
  const test::Floats nans(perQuery * p.headDim, NAN);
  test::Floats out(nans), lse(perQuery, NAN), lseTyped(perQuery, NAN);
  Typed outTyped(type, nans);
  runKernel<Attention>(1, wide,
                       {q.values, k.values, v.values, added, nullptr, prefix,
                        seed, samples, bias},
                       {out, lse});
  runKernel<Attention>(2, p,
                       {q, k, v, added, nullptr, prefix, seed, samples, bias},
                       {outTyped, lseTyped});
  expectRounded(outTyped, out, "out", exact);
  EXPECT_LE(distance(lseTyped, lse), 1e-6);

  test::Floats dq(nans), dk(perKey * p.headDim, NAN),
      dv(perKey * p.headDim, NAN);
  test::Floats dbias(additive ? biases.size() : 0, NAN), dbiasTyped(dbias);
  Typed dqTyped(type, dq), dkTyped(type, dk), dvTyped(type, dv);
  runKernel<AttentionGrad>(1, wide,
                           {q.values, k.values, v.values, outTyped.values, lse,
                            dout.values, added, nullptr, prefix, seed, samples,
                            bias},
                           {dq, dk, dv, dbias});
  for (int threads : {1, 2}) {
    runKernel<AttentionGrad>(threads, p,
                             {q, k, v, outTyped, lse, dout, added, nullptr,
                              prefix, seed, samples, bias},
                             {dqTyped, dkTyped, dvTyped, dbiasTyped});
    expectRounded(dqTyped, dq, "dq", exact);
    expectRounded(dkTyped, dk, "dk", exact);
    expectRounded(dvTyped, dv, "dv", exact);
    if (additive) {
      EXPECT_LE(distance(dbiasTyped, dbias), 1e-6);
    }
  }
  if (!test::canPack(p))
    return;
  AttentionParams packed = p;
  packed.packed = true;
  Typed all(type, test::Floats(test::packedElements(p), NAN));
  runKernel<AttentionGrad>(
      2, packed,
      {q, k, v, outTyped, lse, dout, added, nullptr, prefix, seed, samples},
      {all});
  EXPECT_TRUE(test::isPackedOf(p, all.get(), dqTyped.get(), dkTyped.get(),
                               dvTyped.get()));
}

struct AttentionResults {
  test::Floats out, lse, dq, dk, dv;
};

/// The gradients are those at the output `at`, or at the own output.
AttentionResults attend(const AttentionParams &p,
                        const AttentionResults *at = nullptr) {
  const int64_t rows = p.batch * p.queries * p.heads;
  const int64_t perQuery = rows * p.headDim;
  const int64_t perKey = p.batch * p.keys * p.kvHeads * p.headDim;
  AttentionResults r{test::Floats(perQuery, NAN), test::Floats(rows, NAN),
                     test::Floats(perQuery, NAN), test::Floats(perKey, NAN),
                     test::Floats(perKey, NAN)};
  const test::Floats q = randomFloats(perQuery, 1), k = randomFloats(perKey, 2),
                     v = randomFloats(perKey, 3),
                     dout = randomFloats(perQuery, 4),
                     bias = randomFloats(p.queries * p.keys, 6);
  test::Floats dbias(p.bias ? bias.size() : 0, NAN);
  const Longs seed(2, 5), samples(p.batch, 1);
  const void *added = p.bias ? bias.get() : nullptr;
  runKernel<Attention>(
      1, p, {q, k, v, nullptr, nullptr, nullptr, seed, samples, added},
      {r.out, r.lse});
  const AttentionResults &from = at ? *at : r;
  runKernel<AttentionGrad>(1, p,
                           {q, k, v, from.out, from.lse, dout, nullptr, nullptr,
                            nullptr, seed, samples, added},
                           {r.dq, r.dk, r.dv, dbias});
  if (!test::canPack(p))
    return r;
  AttentionParams packed = p;
  packed.packed = true;
  test::Floats all(test::packedElements(p), NAN);
  runKernel<AttentionGrad>(1, packed,
                           {q, k, v, from.out, from.lse, dout, nullptr, nullptr,
                            nullptr, seed, samples},
                           {all});
  EXPECT_TRUE(
      test::isPackedOf(p, all.get(), r.dq.get(), r.dk.get(), r.dv.get()));
  return r;
}

/// Results of tf32 against those of f32. A factor of a product is rounded by at
/// most u = 2^-11 of its size, so a product of two by 2 u. Roundings are
/// independent of each other and add up as squares: over the two products of an
/// output, and the four of a gradient, to less than 4 u.
void checkTF32(AttentionParams p, bool additive = false) {
  if (additive) {
    p.bias = true;
    p.biasQueryStride = p.keys;
  }
  const AttentionResults want = attend(p);
  p.exact = false;
  p.tf32 = true;
  const AttentionResults got = attend(p, &want);
  const double u = std::ldexp(1.0, -11);
  auto compare = [&](const test::Floats &x, const test::Floats &y,
                     const char *what) {
    EXPECT_LE(distance(x, y), 4 * u) << what;
    EXPECT_GE(distance(x, y), u / 8) << what;
  };
  SCOPED_TRACE("heads of " + std::to_string(p.headDim));
  compare(got.out, want.out, "out");
  compare(got.dq, want.dq, "dq");
  compare(got.dk, want.dk, "dk");
  compare(got.dv, want.dv, "dv");
  EXPECT_LE(distance(got.lse, want.lse), u);
}

} // namespace

TEST(NarrowAttention, RoundsWhatF32Gives) {
  for (DType type : kHalves) {
    SCOPED_TRACE(nameOf(type));
    // One chunk or tile of keys and several; queries that see only the first.
    const int64_t several = kBackend == Backend::Cpu ? 300 : 70;
    checkAttention(type, attention(50, 50, true, 0));
    checkAttention(type, attention(37, several, false, 0), true);
    checkAttention(type, attention(several, several, true, 0.1));
    // Heads that fill their tiles, and whose rows aren't aligned.
    for (int64_t depth : {64, 128, 33})
      checkAttention(type, attention(50, several, true, 0.1, depth), true);
    AttentionParams window = attention(several, several, true, 0, 64);
    window.window = 20;
    window.softcap = 3;
    checkAttention(type, window);
    // A tile that is seen whole, and parts of tiles.
    checkAttention(type, attention(64, 130, false, 0, 64));
  }
}

// Without masks, tiles that are seen whole have a loop of their own.
TEST(NarrowAttention, KnowsTilesThatAreSeenWhole) {
  if (kBackend == Backend::Cpu)
    GTEST_SKIP() << "the cpu has no such tiles";
  const DType type = DType::BF16;
  checkAttention(type, rounded(attention(66, 130, false, 0, 64)));
  checkAttention(type, rounded(attention(66, 140, true, 0.1, 128)));
  checkAttention(type, rounded(attention(70, 50, true, 0, 40)));
  AttentionParams window = rounded(attention(130, 140, true, 0, 64));
  window.window = 80;
  checkAttention(type, window);
  window.causal = false;
  window.window = 65;
  checkAttention(type, window);
  const AttentionParams prefix = rounded(attention(130, 130, true, 0, 64));
  checkAttention(type, prefix, false, true);
  // The largest score isn't that of the largest product.
  AttentionParams turned = rounded(attention(66, 66, true, 0, 64));
  turned.scale = -0.2;
  checkAttention(type, turned);
}

// Whole and parts of random calls; their numbers pass 2^32 within the second
// sample.
TEST(NarrowAttention, DropsTheSameElements) {
  for (int64_t depth : {64, 128})
    for (int64_t keys : {132, 70}) {
      const int64_t queries = 70;
      const double elements = double(4 * queries * keys);
      const int64_t sample = int64_t(std::ldexp(1.0, 34) / elements);
      checkAttention(DType::BF16,
                     rounded(attention(queries, keys, false, 0.3, depth)),
                     false, false, sample);
    }
}

// With tf32, the distance to f32 is at most a few roundings, and not none.
TEST(NarrowAttention, MultipliesTF32) {
  if (kBackend == Backend::Cpu)
    GTEST_SKIP() << "the cpu multiplies f32";
  checkTF32(attention(70, 70, true, 0, 64));
  checkTF32(attention(66, 132, false, 0.1, 64));
  checkTF32(attention(66, 132, true, 0.1, 128));
  checkTF32(attention(50, 70, true, 0.1, 128), true);
  checkTF32(attention(50, 70, true, 0.1, 33), true);
  AttentionParams window = attention(130, 140, true, 0, 40);
  window.window = 80;
  checkTF32(window);
  window.softcap = 3;
  checkTF32(window);
}

TEST(NarrowCrossEntropy, RoundsWhatF32Gives) {
  const int64_t rows = 7;
  const float weight = 0.05f;
  for (DType type : kHalves)
    for (int64_t vocabulary : {2, 5, 64, 1003}) {
      SCOPED_TRACE(std::string(nameOf(type)) + " of " +
                   std::to_string(vocabulary));
      Typed logits(type, randomFloats(rows * vocabulary, 1, 5));
      Longs labels = randomLongs(rows, vocabulary, 3);
      labels[2] = -100;
      CrossEntropyParams wide{.type = DType::F32,
                              .labelType = DType::I64,
                              .rows = rows,
                              .vocabulary = vocabulary,
                              .ignoreIndex = -100,
                              .scratchBytes = 0};
      CrossEntropyParams p = wide;
      p.type = type;
      test::Floats lse(rows), lseTyped(rows), grad(rows * vocabulary);
      float loss = 0, lossTyped = 0;
      runKernel<CrossEntropy>(1, wide, {logits.values, labels, &weight},
                              {&loss, lse});
      runKernel<CrossEntropyGrad>(
          1, wide, {logits.values, labels, lse, &weight}, {grad});
      Typed apart(type, test::Floats(rows * vocabulary, NAN));
      for (int threads : {1, 2}) {
        runKernel<CrossEntropy>(threads, p, {logits, labels, &weight},
                                {&lossTyped, lseTyped});
        EXPECT_EQ(lossTyped, loss);
        EXPECT_TRUE(lseTyped.sameBits(lse));
        runKernel<CrossEntropyGrad>(
            threads, p, {logits, labels, lseTyped, &weight}, {apart});
        expectRounded(apart, grad, "dlogits");
      }
      Typed both(type, test::Floats(rows * vocabulary, NAN));
      runKernel<CrossEntropyWithGrad>(2, p, {logits, labels, &weight, &weight},
                                      {&lossTyped, both});
      EXPECT_EQ(lossTyped, loss);
      EXPECT_TRUE(both.bytes.sameBits(apart.bytes)) << "with the loss";
      runKernel<CrossEntropyGrad>(2, p, {logits, labels, lseTyped, &weight},
                                  {logits});
      EXPECT_TRUE(logits.bytes.sameBits(apart.bytes)) << "in place";
    }
}

TEST(NarrowLinearCrossEntropy, MultipliesInItsType) {
  const int64_t rows = 21, channels = 24, vocabulary = 610;
  Longs labels = randomLongs(rows, vocabulary, 3);
  labels[20] = -100;
  const float weight = 0.05f;
  for (DType type : kHalves)
    for (bool hasBias : {false, true}) {
      SCOPED_TRACE(std::string(nameOf(type)) + (hasBias ? ", bias" : ""));
      Typed x(type, randomFloats(rows * channels, 1)),
          w(type, randomFloats(vocabulary * channels, 2));
      test::Floats bias = randomFloats(vocabulary, 4);
      LinearCrossEntropyParams wide{.type = DType::F32,
                                    .table = DType::F32,
                                    .labelType = DType::I64,
                                    .rows = rows,
                                    .channels = channels,
                                    .vocabulary = vocabulary,
                                    .chunkRows = 8,
                                    .ignoreIndex = -100,
                                    .bias = hasBias,
                                    .tf32 = false,
                                    .scratchBytes = 0};
      LinearCrossEntropyParams p = wide;
      p.type = p.table = type;
      test::Floats lse(rows), lseTyped(rows);
      float loss = 0, lossTyped = 0;
      runKernel<LinearCrossEntropy>(
          1, wide, {x.values, w.values, labels, &weight, bias}, {&loss, lse});
      runKernel<LinearCrossEntropy>(2, p, {x, w, labels, &weight, bias},
                                    {&lossTyped, lseTyped});
      EXPECT_NEAR(lossTyped, loss, 1e-6 * loss);
      EXPECT_LE(distance(lseTyped, lse), 1e-6);

      test::Floats dx(rows * channels), dw(vocabulary * channels),
          db(vocabulary);
      runKernel<LinearCrossEntropyGrad>(
          1, wide, {x.values, w.values, labels, lse, &weight, bias},
          {dx, dw, db});
      Typed dxTyped(type, dx), dxBoth(type, dx);
      test::Floats dwTyped(dw.size(), NAN), dbTyped(db.size(), NAN);
      test::Floats dwBoth(dw.size(), NAN), dbBoth(db.size(), NAN);
      runKernel<LinearCrossEntropyGrad>(2, p,
                                        {x, w, labels, lseTyped, &weight, bias},
                                        {dxTyped, dwTyped, dbTyped});
      dxTyped.read();
      // The logits' gradient is rounded, and dx once more.
      const double u = roundingOf(type);
      EXPECT_LE(distance(dxTyped.values, dx), 2 * u);
      EXPECT_GE(distance(dxTyped.values, dx), u / 8);
      EXPECT_LE(distance(dwTyped, dw), u);
      EXPECT_GE(distance(dwTyped, dw), u / 8);
      if (hasBias) {
        EXPECT_LE(distance(dbTyped, db), u);
      }
      runKernel<LinearCrossEntropyWithGrad>(
          1, p, {x, w, labels, &weight, &weight, bias},
          {&lossTyped, dxBoth, dwBoth, dbBoth});
      EXPECT_TRUE(dxBoth.bytes.sameBits(dxTyped.bytes));
      EXPECT_TRUE(dwBoth.sameBits(dwTyped));
    }
}
