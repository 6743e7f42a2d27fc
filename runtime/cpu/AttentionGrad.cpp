//===- AttentionGrad.cpp - gradients of attention on cpu ------------------===//
//
// A part of the work is one key head of one sample. Probabilities are
// recomputed from the saved log-sum-exp, tile by tile:
//
//     for each chunk of keys:
//       pack k and v (rows: keys) and k^T (rows: channels)
//       for each head that reads them, for each panel of queries:
//         P  = exp(scale k q^T - lse)                 keys x panel
//         dP = v dout^T
//         dv += drop(P) dout                          keys x channels
//         dS = P (drop(dP) - sum(dout * out))         in dP's place
//         dbias += dS^T                               panel x keys
//         dS = scale dS                               times the slope of a cap
//         dk += dS q                                  keys x channels
//         dq += (k^T dS)^T                            panel x channels
//
// The first addition to an element is a write; dbias begins with zeros. The
// order of additions is the same for any number of threads. A bias that samples
// or heads share is a sum over them: then a part of the work is a slice of the
// batch (attentionBiasSlices), or all key heads.
//
//===----------------------------------------------------------------------===//

#include "runtime/kernels/Attention.h"

#include "runtime/cpu/AttentionHidden.h"
#include "runtime/cpu/AttentionTile.h"
#include "runtime/cpu/Checks.h"
#include "runtime/cpu/GemmPairs.h"
#include "runtime/cpu/NarrowRows.h"
#include "runtime/cpu/Parallel.h"

#include <algorithm>
#include <limits>

namespace tmc {

using gemm::kPanelM;
using gemm::kPanelN;
using gemm::kVectors;
using simd::kWidth;
using simd::V;
using simd::VI;

namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

/// The sum over channels of dout * out, for each query of a panel; rows are
/// `stride` apart.
void rowDots(const float *dout, const float *out, int64_t stride, int64_t depth,
             int64_t queries, float *dots) {
  // The lanes of a sum, for any width of a register.
  constexpr int kDotLanes = 16, kDotVectors = kDotLanes / kWidth;
  for (int64_t i = 0; i < queries; ++i) {
    V sum[kDotVectors] = {};
    int64_t d = 0;
    for (; d + kDotLanes <= depth; d += kDotLanes)
      for (int j = 0; j < kDotVectors; ++j)
        sum[j] =
            simd::fma(simd::load(dout + i * stride + d + j * kWidth),
                      simd::load(out + i * stride + d + j * kWidth), sum[j]);
    float total = 0;
    for (; d < depth; ++d)
      total += dout[i * stride + d] * out[i * stride + d];
    for (int j = 0; j < kDotLanes; ++j)
      total += sum[j / kWidth][j % kWidth];
    dots[i] = total;
  }
  for (int64_t i = queries; i < kPanelN; ++i)
    dots[i] = 0;
}

/// The pieces of one worker's scratch.
struct Pieces {
  float *keysRows, *valuesRows, *keysColumns; // packed operands of a chunk
  float *probabilities, *gradients;           // tiles
  int32_t *keep;
  float *slopes = nullptr;       // a tile of the derivatives of a soft cap
  float *onScores = nullptr;     // a tile of the gradient of a bias
  float *queryPanel, *doutPanel; // [depth, kPanelN]: right operands
  float *queryRows, *doutRows;   // panels of [kPanelN, kPanelN]
  float *queryGradient;          // [depth, kPanelN]
  float *dots, *lse;             // [kPanelN]
  // For narrow results: rows of out and of dout, and the sums of dk and dv of a
  // chunk and of dq, with rows of `depth` elements.
  float *outPanelRows, *doutPanelRows, *dk, *dv, *dq;

