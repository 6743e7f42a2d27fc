//===- AttentionTile.cpp - scores of one block, with keys in rows ---------===//

#include "runtime/cpu/AttentionTile.h"

#include "runtime/cpu/PhiloxSimd.h"
#include "runtime/cpu/TransposeBlock.h"
#include "runtime/kernels/Math.h"

#include <algorithm>
#include <limits>

namespace tmc::cpu {

using gemm::kPanelN;
using gemm::kVectors;
using simd::kWidth;
using simd::V;
using simd::VI;
using simd::VU;

namespace {

constexpr float kUnseen = -std::numeric_limits<float>::infinity();

/// 0, 1, 2, ... across the lanes.
VI laneNumbers() {
  VI v;
  for (int i = 0; i < kWidth; ++i)
    v[i] = i;
  return v;
}

/// Adds m[q * stride + r]; if stride is 0, the same for every query.
void addNumbers(const float *m, int64_t stride, const AttentionTile &tile,
                float *scores) {
  if (stride == 0) {
    for (int64_t r = 0; r < tile.keys; ++r)
      for (int v = 0; v < kVectors; ++v) {
        float *at = scores + r * kPanelN + v * kWidth;
        simd::store(at, simd::load(at) + simd::splat(m[r]));
      }
    return;
  }
  alignas(64) float block[kWidth * kWidth];
  for (int64_t q = 0; q < tile.queries; q += kWidth) {
    const int64_t lanes = std::min<int64_t>(kWidth, tile.queries - q);
    int64_t r = 0;
    for (; lanes == kWidth && r + kWidth <= tile.keys; r += kWidth) {
      simd::transposeBlock(m + q * stride + r, stride, block, kWidth);
      for (int i = 0; i < kWidth; ++i) {
        float *at = scores + (r + i) * kPanelN + q;
        simd::store(at, simd::load(at) + simd::load(block + i * kWidth));
      }
    }
    for (; r < tile.keys; ++r)
      for (int64_t i = 0; i < lanes; ++i)
        scores[r * kPanelN + q + i] += m[(q + i) * stride + r];
  }
}

void addMask(const AttentionParams &p, const void *mask,
             const AttentionTile &tile, float *scores) {
  const int64_t offset = tile.batch * p.maskBatchStride +
                         tile.head * p.maskHeadStride +
                         tile.query * p.maskQueryStride + tile.key;
  if (p.mask == MaskKind::Additive)
    return addNumbers(static_cast<const float *>(mask) + offset,
                      p.maskQueryStride, tile, scores);
  const unsigned char *m = static_cast<const unsigned char *>(mask) + offset;
  for (int64_t q = 0; q < tile.queries; ++q)
    for (int64_t r = 0; r < tile.keys; ++r)
      if (!m[q * p.maskQueryStride + r])
        scores[r * kPanelN + q] = kUnseen;
}

/// softcap * tanh(score / softcap), and its derivatives.
void capScores(const AttentionParams &p, int64_t count, float *scores,
               float *slopes) {
  const V cap = simd::splat(float(p.softcap));
  const V inverse = simd::splat(float(1 / p.softcap));
  for (int64_t i = 0; i < count; i += kWidth) {
    const V t = math::tanh(simd::load(scores + i) * inverse);
    simd::store(scores + i, cap * t);
    if (slopes)
      simd::store(slopes + i, 1.0f - t * t);
  }
}

/// Hides the keys from `end` on in the first lane, from `end` + 1 on in the
/// second, and so on: the keys right of a diagonal. Keys below `least` stay
/// visible.
void hideAfter(const AttentionTile &tile, int64_t end, int64_t least,
               float *scores) {
  const VI lanes = laneNumbers();
  const int64_t first = std::max(end, least) - tile.key;
  for (int64_t r = std::max<int64_t>(0, first); r < tile.keys; ++r)
    for (int v = 0; v < kVectors; ++v) {
      float *at = scores + r * kPanelN + v * kWidth;
      const VI seen = lanes > int32_t(r + tile.key - end - v * kWidth);
      simd::store(at, seen ? simd::load(at) : simd::splat(kUnseen));
    }
}

/// Hides the keys before `first` in the first lane, before `first` + 1 in the
/// second, and so on.
void hideBefore(const AttentionTile &tile, int64_t first, float *scores) {
  const VI lanes = laneNumbers();
  const int64_t end = std::min(tile.keys, first + kPanelN - 1 - tile.key);
  for (int64_t r = 0; r < end; ++r)
    for (int v = 0; v < kVectors; ++v) {
      float *at = scores + r * kPanelN + v * kWidth;
      const VI seen = lanes <= int32_t(r + tile.key - first - v * kWidth);
      simd::store(at, seen ? simd::load(at) : simd::splat(kUnseen));
    }
}

/// Hides the keys of other groups.
void hideOthers(const AttentionParams &p, const int64_t *groups,
                const AttentionTile &tile, float *scores) {
  groups += tile.batch * p.groupsBatchStride;
  const int64_t *own = groups + tile.query + p.keys - p.queries;
  for (int64_t r = 0; r < tile.keys; ++r)
    for (int64_t q = 0; q < tile.queries; ++q)
      if (groups[tile.key + r] != own[q])
        scores[r * kPanelN + q] = kUnseen;
}

} // namespace

float scaleAndMask(const AttentionParams &p, const AttentionExtras &operands,
                   const AttentionTile &tile, float *scores, float *slopes) {
  if (!(p.softcap > 0) && p.mask == MaskKind::None && !p.bias && !p.causal &&
      !(p.window > 0) && !operands.groups)
    return float(p.scale);
  const V scale = simd::splat(float(p.scale));
  for (int64_t i = 0; i < tile.keys * kPanelN; i += kWidth)
    simd::store(scores + i, simd::load(scores + i) * scale);
  if (p.softcap > 0)
    capScores(p, tile.keys * kPanelN, scores, slopes);
  if (p.mask != MaskKind::None)
    addMask(p, operands.mask, tile, scores);
  if (p.bias)
    addNumbers(operands.bias + tile.batch * p.biasBatchStride +
                   tile.head * p.biasHeadStride +
                   tile.query * p.biasQueryStride + tile.key,
               p.biasQueryStride, tile, scores);
  // The position of the first lane's query among the keys.
  const int64_t at = tile.query + p.keys - p.queries;
  if (p.causal)
    hideAfter(
        tile, at + 1,
        operands.prefix ? operands.prefix[tile.batch * p.prefixBatchStride] : 0,
        scores);
  if (p.window > 0) {
    hideAfter(tile, at + p.window, 0, scores);
    hideBefore(tile, at - p.window + 1, scores);
  }
  if (operands.groups)
    hideOthers(p, operands.groups, tile, scores);
  return 1;
}

void dropoutBits(const AttentionParams &p, const AttentionExtras &operands,
                 const AttentionTile &tile, int32_t *keep) {
  const Philox philox(operands.seed, p.stream);
  const uint32_t threshold = philoxThreshold(p.dropout);
  const int64_t rows = p.rowsPerSample > 1 ? p.rowsPerSample : 1;
  const uint64_t sample =
      uint64_t(operands.samples[tile.batch / rows] * rows + tile.batch % rows);
  const uint64_t row0 =
      (sample * uint64_t(p.heads) + uint64_t(tile.head)) * uint64_t(p.queries) +
      uint64_t(tile.query);
  const uint64_t keys = uint64_t(p.keys);
  if (keys % 4 || tile.key % 4) {
    // Quads cross the ends of rows: one word at a time.
    for (int64_t r = 0; r < tile.keys; ++r)
      for (int64_t q = 0; q < kPanelN; ++q) {
        const uint64_t index =
            (row0 + uint64_t(q)) * keys + uint64_t(tile.key + r);
        keep[r * kPanelN + q] =
            q < tile.queries && (philox.word(index) >> 8) >= threshold ? -1 : 0;
      }
    return;
  }
  for (int v = 0; v < kVectors; ++v) {
    // The quad at (lane, key 0), in halves.
    VU low, high;
    for (int i = 0; i < kWidth; ++i) {
      const uint64_t quad = (row0 + uint64_t(v * kWidth + i)) * (keys / 4);
      low[i] = uint32_t(quad);
      high[i] = uint32_t(quad >> 32);
    }
    for (int64_t r = 0; r < tile.keys; r += 4) {
      const uint32_t step = uint32_t((tile.key + r) / 4);
      const VU sum = low + step;
      VU words[4];
      simd::philoxQuads(philox, sum, high - (VU)(sum < step), words);
      const int64_t rows = std::min<int64_t>(4, tile.keys - r);
      for (int64_t j = 0; j < rows; ++j) {
        const VI bits = (words[j] >> 8) >= threshold;
        std::memcpy(keep + (r + j) * kPanelN + v * kWidth, &bits, sizeof bits);
      }
    }
  }
}

void transposePanel(const float *from, int64_t depth, int64_t queries,
                    float *to, int64_t stride, bool accumulate) {
  alignas(64) float block[kWidth * kWidth];
  for (int64_t q = 0; q < queries; q += kWidth) {
    const int64_t lanes = std::min<int64_t>(kWidth, queries - q);
    int64_t d = 0;
    for (; d + kWidth <= depth; d += kWidth) {
      simd::transposeBlock(from + d * kPanelN + q, kPanelN, block, kWidth);
      for (int64_t i = 0; i < lanes; ++i) {
        float *at = to + (q + i) * stride + d;
        const V x = simd::load(block + i * kWidth);
        simd::store(at, accumulate ? simd::load(at) + x : x);
      }
    }
    for (; d < depth; ++d)
      for (int64_t i = 0; i < lanes; ++i) {
        float &at = to[(q + i) * stride + d];
        const float x = from[d * kPanelN + q + i];
        at = accumulate ? at + x : x;
      }
  }
}

} // namespace tmc::cpu
