//===- Embedding.cpp - rows of a table by index, on cpu -------------------===//

#include "runtime/kernels/Embedding.h"

#include "runtime/cpu/Checks.h"
#include "runtime/cpu/Parallel.h"
#include "runtime/cpu/Simd.h"

#include <algorithm>
#include <cstring>

namespace tmc {

namespace {
/// Rows that one part copies; columns that one part of the gradient adds up.
constexpr int64_t kRowsPerTile = 64;
constexpr int64_t kColumnsPerTile = 128;

/// Reports the first index outside the table, before the rows are handed out.
void reportFault(Stream &stream, const EmbeddingParams &p, const void *index) {
  for (int64_t r = 0; r < p.rows; ++r) {
    const int64_t i = cpu::indexAt(index, p.indexType, r);
    if (i >= 0 && i < p.vocabulary)
      continue;
    if (!stream.fault.set)
      stream.fault = {true, r, i, p.vocabulary};
    return;
  }
}
} // namespace

struct Embedding::State {};
Embedding::Embedding(const Params &params) : params_(params) {}
Embedding::~Embedding() = default;

Status Embedding::prepare(Device &) { return Status::ok(); }

void Embedding::run(Stream &stream, In ins, Out outs, void *, bool) {
  const Params &p = params_;
  const char *table = static_cast<const char *>(operand(ins, 0));
  const void *index = operand(ins, 1);
  char *out = static_cast<char *>(result(outs, 0));
  const int64_t rowBytes = p.channels * sizeOf(p.type);
  reportFault(stream, p, index);
  parallelFor(stream, (p.rows + kRowsPerTile - 1) / kRowsPerTile,
              [&](int64_t tile, int64_t) {
                const int64_t last =
                    std::min(p.rows, (tile + 1) * kRowsPerTile);
                for (int64_t r = tile * kRowsPerTile; r < last; ++r) {
                  int64_t i = cpu::indexAt(index, p.indexType, r);
                  i = i >= 0 && i < p.vocabulary ? i : 0;
                  std::memcpy(out + r * rowBytes, table + i * rowBytes,
                              size_t(rowBytes));
                }
              });
}

struct EmbeddingGrad::State {};
EmbeddingGrad::EmbeddingGrad(const Params &params) : params_(params) {}
EmbeddingGrad::~EmbeddingGrad() = default;

Status EmbeddingGrad::prepare(Device &) { return Status::ok(); }

void EmbeddingGrad::run(Stream &stream, In ins, Out outs, void *,
                        bool accumulate) {
  const Params &p = params_;
  const void *index = operand(ins, 0);
  const float *dout = static_cast<const float *>(operand(ins, 1));
  float *table = static_cast<float *>(result(outs, 0));
  if (!accumulate) {
    constexpr int64_t zeroTile = 1 << 18;
    const int64_t count = p.vocabulary * p.channels;
    parallelFor(
        stream, (count + zeroTile - 1) / zeroTile, [&](int64_t tile, int64_t) {
          std::memset(table + tile * zeroTile, 0,
                      size_t(std::min(zeroTile, count - tile * zeroTile)) * 4);
        });
  }
  reportFault(stream, p, index);
  // A part owns some columns, and adds all rows to them in order.
  parallelFor(
      stream, (p.channels + kColumnsPerTile - 1) / kColumnsPerTile,
      [&](int64_t tile, int64_t) {
        const int64_t c0 = tile * kColumnsPerTile;
        const int64_t width = std::min(kColumnsPerTile, p.channels - c0);
        for (int64_t r = 0; r < p.rows; ++r) {
          const int64_t i = cpu::indexAt(index, p.indexType, r);
          if (i < 0 || i >= p.vocabulary)
            continue;
          float *to = table + i * p.channels + c0;
          const float *from = dout + r * p.channels + c0;
          int64_t c = 0;
          for (; c + simd::kWidth <= width; c += simd::kWidth)
            simd::store(to + c, simd::load(to + c) + simd::load(from + c));
          for (; c < width; ++c)
            to[c] += from[c];
        }
      });
}

} // namespace tmc
