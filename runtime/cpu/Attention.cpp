//===- Attention.cpp - scaled dot-product attention on cpu ----------------===//
//
// A part of the work is one head of one sample and a group of panels of
// queries. Keys come in chunks; a chunk of k and v is packed once for the
// group:
//
//     for each chunk of keys:
//       pack k (rows: keys) and v^T (rows: channels)
//       for each panel of queries:
//         tile = k q^T              keys x panel
//         scale, cap, mask, exp     down the rows, one query per lane
//         acc  = acc * shrink + v^T tile     channels x panel
//     out = acc^T / sums
//
//===----------------------------------------------------------------------===//

#include "runtime/kernels/Attention.h"

#include "runtime/cpu/AttentionHidden.h"
#include "runtime/cpu/AttentionTile.h"
#include "runtime/cpu/Checks.h"
#include "runtime/cpu/GemmPairs.h"
#include "runtime/cpu/NarrowRows.h"
#include "runtime/cpu/Parallel.h"
#include "runtime/kernels/AttentionHidden.h"

#include <algorithm>
#include <limits>

namespace tmc {

using gemm::kPanelM;
using gemm::kPanelN;
using gemm::kVectors;
using simd::kWidth;
using simd::V;
using simd::VI;

static_assert(kPanelN <= kAttentionPanel);

namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

/// The state of one panel of queries between chunks.
struct PanelState {
  float *acc;  // [headDim, kPanelN]
  float *top;  // [kPanelN], the largest score so far
  float *sums; // [kPanelN], of exp(score - top)
};

/// Turns scores, times `scale`, into exp(score - top), updates `top`, and
/// returns in `shrink` the factor for sums accumulated with the old top.
void softmaxRows(float *tile, int64_t keys, float scale,
                 const PanelState &state, V (&shrink)[kVectors]) {
  const V factor = simd::splat(scale);
  for (int v = 0; v < kVectors; ++v) {
    const V old = simd::load(state.top + v * kWidth);
    V top = old;
    for (int64_t r = 0; r < keys; ++r)
      top =
          simd::max(top, simd::load(tile + r * kPanelN + v * kWidth) * factor);
    // If a lane has seen no key yet, any finite shift gives exp(-inf) = 0.
    const V shift = top == -kInfinity ? V{} : top;
    shrink[v] = simd::exp(old - shift);
    V sum = simd::load(state.sums + v * kWidth) * shrink[v];
    for (int64_t r = 0; r < keys; ++r) {
      float *at = tile + r * kPanelN + v * kWidth;
      const V e = simd::exp(simd::load(at) * factor - shift);
      simd::store(at, e);
      sum += e;
    }
    simd::store(state.top + v * kWidth, top);
    simd::store(state.sums + v * kWidth, sum);
  }
}

void zeroDropped(float *tile, const int32_t *keep, int64_t keys) {
  for (int64_t i = 0; i < keys * kPanelN; i += kWidth) {
    VI bits;
    std::memcpy(&bits, keep + i, sizeof bits);
    simd::store(tile + i, (V)((VI)simd::load(tile + i) & bits));
  }
}

/// The operands and results of all parts of the work.
struct Whole {
  const AttentionParams &p;
  gemm::Matrix q, k, v;
  AttentionExtras operands;
  StoredRows out;
  float *lse;
  int64_t panels; // of a head
  int64_t group;  // panels of a part
  int64_t groups;
};

/// One head of one sample and a group of panels.
class Part {
public:
  /// `memory`: the worker's scratch.
  Part(const Whole &whole, int64_t number, float *memory)
      : p(whole.p), whole(whole), operands(whole.operands), depth(p.headDim),
        chunk(attentionChunk(p)), head(number / whole.groups % p.heads),
        batch(number / whole.groups / p.heads),
        panel0(number % whole.groups * whole.group),
        panelEnd(std::min(whole.panels, panel0 + whole.group)), packedK(memory),
        packedV(packedK + chunk * depth), tile(packedV + chunk * depth),
        keep(reinterpret_cast<int32_t *>(tile + chunk * kPanelN)),
        states(tile + 2 * chunk * kPanelN),
        scores(p.type == DType::BF16, depth) {}

