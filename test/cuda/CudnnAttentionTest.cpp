//===- CudnnAttentionTest.cpp - attention by cuDNN against our own --------===//
//
// Operands, results, strides and workspace of both are the same. In the
// emulator the library is a stand-in (emulator/CudnnGraph.cpp), on a card it is
// the library itself: with rows apart and joined, grouped heads, and fewer
// queries than keys.
//
//===----------------------------------------------------------------------===//

#include "PackedHeads.h"
#include "Typed.h"

#ifdef TMC_CUDA_EMULATED
#include "test/cuda/emulator/CudnnGraph.h"
#endif

#include "runtime/kernels/CudnnAttention.h"

#include <cmath>

using namespace tmc;
using namespace tmc::test;

namespace {

/// q, k and v apart, or as the heads of one buffer.
AttentionParams shapeOf(DType type, int64_t heads, int64_t kvHeads,
                        int64_t queries, int64_t keys, int64_t headDim,
                        bool causal, bool isJoined) {
  const int64_t all = (heads + 2 * kvHeads) * headDim;
  const int64_t ofQ = isJoined ? all : heads * headDim;
  const int64_t ofK = isJoined ? all : kvHeads * headDim;
  AttentionParams p{};
  p.type = type;
  p.batch = 2;
  p.heads = heads;
  p.kvHeads = kvHeads;
  p.queries = queries;
  p.keys = keys;
  p.headDim = headDim;
  p.q = {queries * ofQ, ofQ, headDim};
  p.k = p.v = {keys * ofK, ofK, headDim};
  p.causal = causal;
  p.scale = 0.3;
  p.rowsPerSample = 1;
  return p;
}

/// The results of one implementation.
struct Results {
  Typed out, dq, dk, dv, all;
  Floats lse;