  Pieces(const AttentionParams &p, float *at) {
    const int64_t chunk = attentionChunk(p), depth = p.headDim;
    const int64_t wide = (depth + kPanelN - 1) / kPanelN * kPanelN;
    auto take = [&](int64_t floats) {
      float *piece = at;
      at += floats;
      return piece;
    };
    keysRows = take(chunk * depth);
    valuesRows = take(chunk * depth);
    keysColumns = take(chunk * depth);
    probabilities = take(chunk * kPanelN);
    gradients = take(chunk * kPanelN);
    keep = reinterpret_cast<int32_t *>(take(chunk * kPanelN));
    if (p.softcap > 0)
      slopes = take(chunk * kPanelN);
    if (p.bias)
      onScores = take(chunk * kPanelN);
    queryPanel = take(depth * kPanelN);
    doutPanel = take(depth * kPanelN);
    queryRows = take(wide * kPanelN);
    doutRows = take(wide * kPanelN);
    queryGradient = take(depth * kPanelN);
    dots = take(kPanelN);
    lse = take(kPanelN);
    if (p.type == DType::F32)
      return;
    outPanelRows = take(depth * kPanelN);
    doutPanelRows = take(depth * kPanelN);
    dk = take(chunk * depth);
    dv = take(chunk * depth);
    dq = take(p.heads / p.kvHeads * p.queries * depth);
  }
};

/// Turns scores, times `factor`, and products into the two tiles that multiply
/// (probabilities after dropout, and gradients of the scores) and the tile of a
/// bias.
void gradientTile(const AttentionParams &p, const Pieces &m, int64_t keys,
                  float factor, bool dropout) {
  const V scale = simd::splat(float(p.scale));
  const V dropScale = simd::splat(float(1 / (1 - p.dropout)));
  for (int v = 0; v < kVectors; ++v) {
    const V shift = simd::load(m.lse + v * kWidth);
    const V dot = simd::load(m.dots + v * kWidth);
    for (int64_t r = 0; r < keys; ++r) {
      const int64_t i = r * kPanelN + v * kWidth;
      const V probability =
          simd::exp(simd::load(m.probabilities + i) * factor - shift);
      V kept = probability, gradient = simd::load(m.gradients + i);
      if (dropout) {
        VI bits;
        std::memcpy(&bits, m.keep + i, sizeof bits);
        kept = (V)((VI)(probability * dropScale) & bits);
        gradient = (V)((VI)(gradient * dropScale) & bits);
      }
      simd::store(m.probabilities + i, kept);
      if (m.onScores)
        simd::store(m.onScores + i, probability * (gradient - dot));
      V slope = scale * probability * (gradient - dot);
      if (m.slopes)
        slope = slope * simd::load(m.slopes + i);
      simd::store(m.gradients + i, slope);
    }
  }
}

/// Adds a tile to the gradient of a bias, whose rows are `stride` apart; if
/// stride is 0, all queries add to one row.
void addOnScores(const float *tile, int64_t keys, int64_t queries,
                 float *gradient, int64_t stride) {
  if (stride != 0)
    return cpu::transposePanel(tile, keys, queries, gradient, stride, true);
  for (int64_t r = 0; r < keys; ++r) {
    float sum = 0;
    for (int64_t q = 0; q < queries; ++q)
      sum += tile[r * kPanelN + q];
    gradient[r] += sum;
  }
}

/// rows (+)= tile (keys x queries) times packed (queries x depth). Adds to the
/// first `written` rows, whole panels of them, and overwrites the others.
void addRows(const float *tile, int64_t keys, int64_t written, int64_t queries,
             const float *packed, int64_t depth, float *rows, int64_t stride) {
  for (int64_t d = 0; d < depth; d += kPanelN)
    for (int64_t r = 0; r < keys; r += kPanelM)
      gemm::innerRowMajor(std::min<int64_t>(kPanelM, keys - r),
                          std::min<int64_t>(kPanelN, depth - d), queries,
                          tile + r * kPanelN, packed + d * kPanelN,
                          rows + r * stride + d, stride, r < written);
}

void zeroRows(float *rows, int64_t count, int64_t depth, int64_t stride) {
  for (int64_t r = 0; r < count; ++r)
    std::fill_n(rows + r * stride, depth, 0.0f);
}

/// Prefetches rows that the next panel reads.
void askFor(const gemm::Matrix &rows, int64_t count, int64_t depth) {
  const int64_t line = 64 / sizeOf(rows.type);
  for (int64_t r = 0; r < count; ++r)
    for (int64_t d = 0; d < depth; d += line)
      __builtin_prefetch(rows.at(r, d).data, 0, 2);
}

/// The operands and results of all parts of the work.
struct Whole {
  const AttentionParams &p;
  gemm::Matrix q, k, v, out, dout;
  const float *lse;
  AttentionExtras operands;
  StoredRows dq, dk, dv;
};

/// One key head of one sample.
class KeyHead {
public:
  /// `memory`: the worker's scratch. `dbias`: where this part of the gradient
  /// of a bias begins; null: there is none.
  KeyHead(const Whole &whole, int64_t batch, int64_t kvHead, float *memory,
          float *dbias)
      : p(whole.p), whole(whole), operands(whole.operands), m(p, memory),
        dbias(dbias), depth(p.headDim), chunk(attentionChunk(p)),
        perKey(p.heads / p.kvHeads), queryStride(p.heads * depth),
        inPlace(p.type == DType::F32), batch(batch), kvHead(kvHead),
        firstHead(kvHead * perKey), overDepth(p.type == DType::BF16, depth) {}