  void run() {
    const int64_t kvHead = head / (p.heads / p.kvHeads);
    const gemm::Matrix kHead =
        whole.k.shifted(batch * p.k.batch + kvHead * p.k.head);
    const gemm::Matrix vHead =
        whole.v.shifted(batch * p.v.batch + kvHead * p.v.head);
    for (int64_t panel = panel0; panel < panelEnd; ++panel)
      start(panel);
    const int64_t groupSees = cpu::keyEnd(
        p, operands, batch, std::min(p.queries, panelEnd * kPanelN));
    for (int64_t s0 = firstChunk(panel0 * kPanelN); s0 < groupSees;
         s0 += chunk) {
      const int64_t here = std::min(chunk, groupSees - s0);
      scores.packLeft(kHead.at(s0, 0), here, packedK);
      gemm::packA(vHead.at(s0, 0).transposed(), depth, here, packedV);
      for (int64_t panel = panel0; panel < panelEnd; ++panel)
        addKeys(panel, s0, here);
    }
    for (int64_t panel = panel0; panel < panelEnd; ++panel)
      finish(panel);
  }

private:
  PanelState stateOf(int64_t panel) const {
    float *acc = states + (panel - panel0) * stateFloats();
    return {acc, acc + depth * kPanelN, acc + (depth + 1) * kPanelN};
  }
  float *packedQ(int64_t panel) const {
    return states + (panel - panel0) * stateFloats() + (depth + 2) * kPanelN;
  }
  int64_t stateFloats() const { return (2 * depth + 2) * kPanelN; }
  int64_t queriesOf(int64_t panel) const {
    return std::min<int64_t>(kPanelN, p.queries - panel * kPanelN);
  }
  /// Chunks begin at multiples of their size, for any window.
  int64_t firstChunk(int64_t q0) const {
    return cpu::firstKey(p, q0) / chunk * chunk;
  }

  void start(int64_t panel) {
    const gemm::Matrix qHead =
        whole.q.shifted(batch * p.q.batch + head * p.q.head);
    scores.packRight(qHead.at(panel * kPanelN, 0).transposed(),
                     queriesOf(panel), packedQ(panel));
    const PanelState state = stateOf(panel);
    std::fill(state.acc, state.acc + depth * kPanelN, 0.0f);
    std::fill(state.top, state.top + kPanelN, -kInfinity);
    std::fill(state.sums, state.sums + kPanelN, 0.0f);
  }

  /// Adds a chunk of `here` keys, from s0 on, to a panel.
  void addKeys(int64_t panel, int64_t s0, int64_t here) {
    const int64_t q0 = panel * kPanelN;
    const int64_t queries = queriesOf(panel);
    const int64_t keys =
        std::min(here, cpu::keyEnd(p, operands, batch, q0 + queries) - s0);
    const int64_t first = firstChunk(q0);
    if (keys <= 0 || s0 < first)
      return;
    // Whole panels of keys, which may extend beyond `keys`; the tile has room
    // for the chunk.
    scores.multiply(keys, here, packedK, packedQ(panel), tile);
    const cpu::AttentionTile at{batch, head, q0, queries, s0, keys};
    const float scale = cpu::scaleAndMask(p, operands, at, tile, nullptr);
    const PanelState state = stateOf(panel);
    V shrink[kVectors];
    softmaxRows(tile, keys, scale, state, shrink);
    if (p.dropout > 0) {
      cpu::dropoutBits(p, operands, at, keep);
      zeroDropped(tile, keep, keys);
    }
    if (s0 > first)
      for (int64_t d = 0; d < depth; ++d)
        for (int j = 0; j < kVectors; ++j) {
          float *acc = state.acc + d * kPanelN + j * kWidth;
          simd::store(acc, simd::load(acc) * shrink[j]);
        }
    for (int64_t d = 0; d < depth; d += kPanelM)
      gemm::inner(std::min<int64_t>(kPanelM, depth - d), kPanelN, keys,
                  packedV + d * here, tile, state.acc + d * kPanelN, kPanelN,
                  s0 > first, nullptr);
  }

