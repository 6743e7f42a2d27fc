//===- ShardedEmbedding.cpp - rows of a table kept as shards, on cpu ------===//

#include "runtime/kernels/ShardedEmbedding.h"

#include "runtime/cpu/Checks.h"
#include "runtime/cpu/Parallel.h"
#include "runtime/cpu/RankGroup.h"
#include "runtime/cpu/Simd.h"

#include <algorithm>
#include <cstring>

namespace tmc {

namespace {
/// Rows that one part copies; columns that one part of the gradient adds up.
constexpr int64_t kRowsPerTile = 64;
constexpr int64_t kColumnsPerTile = 128;

/// The columns [begin, end) of a row that lie in a shard.
struct Columns {
  int64_t begin, end;
};

/// The columns within [from, to) of row `row` that lie in shard `place`.
Columns columnsIn(const ShardedEmbeddingParams &p, int64_t place, int64_t row,
                  int64_t from, int64_t to) {
  const int64_t first = place * p.shard - row * p.channels;
  return {std::clamp(first, from, to), std::clamp(first + p.shard, from, to)};
}

/// Fills numbers of `bytes` bytes, with their sign bit alone if `isNegative`.
void fillZeros(char *to, int64_t count, int64_t bytes, bool isNegative) {
  std::memset(to, 0, size_t(count * bytes));
  if (isNegative)
    for (int64_t i = 0; i < count; ++i)
      to[(i + 1) * bytes - 1] = char(0x80);
}
} // namespace

struct EmbeddingPieces::State : cpu::RankGroup {};
EmbeddingPieces::EmbeddingPieces(const Params &params)
    : params_(params), state_(std::make_unique<State>()) {}
EmbeddingPieces::~EmbeddingPieces() = default;

Status EmbeddingPieces::prepare(Device &device) {
  return state_->find(device, params_.axis, params_.ranks);
}

void EmbeddingPieces::run(Stream &stream, In ins, Out outs, void *, bool) {
  const Params &p = params_;
  const char *shard = static_cast<const char *>(operand(ins, 0));
  const void *index = operand(ins, 1);
  char *out = static_cast<char *>(result(outs, 0));
  const int64_t bytes = sizeOf(p.type);
  const int64_t place = state_->peers->place(p.axis);
  auto indexOf = [&](int64_t row) {
    return cpu::indexAt(index, p.indexType, row);
  };
  for (int64_t r = 0; r < p.rows && !stream.fault.set; ++r)
    if (const int64_t i = indexOf(place * p.rows + r);
        i < 0 || i >= p.vocabulary)
      stream.fault = {true, r, i, p.vocabulary};
  for (int64_t rank = 0; rank < p.ranks; ++rank)
    fillZeros(out + (rank * p.piece + p.rows * p.channels) * bytes,
              p.piece - p.rows * p.channels, bytes, false);
  const int64_t rows = p.ranks * p.rows;
  parallelFor(
      stream, (rows + kRowsPerTile - 1) / kRowsPerTile,
      [&](int64_t tile, int64_t) {
        const int64_t last = std::min(rows, (tile + 1) * kRowsPerTile);
        for (int64_t r = tile * kRowsPerTile; r < last; ++r) {
          int64_t i = indexOf(r);
          i = i >= 0 && i < p.vocabulary ? i : 0;
          const Columns own = columnsIn(p, place, i, 0, p.channels);
          char *to =
              out + (r / p.rows * p.piece + r % p.rows * p.channels) * bytes;
          fillZeros(to, own.begin, bytes, true);
          if (own.begin < own.end)
            std::memcpy(to + own.begin * bytes,
                        shard + (i * p.channels + own.begin - place * p.shard) *
                                    bytes,
                        size_t((own.end - own.begin) * bytes));
          fillZeros(to + own.end * bytes, p.channels - own.end, bytes, true);
        }
      });
}

struct EmbeddingGradShard::State : cpu::RankGroup {};
EmbeddingGradShard::EmbeddingGradShard(const Params &params)
    : params_(params), state_(std::make_unique<State>()) {}
EmbeddingGradShard::~EmbeddingGradShard() = default;

Status EmbeddingGradShard::prepare(Device &device) {
  return state_->find(device, params_.axis, params_.ranks);
}

void EmbeddingGradShard::run(Stream &stream, In ins, Out outs, void *,
                             bool accumulate) {
  const Params &p = params_;
  const void *index = operand(ins, 0);
  const float *dout = static_cast<const float *>(operand(ins, 1));
  float *shard = static_cast<float *>(result(outs, 0));
  const int64_t place = state_->peers->place(p.axis);
  if (!accumulate) {
    constexpr int64_t zeroTile = 1 << 18;
    parallelFor(stream, (p.shard + zeroTile - 1) / zeroTile,
                [&](int64_t tile, int64_t) {
                  const int64_t begin = tile * zeroTile;
                  std::memset(shard + begin, 0,
                              size_t(std::min(zeroTile, p.shard - begin)) * 4);
                });
  }
  // A part owns some columns, and adds all rows to them in order.
  parallelFor(
      stream, (p.channels + kColumnsPerTile - 1) / kColumnsPerTile,
      [&](int64_t tile, int64_t) {
        const int64_t c0 = tile * kColumnsPerTile;
        const int64_t c1 = std::min(p.channels, c0 + kColumnsPerTile);
        for (int64_t r = 0; r < p.ranks * p.rows; ++r) {
          const int64_t i = cpu::indexAt(index, p.indexType, r);
          if (i < 0 || i >= p.vocabulary)
            continue;
          const Columns own = columnsIn(p, place, i, c0, c1);
          if (own.begin == own.end)
            continue;
          float *to = shard + (i * p.channels + own.begin - place * p.shard);
          const float *from = dout + r * p.channels + own.begin;
          const int64_t width = own.end - own.begin;
          int64_t c = 0;
          for (; c + simd::kWidth <= width; c += simd::kWidth)
            simd::store(to + c, simd::load(to + c) + simd::load(from + c));
          for (; c < width; ++c)
            to[c] += from[c];
        }
      });
}

} // namespace tmc