  void run() {
    for (int64_t s0 = 0; s0 < p.keys; s0 += chunk)
      addChunk(s0);
    for (int64_t h = 0; !inPlace && h < perKey; ++h)
      narrowRows(m.dq + h * p.queries * depth, depth, p.queries, depth,
                 whole.dq.shifted(dqAt(p, batch, 0, firstHead + h)));
  }

private:
  /// A chunk of keys, and the sums of their gradients.
  struct Chunk {
    int64_t first, size;
    float *dk, *dv;
    int64_t written = 0; // rows of dk and dv that hold a sum
  };
  // Elements from row to row of the sums of gradients.
  int64_t queryRow() const { return inPlace ? dqStride(p) : depth; }
  int64_t keyRow() const { return inPlace ? dkStride(p) : depth; }

  void addChunk(int64_t s0) {
    const int64_t here = std::min(chunk, p.keys - s0);
    const gemm::Matrix kRows =
        whole.k.shifted(batch * p.k.batch + kvHead * p.k.head).at(s0, 0);
    const gemm::Matrix vRows =
        whole.v.shifted(batch * p.v.batch + kvHead * p.v.head).at(s0, 0);
    overDepth.packLeft(kRows, here, m.keysRows);
    overDepth.packLeft(vRows, here, m.valuesRows);
    gemm::packA(kRows.transposed(), depth, here, m.keysColumns);
    const StoredRows dkTo = whole.dk.shifted(dkAt(p, batch, s0, kvHead));
    const StoredRows dvTo = whole.dv.shifted(dkAt(p, batch, s0, kvHead));
    Chunk keys{s0, here, inPlace ? dkTo.floats() : m.dk,
               inPlace ? dvTo.floats() : m.dv};
    for (int64_t head = firstHead; head < firstHead + perKey; ++head)
      for (int64_t q0 = 0; q0 < p.queries; q0 += kPanelN)
        addPanel(keys, head, q0);
    const int64_t written = keys.written, stride = keyRow();
    zeroRows(keys.dk + written * stride, here - written, depth, stride);
    zeroRows(keys.dv + written * stride, here - written, depth, stride);
    if (!inPlace) {
      narrowRows(keys.dk, depth, here, depth, dkTo);
      narrowRows(keys.dv, depth, here, depth, dvTo);
    }
  }