  /// Divides by the sums, and writes the panel's rows and their log-sum-exps.
  void finish(int64_t panel) {
    const float dropScale = p.dropout > 0 ? float(1 / (1 - p.dropout)) : 1.0f;
    const int64_t q0 = panel * kPanelN, queries = queriesOf(panel);
    const PanelState state = stateOf(panel);
    for (int j = 0; j < kVectors; ++j) {
      const V sum = simd::load(state.sums + j * kWidth);
      const V factor = sum > 0.0f ? simd::splat(dropScale) / sum : V{};
      for (int64_t d = 0; d < depth; ++d) {
        float *acc = state.acc + d * kPanelN + j * kWidth;
        simd::store(acc, simd::load(acc) * factor);
      }
    }
    const StoredRows to =
        whole.out.row(batch * p.queries + q0).shifted(head * depth);
    if (p.type == DType::F32) {
      cpu::transposePanel(state.acc, depth, queries, to.floats(), to.stride,
                          false);
    } else {
      // The packed queries aren't needed any more.
      cpu::transposePanel(state.acc, depth, queries, packedQ(panel), depth,
                          false);
      narrowRows(packedQ(panel), depth, queries, depth, to);
    }
    for (int64_t i = 0; i < queries; ++i)
      whole.lse[(batch * p.heads + head) * p.queries + q0 + i] =
          state.sums[i] > 0
              ? markHidden(p, state.top[i] + std::log(state.sums[i]))
              : -kInfinity;
  }

  const AttentionParams &p;
  const Whole &whole;
  const AttentionExtras &operands;
  const int64_t depth, chunk, head, batch, panel0, panelEnd;
  // The pieces of the worker's scratch.
  float *const packedK, *const packedV, *const tile;
  int32_t *const keep;
  float *const states;
  const gemm::PanelProducts scores;
};

} // namespace

struct Attention::State {};
Attention::Attention(const Params &params) : params_(params) {}
Attention::~Attention() = default;

Status Attention::prepare(Device &) {
  return cpu::requireScratch("attention", scratchCap(params_, Backend::Cpu),
                             params_.scratchBytes);
}

void Attention::run(Stream &stream, In ins, Out outs, void *scratch, bool) {
  const Params &p = params_;
  const int64_t panels = (p.queries + kPanelN - 1) / kPanelN;
  const int64_t group =
      std::min(panels, attentionGroup(p) * (kAttentionPanel / kPanelN));
  const int64_t groups = (panels + group - 1) / group;
  const Whole whole{p,
                    {operand(ins, 0), p.q.time, 1, p.type},
                    {operand(ins, 1), p.k.time, 1, p.type},
                    {operand(ins, 2), p.v.time, 1, p.type},
                    AttentionExtras::of(ins, 3),
                    {result(outs, 0), p.heads * p.headDim, p.type},
                    static_cast<float *>(result(outs, 1)),
                    panels,
                    group,
                    groups};
  const int64_t workerBytes = attentionWorkerBytes(p);
  auto part = [&](int64_t number, int64_t worker) {
    char *memory = static_cast<char *>(scratch) + worker * workerBytes;
    Part(whole, number, reinterpret_cast<float *>(memory)).run();
  };
  const int64_t tiles = p.batch * p.heads * groups;
  parallelFor(stream, tiles, attentionWorkers(tiles), part);
  if (p.fill != 0)
    cpu::attendHidden(stream, p, ins, outs);
}

} // namespace tmc