  explicit Results(const AttentionParams &p)
      : out(p.type, nans(p.batch * p.queries * p.heads * p.headDim)), dq(out),
        dk(p.type, nans(p.batch * p.keys * p.kvHeads * p.headDim)), dv(dk),
        all(p.type, nans(canPack(p) ? packedElements(p) : 0)),
        lse(p.batch * p.heads * p.queries, NAN) {}

private:
  static Floats nans(int64_t count) { return Floats(count, NAN); }
};

/// Both gradients are those at the output `at`, so that they differ by their
/// own roundings alone.
template <typename Forward, typename Gradient>
void attend(const AttentionParams &p, const Typed &qkv, Results &r,
            const Results &at) {
  const int64_t perHead = p.headDim * sizeOf(p.type);
  const bool isJoined = p.q.time != p.heads * p.headDim;
  const int64_t ofQ = p.heads * (isJoined ? 1 : p.batch * p.queries) * perHead;
  const int64_t ofK = p.kvHeads * (isJoined ? 1 : p.batch * p.keys) * perHead;
  const unsigned char *q = qkv.get(), *k = q + ofQ, *v = k + ofK;
  runKernel<Forward>(1, p, {q, k, v}, {r.out, r.lse});
  Typed dout(p.type, randomFloats(r.out.values.size(), 7));
  runKernel<Gradient>(1, p, {q, k, v, at.out, at.lse, dout},
                      {r.dq, r.dk, r.dv});
  if (!canPack(p))
    return;
  AttentionParams packed = p;
  packed.packed = true;
  runKernel<Gradient>(1, packed, {q, k, v, at.out, at.lse, dout}, {r.all});
  EXPECT_TRUE(isPackedOf(p, r.all.get(), r.dq.get(), r.dk.get(), r.dv.get()));
}

/// Each of `got` is within `roundings` roundings of `want`, relative to the
/// largest number: probabilities, and gradients of scores, may be rounded
/// before they are added up.
void expectNear(Typed &got, Typed &want, double roundings, const char *what) {
  got.read();
  want.read();
  double largest = 0, worst = 0;
  for (int64_t i = 0; i < want.values.size(); ++i) {
    largest = std::fmax(largest, std::abs(want.values[i]));
    const double error = std::abs(got.values[i] - want.values[i]);
    worst = std::isnan(error) ? INFINITY : std::fmax(worst, error);
  }
  EXPECT_GT(largest, 0) << what;
  EXPECT_LE(worst, roundings * roundingOf(want.type) * largest) << what;
}

void compare(const AttentionParams &p) {
  const int64_t elements =
      p.batch * (p.queries * p.heads + 2 * p.keys * p.kvHeads) * p.headDim;
  const Typed qkv(p.type, randomFloats(elements, 3));
  Results own(p), its(p);
  attend<Attention, AttentionGrad>(p, qkv, own, own);
  attend<CudnnAttention, CudnnAttentionGrad>(p, qkv, its, own);
  const double roundings = 3;
  expectNear(its.out, own.out, roundings, "out");
  expectNear(its.dq, own.dq, roundings, "dq");
  expectNear(its.dk, own.dk, roundings, "dk");
  expectNear(its.dv, own.dv, roundings, "dv");
  for (int64_t i = 0; i < own.lse.size(); ++i)
    ASSERT_NEAR(its.lse[i], own.lse[i], 1e-4) << "lse " << i;
}

TEST(CudnnAttention, GivesOurResults) {
  for (DType type : {DType::BF16, DType::F16})
    for (bool causal : {false, true})
      for (bool isJoined : {false, true})
        for (int64_t kvHeads : {4, 2})
          compare(shapeOf(type, 4, kvHeads, 40, 40, 32, causal, isJoined));
}

TEST(CudnnAttention, PutsTheLastQueryAtTheLastKey) {
  for (bool causal : {false, true})
    compare(shapeOf(DType::BF16, 2, 1, 24, 57, 16, causal, false));
}

/// Attention that the library takes.
AttentionParams taken() {
  return shapeOf(DType::BF16, 4, 2, 64, 64, 64, true, false);
}

template <typename Change>
std::string refusal(Change change, bool isGradient = false,
                    int capability = 90) {
  AttentionParams p = taken();
  change(p);
  const char *why = whyNotCudnn(p, isGradient, capability);
  return why ? why : "";
}

TEST(CudnnAttention, RefusesWhatTheLibraryCant) {
  using P = AttentionParams;
  EXPECT_EQ(refusal([](P &) {}), "");
  EXPECT_EQ(refusal([](P &) {}, true, 80), "");
  EXPECT_NE(refusal([](P &) {}, false, 75), "");
  EXPECT_NE(refusal([](P &p) { p.type = DType::F32; }), "");
  EXPECT_NE(refusal([](P &p) { p.exact = true; }), "");
  EXPECT_NE(refusal([](P &p) { p.dropout = 0.1; }), "");
  EXPECT_NE(refusal([](P &p) { p.mask = MaskKind::Boolean; }), "");
  EXPECT_NE(refusal([](P &p) { p.fill = -1e9; }), "");
  EXPECT_NE(refusal([](P &p) { p.bias = true; }), "");
  EXPECT_NE(refusal([](P &p) { p.softcap = 30; }), "");
  EXPECT_NE(refusal([](P &p) { p.window = 16; }), "");
  EXPECT_NE(refusal([](P &p) { p.headDim = 60; }), "");
  EXPECT_NE(refusal([](P &p) { p.headDim = 264; }), "");
  EXPECT_NE(refusal([](P &p) { p.k.time += 4; }), "");
  EXPECT_NE(refusal([](P &p) { p.v.head = 1; }), "");
  EXPECT_NE(refusal([](P &p) { p.q.batch += 2; }), "");
  // Queries before the first key.
  EXPECT_NE(refusal([](P &p) { p.queries = 65; }), "");
  EXPECT_EQ(refusal([](P &p) { p.queries = 65, p.causal = false; }), "");
  // The gradient's own limits.
  auto wide = [](P &p) { p.headDim = 192; };
  EXPECT_EQ(refusal(wide, true, 90), "");
  EXPECT_NE(refusal(wide, true, 89), "");
  EXPECT_EQ(refusal(wide, false, 89), "");
  auto single = [](P &p) { p.queries = p.keys = 1; };
  EXPECT_EQ(refusal(single, false), "");
  EXPECT_NE(refusal(single, true), "");
}

template <typename Kernel> Status prepared(AttentionParams p) {
  p.scratchBytes = Kernel::scratchCap(p, kBackend);
  auto device = makeDevice(1);
  return Kernel(p).prepare(*device);
}

TEST(CudnnAttention, SaysWhatItDoesntTake) {
  AttentionParams p = taken();
  p.window = 16;
  const Status status = prepared<CudnnAttention>(p);
  EXPECT_EQ(status.code(), Code::Unsupported);
  EXPECT_EQ(status.message(),
            "attention by cuDNN: soft caps and windows aren't given to it; "
            "compile with --attention=own");
}

#ifdef TMC_CUDA_EMULATED
/// The stand-in wants another workspace as long as this lives.
struct Wanting {
  explicit Wanting(int64_t bytes) { emulator::cudnnWorkspaceBytes = bytes; }
  ~Wanting() { emulator::cudnnWorkspaceBytes = -1; }
};

template <typename Kernel> void checkWorkspace(const char *name) {
  const int64_t cap = Kernel::scratchCap(taken(), Backend::Cuda);
  {
    Wanting all(cap);
    EXPECT_TRUE(prepared<Kernel>(taken()));
  }
  Wanting more(cap + 1);
  const Status status = prepared<Kernel>(taken());
  EXPECT_EQ(status.code(), Code::OverBudget);
  EXPECT_EQ(status.message(),
            std::string(name) + ": this version of cuDNN wants " +
                std::to_string(cap + 1) + " bytes of workspace, and " +
                std::to_string(cap) +
                " were planned; compile with --attention=own");
}

TEST(CudnnAttention, WantsNoMoreThanPlanned) {
  checkWorkspace<CudnnAttention>("attention by cuDNN");
  checkWorkspace<CudnnAttentionGrad>("gradient of attention by cuDNN");
}
#endif

TEST(CudnnAttention, PlansTheGradientsWorkspace) {
  // GPT-2 124M, 8 samples of 1024 tokens, 12 heads: 2 bytes a score, 4 a query.
  AttentionParams p = shapeOf(DType::BF16, 12, 12, 1024, 1024, 64, true, true);
  p.batch = 8;
  EXPECT_EQ(CudnnAttentionGrad::scratchCap(p, Backend::Cuda),
            8 * 12 * (1024 * 1024 * 2 + 1024 * 4) + 4096);
  // Three query heads a key head: dk and dv of each in 16 bits.
  p.kvHeads = 4;
  EXPECT_EQ(CudnnAttentionGrad::scratchCap(p, Backend::Cuda),
            8 * 12 * (1024 * 1024 * 2 + 1024 * 4 + 2 * 1024 * 64 * 2) + 4096);
  // Few keys: dk and dv of each in f32 are more.
  p.queries = p.keys = 64;
  p.headDim = 128;
  EXPECT_EQ(CudnnAttentionGrad::scratchCap(p, Backend::Cuda),
            8 * 12 * (2 * 64 * 128 * 4 + 64 * 4) + 4096);
}

} // namespace