  /// Adds a panel of queries of one head to the gradients.
  void addPanel(Chunk &c, int64_t head, int64_t q0) {
    const int64_t s0 = c.first, here = c.size;
    const int64_t queries = std::min<int64_t>(kPanelN, p.queries - q0);
    const int64_t keys =
        std::min(here, cpu::keyEnd(p, operands, batch, q0 + queries) - s0);
    const int64_t first = cpu::firstKey(p, q0) / chunk * chunk;
    if (s0 < first)
      return;
    float *dqRows = inPlace
                        ? whole.dq.shifted(dqAt(p, batch, q0, head)).floats()
                        : m.dq + ((head - firstHead) * p.queries + q0) * depth;
    if (keys <= 0) {
      if (s0 == first)
        zeroRows(dqRows, queries, depth, queryRow());
      return;
    }
    packPanel(head, q0, queries);
    overDepth.multiply(keys, here, m.keysRows, m.queryPanel, m.probabilities);
    overDepth.multiply(keys, here, m.valuesRows, m.doutPanel, m.gradients);
    const cpu::AttentionTile at{batch, head, q0, queries, s0, keys};
    const float factor =
        cpu::scaleAndMask(p, operands, at, m.probabilities, m.slopes);
    const bool dropout = p.dropout > 0;
    if (dropout)
      cpu::dropoutBits(p, operands, at, m.keep);
    gradientTile(p, m, keys, factor, dropout);
    if (dbias)
      addOnScores(m.onScores, keys, queries,
                  dbias + head * p.biasHeadStride + q0 * p.biasQueryStride + s0,
                  p.biasQueryStride);

    // Whole panels of rows, so that each panel is either new or already
    // written.
    const int64_t rows =
        std::min(here, (keys + kPanelM - 1) / kPanelM * int64_t(kPanelM));
    std::fill(m.probabilities + keys * kPanelN,
              m.probabilities + rows * kPanelN, 0.0f);
    std::fill(m.gradients + keys * kPanelN, m.gradients + rows * kPanelN, 0.0f);
    addRows(m.probabilities, rows, c.written, queries, m.doutRows, depth, c.dv,
            keyRow());
    addRows(m.gradients, rows, c.written, queries, m.queryRows, depth, c.dk,
            keyRow());
    c.written = std::max(c.written, rows);
    for (int64_t d = 0; d < depth; d += kPanelM)
      gemm::inner(std::min<int64_t>(kPanelM, depth - d), kPanelN, keys,
                  m.keysColumns + d * here, m.gradients,
                  m.queryGradient + d * kPanelN, kPanelN, false, nullptr);
    cpu::transposePanel(m.queryGradient, depth, queries, dqRows, queryRow(),
                        s0 > first);
  }

  /// Packs a panel's queries and gradients of outputs, and computes its
  /// log-sum-exps and dots.
  void packPanel(int64_t head, int64_t q0, int64_t queries) {
    const int64_t base = batch * p.queries * queryStride + head * depth;
    const gemm::Matrix qRows =
        whole.q.shifted(batch * p.q.batch + head * p.q.head).at(q0, 0);
    const gemm::Matrix gRows = whole.dout.shifted(base).at(q0, 0);
    const gemm::Matrix oRows = whole.out.shifted(base).at(q0, 0);
    const int64_t next = std::min<int64_t>(kPanelN, p.queries - q0 - queries);
    for (const gemm::Matrix &rows : {qRows, gRows, oRows})
      askFor(rows.at(kPanelN, 0), next, depth);
    overDepth.packRight(qRows.transposed(), queries, m.queryPanel);
    overDepth.packRight(gRows.transposed(), queries, m.doutPanel);
    for (int64_t d = 0; d < depth; d += kPanelN) {
      const int64_t wide = std::min<int64_t>(kPanelN, depth - d);
      gemm::packB(qRows.at(0, d), queries, wide, m.queryRows + d * kPanelN);
      gemm::packB(gRows.at(0, d), queries, wide, m.doutRows + d * kPanelN);
    }
    if (inPlace) {
      rowDots(gRows.floats(), oRows.floats(), queryStride, depth, queries,
              m.dots);
    } else {
      widenRows({gRows.data, queryStride, p.type}, queries, depth,
                m.doutPanelRows, depth);
      widenRows({oRows.data, queryStride, p.type}, queries, depth,
                m.outPanelRows, depth);
      rowDots(m.doutPanelRows, m.outPanelRows, depth, depth, queries, m.dots);
    }
    for (int64_t i = 0; i < kPanelN; ++i) {
      const float x =
          i < queries ? whole.lse[(batch * p.heads + head) * p.queries + q0 + i]
                      : kInfinity;
      // If a row sees no key, all its probabilities are zero.
      m.lse[i] = x == -kInfinity ? kInfinity : x;
    }
  }

  const AttentionParams &p;
  const Whole &whole;
  const AttentionExtras &operands;
  const Pieces m;
  float *const dbias;
  const int64_t depth, chunk, perKey;
  const int64_t queryStride; // of out and dout
  const bool inPlace;
  const int64_t batch, kvHead, firstHead;
  const gemm::PanelProducts overDepth; // with the keys and values
};

} // namespace

struct AttentionGrad::State {};
AttentionGrad::AttentionGrad(const Params &params) : params_(params) {}
AttentionGrad::~AttentionGrad() = default;

Status AttentionGrad::prepare(Device &) {
  return cpu::requireScratch("attention_grad",
                             scratchCap(params_, Backend::Cpu),
                             params_.scratchBytes);
}

void AttentionGrad::run(Stream &stream, In ins, Out outs, void *scratch, bool) {
  const Params &p = params_;
  const int64_t queryStride = p.heads * p.headDim;
  const AttentionGradResults results(p, outs);
  auto in = [&](size_t i, int64_t stride) {
    return gemm::Matrix{operand(ins, i), stride, 1, p.type};
  };
  const Whole whole{p,
                    in(0, p.q.time),
                    in(1, p.k.time),
                    in(2, p.v.time),
                    in(3, queryStride),
                    in(5, queryStride),
                    static_cast<const float *>(operand(ins, 4)),
                    AttentionExtras::of(ins, 6),
                    {results.dq, dqStride(p), p.type},
                    {results.dk, dkStride(p), p.type},
                    {results.dv, dkStride(p), p.type}};
  const int64_t workerBytes = attentionGradWorkerBytes(p);
  float *const dbias = static_cast<float *>(result(outs, 3));
  const int64_t parts = attentionGradParts(p);
  const int64_t workers = attentionWorkers(parts);
  float *const sums = reinterpret_cast<float *>(static_cast<char *>(scratch) +
                                                workers * workerBytes);
  const int64_t slices = attentionBiasSlices(p, Backend::Cpu);
  const int64_t perSlice = (p.batch + slices - 1) / slices;
  const int64_t headParts = parts / slices, partHeads = p.kvHeads / headParts;
  const int64_t elements = attentionBiasElements(p);
  auto part = [&](int64_t number, int64_t worker) {
    const int64_t slice = number / headParts, kvHead = number % headParts;
    float *sum = nullptr;
    if (p.bias) {
      sum = p.biasBatchStride ? dbias + slice * p.biasBatchStride
            : slice == 0      ? dbias
                              : sums + (slice - 1) * elements;
      std::fill_n(sum + kvHead * (elements / headParts), elements / headParts,
                  0.0f);
    }
    const int64_t end = std::min(p.batch, (slice + 1) * perSlice);
    for (int64_t batch = slice * perSlice; batch < end; ++batch)
      for (int64_t i = 0; i < partHeads; ++i)
        KeyHead(whole, batch, kvHead * partHeads + i,
                reinterpret_cast<float *>(static_cast<char *>(scratch) +
                                          worker * workerBytes),
                sum)
            .run();
  };
  parallelFor(stream, parts, workers, part);
  constexpr int64_t kRun = 4096; // elements that one part adds up
  if (p.bias && !p.biasBatchStride && slices > 1)
    parallelFor(stream, (elements + kRun - 1) / kRun, workers,
                [&](int64_t run, int64_t) {
                  const int64_t first = run * kRun;
                  const int64_t end = std::min(elements, first + kRun);
                  for (int64_t slice = 1; slice < slices; ++slice)
                    for (int64_t i = first; i < end; ++i)
                      dbias[i] += sums[(slice - 1) * elements + i];
                });
  if (mayHideRows(p))
    cpu::addHiddenGradients(stream, p, ins, outs,
                            reinterpret_cast<char *>(sums) +
                                attentionBiasBytes(p, Backend::Cpu));
}

} // namespace tmc
